/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server that has gone without a word, whose connection stays up: calls that are all shorter than
 * the answer to a PING is waited for do not keep it so, whoever drives the client's loop. And what
 * comes to pass while nobody drives it.
 */

#include "timed_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SHORT_NS (3 * SECOND)
/* A PING goes out after 20 s of silence, and is waited for for 10 s. */
#define MAX_SHORT_CALLS 12

static enum bow_code say_blocking(struct timed *timed)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = SHORT_NS;
    (void)calls__echo__say__call(timed->pair->blocking, &request, &options, &result);
    enum bow_code code = result.status.code;
    bow_result_fini(&result);
    return code;
}

static enum bow_code say_on_loop(struct timed *timed)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_done = timed->n_done;

    options.timeout_ns = SHORT_NS;
    assert_int_equal(calls__echo__say__start(timed->pair->client, &request, &options, timed_on_done,
                                             timed, NULL),
                     0);
    timed_run(timed);
    if (timed->n_done == n_done) {
        timed_advance(timed, SHORT_NS);
    }
    assert_int_equal(timed->n_done, n_done + 1);
    return timed->code;
}

static void dead_peer_is_noticed(struct timed *timed, enum bow_code (*say)(struct timed *timed),
                                 uint64_t between_ns)
{
    enum bow_code code = BOW_OK;
    int n = 0;

    timed_begin(timed, NULL, NULL);
    assert_int_equal(say(timed), BOW_OK);
    bow_test_break(timed->test, BOW_TEST_STALL);
    while ((code = say(timed)) != BOW_OK) {
        /* Between two that are far apart it is noticed before the second has begun. */
        assert_true(code == BOW_DEADLINE_EXCEEDED || between_ns == 0);
        timed_advance(timed, between_ns);
        assert_true(++n < MAX_SHORT_CALLS);
    }
}

static void test_dead_peer_is_noticed_by_short_calls(void **state)
{
    dead_peer_is_noticed(*state, say_on_loop, 0);
}

static void test_dead_peer_is_noticed_by_short_calls_far_apart(void **state)
{
    dead_peer_is_noticed(*state, say_on_loop, 60 * SECOND);
}

static void test_dead_peer_is_noticed_by_short_blocking_calls(void **state)
{
    dead_peer_is_noticed(*state, say_blocking, 0);
}

/* Nobody looks after the connection in between. */
static void test_dead_peer_is_noticed_by_short_blocking_calls_far_apart(void **state)
{
    dead_peer_is_noticed(*state, say_blocking, 60 * SECOND);
}

/* What came while nobody looked is read before it is missed. */
static void test_live_peer_is_not_given_up_between_blocking_calls(void **state)
{
    struct timed *timed = *state;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_begin(timed, NULL, NULL);
    assert_int_equal(say_blocking(timed), BOW_OK);
    bow_test_break(timed->test, BOW_TEST_STALL);
    timed_advance(timed, 20 * SECOND);
    assert_int_equal(say_blocking(timed), BOW_DEADLINE_EXCEEDED);
    bow_test_resume(timed->test);
    timed_advance(timed, 600 * SECOND);
    assert_int_equal(say_blocking(timed), BOW_OK);
    assert_int_equal(bow_client_metrics(timed->pair->blocking, &metrics), 0);
    assert_int_equal(metrics.heartbeats_lost, 0);
    assert_int_equal(metrics.reconnects, 0);
}

static void on_refused(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct timed *timed = user;

    timed_on_done(result, reply, user);
    bow_test_refuse(timed->test, false);
}

/* An attempt that failed while nobody looked is no reason not to make another one now. */
static void test_failure_that_is_noticed_late_fails_no_blocking_call(void **state)
{
    struct timed *timed = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    timed_begin(timed, NULL, NULL);
    bow_test_refuse(timed->test, true);
    assert_int_equal(
        calls__echo__say__start(timed->pair->blocking, &request, NULL, on_refused, timed, NULL), 0);
    timed_advance(timed, SECOND);
    assert_int_equal(say_blocking(timed), BOW_OK);
    assert_int_equal(timed->n_done, 1);
    assert_int_equal(timed->code, BOW_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_dead_peer_is_noticed_by_short_calls),
        TEST(test_dead_peer_is_noticed_by_short_calls_far_apart),
        TEST(test_dead_peer_is_noticed_by_short_blocking_calls),
        TEST(test_dead_peer_is_noticed_by_short_blocking_calls_far_apart),
        TEST(test_live_peer_is_not_given_up_between_blocking_calls),
        TEST(test_failure_that_is_noticed_late_fails_no_blocking_call),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
