/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connecting: targets, errors that say what to try, racing, time-out and cancel. */

#include "base/list.h"
#include "tests/support/net.h"
#include "transport/address/address.h"
#include "transport/channel/connector.h"

#include <arpa/inet.h>
#include <bowline/limits.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the resolver and connect() are made to answer. */
struct script {
    struct net net;
    struct probe probe;
    int n_done;
    int error;
    char stage[32];
    char text[512];
    struct bow_channel *channel;

    const char *names[8]; /* addresses that resolve() gives, as HOST:PORT with port 0 for its own */
    int n_names;
    int resolve_error;
    pthread_mutex_t gate; /* held: resolve() does not return */
    atomic_int n_resolves;
    atomic_int n_returns;
    bool hangs_on_v6;            /* connect() to any v6 address goes nowhere */
    const char *meets_itself_at; /* for that host connect() takes the port for its own end */
    int v6_error;                /* what connect() to any v6 address fails with at once */
    const char *source;
    int connect_error; /* what connect() fails with at once */
    char order[512];   /* addresses in the order in which they were tried, with the time in ms */
    size_t order_len;
};

static struct script *script_of(void *user)
{
    struct net *net = BOW__CONTAINER(user, struct net, t.fake);
    return BOW__CONTAINER(net, struct script, net);
}

static int scripted_resolve(void *user, const char *host, uint16_t port,
                            struct bow_sockaddr *addresses, int max, const char **ret_reason)
{
    struct script *script = script_of(user);
    (void)host;

    atomic_fetch_add(&script->n_resolves, 1);
    pthread_mutex_lock(&script->gate);
    pthread_mutex_unlock(&script->gate);
    *ret_reason = "Name or service not known";
    int n_names = script->resolve_error != 0 ? script->resolve_error : script->n_names;
    for (int i = 0; i < n_names && i < max; i++) {
        struct bow__address address;
        struct bow__text why;
        bow__text_clear(&why);
        assert_int_equal(bow__address_parse(script->names[i], &address, &why), 0);
        addresses[i] = address.sockaddr;
        ((struct sockaddr_in *)(void *)&addresses[i].storage)->sin_port = htons(port);
    }
    atomic_fetch_add(&script->n_returns, 1); /* it touches the script no more */
    return n_names;
}

static int scripted_connect(void *user, int fd, const struct bow_sockaddr *address)
{
    struct script *script = script_of(user);
    char text[BOW__ADDRESS_TEXT_BYTES];
    uint64_t ms = (atomic_load(&script->net.t.fake.now_ns) - FAKE_START) / FAKE_MS;

    bow__address_format(address, text);
    *strrchr(text, ':') = '\0';
    int n = snprintf(script->order + script->order_len, sizeof(script->order) - script->order_len,
                     " %s@%u", text, (unsigned)ms);
    script->order_len += (size_t)n;
    if (script->v6_error != 0 && text[0] == '[') {
        return script->v6_error;
    }
    if (script->connect_error != 0) {
        return script->connect_error;
    }
    if (script->meets_itself_at != NULL && strcmp(text, script->meets_itself_at) == 0) {
        assert_int_equal(bow_system_default()->bind(NULL, fd, address), 0);
    }
    return bow_system_default()->connect(NULL, fd, address);
}

static void begin(struct script *script, bool is_fake)
{
    memset(script, 0, sizeof(*script));
    pthread_mutex_init(&script->gate, NULL);
    if (is_fake) {
        net_begin_fake(&script->net);
    } else {
        net_begin(&script->net);
    }
    script->net.system.resolve = scripted_resolve;
    script->net.system.connect = scripted_connect;
    probe_init(&script->probe, &script->net);
    net_turn(&script->net);
}

static void end(struct script *script)
{
    net_end(&script->net);
    /* No end waits for a look-up, but the test does. */
    assert_int_equal(atomic_load(&script->n_returns), atomic_load(&script->n_resolves));
    pthread_mutex_destroy(&script->gate);
}

static int add_probe(struct bow_channel *channel, void *user)
{
    struct script *script = user;

    bow_channel_add_last(channel, &script->probe.handler);
    return 0;
}

static void on_done(struct bow_channel *channel, const struct bow_transport_error *error,
                    void *user)
{
    struct script *script = user;

    script->n_done++;
    script->channel = channel;
    if (error != NULL) {
        script->error = error->error;
        snprintf(script->stage, sizeof(script->stage), "%s", error->stage);
        snprintf(script->text, sizeof(script->text), "%s", error->text);
    }
}

