/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Many clients whose server is gone for a while, on virtual time: they do not come back
 * all at once, they ask no more often than they have calls, and all of them are served in the end.
 */

#include "timed_fixture.h"

#include <bowline/client.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CLIENTS 500
#define DOWN_NS (5 * SECOND)
#define CALL_EVERY_NS (250 * MS)
#define BUCKET_NS (100 * MS)
#define N_BUCKETS 100

struct storm_client {
    struct timed *timed;
    struct bow_client *client;
    uint64_t back_ns; /* when its call was answered; 0: it was not */
};

struct storm {
    struct timed *timed;
    struct storm_client clients[N_CLIENTS];
};

static void storm_on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct storm_client *own = user;

    timed_on_done(result, reply, own->timed);
    own->back_ns = reply != NULL ? bow_test_now(own->timed->test) : 0;
}

static void call_all(struct storm *storm, bool waits)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = waits;
    for (int i = 0; i < N_CLIENTS; i++) {
        assert_int_equal(calls__echo__say__start(storm->clients[i].client, &request, &options,
                                                 storm_on_done, &storm->clients[i], NULL),
                         0);
    }
    timed_run(storm->timed);
}

static struct storm *begin(struct timed *timed)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct storm *storm = calloc(1, sizeof(*storm));

    assert_non_null(storm);
    storm->timed = timed;
    timed_begin(timed, NULL, NULL);
    options.context = bow_test_context(timed->test);
    options.loop = bow_test_loop(timed->test);
    options.target = timed->pair->target;
    for (int i = 0; i < N_CLIENTS; i++) {
        storm->clients[i].timed = timed;
        assert_int_equal(bow_client_new(&options, &storm->clients[i].client), 0);
    }
    call_all(storm, false);
    assert_int_equal(timed->n_done, N_CLIENTS);
    assert_int_equal(timed->n_failed, 0);
    return storm;
}

static void end(struct storm *storm)
{
    for (int i = 0; i < N_CLIENTS; i++) {
        bow_client_free(storm->clients[i].client);
    }
    timed_run(storm->timed);
    free(storm);
}

static void go_down(struct storm *storm)
{
    bow_test_refuse(storm->timed->test, true);
    bow_test_break(storm->timed->test, BOW_TEST_RESET);
    timed_run(storm->timed);
}

/* Attempts to connect, of all. */
static uint64_t n_attempts(struct storm *storm)
{
    uint64_t n = 0;

    timed_advance(storm->timed, 20 * MS); /* they are published then */
    for (int i = 0; i < N_CLIENTS; i++) {
        struct bow_metrics metrics = BOW_METRICS_INIT;
        assert_int_equal(bow_client_metrics(storm->clients[i].client, &metrics), 0);
        n += metrics.connects_failed + metrics.connections_opened;
    }
    return n;
}

static void expect_all_back(struct storm *storm, int n_before)
{
    assert_int_equal(storm->timed->n_done - n_before, N_CLIENTS);
    for (int i = 0; i < N_CLIENTS; i++) {
        assert_true(storm->clients[i].back_ns > 0);
    }
}

/* The most that came back within BUCKET_NS. */
static int crowd_of(const struct storm *storm, uint64_t since_ns)
{
    int counts[N_BUCKETS] = {0};
    int most = 0;

    for (int i = 0; i < N_CLIENTS; i++) {
        uint64_t bucket = (storm->clients[i].back_ns - since_ns) / BUCKET_NS;
        assert_true(bucket < N_BUCKETS);
        counts[bucket]++;
    }
    for (int i = 0; i < N_BUCKETS; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    return most;
}

/* Calls that wait: each client goes on trying by itself, in pauses that grow. */
static void test_storm_f25_clients_that_wait_come_back_spread_out(void **state)
{
    struct timed *timed = *state;
    struct storm *storm = begin(timed);
    int n_said = timed->n_said;

    go_down(storm);
    uint64_t before = n_attempts(storm);
    int n_before = timed->n_done;
    call_all(storm, true);
    timed_advance(timed, DOWN_NS);
    assert_int_equal(timed->n_done, n_before);
    /* 100 ms, 160, 256, … give or take a fifth: 6 or 7 pauses are 5 s. */
    uint64_t n_tries = n_attempts(storm) - before;
    assert_in_range(n_tries, 5 * N_CLIENTS, 9 * N_CLIENTS);
    bow_test_refuse(timed->test, false);
    uint64_t up_ns = bow_test_now(timed->test);
    timed_advance(timed, 2 * DOWN_NS);
    expect_all_back(storm, n_before);
    assert_int_equal(timed->n_said - n_said, N_CLIENTS);
    assert_true(crowd_of(storm, up_ns) < N_CLIENTS / 3);

    /* A success has ended the long pauses. */
    go_down(storm);
    n_before = timed->n_done;
    call_all(storm, true);
    timed_advance(timed, 20 * MS);
    bow_test_refuse(timed->test, false);
    timed_advance(timed, 120 * MS);
    expect_all_back(storm, n_before);
    end(storm);
}

/* Calls that fail fast, and are made all the time. */
static void test_storm_f25_calls_that_fail_are_followed_by_no_more_attempts(void **state)
{
    struct timed *timed = *state;
    struct storm *storm = begin(timed);
    int n_said = timed->n_said;

    go_down(storm);
    uint64_t before = n_attempts(storm);
    int n_calls = 0;
    int n_before = timed->n_done;
    for (uint64_t ns = 0; ns < DOWN_NS; ns += CALL_EVERY_NS, n_calls += N_CLIENTS) {
        call_all(storm, false);
        timed_advance(timed, CALL_EVERY_NS);
    }
    assert_int_equal(timed->n_done - n_before, n_calls);
    assert_int_equal(timed->n_failed, n_calls);
    assert_int_equal(timed->n_said, n_said);
    bow_test_refuse(timed->test, false);
    for (int i = 0; i < 4; i++, n_calls += N_CLIENTS) {
        call_all(storm, false);
        timed_advance(timed, CALL_EVERY_NS);
    }
    uint64_t n_tries = n_attempts(storm) - before;
    if (n_tries * 10 > (uint64_t)n_calls * 12) {
        fail_msg("%llu attempts for %d calls", (unsigned long long)n_tries, n_calls);
    }
    n_before = timed->n_done;
    call_all(storm, false);
    expect_all_back(storm, n_before);
    end(storm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_storm_f25_clients_that_wait_come_back_spread_out),
        TEST(test_storm_f25_calls_that_fail_are_followed_by_no_more_attempts),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
