/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that are tried again by a policy. The server is the test itself, which answers each attempt
 * as it likes.
 */

#include "call_fixture.h"
#include "session_peer.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_PEERS 3
#define HOUR (UINT64_C(3600) * 1000 * MS)

struct trial {
    struct calls *t;
    int listening;
    struct session_peer *peer; /* the last of them */
    struct session_peer peers[MAX_PEERS];
    int n_peers;
    struct bow_method method; /* Say, declared as the test likes */
    struct bow_retry_policy policy;
    const struct bow_retry_policy *policies[1];
    struct bow_retry_options retry;
};

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)fn;
    calls_on_done(result, NULL, user);
}

/* The policy and the options may be altered before the client is made. */
static void begin(struct calls *t, struct trial *trial)
{
    *trial = (struct trial){.t = t, .listening = calls_raw_listen(t)};
    trial->policy = (struct bow_retry_policy)BOW_RETRY_POLICY_INIT;
    trial->policy.backoff_min_ns = MS;
    trial->policy.backoff_max_ns = 2 * MS;
    trial->policies[0] = &trial->policy;
    trial->retry = (struct bow_retry_options)BOW_RETRY_OPTIONS_INIT;
    trial->retry.policies = trial->policies;
    trial->retry.n_policies = 1;
    trial->method = *calls__echo__say__method();
}

static void make_client(struct trial *trial, const char *service_config)
{
    struct bow_client_options options;

    calls_client_options(trial->t, &options);
    options.retry = &trial->retry;
    options.service_config = service_config;
    trial->t->client = calls_new_client(trial->t, &options);
}

static void end(struct trial *trial)
{
    for (int i = 0; i < trial->n_peers; i++) {
        if (trial->peers[i].session != NULL) {
            session_peer_end(&trial->peers[i]);
        }
    }
    bow_client_free(trial->t->client);
    trial->t->client = NULL;
    close(trial->listening);
}

static uint64_t start_say(struct trial *trial, uint64_t timeout_ns)
{
    struct calls *t = trial->t;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    uint64_t id = 0;

    request.number = 7;
    options.timeout_ns = timeout_ns;
    assert_int_equal(
        bow_client_start(t->client, &trial->method, &request.base, &options, on_done, NULL, t, &id),
        0);
    return id;
}

static void accept_client(struct trial *trial)
{
    int fd = accept(trial->listening, NULL, NULL);

    assert_true(fd >= 0);
    assert_true(trial->n_peers < MAX_PEERS);
    trial->peer = &trial->peers[trial->n_peers++];
    session_peer_begin(trial->peer, trial->t->context, fd, true, calls_is_grpc());
}

/* So that the client loses what it has sent. */
static void reset(struct session_peer *peer)
{
    struct linger linger = {.l_onoff = 1};

    assert_int_equal(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    session_peer_end(peer);
    peer->session = NULL;
}

/* The server's side of attempt `n`, counted over the connection. */
static void answer(struct trial *trial, int n, const struct bow_status *status)
{
    struct session_peer *peer = trial->peer;

    session_peer_wait(peer, &peer->n_messages, n);
    if (status->code == BOW_OK) {
        session_peer_send(peer, BOW__SEND_END, "", 0);
        return;
    }
    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, status), 0);
    session_peer_flush(peer);
}

static void answer_code(struct trial *trial, int n, enum bow_code code)
{
    answer(trial, n, &(struct bow_status){.code = code, .message = "not now"});
}

static void expect_end(struct trial *trial, enum bow_code code, const char *words)
{
    struct calls *t = trial->t;

    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_done, 1);
    if (t->result.status.code != code || strstr(t->result.status.message, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(t->result.status.code), t->result.status.message);
    }
}

/* To the program and in its counters it is one call. */
static void expect_counts(struct trial *trial, uint64_t n_attempts)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    while (metrics.calls_ended == 0) { /* they are shown as a turn ends */
        assert_int_equal(bow_client_metrics(trial->t->client, &metrics), 0);
    }
    assert_int_equal(metrics.calls_started, 1);
    assert_int_equal(metrics.calls_ended, 1);
    assert_int_equal(metrics.calls_retried, n_attempts - 1);
}

static void test_policy_call_is_tried_until_it_succeeds(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    answer_code(&trial, 2, BOW_UNAVAILABLE);
    answer_code(&trial, 3, BOW_OK);
    expect_end(&trial, BOW_OK, "");
    assert_int_equal(trial.peer->last_number, 7);
    expect_counts(&trial, 3);
    end(&trial);
}

static void test_policy_last_attempt_says_that_it_was_the_last(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.max_attempts = 2;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    answer_code(&trial, 2, BOW_UNAVAILABLE);
    expect_end(&trial, BOW_UNAVAILABLE, "not now (attempt 2: no other is allowed)");
    expect_counts(&trial, 2);
    end(&trial);
}

