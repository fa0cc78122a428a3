/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connecting: targets, errors that say what to try, racing, time-out and cancel. */

#include "base/list.h"
#include "tests/support/net.h"
#include "transport/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
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
    bool hangs_on_v6;  /* connect() to any v6 address goes nowhere */
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
    if (script->resolve_error != 0) {
        return script->resolve_error;
    }
    for (int i = 0; i < script->n_names && i < max; i++) {
        struct bow__address address;
        struct bow__text why;
        bow__text_clear(&why);
        assert_int_equal(bow__address_parse(script->names[i], &address, &why), 0);
        addresses[i] = address.sockaddr;
        ((struct sockaddr_in *)(void *)&addresses[i].storage)->sin_port = htons(port);
    }
    return script->n_names;
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
    if (script->connect_error != 0) {
        return script->connect_error;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connector_numeric_address_gives_an_active_channel),
        cmocka_unit_test(test_connector_refused_says_what_to_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