static struct bow_connect *start(struct script *script, const char *target, uint64_t timeout_ns)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_connect *connect = NULL;
    struct bow_transport_error error;

    options.on_channel = add_probe;
    options.user = script;
    options.source = script->source;
    int rc = bow_connect_start(script->net.loop, target, &options, timeout_ns, on_done, script,
                               &connect, &error);
    if (rc < 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(script->n_done, 0); /* never from inside the starter */
    return connect;
}

static uint16_t listen_on(int *ret_fd, int family, int backlog)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
    socklen_t len = family == AF_INET ? sizeof(in) : sizeof(in6);

    *ret_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*ret_fd >= 0);
    assert_int_equal(bind(*ret_fd, address, len), 0);
    assert_int_equal(listen(*ret_fd, backlog), 0);
    assert_int_equal(getsockname(*ret_fd, address, &len), 0);
    return family == AF_INET ? ntohs(in.sin_port) : ntohs(in6.sin6_port);
}

static void test_connector_numeric_address_gives_an_active_channel(void **state)
{
    struct script script;
    char target[64];
    int listener;
    (void)state;
    begin(&script, false);
    snprintf(target, sizeof(target), "127.0.0.1:%u", listen_on(&listener, AF_INET, 8));
    start(&script, target, FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, 0);
    assert_non_null(script.channel);
    assert_true(bow_channel_is_active(script.channel));
    assert_string_equal(bow_channel_peer(script.channel), target);
    assert_string_equal(script.probe.log, " added active");
    assert_int_equal(atomic_load(&script.n_resolves), 0);

    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
    net_run_until(&script.net, script.probe.n_bytes == 5);
    close(fd);
    close(listener);
    end(&script);
}

static void test_connector_refused_says_what_to_try(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    start(&script, "127.0.0.1:1", FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_null(script.channel);
    assert_int_equal(script.error, -ECONNREFUSED);
    assert_string_equal(script.stage, "connecting");
    assert_string_equal(script.text, "connecting to 127.0.0.1:1: ECONNREFUSED (Connection "
                                     "refused): is the server running there?");
    end(&script);
}

/* Sockets whose backlog is full: a further connect() gets no answer. */
struct silent {
    int listener;
    int fillers[4];
    uint16_t port;
};

static void silent_begin(struct silent *silent, int family)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    silent->port = listen_on(&silent->listener, family, 0);
    assert_int_equal(getsockname(silent->listener, (struct sockaddr *)&address, &len), 0);
    for (int i = 0; i < 4; i++) {
        silent->fillers[i] = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(silent->fillers[i], (struct sockaddr *)&address, len);
    }
}

static void silent_end(struct silent *silent)
{
    for (int i = 0; i < 4; i++) {
        close(silent->fillers[i]);
    }
    close(silent->listener);
}

static void test_connector_silent_host_times_out_in_time(void **state)
{
    struct script script;
    struct silent silent;
    char target[64];
    (void)state;
    begin(&script, true);
    silent_begin(&silent, AF_INET);
    snprintf(target, sizeof(target), "127.0.0.1:%u", silent.port);
    uint64_t from = bow_loop_now(script.net.loop);
    start(&script, target, 100 * FAKE_MS);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ETIMEDOUT);
    assert_string_equal(script.stage, "connecting");
    assert_non_null(strstr(script.text, target));
    assert_non_null(strstr(script.text, "no answer within 100 ms"));
    assert_int_equal(bow_loop_now(script.net.loop) - from, 100 * FAKE_MS);
    silent_end(&silent);
    end(&script);
}

static void test_connector_name_is_resolved_on_its_own_thread_that_ends(void **state)
{
    struct script script;
    char target[64];
    int listener;
    (void)state;
    begin(&script, false);
    script.names[0] = "127.0.0.1:0";
    script.n_names = 1;
    snprintf(target, sizeof(target), "server.test:%u", listen_on(&listener, AF_INET, 8));
    size_t bytes = bow_context_bytes(script.net.t.context);
    for (int i = 1; i <= 3; i++) {
        probe_init(&script.probe, &script.net);
        script.n_done = 0;
        start(&script, target, 5 * FAKE_S);
        net_run_until(&script.net, script.n_done == 1);
        assert_int_equal(script.error, 0);
        assert_int_equal(atomic_load(&script.n_resolves), i);
        bow_channel_close(script.channel, 0);
        net_run_until(&script.net, script.probe.n_removed == 1);
        net_turn(&script.net);
        assert_int_equal(bow_context_bytes(script.net.t.context), bytes);
    }
    close(listener);
    end(&script);
}

