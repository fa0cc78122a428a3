/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls over TLS: both protocols, mutual, who the peer is, and what a call is told when
 * the connection cannot be secured. The server runs on a thread of its own.
 */

#include "certs.h"
#include "contexts.h"
#include "protos/echo.bow.h"
#include "tests/support/alloc.h"

#include <bowline/bearer.h>
#include <bowline/channel.h>
#include <bowline/metrics.h>
#include <bowline/security.h>
#include <bowline/tls.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct certs certs;
    struct bow_tls_context *server_tls;
    struct bow_tls_context *client_tls;
    struct bow_server *server;
    struct bow_client *client;
    struct bow_bearer *bearer;   /* NULL, or of the server and the client */
    uint64_t connect_timeout_ns; /* the client's */
    uint16_t port;               /* where it calls when there is no server */
    char target[64];
};

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    char subject[128] = "";

    (void)user;
    (void)request;
    int rc = bow_call_peer_subject(call, subject, sizeof(subject));
    assert_true(rc == 0 || rc == -ENODATA);
    assert_non_null(bow_call_channel(call));
    reply.text = rc == 0 ? subject : (char *)"nobody";
    if (bow_bearer_subject(call) != NULL) {
        reply.text = bow_call_strdup(call, bow_bearer_subject(call));
    }
    calls__echo__say__reply(call, &reply);
}

static void start_server(struct fixture *t, enum bow_tls_peer clients, uint32_t protocols)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    static const struct calls__echo__handlers handlers = {.say = say};

    tls.certificate.certificate_file = certs_file(&t->certs, "server.pem");
    tls.certificate.key_file = certs_file(&t->certs, "server.key");
    tls.ca_file = clients != BOW_TLS_PEER_ANY ? certs_file(&t->certs, "ca.pem") : NULL;
    tls.clients = clients;
    t->server_tls = contexts_new(t->context, &tls);
    options.context = t->context;
    options.listen = "127.0.0.1:0";
    options.security = bow_tls_security(t->server_tls);
    options.protocols = protocols;
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(calls__echo__serve(t->server, &handlers, NULL), 0);
    if (t->bearer != NULL) {
        struct bow_interceptor check;
        bow_bearer_check(t->bearer, &check);
        assert_int_equal(bow_server_intercept(t->server, &check), 0);
    }
    assert_int_equal(bow_server_start(t->server), 0);
}

static void make_client(struct fixture *t, bool grpc, const char *certificate, const char *name)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    tls.side = BOW_TLS_CLIENT;
    tls.ca_file = certs_file(&t->certs, "ca.pem");
    if (certificate != NULL) {
        tls.certificate.certificate_file = certs_file(&t->certs, certificate);
    }
    t->client_tls = contexts_new(t->context, &tls);
    snprintf(t->target, sizeof(t->target), "%s127.0.0.1:%u", grpc ? "grpc:" : "",
             t->server != NULL ? bow_server_port(t->server) : t->port);
    options.context = t->context;
    options.target = t->target;
    options.security = bow_tls_security(t->client_tls);
    options.server_name = name;
    options.connect_timeout_ns = t->connect_timeout_ns;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};
    if (t->bearer != NULL) {
        bow_bearer_send(t->bearer, &send);
        options.interceptors = interceptors;
        options.n_interceptors = 1;
    }
    assert_int_equal(bow_client_new(&options, &t->client), 0);
}

static void expect_reply(struct fixture *t, const char *text)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    const Calls__Reply *reply = calls__echo__say__call(t->client, &request, NULL, &result);

    if (reply == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    assert_string_equal(reply->text, text);
    bow_result_fini(&result);
}

static void expect_unavailable(struct fixture *t, const char *part)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_UNAVAILABLE);
    if (strstr(result.status.message, part) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", result.status.message, part);
    }
    bow_result_fini(&result);
}

static int setup(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    certs_make(&t->certs);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;

    bow_client_free(t->client);
    bow_server_free(t->server);
    bow_tls_context_unref(t->client_tls);
    bow_tls_context_unref(t->server_tls);
    bow_bearer_unref(t->bearer);
    test_context_end(t->context, &t->alloc);
    certs_remove(&t->certs);
    free(t);
    return 0;
}

