/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that are tried again by a policy, one attempt after the other.
 */

#include "retry_fixture.h"

#include <bowline/group.h>
#include <bowline/inspect.h>
#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DUMP_BYTES 4096

static void test_policy_call_is_tried_until_it_succeeds(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 2, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 3, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    assert_int_equal(trial.peer->last_number, 7);
    trial_expect_counts(&trial, 3);
    trial_end(&trial);
}

static void test_policy_interceptors_see_one_call(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.is_watched = true;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 2, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    trial_expect_seen(&trial, 1);
    trial_end(&trial);
}

static void test_policy_last_attempt_says_that_it_was_the_last(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.max_attempts = 2;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 2, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "not now (attempt 2: no other is allowed)");
    trial_expect_counts(&trial, 2);
    trial_end(&trial);
}

static void test_policy_of_other_codes_does_not_count(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.codes = 1u << BOW_ABORTED | 1u << BOW_INTERNAL;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_ABORTED);
    trial_answer_code(&trial, 2, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "not now");
    trial_end(&trial);
}

static void test_policy_call_without_one_is_not_tried_again(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.method = "calls.Other";
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "not now");
    trial_end(&trial);
}

/* What was begun may have run, and that is said, whatever a later attempt knows of itself. */
static void test_policy_failure_may_have_been_processed(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.max_attempts = 2;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    for (int i = 2; i <= 3; i++) { /* the first of which is tried again without the policy */
        trial_answer(&trial, i,
                     &(struct bow_status){
                         .code = BOW_UNAVAILABLE, .message = "leaving", .not_processed = true});
    }
    trial_expect_end(&trial, BOW_UNAVAILABLE, "");
    assert_false(trial.t->result.status.not_processed);
    trial_end(&trial);
}

/* Declared in the .proto */

static void test_policy_idempotent_method_survives_a_lost_connection(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial.method.flags |= BOW_METHOD_IDEMPOTENT;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_messages, 1);
    trial_reset(trial.peer);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    trial_end(&trial);
}

static void test_policy_idempotent_method_is_left_alone_if_so_wished(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial.retry.keep_idempotent = true;
    trial.method.flags |= BOW_METHOD_IDEMPOTENT;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "not now");
    trial_end(&trial);
}

/* Pauses */

/* Its own pause would be longer than the call may take. */
static void test_policy_pause_that_the_server_asks_for_counts(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.backoff_min_ns = TRIAL_HOUR;
    trial.policy.backoff_max_ns = TRIAL_HOUR;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer(
        &trial, 1,
        &(struct bow_status){.code = BOW_UNAVAILABLE, .message = "soon", .retry_after_ns = 2 * MS});
    trial_answer_code(&trial, 2, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    trial_end(&trial);
}

static void test_policy_server_that_wants_no_other_attempt_is_obeyed(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer(&trial, 1,
                 &(struct bow_status){
                     .code = BOW_UNAVAILABLE, .message = "never", .retry_after_ns = BOW_NEVER});
    trial_expect_end(&trial, BOW_UNAVAILABLE, "never (attempt 1: the server asks for no other)");
    assert_true(trial.t->result.status.retry_after_ns == BOW_NEVER);
    trial_end(&trial);
}

static void test_policy_pause_beyond_the_deadline_is_not_begun(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.backoff_min_ns = TRIAL_HOUR;
    trial.policy.backoff_max_ns = TRIAL_HOUR;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, TRIAL_HOUR / 2);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_expect_end(&trial, BOW_UNAVAILABLE, "the next would be after the deadline");
    trial_end(&trial);
}

static void rest_for_an_hour(struct calls *t, struct trial *trial, uint64_t *ret_id)
{
    trial_begin(t, trial);
    trial->policy.backoff_min_ns = TRIAL_HOUR;
    trial->policy.backoff_max_ns = TRIAL_HOUR;
    trial_make_client(trial, NULL);
    *ret_id = trial_start_say(trial, BOW_NEVER);
    trial_accept(trial);
    trial_answer_code(trial, 1, BOW_UNAVAILABLE);
    struct bow_metrics metrics = BOW_METRICS_INIT;
    while (metrics.calls_retried == 0) {
        assert_int_equal(bow_client_metrics(t->client, &metrics), 0);
    }
}

static int append(const char *text, size_t len, void *user)
{
    char *all = user;

    assert_true(strlen(all) + len < DUMP_BYTES);
    strncat(all, text, len);
    return 0;
}

