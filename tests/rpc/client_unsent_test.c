/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that end before they have left the client: whatever ends them, no handler has seen them,
 * and their status says so.
 */

#include "call_fixture.h"

#include <bowline/interceptor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void make_client(struct calls *t, void (*change)(struct bow_client_options *options))
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    options.backoff_min_ns = 1000 * MS;
    options.backoff_max_ns = 1000 * MS;
    if (change != NULL) {
        change(&options);
    }
    t->client = calls_new_client(t, &options);
}

static void start(struct calls *t, bool waits, uint64_t timeout_ns, uint64_t *ret_id)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = waits;
    options.timeout_ns = timeout_ns;
    assert_int_equal(
        calls__echo__say__start(t->client, &request, &options, calls_on_done, t, ret_id), 0);
}

static void expect_unsent(struct calls *t, int n_done, enum bow_code code, const char *words)
{
    calls_wait(t, &t->n_done, n_done);
    assert_int_equal(t->result.status.code, code);
    assert_non_null(strstr(t->result.status.message, words));
    assert_true(t->result.status.not_processed);
}

static void expect_call_unsent(struct bow_client *client, enum bow_code code, const char *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(calls__echo__say__call(client, &request, NULL, &result));
    assert_int_equal(result.status.code, code);
    assert_non_null(strstr(result.status.message, words));
    assert_true(result.status.not_processed);
    bow_result_fini(&result);
}

static void test_unsent_f49_attempt_refused(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    start(t, false, 0, NULL);
    expect_unsent(t, 1, BOW_UNAVAILABLE, "ECONNREFUSED");
    calls_free_client(t);
}

static int start_on_loop(void *user)
{
    start(user, false, 0, NULL);
    return 0;
}

/* After all that was posted before. */
static void run_on_loop(struct calls *t, int (*fn)(void *user))
{
    assert_int_equal(bow_loop_execute(t->loop, "test", fn, t), 0);
}

static void test_unsent_f49_backing_off(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    start(t, false, 0, NULL);
    calls_wait(t, &t->n_done, 1);
    start(t, false, 0, NULL);
    expect_unsent(t, 2, BOW_UNAVAILABLE, "the next try is due");
    /* The same from the loop itself, where the end is told by a task of its own. */
    run_on_loop(t, start_on_loop);
    expect_unsent(t, 3, BOW_UNAVAILABLE, "the next try is due");
    calls_free_client(t);
}

static void test_unsent_f49_blocking(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    expect_call_unsent(t->client, BOW_UNAVAILABLE, "ECONNREFUSED");
    expect_call_unsent(t->client, BOW_UNAVAILABLE, "the next try is due");
    calls_free_client(t);
}

static void be_confined(struct bow_client_options *options)
{
    options->loop = NULL;
}

static void test_unsent_f49_confined(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, be_confined);
    expect_call_unsent(t->client, BOW_UNAVAILABLE, "ECONNREFUSED");
    expect_call_unsent(t->client, BOW_UNAVAILABLE, "the next try is due");
    calls_free_client(t);
}

static int resolve_nothing(void *user, const char *host, uint16_t port,
                           struct bow_sockaddr *addresses, int max, const char **ret_reason)
{
    (void)user;
    (void)host;
    (void)port;
    (void)addresses;
    (void)max;
    *ret_reason = "no such name";
    return -ENOENT;
}

static void use_unknown_name(struct bow_client_options *options)
{
    options->target = calls_is_grpc() ? "grpc:nowhere.test:80" : "nowhere.test:80";
    options->plaintext = true;
}

static void test_unsent_f49_name_is_unknown(void **state)
{
    struct calls *t = *state;

    t->system.resolve = resolve_nothing;
    make_client(t, use_unknown_name);
    start(t, false, 0, NULL);
    expect_unsent(t, 1, BOW_UNAVAILABLE, "no such name");
    calls_free_client(t);
}

static void test_unsent_f49_deadline_in_the_queue(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    start(t, true, 20 * MS, NULL);
    expect_unsent(t, 1, BOW_DEADLINE_EXCEEDED, "deadline of 20 ms passed");
    calls_free_client(t);
}

