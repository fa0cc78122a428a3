/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server refuses because it is overloaded: over its limits on calls in progress, and
 * near the ceiling of its context. What the client is told, and that it passes by itself.
 */

#include "base/poison.h"
#include "call_fixture.h"
#include "rpc/server/server_state.h"
#include "tests/rpc/session_peer.h"
#include "tests/support/gate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SAY "/calls.Echo/Say"
#define PAYLOAD_BYTES ((size_t)128 << 10)
#define CEILING_BYTES ((size_t)4 << 20)

struct limit {
    const char *name;
    uint32_t max_calls;
};

/* As the fixture does, with limits between adding services and starting. */
static void start(struct calls *t, uint32_t workers, uint32_t max_server_calls,
                  const struct limit *limits, size_t n_limits)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.workers = workers;
    options.max_server_calls = max_server_calls;
    options.retry_after_ns = 1500 * MS;
    t->server = calls_make_server(t, &options);
    for (size_t i = 0; i < n_limits; i++) {
        assert_int_equal(bow_server_limit_calls(t->server, limits[i].name, limits[i].max_calls), 0);
    }
    assert_int_equal(calls_open_server(t, t->server), 0);
}

static void new_client(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

static void start_hold(struct calls *t, const struct bow_call_options *options, int n)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, options, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, n);
}

static void say(struct calls *t, struct bow_result *ret_result)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    (void)calls__echo__say__call(t->client, &request, NULL, ret_result);
}

static void expect_say(struct calls *t)
{
    struct bow_result result = BOW_RESULT_INIT;

    say(t, &result);
    if (result.status.code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

static void expect_refused(struct calls *t, const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;
    int n_said = t->n_said;

    say(t, &result);
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_true(result.status.retry_after_ns == 1500 * MS);
    if (strstr(result.status.message, words) == NULL ||
        strstr(result.status.message, SAY) == NULL ||
        strstr(result.status.message, "try again in 1.5 s") == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", result.status.message, words);
    }
    assert_int_equal(t->n_said, n_said);
    bow_result_fini(&result);
}

static void answer_one(struct calls *t)
{
    int n_done = t->n_done;

    (void)calls_reply(calls_take_held(t), 1);
    calls_wait(t, &t->n_done, n_done + 1);
}

static void test_admission_over_the_servers_limit_refuses_and_recovers(void **state)
{
    struct calls *t = *state;

    start(t, 0, 2, NULL, 0);
    new_client(t);
    expect_say(t);
    start_hold(t, NULL, 1);
    expect_say(t);
    start_hold(t, NULL, 2);
    expect_refused(t, "max_server_calls (2)");
    expect_refused(t, "max_server_calls (2)");
    CALLS_WAIT_METRIC(t, calls_refused_server, 2);
    assert_int_equal(calls_n_refused(t->server, BOW_REFUSED_SERVER), 2);
    answer_one(t);
    expect_say(t);
    CALLS_WAIT_METRIC(t, calls_refused_method, 0);
}

static void test_admission_over_a_methods_limit_leaves_the_others(void **state)
{
    const struct limit limits[] = {{"calls.Echo/Say", 1}, {"calls.Echo/Hold", 2}};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct calls *t = *state;

    start(t, 0, 0, limits, 2);
    new_client(t);
    start_hold(t, NULL, 1);
    start_hold(t, NULL, 2);
    assert_null(calls__echo__hold__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "bow_server_limit_calls() (2)"));
    bow_result_fini(&result);
    CALLS_WAIT_METRIC(t, calls_refused_method, 1);
    assert_int_equal(calls_n_refused(t->server, BOW_REFUSED_METHOD), 1);
    expect_say(t);
    expect_say(t);
    answer_one(t);
    start_hold(t, NULL, 2);
}

/* A call that its method refuses is none of the server's. */
static void test_admission_refused_by_the_method_is_not_counted_for_the_server(void **state)
{
    const struct limit limits[] = {{"calls.Echo", 1}};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct calls *t = *state;

    start(t, 0, 2, limits, 1);
    new_client(t);
    start_hold(t, NULL, 1);
    for (int i = 0; i < 4; i++) {
        struct bow_result result = BOW_RESULT_INIT;
        assert_null(calls__echo__hold__call(t->client, &request, NULL, &result));
        assert_non_null(strstr(result.status.message, "bow_server_limit_calls() (1)"));
        bow_result_fini(&result);
    }
    expect_say(t);
}

static void test_admission_counts_calls_that_only_their_handlers_hold(void **state)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct calls *t = *state;

    start(t, 0, 1, NULL, 0);
    new_client(t);
    options.timeout_ns = 400 * MS;
    start_hold(t, &options, 1);
    calls_wait(t, &t->n_done, 1);
    calls_wait(t, &t->n_cancelled, 1);
    expect_refused(t, "max_server_calls (1)");
    assert_int_equal(calls_reply(calls_take_held(t), 1), -ECANCELED);
    expect_say(t);
}

