/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One client of two servers over TLS: each must prove to be whom its address names; one that can't
 * is passed over, named with the reason when nobody else is there, and found when it has a better
 * certificate. Of one name with two addresses the second is found behind a first that is no server.
 *
 *     tls_list_test native | grpc
 */

#include "certs.h"
#include "contexts.h"
#include "protos/echo.bow.h"
#include "tests/support/alloc.h"

#include <arpa/inet.h>
#include <bowline/channel.h>
#include <bowline/health.h>
#include <bowline/loop.h>
#include <bowline/security.h>
#include <bowline/system.h>
#include <bowline/tls.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define N_SERVERS 2
/* Calls until a server has been found, which takes pauses of milliseconds. */
#define MANY_CALLS 200000

struct one {
    struct bow_tls_context *tls;
    struct bow_server *server;
    atomic_int n_said;
    char subject[128]; /* of the last caller's certificate; read when the call has ended */
};

struct fixture {
    struct test_alloc alloc;
    struct bow_system system;
    struct bow_context *context;
    struct certs certs;
    struct one servers[N_SERVERS];
    struct bow_tls_context *client_tls;
    /* Of a client that asks whether its servers serve; NULL: of one that does not. */
    struct bow_loop *loop;
    const char *health_service;
    struct bow_client *client;
    struct bow_result result;
};

static const char *protocol = "native";

/* Whatever the name: it is this host. */
static int resolve_here(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                        int max, const char **ret_reason)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    (void)user;
    (void)host;
    (void)ret_reason;
    assert_true(max > 0);
    memcpy(&addresses[0].storage, &in, sizeof(in));
    addresses[0].len = sizeof(in);
    return 1;
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    struct one *one = user;

    (void)request;
    if (bow_call_peer_subject(call, one->subject, sizeof(one->subject)) < 0) {
        one->subject[0] = '\0';
    }
    atomic_fetch_add(&one->n_said, 1);
    calls__echo__say__reply(call, &reply);
}

static void name_certificate(struct fixture *t, const char *name,
                             struct bow_tls_context_options *options)
{
    char file[64];

    snprintf(file, sizeof(file), "%s.pem", name);
    options->certificate.certificate_file = certs_file(&t->certs, file);
    snprintf(file, sizeof(file), "%s.key", name);
    options->certificate.key_file = certs_file(&t->certs, file);
}

static void start(struct fixture *t, int i, const char *certificate, enum bow_tls_peer clients)
{
    static const struct calls__echo__handlers handlers = {.say = say};
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct one *one = &t->servers[i];

    name_certificate(t, certificate, &tls);
    tls.ca_file = clients != BOW_TLS_PEER_ANY ? certs_file(&t->certs, "ca.pem") : NULL;
    tls.clients = clients;
    one->tls = contexts_new(t->context, &tls);
    options.context = t->context;
    options.listen = "127.0.0.1:0";
    options.grace_ns = 1;
    options.security = bow_tls_security(one->tls);
    assert_int_equal(bow_server_new(&options, &one->server), 0);
    assert_int_equal(calls__echo__serve(one->server, &handlers, one), 0);
    assert_int_equal(bow_server_start(one->server), 0);
}

/* `hosts`: whom the client takes the servers for. */
static void connect_to(struct fixture *t, const char *const hosts[N_SERVERS],
                       const char *certificate)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[160];

    tls.side = BOW_TLS_CLIENT;
    tls.ca_file = certs_file(&t->certs, "ca.pem");
    if (certificate != NULL) {
        name_certificate(t, certificate, &tls);
    }
    t->client_tls = contexts_new(t->context, &tls);
    snprintf(target, sizeof(target), "%slist:%s:%u,%s:%u",
             strcmp(protocol, "grpc") == 0 ? "grpc:" : "", hosts[0],
             bow_server_port(t->servers[0].server), hosts[1],
             bow_server_port(t->servers[1].server));
    options.context = t->context;
    options.target = target;
    options.security = bow_tls_security(t->client_tls);
    options.loop = t->loop;
    options.health_service = t->health_service;
    options.backoff_min_ns = 2 * MS;
    options.backoff_max_ns = 10 * MS;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
}