static void test_connector_unknown_name_gives_the_resolvers_reason(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    script.resolve_error = -ENOENT;
    start(&script, "nowhere.test:80", 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ENOENT);
    assert_string_equal(script.stage, "resolving");
    assert_string_equal(script.text, "resolving nowhere.test:80: ENOENT (No such file or "
                                     "directory): Name or service not known");
    end(&script);
}

static void test_connector_times_out_while_the_name_is_being_resolved(void **state)
{
    struct script script;
    (void)state;
    begin(&script, true);
    pthread_mutex_lock(&script.gate);
    uint64_t from = bow_loop_now(script.net.loop);
    start(&script, "slow.test:80", 100 * FAKE_MS);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ETIMEDOUT);
    assert_string_equal(script.stage, "resolving");
    assert_non_null(strstr(script.text, "does the name server answer?"));
    assert_int_equal(bow_loop_now(script.net.loop) - from, 100 * FAKE_MS);
    pthread_mutex_unlock(&script.gate); /* the answer comes, and nobody wants it */
    end(&script);
    assert_int_equal(script.n_done, 1);
}

static void test_connector_f50_time_out_names_the_limit_of_lookups(void **state)
{
    struct script script;
    char target[32];
    (void)state;
    begin(&script, true);
    pthread_mutex_lock(&script.gate);
    for (unsigned i = 0; i < BOW_LIMIT_LOOKUPS; i++) {
        snprintf(target, sizeof(target), "slow%u.test:80", i);
        start(&script, target, 5 * FAKE_S);
    }
    start(&script, "another.test:80", 100 * FAKE_MS);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ETIMEDOUT);
    assert_non_null(strstr(script.text, "resolving another.test:80"));
    assert_non_null(strstr(script.text, "BOW_LIMIT_LOOKUPS (16)"));
    pthread_mutex_unlock(&script.gate);
    end(&script);
}

static void test_connector_cancel_completes_while_the_name_is_being_resolved(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    pthread_mutex_lock(&script.gate);
    struct bow_connect *first = start(&script, "slow.test:80", 5 * FAKE_S);
    struct bow_connect *second = start(&script, "slow.test:81", 5 * FAKE_S);
    net_run_until(&script.net, atomic_load(&script.n_resolves) == 1);
    bow_connect_cancel(second); /* waits for the same name: not resolved again */
    bow_connect_cancel(first);
    bow_connect_cancel(first);
    assert_int_equal(script.n_done, 0); /* not inside cancel */
    net_run_until(&script.net, script.n_done == 2);
    assert_int_equal(script.error, -ECANCELED);
    pthread_mutex_unlock(&script.gate);
    end(&script);
    assert_int_equal(script.n_done, 2);
    assert_int_equal(atomic_load(&script.n_resolves), 1);
}

static void test_connector_cancel_before_the_first_step_tries_nothing(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    bow_connect_cancel(start(&script, "127.0.0.1:1", 5 * FAKE_S));
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ECANCELED);
    assert_string_equal(script.order, "");
    end(&script);
}

static void test_connector_loop_shutdown_completes_each_attempt(void **state)
{
    struct script script;
    struct silent silent;
    char target[64];
    (void)state;
    begin(&script, false);
    silent_begin(&silent, AF_INET);
    pthread_mutex_lock(&script.gate);
    snprintf(target, sizeof(target), "127.0.0.1:%u", silent.port);
    start(&script, target, BOW_NEVER);
    start(&script, "slow.test:80", BOW_NEVER);
    net_run_until(&script.net, atomic_load(&script.n_resolves) == 1);
    start(&script, "127.0.0.1:1", BOW_NEVER); /* not even begun */
    net_stop(&script.net);
    assert_int_equal(script.n_done, 3);
    assert_int_equal(script.error, -ESHUTDOWN);
    pthread_mutex_unlock(&script.gate);
    silent_end(&silent);
    end(&script);
}