static void test_unsent_f49_cancelled_in_the_queue(void **state)
{
    struct calls *t = *state;
    uint64_t id = 0;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    start(t, true, BOW_NEVER, &id);
    bow_client_cancel(t->client, id);
    expect_unsent(t, 1, BOW_CANCELLED, "cancelled");
    calls_free_client(t);
}

static void test_unsent_f49_client_freed(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, NULL);
    start(t, true, BOW_NEVER, NULL);
    calls_free_client(t);
    expect_unsent(t, 1, BOW_CANCELLED, "closed");
}

static void have_a_short_queue(struct bow_client_options *options)
{
    options->max_queued_calls = 1;
}

static void test_unsent_f49_queue_is_full(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, have_a_short_queue);
    start(t, true, BOW_NEVER, NULL);
    expect_call_unsent(t->client, BOW_RESOURCE_EXHAUSTED, "max_queued_calls");
    calls_free_client(t);
}

static void be_confined_with_a_short_queue(struct bow_client_options *options)
{
    be_confined(options);
    have_a_short_queue(options);
}

/* It does not even begin. */
static void test_unsent_f49_confined_queue_is_full(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, be_confined_with_a_short_queue);
    start(t, true, BOW_NEVER, NULL);
    expect_call_unsent(t->client, BOW_RESOURCE_EXHAUSTED, "max_queued_calls");
    calls_free_client(t);
}

static void refuse(struct bow_interception *at, void *user)
{
    (void)user;
    assert_int_equal(bow_interception_refuse(at, BOW_PERMISSION_DENIED, "not this one"), 0);
}

static void add_refusal(struct bow_client_options *options)
{
    static const struct bow_interceptor interceptor = {
        .size = sizeof(struct bow_interceptor), .name = "refusal", .on_start = refuse};
    static const struct bow_interceptor *const interceptors[] = {&interceptor};

    options->interceptors = interceptors;
    options->n_interceptors = 1;
}

static void test_unsent_f49_interceptor_refuses(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, add_refusal);
    start(t, false, 0, NULL);
    expect_unsent(t, 1, BOW_PERMISSION_DENIED, "not this one");
    calls_free_client(t);
}

static void test_unsent_f49_stream(void **state)
{
    struct calls *t = *state;
    struct bow_result result = BOW_RESULT_INIT;
    struct calls__echo__stream__stream stream = {NULL};

    calls_choose_dead_address(t);
    make_client(t, NULL);
    assert_int_equal(calls__echo__stream__open(t->client, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(calls__echo__stream__stream_finish(stream, &result), 0);
    assert_int_equal(result.status.code, BOW_UNAVAILABLE);
    assert_true(result.status.not_processed);
    bow_result_fini(&result);
    calls_free_client(t);
}

/* What has left may have reached a handler. */
static void test_unsent_f49_is_not_said_of_what_was_sent(void **state)
{
    struct calls *t = *state;
    struct bow_server_options server_options;
    Calls__Request request = CALLS__REQUEST__INIT;
    uint64_t id = 0;

    calls_server_options(t, &server_options);
    t->server = calls_start_server(t, &server_options);
    make_client(t, NULL);
    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, &id), 0);
    calls_wait(t, &t->n_held, 1);
    bow_client_cancel(t->client, id);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_false(t->result.status.not_processed);
    calls_free_client(t);
}

#define UNSENT_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        UNSENT_TEST(test_unsent_f49_attempt_refused),
        UNSENT_TEST(test_unsent_f49_backing_off),
        UNSENT_TEST(test_unsent_f49_blocking),
        UNSENT_TEST(test_unsent_f49_confined),
        UNSENT_TEST(test_unsent_f49_name_is_unknown),
        UNSENT_TEST(test_unsent_f49_deadline_in_the_queue),
        UNSENT_TEST(test_unsent_f49_cancelled_in_the_queue),
        UNSENT_TEST(test_unsent_f49_client_freed),
        UNSENT_TEST(test_unsent_f49_queue_is_full),
        UNSENT_TEST(test_unsent_f49_confined_queue_is_full),
        UNSENT_TEST(test_unsent_f49_interceptor_refuses),
        UNSENT_TEST(test_unsent_f49_stream),
        UNSENT_TEST(test_unsent_f49_is_not_said_of_what_was_sent),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