static enum bow_code call(struct fixture *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    bow_result_fini(&t->result);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    (void)calls__echo__say__call(t->client, &request, NULL, &t->result);
    return t->result.status.code;
}

static void call_until(struct fixture *t, int i, int n)
{
    for (int k = 0; atomic_load(&t->servers[i].n_said) < n; k++) {
        assert_true(k < MANY_CALLS);
        if (call(t) != BOW_OK) {
            fail_msg("%s", t->result.status.message);
        }
    }
}

static void expect_words(const struct fixture *t, const char *words)
{
    if (strstr(t->result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", t->result.status.message, words);
    }
}

static int setup(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct fixture *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    test_alloc_init(&t->alloc);
    t->system = *bow_system_default();
    t->system.resolve = resolve_here;
    options.allocator = &t->alloc.allocator;
    options.system = &t->system;
    assert_int_equal(bow_context_new(&options, &t->context), 0);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    certs_make(&t->certs);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;

    bow_result_fini(&t->result);
    bow_client_free(t->client);
    bow_loop_unref(t->loop);
    bow_tls_context_unref(t->client_tls);
    for (int i = 0; i < N_SERVERS; i++) {
        bow_server_free(t->servers[i].server);
        bow_tls_context_unref(t->servers[i].tls);
    }
    test_context_end(t->context, &t->alloc);
    certs_remove(&t->certs);
    free(t);
    return 0;
}

static void test_tls_list_each_server_proves_the_name_of_its_address(void **state)
{
    static const char *const hosts[] = {"server.test", "second.test"};
    struct fixture *t = *state;

    start(t, 0, "server", BOW_TLS_PEER_ANY);
    start(t, 1, "second", BOW_TLS_PEER_ANY);
    connect_to(t, hosts, NULL);
    call_until(t, 0, 3);
    call_until(t, 1, 3);
}

static void test_tls_list_health_is_asked_of_each_server(void **state)
{
    static const char *const hosts[] = {"server.test", "second.test"};
    struct fixture *t = *state;

    start(t, 0, "server", BOW_TLS_PEER_REQUIRE);
    start(t, 1, "second", BOW_TLS_PEER_REQUIRE);
    assert_int_equal(bow_health_set(t->servers[0].server, "calls.Echo", BOW_HEALTH_NOT_SERVING), 0);
    assert_int_equal(bow_loop_new(t->context, NULL, &t->loop), 0);
    t->health_service = "calls.Echo";
    connect_to(t, hosts, "client");
    call_until(t, 1, 30);
    assert_int_equal(atomic_load(&t->servers[0].n_said), 0);
    assert_int_equal(bow_health_set(t->servers[0].server, "calls.Echo", BOW_HEALTH_SERVING), 0);
    call_until(t, 0, 3);
}

static void test_tls_list_names_are_not_each_others(void **state)
{
    static const char *const hosts[] = {"second.test", "server.test"};
    struct fixture *t = *state;
    char words[64];

    start(t, 0, "server", BOW_TLS_PEER_ANY);
    start(t, 1, "second", BOW_TLS_PEER_ANY);
    connect_to(t, hosts, NULL);
    assert_int_equal(call(t), BOW_UNAVAILABLE);
    expect_words(t, "none of 2 addresses takes calls: ");
    for (int i = 0; i < N_SERVERS; i++) {
        snprintf(words, sizeof(words), "127.0.0.1:%u", bow_server_port(t->servers[i].server));
        expect_words(t, words);
        expect_words(t, hosts[i]);
        assert_int_equal(atomic_load(&t->servers[i].n_said), 0);
    }
}

static void test_tls_list_each_server_knows_its_client(void **state)
{
    static const char *const hosts[] = {"server.test", "second.test"};
    struct fixture *t = *state;

    start(t, 0, "server", BOW_TLS_PEER_REQUIRE);
    start(t, 1, "second", BOW_TLS_PEER_REQUIRE);
    connect_to(t, hosts, "client");
    for (int i = 0; i < N_SERVERS; i++) {
        call_until(t, i, 2);
        assert_string_equal(t->servers[i].subject, "CN=alice,O=Example");
    }
}

static void test_tls_list_client_without_a_certificate_is_told_by_each(void **state)
{
    static const char *const hosts[] = {"server.test", "second.test"};
    struct fixture *t = *state;

    start(t, 0, "server", BOW_TLS_PEER_REQUIRE);
    start(t, 1, "second", BOW_TLS_PEER_REQUIRE);
    connect_to(t, hosts, NULL);
    assert_int_equal(call(t), BOW_UNAVAILABLE);
    expect_words(t, "none of 2 addresses takes calls: ");
    expect_words(t, "certificate");
}

/* Calls go to the other one, and none fails. */
static void fail_over_from(struct fixture *t, const char *certificate)
{
    static const char *const hosts[] = {"server.test", "second.test"};

    start(t, 0, certificate, BOW_TLS_PEER_ANY);
    start(t, 1, "second", BOW_TLS_PEER_ANY);
    connect_to(t, hosts, NULL);
    call_until(t, 1, 50);
    assert_int_equal(atomic_load(&t->servers[0].n_said), 0);
}

static void test_tls_list_bad_certificate_fails_no_call(void **state)
{
    fail_over_from(*state, "stranger");
}

static void test_tls_list_bad_certificate_is_told_with_its_address(void **state)
{
    struct fixture *t = *state;
    char words[64];

    fail_over_from(t, "expired");
    snprintf(words, sizeof(words), "127.0.0.1:%u", bow_server_port(t->servers[0].server));
    bow_server_free(t->servers[1].server);
    t->servers[1].server = NULL;
    for (int k = 0; k < MANY_CALLS && call(t) != BOW_UNAVAILABLE; k++) {
    }
    while (strstr(t->result.status.message, "none of 2 addresses") == NULL) {
        assert_int_equal(call(t), BOW_UNAVAILABLE); /* the first may be on the lost connection */
    }
    expect_words(t, words);
    expect_words(t, "expired");
}

static void test_tls_list_certificate_that_was_renewed_is_found(void **state)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct fixture *t = *state;
    struct bow_tls_error error;

    fail_over_from(t, "expired");
    name_certificate(t, "server", &tls);
    assert_int_equal(bow_tls_context_swap(t->servers[0].tls, &tls, &error), 0);
    call_until(t, 0, 3);
}

