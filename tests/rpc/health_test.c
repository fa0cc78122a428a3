/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * grpc.health.v1.Health of a server, called with a copy of its .proto that is the program's own,
 * as probes, proxies and clients do: what it says by itself, what it is told to say, and that it
 * neither is lost in a server that is full nor keeps one from ending.
 */

#include "base/clock.h"
#include "call_fixture.h"
#include "grpc/health/v1/health.bow.h"
#include "rpc/server/server_stop.h"
#include "tests/rpc/session_peer.h"
#include "tests/support/gate.h"

#include <bowline/executor.h>
#include <bowline/health.h>
#include <bowline/interceptor.h>
#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ECHO "calls.Echo"
#define WAIT_NS (UINT64_C(20000) * MS)
#define LONG_NS (UINT64_C(3600) * 1000 * MS)
#define N_WORKERS 3
#define N_WATCHERS 12

typedef struct grpc__health__v1__health__watch__stream watching;

enum {
    UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__UNKNOWN,
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
};

/* The server and its clients */

static struct bow_client *new_client(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    return calls_new_client(t, &options);
}

static void start(struct calls *t, const struct bow_server_options *options)
{
    t->server = calls_start_server(t, options);
    t->client = new_client(t);
}

static void start_plain(struct calls *t)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    start(t, &options);
}

static void check(struct calls *t, const char *service, struct bow_result *ret_result,
                  int *ret_state)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    const Grpc__Health__V1__HealthCheckResponse *response;

    request.service = (char *)(uintptr_t)service;
    response = grpc__health__v1__health__check__call(t->client, &request, NULL, ret_result);
    *ret_state = response != NULL ? (int)response->status : -1;
}