static void test_policy_of_other_codes_does_not_count(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.codes = 1u << BOW_ABORTED | 1u << BOW_INTERNAL;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_ABORTED);
    answer_code(&trial, 2, BOW_UNAVAILABLE);
    expect_end(&trial, BOW_UNAVAILABLE, "not now");
    end(&trial);
}

static void test_policy_call_without_one_is_not_tried_again(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.method = "calls.Other";
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    expect_end(&trial, BOW_UNAVAILABLE, "not now");
    end(&trial);
}

/* What was begun may have run, and that is said, whatever a later attempt knows of itself. */
static void test_policy_failure_may_have_been_processed(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.max_attempts = 2;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    for (int i = 2; i <= 3; i++) { /* the first of which is tried again without the policy */
        answer(&trial, i,
               &(struct bow_status){
                   .code = BOW_UNAVAILABLE, .message = "leaving", .not_processed = true});
    }
    expect_end(&trial, BOW_UNAVAILABLE, "");
    assert_false(trial.t->result.status.not_processed);
    end(&trial);
}

/* Declared in the .proto */

static void test_policy_idempotent_method_survives_a_lost_connection(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial.method.flags |= BOW_METHOD_IDEMPOTENT;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_messages, 1);
    reset(trial.peer);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_OK);
    expect_end(&trial, BOW_OK, "");
    end(&trial);
}

static void test_policy_idempotent_method_is_left_alone_if_so_wished(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.retry.n_policies = 0;
    trial.retry.keep_idempotent = true;
    trial.method.flags |= BOW_METHOD_IDEMPOTENT;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    expect_end(&trial, BOW_UNAVAILABLE, "not now");
    end(&trial);
}

/* Pauses */

/* Its own pause would be longer than the call may take. */
static void test_policy_pause_that_the_server_asks_for_counts(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.backoff_min_ns = HOUR;
    trial.policy.backoff_max_ns = HOUR;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer(
        &trial, 1,
        &(struct bow_status){.code = BOW_UNAVAILABLE, .message = "soon", .retry_after_ns = 2 * MS});
    answer_code(&trial, 2, BOW_OK);
    expect_end(&trial, BOW_OK, "");
    end(&trial);
}

static void test_policy_server_that_wants_no_other_attempt_is_obeyed(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    answer(&trial, 1,
           &(struct bow_status){
               .code = BOW_UNAVAILABLE, .message = "never", .retry_after_ns = BOW_NEVER});
    expect_end(&trial, BOW_UNAVAILABLE, "never (attempt 1: the server asks for no other)");
    assert_true(trial.t->result.status.retry_after_ns == BOW_NEVER);
    end(&trial);
}

static void test_policy_pause_beyond_the_deadline_is_not_begun(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.backoff_min_ns = HOUR;
    trial.policy.backoff_max_ns = HOUR;
    make_client(&trial, NULL);
    start_say(&trial, HOUR / 2);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_UNAVAILABLE);
    expect_end(&trial, BOW_UNAVAILABLE, "the next would be after the deadline");
    end(&trial);
}

static void rest_for_an_hour(struct calls *t, struct trial *trial, uint64_t *ret_id)
{
    begin(t, trial);
    trial->policy.backoff_min_ns = HOUR;
    trial->policy.backoff_max_ns = HOUR;
    make_client(trial, NULL);
    *ret_id = start_say(trial, BOW_NEVER);
    accept_client(trial);
    answer_code(trial, 1, BOW_UNAVAILABLE);
    struct bow_metrics metrics = BOW_METRICS_INIT;
    while (metrics.calls_retried == 0) {
        assert_int_equal(bow_client_metrics(t->client, &metrics), 0);
    }
}

static void test_policy_call_that_rests_can_be_cancelled(void **state)
{
    struct trial trial;
    uint64_t id;

    rest_for_an_hour(*state, &trial, &id);
    bow_client_cancel(trial.t->client, id);
    expect_end(&trial, BOW_CANCELLED, "cancelled");
    assert_false(trial.t->result.status.not_processed);
    end(&trial);
}

static void test_policy_call_that_rests_ends_with_its_client(void **state)
{
    struct trial trial;
    uint64_t id;

    rest_for_an_hour(*state, &trial, &id);
    end(&trial);
    expect_end(&trial, BOW_CANCELLED, "closed");
}

/* A server that takes an attempt and says nothing. */
static void test_policy_attempt_has_a_time_of_its_own(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.policy.attempt_timeout_ns = 30 * MS;
    trial.policy.max_attempts = 2;
    make_client(&trial, NULL);
    start_say(&trial, 0);
    accept_client(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_ends, 2); /* cancelled each */
    expect_end(&trial, BOW_DEADLINE_EXCEEDED, "(attempt 2: no other is allowed)");
    assert_non_null(strstr(trial.t->result.status.message, "brought nothing for 30 ms"));
    expect_counts(&trial, 2);
    end(&trial);
}