/* One name, and the first of its addresses is no server for it */

#define FIRST "127.0.0.2"

static int resolve_to_two(void *user, const char *host, uint16_t port,
                          struct bow_sockaddr *addresses, int max, const char **ret_reason)
{
    int n = resolve_here(user, host, port, &addresses[1], max - 1, ret_reason);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    assert_int_equal(n, 1);
    assert_int_equal(inet_pton(AF_INET, FIRST, &in.sin_addr), 1);
    memcpy(&addresses[0].storage, &in, sizeof(in));
    addresses[0].len = sizeof(in);
    return 2;
}

/* `certificate` NULL: it speaks no TLS. */
static void start_first(struct fixture *t, uint16_t port, const char *certificate)
{
    static const struct calls__echo__handlers handlers = {.say = say};
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct one *one = &t->servers[0];
    char address[32];

    snprintf(address, sizeof(address), FIRST ":%u", port);
    options.context = t->context;
    options.listen = address;
    options.grace_ns = 1;
    if (certificate != NULL) {
        name_certificate(t, certificate, &tls);
        one->tls = contexts_new(t->context, &tls);
        options.security = bow_tls_security(one->tls);
    }
    assert_int_equal(bow_server_new(&options, &one->server), 0);
    assert_int_equal(calls__echo__serve(one->server, &handlers, one), 0);
    assert_int_equal(bow_server_start(one->server), 0);
}