/* RFC 8305: families in turn, 250 ms apart, the first that answers wins. */
static void test_connector_races_addresses_250_ms_apart(void **state)
{
    struct script script;
    struct silent silent;
    char target[64];
    (void)state;
    begin(&script, true);
    silent_begin(&silent, AF_INET);
    script.names[0] = "127.0.0.1:0";
    script.names[1] = "127.0.0.1:0";
    script.n_names = 2;
    snprintf(target, sizeof(target), "server.test:%u", silent.port);
    script.net.t.fake.stands_still = true; /* while the resolver's thread is at work */
    start(&script, target, 400 * FAKE_MS);
    net_run_until(&script.net, script.order_len > 0);
    script.net.t.fake.stands_still = false;
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ETIMEDOUT);
    const char *second = strrchr(script.order, '@');
    unsigned first_ms = (unsigned)strtoul(strchr(script.order, '@') + 1, NULL, 10);
    assert_int_equal(strtoul(second + 1, NULL, 10), first_ms + 250);
    silent_end(&silent);
    end(&script);
}

static void test_connector_refused_address_is_followed_by_the_next_at_once(void **state)
{
    struct script script;
    char target[64];
    char peer[64];
    int listener;
    (void)state;
    begin(&script, true);
    uint16_t port = listen_on(&listener, AF_INET, 8);
    script.names[0] = "127.0.0.9:0"; /* nobody listens there */
    script.names[1] = "127.0.0.8:0";
    script.names[2] = "[::1]:0";
    script.names[3] = "127.0.0.1:0";
    script.n_names = 4;
    snprintf(target, sizeof(target), "server.test:%u", port);
    snprintf(peer, sizeof(peer), "127.0.0.1:%u", port);
    script.net.t.fake.stands_still = true;
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, 0);
    assert_string_equal(bow_channel_peer(script.channel), peer);
    /* The other family comes second, though it was third. */
    const char *v6 = strstr(script.order, "[::1]");
    assert_non_null(v6);
    /* None of them waited. */
    assert_int_equal(strtoul(strchr(script.order, '@') + 1, NULL, 10),
                     strtoul(strrchr(script.order, '@') + 1, NULL, 10));
    assert_true(strstr(script.order, "127.0.0.9") < v6 && v6 < strstr(script.order, "127.0.0.8"));
    close(listener);
    end(&script);
}

static void test_connector_all_addresses_refused_names_the_last(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    script.names[0] = "127.0.0.9:0";
    script.names[1] = "127.0.0.8:0";
    script.n_names = 2;
    start(&script, "server.test:1", 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_string_equal(script.text, "connecting to server.test:1 (127.0.0.8:1): ECONNREFUSED "
                                     "(Connection refused): is the server running there?");
    end(&script);
}

/* What its server said is told, and not that this host has no way to another address. */
static void test_connector_f63_address_out_of_reach_does_not_hide_a_refusal(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    script.names[0] = "127.0.0.9:0";
    script.names[1] = "[::1]:0";
    script.n_names = 2;
    script.v6_error = -ENETUNREACH;
    start(&script, "server.test:1", 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ECONNREFUSED);
    assert_non_null(strstr(script.order, "[::1]"));
    assert_string_equal(script.text, "connecting to server.test:1 (127.0.0.9:1): ECONNREFUSED "
                                     "(Connection refused): is the server running there?");
    end(&script);
}

static void test_connector_f63_address_out_of_reach_is_not_the_silent_one(void **state)
{
    struct script script;
    struct silent silent;
    char target[64];
    char shown[96];
    (void)state;
    begin(&script, true);
    silent_begin(&silent, AF_INET);
    script.names[0] = "127.0.0.1:0";
    script.names[1] = "[::1]:0";
    script.n_names = 2;
    script.v6_error = -ENETUNREACH;
    snprintf(target, sizeof(target), "server.test:%u", silent.port);
    snprintf(shown, sizeof(shown), "%s (127.0.0.1:%u)", target, silent.port);
    script.net.t.fake.stands_still = true; /* while the resolver's thread is at work */
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.order_len > 0);
    script.net.t.fake.stands_still = false;
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, -ETIMEDOUT);
    assert_non_null(strstr(script.order, "[::1]"));
    assert_non_null(strstr(script.text, shown));
    silent_end(&silent);
    end(&script);
}

static void start_listed(struct script *script, const char *target, struct bow__address_list *list)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;

    script->n_done = 0;
    options.on_channel = add_probe;
    options.user = script;
    options.source = script->source;
    assert_int_equal(bow__connect_start(script->net.loop, target, &options, 5 * FAKE_S, list,
                                        on_done, script, NULL, NULL),
                     0);
    net_run_until(&script->net, script->n_done == 1);
}

