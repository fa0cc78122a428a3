/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls whose attempts are sent beside each other: the first answer counts, the others end.
 */

#include "retry_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void begin(struct calls *t, struct trial *trial, uint64_t delay_ns)
{
    trial_begin(t, trial);
    trial->policy.hedges = true;
    trial->is_watched = true;
    trial->policy.hedging_delay_ns = delay_ns;
    trial_make_client(trial, NULL);
}

static uint64_t start(struct trial *trial)
{
    uint64_t id = trial_start_say(trial, BOW_NEVER);

    trial_accept(trial);
    return id;
}

/* Until so many attempts have come. */
static void wait_attempts(struct trial *trial, int n)
{
    session_peer_wait(trial->peer, &trial->peer->n_messages, n);
}

/* The attempt that came as the `i`-th. */
static void answer(struct trial *trial, int i, const struct bow_status *status)
{
    struct session_peer *peer = trial->peer;
    struct bow__session *session = peer->session;

    if (status->code == BOW_OK) {
        struct bow__block *block = bow__block_new(peer->context, 8);
        assert_non_null(block);
        block->data[0] = 8; /* number */
        block->data[1] = (uint8_t)(i + 1);
        assert_int_equal(session->ops->send(session, peer->keys[i], BOW__SEND_END, block, 0, 2), 0);
    } else {
        assert_int_equal(session->ops->finish(session, peer->keys[i], status), 0);
    }
    session_peer_flush(peer);
}

static void answer_code(struct trial *trial, int i, enum bow_code code)
{
    answer(trial, i, &(struct bow_status){.code = code, .message = "no"});
}

static void expect_reply(struct trial *trial, uint64_t number)
{
    trial_expect_end(trial, BOW_OK, "");
    const Calls__Reply *reply = (const Calls__Reply *)trial->t->result.reply;
    assert_int_equal(reply->number, number);
}

static void expect_cancelled(struct trial *trial, int n)
{
    session_peer_wait(trial->peer, &trial->peer->n_ends, n);
    assert_int_equal(trial->peer->code, BOW_CANCELLED);
}

static void test_hedge_that_answers_first_ends_the_call(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 3);
    answer_code(&trial, 1, BOW_OK);
    expect_reply(&trial, 2);
    expect_cancelled(&trial, 2);
    trial_expect_counts(&trial, 3);
    trial_expect_seen(&trial, 2);
    trial_end(&trial);
}

static void test_hedge_is_cancelled_when_the_call_is_answered(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 2);
    answer_code(&trial, 0, BOW_OK);
    expect_reply(&trial, 1);
    expect_cancelled(&trial, 1);
    trial_end(&trial);
}

static void test_hedge_is_sent_at_once_when_an_attempt_has_failed(void **state)
{
    struct trial trial;

    begin(*state, &trial, TRIAL_HOUR);
    start(&trial);
    wait_attempts(&trial, 1);
    answer_code(&trial, 0, BOW_UNAVAILABLE);
    wait_attempts(&trial, 2);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    wait_attempts(&trial, 3);
    answer_code(&trial, 2, BOW_OK);
    expect_reply(&trial, 3);
    trial_expect_counts(&trial, 3);
    trial_end(&trial);
}

static void test_hedge_with_another_code_is_an_answer(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 2);
    answer_code(&trial, 1, BOW_NOT_FOUND);
    trial_expect_end(&trial, BOW_NOT_FOUND, "no");
    expect_cancelled(&trial, 1);
    trial_end(&trial);
}

static void test_hedge_all_of_which_fail_fails_the_call(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 3);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    answer_code(&trial, 0, BOW_UNAVAILABLE);
    answer(&trial, 2, &(struct bow_status){.code = BOW_UNAVAILABLE, .message = "the last"});
    trial_expect_end(&trial, BOW_UNAVAILABLE, "the last");
    assert_false(trial.t->result.status.not_processed);
    trial_end(&trial);
}

static void test_hedge_is_not_sent_to_a_server_that_wants_none(void **state)
{
    struct trial trial;

    begin(*state, &trial, TRIAL_HOUR);
    start(&trial);
    wait_attempts(&trial, 1);
    answer(&trial, 0,
           &(struct bow_status){
               .code = BOW_UNAVAILABLE, .message = "never", .retry_after_ns = BOW_NEVER});
    trial_expect_end(&trial, BOW_UNAVAILABLE, "never");
    trial_expect_counts(&trial, 1);
    trial_end(&trial);
}

/* What the call waits for must not be something that never comes. */
static void test_hedge_that_the_budget_forbids_is_not_waited_for(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.hedges = true;
    trial.policy.hedging_delay_ns = TRIAL_HOUR;
    trial.retry.budget_tokens = 1;
    trial_make_client(&trial, NULL);
    start(&trial);
    wait_attempts(&trial, 1);
    answer_code(&trial, 0, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "no (attempt 1: the retry budget is spent)");
    trial_expect_counts(&trial, 1);
    trial_end(&trial);
}

static void test_hedge_ends_with_a_call_that_is_cancelled(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    uint64_t id = start(&trial);
    wait_attempts(&trial, 3);
    bow_client_cancel(trial.t->client, id);
    trial_expect_end(&trial, BOW_CANCELLED, "cancelled");
    expect_cancelled(&trial, 3);
    trial_end(&trial);
}

static void test_hedge_ends_with_the_client(void **state)
{
    struct calls *t = *state;
    struct trial trial;

    begin(t, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 3);
    bow_client_free(t->client);
    t->client = NULL;
    trial_expect_end(&trial, BOW_CANCELLED, "closed");
    trial_end(&trial);
}

/* The first answer that is a failure leaves the call to the others, and its connection's end, too.
 */
static void test_hedge_survives_the_calls_own_attempt(void **state)
{
    struct trial trial;

    begin(*state, &trial, MS);
    start(&trial);
    wait_attempts(&trial, 2);
    answer_code(&trial, 0, BOW_UNAVAILABLE);
    answer_code(&trial, 1, BOW_OK);
    expect_reply(&trial, 2);
    trial_end(&trial);
}

#define HEDGE_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        HEDGE_TEST(test_hedge_that_answers_first_ends_the_call),
        HEDGE_TEST(test_hedge_is_cancelled_when_the_call_is_answered),
        HEDGE_TEST(test_hedge_is_sent_at_once_when_an_attempt_has_failed),
        HEDGE_TEST(test_hedge_with_another_code_is_an_answer),
        HEDGE_TEST(test_hedge_all_of_which_fail_fails_the_call),
        HEDGE_TEST(test_hedge_is_not_sent_to_a_server_that_wants_none),
        HEDGE_TEST(test_hedge_that_the_budget_forbids_is_not_waited_for),
        HEDGE_TEST(test_hedge_ends_with_a_call_that_is_cancelled),
        HEDGE_TEST(test_hedge_ends_with_the_client),
        HEDGE_TEST(test_hedge_survives_the_calls_own_attempt),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
