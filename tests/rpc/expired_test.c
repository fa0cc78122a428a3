/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A thousand calls of ten milliseconds behind a handler of two hundred, on virtual time; and what
 * comes when it is over. */

#include "testing/test.h"
#include "timed_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_SHORT 1000

static void work(struct timed *timed, struct bow_call *call)
{
    (void)call;
    bow__fake_system_advance(&timed->test->fake, 200 * MS);
}

static void start(struct timed *timed, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = timeout_ns;
    assert_int_equal(calls__echo__say__start(timed->pair->client, &request, &options, timed_on_done,
                                             timed, NULL),
                     0);
}

static void test_expired_f28_calls_behind_a_long_handler_are_not_run(void **state)
{
    struct timed *timed = *state;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_begin(timed, NULL, NULL);
    timed_say(timed, 0);
    timed_run(timed);
    timed->enter = work;
    start(timed, BOW_NEVER);
    for (int i = 0; i < N_SHORT; i++) {
        start(timed, 10 * MS);
    }
    timed_advance(timed, SECOND);
    assert_int_equal(timed->n_said, 2); /* the warm one and the long one */
    assert_int_equal(timed->n_done, 2 + N_SHORT);
    assert_int_equal(timed->n_failed, N_SHORT);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.calls_expired_unrun, N_SHORT);
}

/* More of them than a turn has room for were timed from when they came, and that is over. */
static void test_expired_f28_a_call_after_many_has_its_time(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    for (int i = 0; i < N_SHORT; i++) {
        start(timed, BOW_NEVER);
    }
    timed_advance(timed, SECOND);
    start(timed, 10 * MS);
    timed_advance(timed, SECOND);
    assert_int_equal(timed->n_said, N_SHORT + 1);
    assert_int_equal(timed->n_done, N_SHORT + 1);
    assert_int_equal(timed->n_failed, 0);
}

/* Replies that come together, of calls that were held. */

static struct {
    struct bow_call *calls[N_SHORT];
    int n;
} together;

static void answer_together(struct timed *timed, struct bow_call *call)
{
    (void)timed;
    together.calls[together.n++] = call;
    for (int i = 0; together.n == N_SHORT && i < N_SHORT; i++) {
        (void)timed_reply(together.calls[i], NULL);
    }
}

/* The callback of the first one takes longer than the others have time for, which have come. */
static void work_on_reply(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct timed *timed = user;

    timed_on_done(result, reply, user);
    if (timed->n_done == 1) {
        bow__fake_system_advance(&timed->test->fake, 200 * MS);
    }
}

static void start_together(struct timed *timed)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    together.n = 0;
    timed->in_hold = answer_together;
    options.timeout_ns = 100 * MS;
    for (int i = 0; i < N_SHORT; i++) {
        assert_int_equal(calls__echo__hold__start(timed->pair->client, &request, &options,
                                                  work_on_reply, timed, NULL),
                         0);
    }
}

static void test_expired_f28_a_reply_that_waits_for_its_turn_is_in_time(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    start_together(timed);
    timed_advance(timed, SECOND);
    assert_int_equal(timed->n_done, N_SHORT);
    assert_int_equal(timed->n_failed, 0);
}

/* And one that has not come is not waited for. */
static void test_expired_f28_a_call_beside_replies_that_wait_ends_at_its_deadline(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    (void)timed_hold(timed, 150 * MS);
    struct bow_call *held = timed->held;
    start_together(timed);
    timed_advance(timed, SECOND);
    assert_int_equal(timed->n_done, N_SHORT + 1);
    assert_int_equal(timed->n_failed, 1);
    (void)timed_reply(held, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_expired_f28_calls_behind_a_long_handler_are_not_run),
        TEST(test_expired_f28_a_call_after_many_has_its_time),
        TEST(test_expired_f28_a_reply_that_waits_for_its_turn_is_in_time),
        TEST(test_expired_f28_a_call_beside_replies_that_wait_ends_at_its_deadline),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