static void test_admission_limit_holds_for_all_workers_together(void **state)
{
    struct bow_client *clients[4];
    struct calls *t = *state;

    start(t, 4, 3, NULL, 0);
    for (int i = 0; i < 4; i++) {
        new_client(t);
        clients[i] = t->client;
        if (i < 3) {
            start_hold(t, NULL, i + 1);
        }
    }
    expect_refused(t, "max_server_calls (3)");
    answer_one(t);
    expect_say(t);
    for (int i = 0; i < 4; i++) {
        bow_client_free(clients[i]);
    }
    t->client = NULL;
}

static void test_admission_refuses_before_it_decodes(void **state)
{
    static struct session_peer peer;
    struct calls *t = *state;

    start(t, 0, 1, NULL, 0);
    new_client(t);
    start_hold(t, NULL, 1);
    session_peer_begin(&peer, t->context, calls_raw_connect(t), false, calls_is_grpc());
    session_peer_open(&peer, SAY, BOW_NEVER);
    session_peer_send(&peer, BOW__SEND_END, "\xff\xff\xff", 3);
    session_peer_wait(&peer, &peer.n_ends, 1);
    assert_int_equal(peer.code, BOW_RESOURCE_EXHAUSTED);
    session_peer_end(&peer);
    CALLS_WAIT_METRIC(t, calls_refused_server, 1);
    CALLS_WAIT_METRIC(t, undecodable_messages, 0);
}

static void test_admission_limits_are_set_before_the_start_and_by_name(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_limit_calls(t->server, "calls.Echo/Nothing", 1), -ENOENT);
    assert_non_null(strstr(bow_server_error(t->server), "calls.Echo/Nothing"));
    assert_int_equal(bow_server_limit_calls(t->server, "calls.Echo/Say", 1), 0);
    assert_int_equal(bow_server_limit_calls(t->server, "calls.Echo/Say", 0), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    assert_int_equal(bow_server_limit_calls(t->server, "calls.Echo/Say", 1), -EBUSY);
    new_client(t);
    expect_say(t);
}

/* The ceiling */

struct poor {
    struct test_alloc alloc;
    struct bow_context *context;
};

static void start_poor(struct calls *t, struct poor *poor, size_t max_bytes)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options;

    test_alloc_init(&poor->alloc);
    context_options.allocator = &poor->alloc.allocator;
    context_options.max_bytes = max_bytes;
    assert_int_equal(bow_context_new(&context_options, &poor->context), 0);
    calls_server_options(t, &options);
    options.context = poor->context;
    options.retry_after_ns = 1500 * MS;
    t->server = calls_start_server(t, &options);
    new_client(t);
}

static void end_poor(struct calls *t, struct poor *poor)
{
    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
    test_context_end(poor->context, &poor->alloc);
}

static bool is_any_done(struct calls *t, int n_done)
{
    pthread_mutex_lock(&t->lock);
    bool is_done = t->n_done > n_done;
    pthread_mutex_unlock(&t->lock);
    return is_done;
}

/* Until one is refused; returns how many the server holds. Large calls that follow each other are
 * told apart by a small one between them, which the server takes or refuses after them. */