/* The budget */

static void test_policy_budget_ends_it(void **state)
{
    struct trial trial;
    struct calls *t = *state;
    int n = 0;

    begin(t, &trial);
    make_client(&trial, NULL);
    for (int i = 1; i <= 20; i++) {
        start_say(&trial, 0);
        if (i == 1) {
            accept_client(&trial);
        }
        struct bow_metrics metrics = BOW_METRICS_INIT;
        uint64_t n_attempts;
        do { /* until this call has had enough */
            answer_code(&trial, ++n, BOW_UNAVAILABLE);
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
    end(&trial);
}

/* Service configs */

static void test_policy_of_a_service_config_counts(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.retry.n_policies = 0;
    make_client(&trial,
                "{\"methodConfig\":[{\"name\":[{\"service\":\"calls.Echo\",\"method\":\"Say\"}],"
                "\"retryPolicy\":{\"maxAttempts\":2,\"initialBackoff\":\"0.001s\","
                "\"maxBackoff\":\"0.01s\",\"backoffMultiplier\":2,"
                "\"retryableStatusCodes\":[\"ABORTED\"]}}]}");
    start_say(&trial, 0);
    accept_client(&trial);
    answer_code(&trial, 1, BOW_ABORTED);
    answer_code(&trial, 2, BOW_OK);
    expect_end(&trial, BOW_OK, "");
    end(&trial);
}

static void test_policy_of_a_service_config_has_a_time_for_the_call(void **state)
{
    struct trial trial;

    begin(*state, &trial);
    trial.retry.n_policies = 0;
    make_client(&trial, "{\"methodConfig\":[{\"name\":[{}],\"timeout\":\"0.02s\"}]}");
    start_say(&trial, BOW_NEVER);
    expect_end(&trial, BOW_DEADLINE_EXCEEDED, "(the service config's, for its method)");
    end(&trial);
}

static void test_policy_of_a_service_config_bounds_messages(void **state)
{
    struct trial trial;
    Calls__Request request = CALLS__REQUEST__INIT;

    begin(*state, &trial);
    trial.retry.n_policies = 0;
    make_client(&trial, "{\"methodConfig\":[{\"name\":[{}],\"maxRequestMessageBytes\":2,"
                        "\"maxResponseMessageBytes\":2}]}");
    start_say(&trial, 0);
    accept_client(&trial);
    session_peer_wait(trial.peer, &trial.peer->n_messages, 1);
    session_peer_send(trial.peer, BOW__SEND_END, "\x08\x80\x01", 3);
    expect_end(&trial, BOW_RESOURCE_EXHAUSTED, "maxResponseMessageBytes");
    request.number = 128;
    struct bow_result result = BOW_RESULT_INIT;
    assert_null(bow_client_call(trial.t->client, &trial.method, &request.base, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "maxRequestMessageBytes"));
    bow_result_fini(&result);
    end(&trial);
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

/* Nobody there */

static void test_policy_attempt_to_connect_that_failed_is_one(void **state)
{
    struct calls *t = *state;
    struct trial trial;

    begin(t, &trial);
    close(trial.listening);
    calls_choose_dead_address(t);
    make_client(&trial, NULL);
    start_say(&trial, 0);
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
        POLICY_TEST(test_policy_last_attempt_says_that_it_was_the_last),
        POLICY_TEST(test_policy_of_other_codes_does_not_count),
        POLICY_TEST(test_policy_call_without_one_is_not_tried_again),
        POLICY_TEST(test_policy_failure_may_have_been_processed),
        POLICY_TEST(test_policy_idempotent_method_survives_a_lost_connection),
        POLICY_TEST(test_policy_idempotent_method_is_left_alone_if_so_wished),
        POLICY_TEST(test_policy_pause_that_the_server_asks_for_counts),
        POLICY_TEST(test_policy_server_that_wants_no_other_attempt_is_obeyed),
        POLICY_TEST(test_policy_pause_beyond_the_deadline_is_not_begun),
        POLICY_TEST(test_policy_call_that_rests_can_be_cancelled),
        POLICY_TEST(test_policy_call_that_rests_ends_with_its_client),
        POLICY_TEST(test_policy_attempt_has_a_time_of_its_own),
        POLICY_TEST(test_policy_budget_ends_it),
        POLICY_TEST(test_policy_of_a_service_config_counts),
        POLICY_TEST(test_policy_of_a_service_config_has_a_time_for_the_call),
        POLICY_TEST(test_policy_of_a_service_config_bounds_messages),
        POLICY_TEST(test_policy_of_a_bad_service_config_makes_no_client),
        POLICY_TEST(test_policy_attempt_to_connect_that_failed_is_one),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