static void expect_state(struct calls *t, const char *service, int state)
{
    struct bow_result result = BOW_RESULT_INIT;
    int found = -1;

    check(t, service, &result, &found);
    if (result.status.code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    assert_int_equal(found, state);
    bow_result_fini(&result);
}

static void expect_error(struct calls *t, const char *service, enum bow_code code,
                         const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;
    int found = -1;

    check(t, service, &result, &found);
    assert_int_equal(result.status.code, code);
    if (strstr(result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", result.status.message, words);
    }
    bow_result_fini(&result);
}

static enum bow_code say(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    (void)calls__echo__say__call(t->client, &request, NULL, &result);
    enum bow_code code = result.status.code;
    bow_result_fini(&result);
    return code;
}

static watching watch_by(struct bow_client *client, const char *service)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    watching made = {NULL};

    request.service = (char *)(uintptr_t)service;
    assert_int_equal(
        grpc__health__v1__health__watch__open(client, &request, NULL, NULL, NULL, &made), 0);
    return made;
}

static watching watch(struct calls *t, const char *service)
{
    return watch_by(t->client, service);
}

static void expect_told(watching made, int state)
{
    const Grpc__Health__V1__HealthCheckResponse *response = NULL;

    assert_int_equal(grpc__health__v1__health__watch__stream_receive(made, WAIT_NS, &response), 1);
    assert_int_equal(response->status, state);
}

static void expect_end(watching made, enum bow_code code, const char *words)
{
    const Grpc__Health__V1__HealthCheckResponse *response = NULL;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(grpc__health__v1__health__watch__stream_receive(made, WAIT_NS, &response), 0);
    assert_int_equal(grpc__health__v1__health__watch__stream_finish(made, &result), 0);
    assert_int_equal(result.status.code, code);
    if (strstr(result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", result.status.message, words);
    }
    bow_result_fini(&result);
}

static void give_up(watching made)
{
    struct bow_result result = BOW_RESULT_INIT;

    bow_stream_cancel(made.stream);
    (void)grpc__health__v1__health__watch__stream_finish(made, &result);
    bow_result_fini(&result);
}

static void set(struct calls *t, const char *service, enum bow_health_state state)
{
    assert_int_equal(bow_health_set(t->server, service, state), 0);
}

/* What it says */

static void test_health_of_a_started_server_and_its_services_is_serving(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    expect_state(t, "", SERVING);
    expect_state(t, ECHO, SERVING);
    expect_error(t, "calls.Nobody", BOW_NOT_FOUND, "\"calls.Nobody\"");
    expect_error(t, "grpc.health.v1.Health", BOW_NOT_FOUND, "grpc.health.v1.Health");
}

static void test_health_that_is_set_is_told(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    set(t, ECHO, BOW_HEALTH_NOT_SERVING);
    set(t, "a.name.of.ours", BOW_HEALTH_UNKNOWN);
    expect_state(t, ECHO, NOT_SERVING);
    expect_state(t, "a.name.of.ours", UNKNOWN);
    expect_state(t, "", SERVING);
    set(t, "", BOW_HEALTH_NOT_SERVING);
    set(t, ECHO, BOW_HEALTH_SERVING);
    expect_state(t, "", NOT_SERVING);
    expect_state(t, ECHO, SERVING);
    assert_int_equal(bow_health_unset(t->server, "a.name.of.ours"), 0);
    expect_error(t, "a.name.of.ours", BOW_NOT_FOUND, "a.name.of.ours");
    assert_int_equal(bow_health_unset(t->server, "a.name.of.ours"), -ENOENT);
}

static void test_health_set_before_the_start_holds(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    set(t, ECHO, BOW_HEALTH_NOT_SERVING);
    assert_int_equal(calls_open_server(t, t->server), 0);
    t->client = new_client(t);
    expect_state(t, ECHO, NOT_SERVING);
    expect_state(t, "", SERVING);
}

static void test_health_lists_all_that_is_known(void **state)
{
    Grpc__Health__V1__HealthListRequest request = GRPC__HEALTH__V1__HEALTH_LIST_REQUEST__INIT;
    const Grpc__Health__V1__HealthListResponse *response;
    struct bow_result result = BOW_RESULT_INIT;
    struct calls *t = *state;
    int n_found = 0;

    start_plain(t);
    set(t, ECHO, BOW_HEALTH_NOT_SERVING);
    set(t, "gone", BOW_HEALTH_SERVING);
    assert_int_equal(bow_health_unset(t->server, "gone"), 0);
    response = grpc__health__v1__health__list__call(t->client, &request, NULL, &result);
    assert_non_null(response);
    assert_int_equal(response->n_statuses, 2);
    for (size_t i = 0; i < response->n_statuses; i++) {
        bool is_echo = strcmp(response->statuses[i]->key, ECHO) == 0;
        n_found += is_echo || response->statuses[i]->key[0] == '\0';
        assert_int_equal(response->statuses[i]->value->status, is_echo ? NOT_SERVING : SERVING);
    }
    assert_int_equal(n_found, 2);
    bow_result_fini(&result);
}

static void test_health_refuses_what_makes_no_sense(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    assert_int_equal(bow_health_set(t->server, NULL, BOW_HEALTH_SERVING), -EINVAL);
    assert_int_equal(bow_health_set(t->server, ECHO, (enum bow_health_state)SERVICE_UNKNOWN),
                     -EINVAL);
    assert_int_equal(bow_health_unset(t->server, ""), -EINVAL);
    expect_state(t, ECHO, SERVING);
}

static void test_health_can_be_left_out(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.no_health = true;
    start(t, &options);
    expect_error(t, "", BOW_UNIMPLEMENTED, "its service is not here");
    assert_int_equal(bow_health_set(t->server, "", BOW_HEALTH_SERVING), -ENOTSUP);
}

static void own_check(struct bow_call *call, const Grpc__Health__V1__HealthCheckRequest *request,
                      void *user)
{
    (void)user;
    (void)bow_call_fail(call, BOW_FAILED_PRECONDITION, "our own, of \"%s\"", request->service);
}

static void test_health_of_the_programs_own_takes_its_place(void **state)
{
    static const struct grpc__health__v1__health__handlers own = {.check = own_check};
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(grpc__health__v1__health__serve(t->server, &own, NULL), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    t->client = new_client(t);
    expect_error(t, ECHO, BOW_FAILED_PRECONDITION, "our own, of \"calls.Echo\"");
    assert_int_equal(bow_health_set(t->server, "", BOW_HEALTH_SERVING), 0);
    bow_server_stop(t->server);
}

/* Watching */

static void test_health_watched_is_told_when_it_changes(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    watching echo = watch(t, ECHO);
    watching whole = watch(t, "");
    expect_told(echo, SERVING);
    expect_told(whole, SERVING);
    set(t, ECHO, BOW_HEALTH_NOT_SERVING);
    expect_told(echo, NOT_SERVING);
    set(t, ECHO, BOW_HEALTH_NOT_SERVING);
    set(t, ECHO, BOW_HEALTH_SERVING);
    expect_told(echo, SERVING);
    set(t, "", BOW_HEALTH_NOT_SERVING);
    expect_told(whole, NOT_SERVING);
    give_up(echo);
    give_up(whole);
}

static void test_health_of_an_unknown_service_is_watched_until_it_is_known(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    watching made = watch(t, "later");
    expect_told(made, SERVICE_UNKNOWN);
    set(t, "later", BOW_HEALTH_SERVING);
    expect_told(made, SERVING);
    assert_int_equal(bow_health_unset(t->server, "later"), 0);
    expect_told(made, SERVICE_UNKNOWN);
    give_up(made);
}

/* Of as many as there is credit for, at 64 bytes each; the rest is one. Over gRPC, where that is
 * ten thousand, the same is behind it. */
static void test_health_f15_watcher_that_does_not_read_is_told_the_latest(void **state)
{
    const Grpc__Health__V1__HealthCheckResponse *response = NULL;
    int last = UNKNOWN;
    int n_told = 0;
    struct calls *t = *state;

    if (calls_is_grpc()) {
        return;
    }
    start_plain(t);
    watching made = watch(t, ECHO);
    expect_told(made, SERVING);
    for (int i = 0; i < 3000; i++) {
        set(t, ECHO, i % 2 == 0 ? BOW_HEALTH_NOT_SERVING : BOW_HEALTH_SERVING);
        /* It is the server's one loop that answers, so the watcher was told if it could be. */
        expect_state(t, ECHO, i % 2 == 0 ? NOT_SERVING : SERVING);
    }
    set(t, ECHO, BOW_HEALTH_UNKNOWN);
    while (last != UNKNOWN || n_told == 0) {
        assert_int_equal(grpc__health__v1__health__watch__stream_receive(made, WAIT_NS, &response),
                         1);
        last = (int)response->status;
        n_told++;
    }
    assert_in_range(n_told, 100, 1100);
    give_up(made);
}

/* Its socket is full long before its credit is used up: a Unix socket takes few hundred messages.
 * (Over gRPC they wait on their stream then, as for credit.) */
static void test_health_f15_watcher_whose_socket_is_full_is_told_the_latest(void **state)
{
    static const char request[] = "\x0a\x0a" ECHO;
    static struct session_peer peer;
    struct calls *t = *state;

    if (!calls_is_unix()) {
        return;
    }
    start_plain(t);
    session_peer_begin(&peer, t->context, calls_raw_connect(t), false, calls_is_grpc());
    session_peer_wait(&peer, &peer.n_readies, 1);
    session_peer_open(&peer, "/grpc.health.v1.Health/Watch", BOW_NEVER);
    session_peer_send(&peer, BOW__SEND_END, request, sizeof(request) - 1);
    session_peer_wait(&peer, &peer.n_messages, 1);
    for (int i = 0; i < 2000; i++) {
        set(t, ECHO, i % 2 == 0 ? BOW_HEALTH_NOT_SERVING : BOW_HEALTH_SERVING);
        expect_state(t, ECHO, i % 2 == 0 ? NOT_SERVING : SERVING);
    }
    assert_int_equal(bow_health_unset(t->server, ECHO), 0);
    while (peer.last_number != SERVICE_UNKNOWN) {
        assert_true(session_peer_serve(&peer, 20000));
    }
    assert_in_range(peer.n_messages, 10, 700);
    session_peer_end(&peer);
}

/* Interceptors */

static void refuse_health(struct bow_interception *at, void *user)
{
    if (strcmp(bow_interception_method(at)->path, user) == 0) {
        (void)bow_interception_refuse(at, BOW_PERMISSION_DENIED, "not for you");
    }
}

static void test_health_passes_interceptors(void **state)
{
    struct bow_interceptor interceptor = BOW_INTERCEPTOR_INIT;
    struct bow_server_options options;
    struct calls *t = *state;

    interceptor.name = "guard";
    interceptor.on_start = refuse_health;
    interceptor.user = (void *)(uintptr_t) "/grpc.health.v1.Health/Check";
    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_intercept(t->server, &interceptor), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    t->client = new_client(t);
    expect_error(t, "", BOW_PERMISSION_DENIED, "not for you");
    watching made = watch(t, "");
    expect_told(made, SERVING);
    give_up(made);
}

struct setter {
    struct bow_server *server;
    pthread_t thread;
    int n;
    int rc;
};

static void *set_often(void *user)
{
    struct setter *setter = user;

    for (int i = 0; i < setter->n && setter->rc == 0; i++) {
        setter->rc = bow_health_set(setter->server, ECHO,
                                    i % 2 == 0 ? BOW_HEALTH_NOT_SERVING : BOW_HEALTH_SERVING);
    }
    return NULL;
}

/* Two threads set at once; what is set after both is what each watcher hears at the end. */
static void test_health_is_told_on_all_loops(void **state)
{
    struct bow_client *clients[N_WATCHERS];
    watching made[N_WATCHERS];
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.workers = N_WORKERS;
    start(t, &options);
    for (int i = 0; i < N_WATCHERS; i++) {
        clients[i] = new_client(t);
        made[i] = watch_by(clients[i], ECHO);
        expect_told(made[i], SERVING);
    }
    struct setter setters[2] = {{.server = t->server, .n = 200}, {.server = t->server, .n = 200}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&setters[i].thread, NULL, set_often, &setters[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(setters[i].thread, NULL), 0);
        assert_int_equal(setters[i].rc, 0);
    }
    set(t, ECHO, BOW_HEALTH_UNKNOWN);
    for (int i = 0; i < N_WATCHERS; i++) {
        const Grpc__Health__V1__HealthCheckResponse *response = NULL;
        do {
            assert_int_equal(
                grpc__health__v1__health__watch__stream_receive(made[i], WAIT_NS, &response), 1);
        } while ((int)response->status != UNKNOWN);
        give_up(made[i]);
        bow_client_free(clients[i]);
    }
}

/* The end */

static void test_health_of_a_lame_duck_is_not_serving(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.lame_duck_ns = LONG_NS;
    options.grace_ns = LONG_NS;
    start(t, &options);
    watching echo = watch(t, ECHO);
    watching nobody = watch(t, "nobody");
    expect_told(echo, SERVING);
    expect_told(nobody, SERVICE_UNKNOWN);
    bow_server_stop(t->server);
    expect_told(echo, NOT_SERVING);
    expect_state(t, ECHO, NOT_SERVING);
    expect_state(t, "", NOT_SERVING);
    set(t, ECHO, BOW_HEALTH_SERVING);
    set(t, "nobody", BOW_HEALTH_SERVING);
    expect_state(t, ECHO, NOT_SERVING);
    expect_told(nobody, NOT_SERVING);
    /* It serves all the same, until the lame duck is over. */
    assert_int_equal(say(t), BOW_OK);
    bow__server_hurry(t->server);
    expect_end(echo, BOW_UNAVAILABLE, "the server is shutting down");
    expect_end(nobody, BOW_UNAVAILABLE, "the server is shutting down");
    assert_int_equal(bow_server_join(t->server), 0);
}

static void test_health_watched_does_not_hold_a_drain_up(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.workers = N_WORKERS;
    options.grace_ns = LONG_NS;
    start(t, &options);
    watching made = watch(t, ECHO);
    expect_told(made, SERVING);
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    expect_told(made, NOT_SERVING);
    expect_end(made, BOW_UNAVAILABLE, "the server is shutting down");
}

/* What is posted to a loop when the server goes outlives it, and what is set then is nobody's. */
static void test_health_may_be_set_while_the_server_ends(void **state)
{
    struct bow_client *clients[N_WATCHERS];
    watching made[N_WATCHERS];
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.workers = N_WORKERS;
    options.grace_ns = LONG_NS;
    start(t, &options);
    for (int i = 0; i < N_WATCHERS; i++) {
        clients[i] = new_client(t);
        made[i] = watch_by(clients[i], ECHO);
        expect_told(made[i], SERVING);
    }
    struct setter setter = {.server = t->server, .n = 5000};
    assert_int_equal(pthread_create(&setter.thread, NULL, set_often, &setter), 0);
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    assert_int_equal(pthread_join(setter.thread, NULL), 0);
    assert_int_equal(setter.rc, 0);
    calls_kill_server(t);
    for (int i = 0; i < N_WATCHERS; i++) {
        give_up(made[i]);
        bow_client_free(clients[i]);
    }
}

static void test_health_watched_ends_with_its_old_connection(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.max_age_ns = 200 * MS;
    start(t, &options);
    watching made = watch(t, ECHO);
    expect_told(made, SERVING);
    expect_end(made, BOW_UNAVAILABLE, "max_age_ns");
    /* On the next one it goes on. */
    made = watch(t, ECHO);
    expect_told(made, SERVING);
    CALLS_WAIT_METRIC(t, connections_closed, 1);
    expect_end(made, BOW_UNAVAILABLE, "max_age_ns");
}

/* From who has not read of it yet. */
static void test_health_is_not_watched_on_a_connection_that_is_to_end(void **state)
{
    static struct session_peer peer;
    struct bow_server_options options;
    struct calls *t = *state;

    if (!calls_is_unix()) {
        return;
    }
    calls_server_options(t, &options);
    options.max_age_ns = 100 * MS;
    t->server = calls_start_server(t, &options);
    session_peer_begin(&peer, t->context, calls_raw_connect(t), false, calls_is_grpc());
    peer.may_be_lost = true;
    session_peer_wait(&peer, &peer.n_readies, 1);
    session_peer_open(&peer, "/grpc.health.v1.Health/Check", BOW_NEVER);
    session_peer_send(&peer, BOW__SEND_END, "", 0);
    session_peer_wait(&peer, &peer.n_ends, 1);
    CALLS_WAIT_METRIC(t, connections_aged, 1);
    session_peer_open(&peer, "/grpc.health.v1.Health/Watch", BOW_NEVER);
    session_peer_send(&peer, BOW__SEND_END, "", 0);
    session_peer_wait(&peer, &peer.n_ends, 2);
    assert_int_equal(peer.code, BOW_UNAVAILABLE);
    assert_non_null(strstr(peer.text, "max_age_ns"));
    session_peer_end(&peer);
}

/* A server that is full */

static void start_hold(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_held = t->n_held;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, n_held + 1);
}

static void test_health_is_told_by_a_full_server(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.max_server_calls = 1;
    start(t, &options);
    start_hold(t);
    watching made = watch(t, ECHO);
    expect_told(made, SERVING);
    for (int i = 0; i < 3; i++) {
        expect_state(t, "", SERVING);
        /* It gives back nothing that it has not taken. */
        assert_int_equal(say(t), BOW_RESOURCE_EXHAUSTED);
    }
    give_up(made);
    assert_int_equal(say(t), BOW_RESOURCE_EXHAUSTED);
    (void)calls_reply(calls_take_held(t), 1);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(say(t), BOW_OK);
}

/* One after the other, until the server has no room for the next on that connection. */
static void hold_bytes_in_flight(struct calls *t)
{
    static uint8_t payload[50 << 10];
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload = (ProtobufCBinaryData){sizeof(payload), payload};
    for (int i = 0; say(t) == BOW_OK; i++) {
        assert_in_range(i, 0, 60);
        assert_int_equal(
            calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
        calls_wait(t, &t->n_held, i + 1);
    }
}

static void test_health_is_told_by_a_server_with_all_its_bytes_in_flight(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    options.max_message_bytes = (size_t)64 << 10;
    options.max_bytes_in_flight = (size_t)1 << 20;
    start(t, &options);
    hold_bytes_in_flight(t);
    expect_state(t, "", SERVING);
    expect_end(watch(t, ""), BOW_RESOURCE_EXHAUSTED, "max_bytes_in_flight");
    assert_int_equal(say(t), BOW_RESOURCE_EXHAUSTED);
    while (t->n_held > 0) {
        (void)calls_reply(calls_take_held(t), 1);
    }
}

static int wait_for_gate(void *user)
{
    gate_wait(user, 1);
    return 0;
}

/* The first start fails, for another server has the address. */
static void start_the_second_time(struct calls *t, struct bow_server_options *options)
{
    struct bow_server_options plain;

    calls_server_options(t, &plain);
    struct bow_server *other = calls_start_server(t, &plain);
    options->listen = t->address;
    t->server = calls_make_server(t, options);
    assert_int_equal(bow_server_start(t->server), -EADDRINUSE);
    bow_server_stop(other);
    assert_int_equal(bow_server_join(other), 0);
    bow_server_free(other);
    assert_int_equal(calls_open_server(t, t->server), 0);
    t->client = new_client(t);
}

static void expect_told_by_busy(struct calls *t, bool again)
{
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct bow_server_options options;
    struct bow_task task;
    struct gate gate;

    gate_init(&gate);
    executor_options.n_threads = 1;
    assert_int_equal(bow_executor_new(t->context, &executor_options, &executor), 0);
    bow_task_init(&task, "busy", wait_for_gate, &gate);
    assert_int_equal(bow_executor_post(executor, &task), 0);
    calls_server_options(t, &options);
    options.handlers_on = executor;
    if (again) {
        start_the_second_time(t, &options);
    } else {
        start(t, &options);
    }
    expect_state(t, ECHO, SERVING);
    watching made = watch(t, ECHO);
    expect_told(made, SERVING);
    give_up(made);
    gate_add(&gate);
    assert_int_equal(say(t), BOW_OK);
    calls_kill_server(t);
    bow_executor_unref(executor);
    gate_fini(&gate);
}

static void test_health_is_told_while_all_threads_of_handlers_are_busy(void **state)
{
    expect_told_by_busy(*state, false);
}

static void test_health_is_told_so_after_a_start_that_failed(void **state)
{
    expect_told_by_busy(*state, true);
}

/* The process */

static void test_health_of_the_parents_server_is_not_the_childs_to_set(void **state)
{
    struct calls *t = *state;

    start_plain(t);
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(bow_health_set(t->server, "", BOW_HEALTH_NOT_SERVING) == -ECHILD &&
                      bow_health_unset(t->server, ECHO) == -ECHILD
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_state(t, "", SERVING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_health_of_a_started_server_and_its_services_is_serving),
        TEST(test_health_that_is_set_is_told),
        TEST(test_health_set_before_the_start_holds),
        TEST(test_health_lists_all_that_is_known),
        TEST(test_health_refuses_what_makes_no_sense),
        TEST(test_health_can_be_left_out),
        TEST(test_health_of_the_programs_own_takes_its_place),
        TEST(test_health_watched_is_told_when_it_changes),
        TEST(test_health_of_an_unknown_service_is_watched_until_it_is_known),
        TEST(test_health_f15_watcher_that_does_not_read_is_told_the_latest),
        TEST(test_health_f15_watcher_whose_socket_is_full_is_told_the_latest),
        TEST(test_health_passes_interceptors),
        TEST(test_health_is_told_on_all_loops),
        TEST(test_health_of_a_lame_duck_is_not_serving),
        TEST(test_health_watched_does_not_hold_a_drain_up),
        TEST(test_health_may_be_set_while_the_server_ends),
        TEST(test_health_watched_ends_with_its_old_connection),
        TEST(test_health_is_not_watched_on_a_connection_that_is_to_end),
        TEST(test_health_is_told_by_a_full_server),
        TEST(test_health_is_told_by_a_server_with_all_its_bytes_in_flight),
        TEST(test_health_is_told_while_all_threads_of_handlers_are_busy),
        TEST(test_health_is_told_so_after_a_start_that_failed),
        TEST(test_health_of_the_parents_server_is_not_the_childs_to_set),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