static void expect_second_address_serves(struct fixture *t, uint16_t port)
{
    struct bow_tls_context_options tls = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[64];

    t->system.resolve = resolve_to_two;
    tls.side = BOW_TLS_CLIENT;
    tls.ca_file = certs_file(&t->certs, "ca.pem");
    t->client_tls = contexts_new(t->context, &tls);
    snprintf(target, sizeof(target), "%sserver.test:%u",
             strcmp(protocol, "grpc") == 0 ? "grpc:" : "", port);
    options.context = t->context;
    options.target = target;
    options.security = bow_tls_security(t->client_tls);
    assert_int_equal(bow_client_new(&options, &t->client), 0);
    if (call(t) != BOW_OK) {
        fail_msg("%s", t->result.status.message);
    }
    assert_int_equal(atomic_load(&t->servers[1].n_said), 1);
}

static uint16_t start_second(struct fixture *t)
{
    start(t, 1, "server", BOW_TLS_PEER_ANY);
    return bow_server_port(t->servers[1].server);
}

static void test_tls_f46_first_address_has_a_bad_certificate(void **state)
{
    struct fixture *t = *state;
    uint16_t port = start_second(t);

    start_first(t, port, "stranger");
    expect_second_address_serves(t, port);
}

static void test_tls_f46_first_address_speaks_no_tls(void **state)
{
    struct fixture *t = *state;
    uint16_t port = start_second(t);

    start_first(t, port, NULL);
    expect_second_address_serves(t, port);
}

/* The kernel takes the connection, and that is all. */
static void test_tls_f46_first_address_is_silent(void **state)
{
    struct fixture *t = *state;
    uint16_t port = start_second(t);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(inet_pton(AF_INET, FIRST, &in.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 16), 0);
    expect_second_address_serves(t, port);
    close(fd);
}

static void test_tls_list_certificates_that_are_read_again_disturb_no_call(void **state)
{
    static const char *const hosts[] = {"server.test", "second.test"};
    struct fixture *t = *state;
    struct bow_tls_error error;

    start(t, 0, "server", BOW_TLS_PEER_ANY);
    start(t, 1, "second", BOW_TLS_PEER_ANY);
    connect_to(t, hosts, NULL);
    for (int round = 1; round <= 10; round++) {
        for (int i = 0; i < N_SERVERS; i++) {
            call_until(t, i, 3 * round);
            assert_int_equal(bow_tls_context_reload(t->servers[i].tls, &error), 0);
        }
        assert_int_equal(bow_tls_context_reload(t->client_tls, &error), 0);
    }
}

#define TLS_LIST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TLS_LIST_TEST(test_tls_list_each_server_proves_the_name_of_its_address),
        TLS_LIST_TEST(test_tls_list_health_is_asked_of_each_server),
        TLS_LIST_TEST(test_tls_list_names_are_not_each_others),
        TLS_LIST_TEST(test_tls_list_each_server_knows_its_client),
        TLS_LIST_TEST(test_tls_list_client_without_a_certificate_is_told_by_each),
        TLS_LIST_TEST(test_tls_list_bad_certificate_fails_no_call),
        TLS_LIST_TEST(test_tls_list_bad_certificate_is_told_with_its_address),
        TLS_LIST_TEST(test_tls_list_certificate_that_was_renewed_is_found),
        TLS_LIST_TEST(test_tls_list_certificates_that_are_read_again_disturb_no_call),
        TLS_LIST_TEST(test_tls_f46_first_address_has_a_bad_certificate),
        TLS_LIST_TEST(test_tls_f46_first_address_speaks_no_tls),
        TLS_LIST_TEST(test_tls_f46_first_address_is_silent),
    };

    protocol = argc > 1 ? argv[1] : protocol;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