/* It is not left for who goes on to the next address, and is told of where there is no other. */
static void test_connector_f55_source_leaves_out_the_other_family(void **state)
{
    struct bow__address_list list = {.n = 0};
    struct script script;
    char target[64];
    int listener;
    (void)state;
    begin(&script, false);
    script.names[0] = "127.0.0.1:0";
    script.names[1] = "[::1]:0";
    script.n_names = 2;
    script.source = "127.0.0.1";
    snprintf(target, sizeof(target), "server.test:%u", listen_on(&listener, AF_INET, 8));
    start_listed(&script, target, &list);
    assert_int_equal(script.error, 0);
    assert_int_equal(list.n, 2);
    assert_int_equal(bow__address_list_next(&list, 0), -1);
    bow_channel_close(script.channel, 0);
    net_run_until(&script.net, script.probe.n_removed == 1);
    script.source = "::1";
    bow__address_list_clear(&list);
    start_listed(&script, target, &list);
    assert_int_equal(script.error, -ECONNREFUSED);
    assert_non_null(strstr(script.text, "([::1]:"));
    script.n_names = 1; /* the other family's alone */
    bow__address_list_clear(&list);
    start_listed(&script, target, &list);
    assert_int_equal(script.error, -EAFNOSUPPORT);
    assert_non_null(strstr(script.text, "is this host, and the source address, of that family?"));
    close(listener);
    end(&script);
}

static void test_connector_first_that_answers_wins_and_the_others_are_closed(void **state)
{
    struct script script;
    struct silent silent;
    char target[64];
    int listener;
    (void)state;
    begin(&script, false);
    /* The same port on another loopback address answers. */
    silent_begin(&silent, AF_INET);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
                             .sin_port = htons(silent.port)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(listener, 4), 0);
    script.names[0] = "127.0.0.1:0";
    script.names[1] = "127.0.0.2:0";
    script.n_names = 2;
    snprintf(target, sizeof(target), "server.test:%u", silent.port);
    int n_fds = loops_count_fds();
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, 0);
    assert_non_null(strstr(bow_channel_peer(script.channel), "127.0.0.2:"));
    assert_int_equal(loops_count_fds(), n_fds + 1);
    close(listener);
    silent_end(&silent);
    end(&script);
}

static void test_connector_unix_socket_with_a_full_backlog_is_tried_again(void **state)
{
    struct script script;
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    (void)state;
    begin(&script, true);
    options.address = "unix-abstract:bow-connector-test";
    options.loop = script.net.loop;
    assert_int_equal(bow_acceptor_new(script.net.t.context, &options, &acceptor, NULL), 0);
    script.connect_error = -EAGAIN;
    start(&script, options.address, 5 * FAKE_S);
    net_run_until(&script.net, script.order_len > 40);
    assert_int_equal(script.n_done, 0);
    script.connect_error = 0;
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, 0);
    assert_string_equal(bow_channel_peer(script.channel), options.address);
    bow_acceptor_close(acceptor, NULL, NULL);
    end(&script);
}

/* A port on which nobody listens, any more. */
static uint16_t find_free_port(int family)
{
    int fd;
    uint16_t port = listen_on(&fd, family, 1);

    close(fd);
    return port;
}

/* As a server would that starts now: nothing of the attempt is left that has the port. */
static void expect_free(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    close(fd);
}

static void test_connector_f47_connection_with_itself_is_refused(void **state)
{
    struct script script;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char target[64];
    (void)state;
    begin(&script, false);
    script.meets_itself_at = "127.0.0.1";
    in.sin_port = htons(find_free_port(AF_INET));
    snprintf(target, sizeof(target), "127.0.0.1:%u", ntohs(in.sin_port));
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_null(script.channel);
    assert_int_equal(script.error, -ECONNREFUSED);
    assert_non_null(strstr(script.text, "is the server running there?"));
    expect_free((const struct sockaddr *)&in, sizeof(in));
    end(&script);
}

static void test_connector_f47_the_same_over_ipv6(void **state)
{
    struct script script;
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    char target[64];
    (void)state;
    begin(&script, false);
    script.meets_itself_at = "[::1]";
    in6.sin6_port = htons(find_free_port(AF_INET6));
    snprintf(target, sizeof(target), "[::1]:%u", ntohs(in6.sin6_port));
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_null(script.channel);
    assert_int_equal(script.error, -ECONNREFUSED);
    expect_free((const struct sockaddr *)&in6, sizeof(in6));
    end(&script);
}