static void test_policy_call_that_rests_is_shown_with_its_last_failure(void **state)
{
    struct trial trial;
    char text[DUMP_BYTES] = "";
    uint64_t id;

    rest_for_an_hour(*state, &trial, &id);
    assert_int_equal(bow_client_dump(trial.t->client, NULL, append, text), 0);
    assert_non_null(strstr(text, "waiting for its next attempt"));
    assert_non_null(strstr(text, "1 failed, the last with UNAVAILABLE: not now"));
    trial_end(&trial);
}

static void test_policy_call_that_rests_can_be_cancelled(void **state)
{
    struct trial trial;
    uint64_t id;

    rest_for_an_hour(*state, &trial, &id);
    bow_client_cancel(trial.t->client, id);
    trial_expect_end(&trial, BOW_CANCELLED, "cancelled");
    assert_false(trial.t->result.status.not_processed);
    trial_end(&trial);
}

static void test_policy_call_that_rests_ends_with_its_client(void **state)
{
    struct trial trial;
    uint64_t id;

    rest_for_an_hour(*state, &trial, &id);
    trial_end(&trial);
    trial_expect_end(&trial, BOW_CANCELLED, "closed");
}

/* A server that takes an attempt and says nothing. */
static void test_policy_attempt_has_a_time_of_its_own(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.policy.attempt_timeout_ns = 30 * MS;
    trial.policy.max_attempts = 2;
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_ends, 2); /* cancelled each */
    trial_expect_end(&trial, BOW_DEADLINE_EXCEEDED, "(attempt 2: no other is allowed)");
    assert_non_null(strstr(trial.t->result.status.message, "brought nothing for 30 ms"));
    trial_expect_counts(&trial, 2);
    trial_end(&trial);
}

/* The budget */

static void test_policy_budget_ends_it(void **state)
{
    struct trial trial;
    struct calls *t = *state;
    int n = 0;

    trial_begin(t, &trial);
    trial_make_client(&trial, NULL);
    for (int i = 1; i <= 20; i++) {
        trial_start_say(&trial, 0);
        if (i == 1) {
            trial_accept(&trial);
        }
        struct bow_metrics metrics = BOW_METRICS_INIT;
        uint64_t n_attempts;
        do { /* until this call has had enough */
            trial_answer_code(&trial, ++n, BOW_UNAVAILABLE);
            do {
                assert_int_equal(bow_client_metrics(t->client, &metrics), 0);
                n_attempts = metrics.calls_started + metrics.calls_retried;
            } while (metrics.calls_ended < (uint64_t)i && n_attempts <= (uint64_t)n);
        } while (metrics.calls_ended < (uint64_t)i);
    }
    calls_wait(t, &t->n_done, 20);
    assert_true(n > 20);
    assert_true(n <= 20 + (int)BOW_LIMIT_RETRY_BURST);
    assert_non_null(strstr(t->result.status.message, "(attempt 1: the retry budget is spent)"));
    trial_end(&trial);
}

/* Service configs */

static void test_policy_of_a_service_config_counts(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial_make_client(
        &trial, "{\"methodConfig\":[{\"name\":[{\"service\":\"calls.Echo\",\"method\":\"Say\"}],"
                "\"retryPolicy\":{\"maxAttempts\":2,\"initialBackoff\":\"0.001s\","
                "\"maxBackoff\":\"0.01s\",\"backoffMultiplier\":2,"
                "\"retryableStatusCodes\":[\"ABORTED\"]}}]}");
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_ABORTED);
    trial_answer_code(&trial, 2, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    trial_end(&trial);
}

static void test_policy_of_a_service_config_has_a_time_for_the_call(void **state)
{
    struct trial trial;

    trial_begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial_make_client(&trial, "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0.02s\"}]}");
    trial_start_say(&trial, BOW_NEVER);
    trial_expect_end(&trial, BOW_DEADLINE_EXCEEDED, "(the service config's, for its method)");
    trial_end(&trial);
}

static void test_policy_of_a_service_config_bounds_messages(void **state)
{
    struct trial trial;
    Calls__Request request = CALLS__REQUEST__INIT;

    trial_begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial_make_client(&trial, "{\"methodConfig\":[{\"name\":[{}],\"maxRequestMessageBytes\":2,"
                              "\"maxResponseMessageBytes\":2}]}");
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_messages, 1);
    session_peer_send(trial.peer, BOW__SEND_END, "\x08\x80\x01", 3);
    trial_expect_end(&trial, BOW_RESOURCE_EXHAUSTED, "maxResponseMessageBytes");
    request.number = 128;
    struct bow_result result = BOW_RESULT_INIT;
    assert_null(bow_client_call(trial.t->client, &trial.method, &request.base, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "maxRequestMessageBytes"));
    bow_result_fini(&result);
    trial_end(&trial);
}