static void test_calls_over_tls_are_answered(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_ANY, 0);
    make_client(t, false, NULL, NULL);
    expect_reply(t, "nobody");
    expect_reply(t, "nobody");
}

static void test_grpc_calls_over_tls_are_answered(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_ANY, 0);
    make_client(t, true, NULL, "server.test");
    expect_reply(t, "nobody");
}

static bool is_sesame(struct bow_interception *at, struct bow_slice token, void *user)
{
    (void)user;
    assert_true(bow_interception_is_secure(at));
    return token.len == 6 && memcmp(token.data, "sesame", 6) == 0 &&
           bow_bearer_set_subject(at, "ali baba") == 0;
}

static int get_sesame(struct bow_interception *at, char *token, size_t size, void *user)
{
    (void)user;
    assert_true(bow_interception_is_secure(at));
    (void)snprintf(token, size, "sesame");
    return 0;
}

/* Which it does not in the clear, unless that is asked for. */
static void expect_token_arrives(struct fixture *t, bool grpc)
{
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    options.context = t->context;
    options.check = is_sesame;
    options.get = get_sesame;
    assert_int_equal(bow_bearer_new(&options, &t->bearer), 0);
    start_server(t, BOW_TLS_PEER_ANY, 0);
    make_client(t, grpc, NULL, NULL);
    expect_reply(t, "ali baba");
}

static void test_a_bearer_token_goes_over_tls(void **state)
{
    expect_token_arrives(*state, false);
}

static void test_a_bearer_token_goes_over_tls_with_grpc(void **state)
{
    expect_token_arrives(*state, true);
}

static void test_the_peer_of_mutual_tls_is_known(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_REQUIRE, 0);
    make_client(t, false, "both.pem", NULL);
    expect_reply(t, "CN=alice,O=Example");
}

/* TLS 1.3 tells a client only after its own handshake is done. */
static void test_a_client_without_a_certificate_is_told(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_REQUIRE, 0);
    make_client(t, true, NULL, NULL);
    expect_unavailable(t, "certificate");
}

static void test_a_server_of_another_name_is_refused(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_ANY, 0);
    make_client(t, false, NULL, "elsewhere.test");
    expect_unavailable(t, "elsewhere.test");
    /* And again: it has not hung after the failed attempt. */
    expect_unavailable(t, "elsewhere.test");
}

static void test_a_plaintext_server_is_named_as_one(void **state)
{
    struct fixture *t = *state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.context = t->context;
    options.listen = "127.0.0.1:0";
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    make_client(t, false, NULL, NULL);
    expect_unavailable(t, "TLS");
}