static int hold_until_refused(struct calls *t, uint64_t *n_refused)
{
    static uint8_t payload[PAYLOAD_BYTES];
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_done = t->n_done;

    request.payload = (ProtobufCBinaryData){sizeof(payload), payload};
    for (int n = 1; n < CALLS_MAX_HELD; n++) {
        struct bow_result result = BOW_RESULT_INIT;
        assert_int_equal(
            calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
        do {
            bow_result_fini(&result);
            say(t, &result);
            *n_refused += result.status.code != BOW_OK;
        } while (result.status.code == BOW_OK && t->n_held < n && !is_any_done(t, n_done));
        bow_result_fini(&result);
        if (is_any_done(t, n_done)) {
            *n_refused += 1;
            return n - 1;
        }
    }
    return CALLS_MAX_HELD;
}

static void test_admission_near_the_ceiling_refuses_new_calls_and_goes_on_with_others(void **state)
{
    struct calls *t = *state;
    uint64_t n_refused = 0;
    struct poor poor;

    start_poor(t, &poor, CEILING_BYTES);
    int n_held = hold_until_refused(t, &n_refused);
    assert_true(n_held > 10 && n_held < 32);
    assert_int_equal(t->result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(t->result.status.message, "max_bytes (4194304)"));
    expect_refused(t, "over 90 % of the context's max_bytes (4194304)");
    CALLS_WAIT_METRIC(t, calls_refused_memory, n_refused + 1);
    assert_int_equal(calls_n_refused(t->server, BOW_REFUSED_MEMORY), n_refused + 1);
    for (int i = 0; i < n_held; i++) {
        answer_one(t);
        assert_int_equal(t->result.status.code, BOW_OK);
    }
    expect_say(t);
    assert_true(hold_until_refused(t, &n_refused) >= n_held - 2);
    while (t->n_held > 0) {
        answer_one(t);
    }
    end_poor(t, &poor);
}

/* Calls are kept for the next ones, and that must not keep the next ones out. */
static void test_admission_memory_kept_for_later_refuses_nothing(void **state)
{
    struct calls *t = *state;
    struct poor poor;

    start_poor(t, &poor, SIZE_MAX);
    expect_say(t);
    size_t n_bytes = bow_context_bytes(poor.context);
    end_poor(t, &poor);
    start_poor(t, &poor, (n_bytes + ((size_t)512 << 10)) / 9 * 10);
    for (int n = 1; !is_any_done(t, 0); n++) {
        Calls__Request request = CALLS__REQUEST__INIT;
        struct bow_result result = BOW_RESULT_INIT;
        assert_true(n < CALLS_MAX_HELD);
        assert_int_equal(
            calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
        say(t, &result);
        bow_result_fini(&result);
    }
    assert_int_equal(t->result.status.code, BOW_RESOURCE_EXHAUSTED);
    while (t->n_held > 0) {
        answer_one(t);
    }
    expect_say(t);
    end_poor(t, &poor);
}

struct trimming {
    struct bow__worker *worker;
    size_t n_before;
    size_t n_after;
    struct gate done;
};

static int trim(void *user)
{
    struct trimming *trimming = user;
    struct bow__pool *pool = bow__loop_pool(trimming->worker->loop);
    struct bow__block *in_use = NULL;

    /* As while chunks are written to: there is none to let go of. */
    while (pool->n_idle > 0) {
        struct bow__block *chunk = bow__pool_get(pool);
        chunk->next = in_use;
        in_use = chunk;
    }
    trimming->n_before = pool->n_small_bytes;
    bow__worker_trim(trimming->worker);
    trimming->n_after = pool->n_small_bytes;
    while (in_use != NULL) {
        struct bow__block *chunk = in_use;
        in_use = chunk->next;
        bow__pool_put(pool, chunk);
    }
    gate_add(&trimming->done);
    return 0;
}

/* What nghttp2 has given back, too. */
static void test_admission_small_blocks_kept_for_later_are_let_go_of(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    new_client(t);
    expect_say(t);
    struct trimming trimming = {.worker = t->server->workers[0]};
    gate_init(&trimming.done);
    assert_int_equal(bow_loop_execute(trimming.worker->loop, "test", trim, &trimming), 0);
    gate_wait(&trimming.done, 1);
    gate_fini(&trimming.done);
    assert_int_equal(trimming.n_before > 0, calls_is_grpc() && !BOW__POISONS);
    assert_int_equal(trimming.n_after, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_admission_over_the_servers_limit_refuses_and_recovers),
        TEST(test_admission_over_a_methods_limit_leaves_the_others),
        TEST(test_admission_refused_by_the_method_is_not_counted_for_the_server),
        TEST(test_admission_counts_calls_that_only_their_handlers_hold),
        TEST(test_admission_limit_holds_for_all_workers_together),
        TEST(test_admission_refuses_before_it_decodes),
        TEST(test_admission_limits_are_set_before_the_start_and_by_name),
        TEST(test_admission_near_the_ceiling_refuses_new_calls_and_goes_on_with_others),
        TEST(test_admission_memory_kept_for_later_refuses_nothing),
        TEST(test_admission_small_blocks_kept_for_later_are_let_go_of),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
