/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Many clients whose server refuses every call for a while, on virtual time: trying again makes it
 * no fifth more of what it cannot do anyway, and when it is well again there is no second wave.
 */

#include "protos/echo.bow.h"

#include <bowline/metrics.h>
#include <bowline/testing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define N_CLIENTS 1000
#define N_FEW 100
#define CALL_EVERY_NS (500 * MS)

struct storm {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct bow_method say; /* declared idempotent */
    struct bow_client *clients[N_CLIENTS];
    int n_clients;
    bool refuses;
    int n_attempts; /* that the server has had */
    int n_calls;
    int n_done;
    int n_failed;
};

static bool is_grpc;

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct storm *storm = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)request;
    storm->n_attempts++;
    if (storm->refuses) {
        (void)bow_call_fail(call, BOW_UNAVAILABLE, "sick");
    } else {
        (void)calls__echo__say__reply(call, &reply);
    }
}

static int serve(struct bow_server *server, void *user)
{
    static const struct calls__echo__handlers handlers = {.say = say};

    return calls__echo__serve(server, &handlers, user);
}

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct storm *storm = user;

    (void)fn;
    storm->n_done++;
    storm->n_failed += result->status.code != BOW_OK;
}

/* Each client makes a call, and time goes on until the next. */
static void call_all(struct storm *storm)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    for (int i = 0; i < storm->n_clients; i++) {
        assert_int_equal(bow_client_start(storm->clients[i], &storm->say, &request.base, NULL,
                                          on_done, NULL, storm, NULL),
                         0);
    }
    storm->n_calls += storm->n_clients;
    assert_int_equal(bow_test_advance(storm->test, CALL_EVERY_NS), 0);
}

static void call_for(struct storm *storm, uint64_t ns)
{
    for (uint64_t at = 0; at < ns; at += CALL_EVERY_NS) {
        call_all(storm);
    }
}

static void begin(struct storm *storm, int n_clients)
{
    struct bow_test_pair_options pair = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    memset(storm, 0, sizeof(*storm));
    storm->n_clients = n_clients;
    storm->say = *calls__echo__say__method();
    storm->say.flags |= BOW_METHOD_IDEMPOTENT;
    assert_int_equal(bow_test_new(NULL, &storm->test), 0);
    pair.serve = serve;
    pair.user = storm;
    pair.grpc = is_grpc;
    assert_int_equal(bow_test_pair_new(storm->test, &pair, &storm->pair), 0);
    options.context = bow_test_context(storm->test);
    options.loop = bow_test_loop(storm->test);
    options.target = storm->pair->target;
    for (int i = 0; i < storm->n_clients; i++) {
        assert_int_equal(bow_client_new(&options, &storm->clients[i]), 0);
    }
}

static void end(struct storm *storm)
{
    for (int i = 0; i < storm->n_clients; i++) {
        bow_client_free(storm->clients[i]);
    }
    assert_int_equal(bow_test_run(storm->test), 0);
    assert_int_equal(bow_test_end(storm->test), 0);
}

static void expect_share(const struct storm *storm)
{
    if ((uint64_t)storm->n_attempts * 10 > (uint64_t)storm->n_calls * 12) {
        fail_msg("%d attempts for %d calls", storm->n_attempts, storm->n_calls);
    }
}

static void test_retry_storm_of_a_sick_server_is_no_fifth_more(void **state)
{
    static struct storm storm;

    (void)state;
    begin(&storm, N_CLIENTS);
    call_for(&storm, SECOND);
    assert_int_equal(storm.n_failed, 0);
    assert_int_equal(storm.n_attempts, storm.n_calls);

    storm.n_attempts = 0;
    storm.n_calls = 0;
    storm.refuses = true;
    call_for(&storm, 10 * SECOND);
    assert_true(storm.n_attempts > storm.n_calls); /* it was tried */
    expect_share(&storm);

    /* Well again: at once, for all, with one attempt each. */
    storm.refuses = false;
    storm.n_failed = 0;
    storm.n_attempts = 0;
    storm.n_calls = 0;
    call_for(&storm, 2 * SECOND);
    assert_int_equal(storm.n_failed, 0);
    expect_share(&storm);
    end(&storm);
}

/* What a client earns while all is well it does not spend at once: a second illness is as cheap. */
static void test_retry_storm_again_is_as_cheap(void **state)
{
    static struct storm storm;

    (void)state;
    begin(&storm, N_FEW);
    for (int i = 0; i < 3; i++) {
        storm.refuses = false;
        call_for(&storm, 5 * SECOND);
        storm.refuses = true;
        storm.n_attempts = 0;
        storm.n_calls = 0;
        call_for(&storm, 10 * SECOND);
        expect_share(&storm);
    }
    end(&storm);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_storm_of_a_sick_server_is_no_fifth_more),
        cmocka_unit_test(test_retry_storm_again_is_as_cheap),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