static int listen_mutely(uint16_t *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

/* The kernel takes the connection, and nobody the handshake. */
static void give_up_what_is_not_secured(struct fixture *t, bool grpc)
{
    int fd = listen_mutely(&t->port);

    t->connect_timeout_ns = S / 5;
    make_client(t, grpc, NULL, NULL);
    expect_unavailable(t, "was not done with the handshake for 200 ms (connect_timeout_ns)");
    close(fd);
}

static void test_a_handshake_takes_no_longer_than_an_attempt(void **state)
{
    give_up_what_is_not_secured(*state, false);
}

static void test_a_handshake_for_grpc_takes_no_longer_than_an_attempt(void **state)
{
    give_up_what_is_not_secured(*state, true);
}

/* A refusal in TLS is none that it could read. */
static void test_a_client_without_tls_is_asked_about_it(void **state)
{
    struct fixture *t = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    start_server(t, BOW_TLS_PEER_ANY, 0);
    snprintf(t->target, sizeof(t->target), "127.0.0.1:%u", bow_server_port(t->server));
    options.context = t->context;
    options.target = t->target;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
    expect_unavailable(t, "does it want TLS (options.security)");
}

/* Thread: the server's. */
static void find_reason(enum bow_log_level level, const char *line, void *user)
{
    if (level == BOW_LOG_DEBUG && strstr(line, "client 127.0.0.1:") != NULL &&
        strstr(line, "the client sent none") != NULL) {
        atomic_fetch_add((atomic_int *)user, 1);
    }
}

static void test_a_failed_handshake_is_in_the_log_of_the_server(void **state)
{
    struct fixture *t = *state;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    atomic_int n_found = 0;

    test_context_end(t->context, &t->alloc);
    options.allocator = &t->alloc.allocator;
    options.log = find_reason;
    options.log_user = &n_found;
    options.log_level = BOW_LOG_DEBUG;
    assert_int_equal(bow_context_new(&options, &t->context), 0);
    start_server(t, BOW_TLS_PEER_REQUIRE, 0);
    make_client(t, false, NULL, NULL);
    expect_unavailable(t, "certificate");
    bow_server_free(t->server);
    t->server = NULL;
    assert_int_equal(atomic_load(&n_found), 1);
}

static void test_a_listener_speaks_what_it_was_told(void **state)
{
    struct fixture *t = *state;

    start_server(t, BOW_TLS_PEER_ANY, BOW_PROTOCOL_GRPC);
    make_client(t, true, NULL, NULL);
    expect_reply(t, "nobody");
    bow_client_free(t->client);
    bow_tls_context_unref(t->client_tls);
    make_client(t, false, NULL, NULL);
    expect_unavailable(t, "it speaks no protocol of our ALPN list");
}

static int prepare(struct bow_channel *channel, void *user)
{
    (void)channel;
    ++*(int *)user;
    return 0;
}

static void test_listeners_differ_in_security(void **state)
{
    struct fixture *t = *state;
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    static const struct calls__echo__handlers handlers = {.say = say};
    char address[80];
    int n_prepared = 0;

    tls.certificate.certificate_file = certs_file(&t->certs, "server.pem");
    tls.certificate.key_file = certs_file(&t->certs, "server.key");
    t->server_tls = contexts_new(t->context, &tls);
    options.context = t->context;
    options.listen = "127.0.0.1:0";
    options.security = bow_tls_security(t->server_tls);
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    snprintf(address, sizeof(address), "unix:%s/plain", t->certs.folder);
    listen.address = address;
    listen.prepare = prepare;
    listen.user = &n_prepared;
    assert_int_equal(bow_server_listen(t->server, &listen), 0);
    assert_int_equal(calls__echo__serve(t->server, &handlers, NULL), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    assert_int_equal(bow_server_listen(t->server, &listen), -EBUSY);
    make_client(t, false, NULL, NULL);
    expect_reply(t, "nobody");
    assert_int_equal(n_prepared, 0);
    bow_client_free(t->client);
    client.context = t->context;
    client.target = address;
    assert_int_equal(bow_client_new(&client, &t->client), 0);
    expect_reply(t, "nobody");
    assert_int_equal(n_prepared, 1);
}

/* Reloading */

struct reloading {
    struct fixture *t;
    pthread_t thread;
    int run_rc;
    atomic_int n_told;
    int error;
    char text[512];
};

static void on_reload(struct bow_server *server, int error, const char *text, void *user)
{
    struct reloading *r = user;

    assert_ptr_equal(server, r->t->server);
    r->error = error;
    snprintf(r->text, sizeof(r->text), "%s", text);
    atomic_fetch_add(&r->n_told, 1);
}

static void *run_server(void *user)
{
    struct reloading *r = user;

    r->run_rc = bow_server_run(r->t->server);
    return NULL;
}

/* A server over files that the test replaces, in bow_server_run(). */
static void begin_reloading(struct reloading *r, struct fixture *t)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    static const struct calls__echo__handlers handlers = {.say = say};

    *r = (struct reloading){.t = t, .run_rc = -1};
    certs_copy(&t->certs, "server.pem", "now.pem");
    certs_copy(&t->certs, "server.key", "now.key");
    tls.certificate.certificate_file = certs_file(&t->certs, "now.pem");
    tls.certificate.key_file = certs_file(&t->certs, "now.key");
    t->server_tls = contexts_new(t->context, &tls);
    options.context = t->context;
    options.listen = "127.0.0.1:0, [::1]:0";
    options.security = bow_tls_security(t->server_tls);
    options.reload_on_sighup = true;
    options.on_reload = on_reload;
    options.reload_user = r;
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(calls__echo__serve(t->server, &handlers, NULL), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    assert_int_equal(pthread_create(&r->thread, NULL, run_server, r), 0);
    struct sigaction action = {0};
    do {
        assert_int_equal(sigaction(SIGINT, NULL, &action), 0);
    } while ((action.sa_flags & SA_SIGINFO) == 0);
}

static void hang_up(struct reloading *r, int n)
{
    time_t begin = time(NULL);

    kill(getpid(), SIGHUP);
    while (atomic_load(&r->n_told) < n && time(NULL) - begin < 20) {
    }
    assert_int_equal(atomic_load(&r->n_told), n);
}

static void end_reloading(struct reloading *r, uint64_t n, uint64_t n_failed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_server_metrics(r->t->server, &metrics), 0);
    assert_int_equal(metrics.reloads, n);
    assert_int_equal(metrics.reloads_failed, n_failed);
    kill(getpid(), SIGTERM);
    pthread_join(r->thread, NULL);
    assert_int_equal(r->run_rc, 0);
    struct sigaction action = {0};
    assert_int_equal(sigaction(SIGHUP, NULL, &action), 0);
    assert_ptr_equal(action.sa_handler, SIG_DFL);
}

static void end_client(struct fixture *t)
{
    bow_client_free(t->client);
    t->client = NULL;
    t->client_tls = bow_tls_context_unref(t->client_tls);
}

static void test_hangup_reloads_certificates_for_new_connections(void **state)
{
    struct fixture *t = *state;
    struct reloading r;

    begin_reloading(&r, t);
    make_client(t, false, NULL, "second.test");
    expect_unavailable(t, "second.test");
    end_client(t);
    make_client(t, true, NULL, "server.test");
    expect_reply(t, "nobody");
    struct bow_client *old = t->client;
    struct bow_tls_context *old_tls = t->client_tls;
    certs_copy(&t->certs, "second.pem", "now.pem");
    certs_copy(&t->certs, "second.key", "now.key");
    hang_up(&r, 1);
    assert_int_equal(r.error, 0);
    expect_reply(t, "nobody");
    make_client(t, false, NULL, "second.test");
    expect_reply(t, "nobody");
    end_client(t);
    t->client = old;
    t->client_tls = old_tls;
    end_reloading(&r, 1, 0);
}

static void test_hangup_with_bad_files_keeps_what_was_there(void **state)
{
    struct fixture *t = *state;
    struct bow_transport_error error = {0};
    struct reloading r;

    begin_reloading(&r, t);
    certs_copy(&t->certs, "second.pem", "now.pem"); /* and not its key */
    hang_up(&r, 1);
    assert_int_equal(r.error, -EINVAL);
    assert_non_null(strstr(r.text, "reloading the security of 127.0.0.1:0"));
    assert_non_null(strstr(r.text, "does not belong to"));
    make_client(t, false, NULL, "server.test");
    expect_reply(t, "nobody");
    assert_int_equal(bow_server_reload(t->server, &error), -EINVAL);
    assert_string_equal(error.text, r.text);
    certs_copy(&t->certs, "server.pem", "now.pem");
    assert_int_equal(bow_server_reload(t->server, NULL), 0);
    end_reloading(&r, 1, 2);
}

static void test_beyond_this_host_security_or_plaintext_is_asked_for(void **state)
{
    struct fixture *t = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;

    options.context = t->context;
    options.target = "example.org:443";
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &t->client), -EPERM);
    assert_non_null(strstr(error.text, "options.security"));
    t->client = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_calls_over_tls_are_answered),
        TEST(test_grpc_calls_over_tls_are_answered),
        TEST(test_a_bearer_token_goes_over_tls),
        TEST(test_a_bearer_token_goes_over_tls_with_grpc),
        TEST(test_the_peer_of_mutual_tls_is_known),
        TEST(test_a_client_without_a_certificate_is_told),
        TEST(test_a_server_of_another_name_is_refused),
        TEST(test_a_plaintext_server_is_named_as_one),
        TEST(test_a_handshake_takes_no_longer_than_an_attempt),
        TEST(test_a_handshake_for_grpc_takes_no_longer_than_an_attempt),
        TEST(test_a_client_without_tls_is_asked_about_it),
        TEST(test_a_failed_handshake_is_in_the_log_of_the_server),
        TEST(test_a_listener_speaks_what_it_was_told),
        TEST(test_listeners_differ_in_security),
        TEST(test_hangup_reloads_certificates_for_new_connections),
        TEST(test_hangup_with_bad_files_keeps_what_was_there),
        TEST(test_beyond_this_host_security_or_plaintext_is_asked_for),
    };

    /* Whoever starts this may ignore them (nohup, a background job), and a server leaves them so.
     */
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