static void test_connector_f47_next_address_follows_one_that_met_itself(void **state)
{
    struct script script;
    char target[64];
    int listener;
    (void)state;
    begin(&script, false);
    uint16_t port = listen_on(&listener, AF_INET, 8);
    script.names[0] = "127.0.0.9:0"; /* nobody listens there */
    script.names[1] = "127.0.0.1:0";
    script.n_names = 2;
    script.meets_itself_at = "127.0.0.9";
    snprintf(target, sizeof(target), "server.test:%u", port);
    start(&script, target, 5 * FAKE_S);
    net_run_until(&script.net, script.n_done == 1);
    assert_int_equal(script.error, 0);
    assert_non_null(strstr(bow_channel_peer(script.channel), "127.0.0.1:"));
    close(listener);
    end(&script);
}

static void assert_not_started(struct script *script, const char *target, const char *text)
{
    const struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_connect *connect = NULL;

    assert_int_equal(bow_connect_start(script->net.loop, target, &options, FAKE_S, on_done, script,
                                       &connect, &error),
                     -EINVAL);
    assert_null(connect);
    assert_string_equal(error.stage, "parsing");
    assert_non_null(strstr(error.text, text));
}

static void test_connector_bad_target_is_refused_at_once(void **state)
{
    struct script script;
    (void)state;
    begin(&script, false);
    assert_not_started(&script, "localhost", "write HOST:PORT");
    assert_not_started(&script, "*:80", "\"*\" is for listening");
    assert_not_started(&script, "127.0.0.1:0", "port 0 is for listening");
    assert_not_started(&script, NULL, "no address given");
    end(&script);
    assert_int_equal(script.n_done, 0);
}

static int connect_once(struct bow_context *context, void *user)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    const struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_loop *loop = NULL;
    struct script script = {.n_done = 0};
    struct bow_connect *connect = NULL;

    loop_options.thread = BOW_LOOP_OWNER;
    int rc = bow_loop_new(context, &loop_options, &loop);
    if (rc < 0) {
        return rc;
    }
    rc = bow_connect_start(loop, user, &options, BOW_NEVER, on_done, &script, &connect, NULL);
    while (rc == 0 && script.n_done == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    bow_loop_unref(loop);
    return rc < 0 ? rc : script.error;
}

static void test_connector_without_memory_says_so_and_leaks_nothing(void **state)
{
    char target[64];
    int listener;
    (void)state;
    snprintf(target, sizeof(target), "127.0.0.1:%u", listen_on(&listener, AF_INET, 64));
    assert_true(test_alloc_fail_each(NULL, connect_once, target) > 2);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connector_numeric_address_gives_an_active_channel),
        cmocka_unit_test(test_connector_refused_says_what_to_try),
        cmocka_unit_test(test_connector_silent_host_times_out_in_time),
        cmocka_unit_test(test_connector_name_is_resolved_on_its_own_thread_that_ends),
        cmocka_unit_test(test_connector_unknown_name_gives_the_resolvers_reason),
        cmocka_unit_test(test_connector_times_out_while_the_name_is_being_resolved),
        cmocka_unit_test(test_connector_f50_time_out_names_the_limit_of_lookups),
        cmocka_unit_test(test_connector_cancel_completes_while_the_name_is_being_resolved),
        cmocka_unit_test(test_connector_cancel_before_the_first_step_tries_nothing),
        cmocka_unit_test(test_connector_loop_shutdown_completes_each_attempt),
        cmocka_unit_test(test_connector_races_addresses_250_ms_apart),
        cmocka_unit_test(test_connector_refused_address_is_followed_by_the_next_at_once),
        cmocka_unit_test(test_connector_all_addresses_refused_names_the_last),
        cmocka_unit_test(test_connector_f63_address_out_of_reach_does_not_hide_a_refusal),
        cmocka_unit_test(test_connector_f63_address_out_of_reach_is_not_the_silent_one),
        cmocka_unit_test(test_connector_f55_source_leaves_out_the_other_family),
        cmocka_unit_test(test_connector_first_that_answers_wins_and_the_others_are_closed),
        cmocka_unit_test(test_connector_unix_socket_with_a_full_backlog_is_tried_again),
        cmocka_unit_test(test_connector_f47_connection_with_itself_is_refused),
        cmocka_unit_test(test_connector_f47_the_same_over_ipv6),
        cmocka_unit_test(test_connector_f47_next_address_follows_one_that_met_itself),
        cmocka_unit_test(test_connector_bad_target_is_refused_at_once),
        cmocka_unit_test(test_connector_without_memory_says_so_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