static void test_policy_of_a_bad_service_config_makes_no_client(void **state)
{
    struct calls *t = *state;
    struct bow_client_options options;
    struct bow_transport_error error;
    struct bow_client *client = NULL;

    calls_choose_dead_address(t);
    calls_client_options(t, &options);
    options.service_config = "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"x\"}]}";
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "options.service_config: methodConfig[0].timeout is no"));
    assert_null(client);
}

/* Other bindings than the loop of another thread */

/* A client of its own thread, which drives its loop in the call. */
static void *call_confined(void *user)
{
    struct trial *trial = user;
    struct bow_client_options options;
    struct bow_client *client = NULL;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_client_options(trial->t, &options);
    options.loop = NULL;
    options.retry = &trial->retry;
    assert_int_equal(bow_client_new(&options, &client), 0);
    (void)bow_client_call(client, &trial->method, &request.base, NULL, &trial->t->result);
    bow_client_free(client);
    return NULL;
}

static void test_policy_of_a_confined_client(void **state)
{
    struct calls *t = *state;
    struct trial trial;
    pthread_t thread;

    trial_begin(t, &trial);
    assert_int_equal(pthread_create(&thread, NULL, call_confined, &trial), 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 2, BOW_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(t->result.status.code, BOW_OK);
    trial_end(&trial);
}

static void test_policy_of_a_client_of_a_group(void **state)
{
    struct calls *t = *state;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_client_options options;
    struct bow_group *group = NULL;
    struct trial trial;

    trial_begin(t, &trial);
    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    calls_client_options(t, &options);
    options.loop = NULL;
    options.group = group;
    options.retry = &trial.retry;
    t->client = calls_new_client(t, &options);
    trial_start_say(&trial, 0);
    trial_accept(&trial);
    trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
    trial_answer_code(&trial, 2, BOW_OK);
    trial_expect_end(&trial, BOW_OK, "");
    trial_end(&trial);
    bow_group_unref(group);
}

/* Nobody there */

static void test_policy_attempt_to_connect_that_failed_is_one(void **state)
{
    struct calls *t = *state;
    struct trial trial;

    trial_begin(t, &trial);
    close(trial.listening);
    calls_choose_dead_address(t);
    trial_make_client(&trial, NULL);
    trial_start_say(&trial, 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_non_null(strstr(t->result.status.message, "(attempt 3: no other is allowed)"));
    assert_true(t->result.status.not_processed);
    bow_client_free(t->client);
    t->client = NULL;
}

#define POLICY_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        POLICY_TEST(test_policy_call_is_tried_until_it_succeeds),
        POLICY_TEST(test_policy_interceptors_see_one_call),
        POLICY_TEST(test_policy_last_attempt_says_that_it_was_the_last),
        POLICY_TEST(test_policy_of_other_codes_does_not_count),
        POLICY_TEST(test_policy_call_without_one_is_not_tried_again),
        POLICY_TEST(test_policy_failure_may_have_been_processed),
        POLICY_TEST(test_policy_idempotent_method_survives_a_lost_connection),
        POLICY_TEST(test_policy_idempotent_method_is_left_alone_if_so_wished),
        POLICY_TEST(test_policy_pause_that_the_server_asks_for_counts),
        POLICY_TEST(test_policy_server_that_wants_no_other_attempt_is_obeyed),
        POLICY_TEST(test_policy_pause_beyond_the_deadline_is_not_begun),
        POLICY_TEST(test_policy_call_that_rests_is_shown_with_its_last_failure),
        POLICY_TEST(test_policy_call_that_rests_can_be_cancelled),
        POLICY_TEST(test_policy_call_that_rests_ends_with_its_client),
        POLICY_TEST(test_policy_attempt_has_a_time_of_its_own),
        POLICY_TEST(test_policy_budget_ends_it),
        POLICY_TEST(test_policy_of_a_service_config_counts),
        POLICY_TEST(test_policy_of_a_service_config_has_a_time_for_the_call),
        POLICY_TEST(test_policy_of_a_service_config_bounds_messages),
        POLICY_TEST(test_policy_of_a_bad_service_config_makes_no_client),
        POLICY_TEST(test_policy_of_a_confined_client),
        POLICY_TEST(test_policy_of_a_client_of_a_group),
        POLICY_TEST(test_policy_attempt_to_connect_that_failed_is_one),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
