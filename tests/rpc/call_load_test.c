/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Many calls at once: every reply is its request's, each completes once, and
 * nothing is left.
 */

#include "call_fixture.h"

#include <bowline/group.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CLIENTS 8
#define N_IN_FLIGHT 64
#define N_CALLS 10000

struct load {
    struct calls *t;
    struct bow_client *clients[N_CLIENTS];
    int n_started; /* on the loop */
    int n_wrong;
    int n_errors;
    int n_ended; /* under t->lock */
};

struct lane {
    struct load *load;
    struct bow_client *client;
    uint64_t number;
};

static void on_reply(struct bow_result *result, const Calls__Reply *reply, void *user);

static void next_call(struct lane *lane)
{
    struct load *load = lane->load;
    Calls__Request request = CALLS__REQUEST__INIT;

    if (load->n_started == N_CALLS) {
        return;
    }
    lane->number = (uint64_t)load->n_started++;
    request.number = lane->number;
    assert_int_equal(calls__echo__say__start(lane->client, &request, NULL, on_reply, lane, NULL),
                     0);
}

static void on_reply(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct lane *lane = user;
    struct load *load = lane->load;

    load->n_errors += result->status.code != BOW_OK;
    load->n_wrong += reply == NULL || reply->number != lane->number;
    next_call(lane);
    pthread_mutex_lock(&load->t->lock);
    load->n_ended++;
    pthread_cond_broadcast(&load->t->changed);
    pthread_mutex_unlock(&load->t->lock);
}

static int begin(void *user)
{
    struct lane *lanes = user;

    for (int i = 0; i < N_CLIENTS * N_IN_FLIGHT; i++) {
        next_call(&lanes[i]);
    }
    return 0;
}

static void test_load_every_reply_is_its_requests(void **state)
{
    struct calls *t = *state;
    struct load load = {.t = t};
    struct lane *lanes = calloc(N_CLIENTS * N_IN_FLIGHT, sizeof(*lanes));
    struct bow_client_options options;

    calls_client_options(t, &options);
    for (int i = 0; i < N_CLIENTS; i++) {
        load.clients[i] = calls_new_client(t, &options);
    }
    for (int i = 0; i < N_CLIENTS * N_IN_FLIGHT; i++) {
        lanes[i] = (struct lane){&load, load.clients[i / N_IN_FLIGHT], 0};
    }
    assert_int_equal(bow_loop_execute(t->loop, "begin", begin, lanes), 0);
    calls_wait(t, &load.n_ended, N_CALLS);
    for (int i = 0; i < N_CLIENTS; i++) {
        bow_client_free(load.clients[i]);
    }
    free(lanes);
    assert_int_equal(load.n_ended, N_CALLS);
    assert_int_equal(load.n_errors, 0);
    assert_int_equal(load.n_wrong, 0);
    assert_int_equal(t->n_said, N_CALLS);
}

/* Large messages both ways while small calls go on beside them on the same connection. */
static void test_load_small_calls_pass_between_large_ones(void **state)
{
    struct calls *t = *state;
    Calls__Request large = CALLS__REQUEST__INIT;

    large.payload.len = (size_t)3 << 20;
    large.payload.data = calloc(1, large.payload.len);
    for (int i = 0; i < 4; i++) {
        Calls__Request small = CALLS__REQUEST__INIT;
        assert_int_equal(calls__echo__say__start(t->client, &large, NULL, calls_on_done, t, NULL),
                         0);
        for (int k = 0; k < 100; k++) {
            struct bow_result result = BOW_RESULT_INIT;
            assert_non_null(calls__echo__say__call(t->client, &small, NULL, &result));
            bow_result_fini(&result);
        }
    }
    calls_wait(t, &t->n_done, 4);
    assert_int_equal(t->result.status.code, BOW_OK);
    assert_int_equal(((const Calls__Reply *)t->result.reply)->payload.len, large.payload.len);
    free(large.payload.data);
}

/* Threads that start, cancel and wait, on a client of a group. */

#define N_THREADS 4
#define N_ROUNDS 200

static void *start_and_cancel(void *user)
{
    struct calls *t = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        Calls__Request request = CALLS__REQUEST__INIT;
        struct bow_result result = BOW_RESULT_INIT;
        uint64_t id = 0;
        assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, &id),
                         0);
        bow_client_cancel(t->client, id);
        assert_non_null(calls__echo__say__call(t->client, &request, NULL, &result));
        bow_result_fini(&result);
    }
    return NULL;
}

static void test_load_f19_cancel_races_with_replies_from_many_threads(void **state)
{
    struct calls *t = *state;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;
    struct bow_client_options options;
    pthread_t threads[N_THREADS];

    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    bow_client_free(t->client);
    calls_client_options(t, &options);
    options.loop = NULL;
    options.group = group;
    t->client = calls_new_client(t, &options);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_cancel, t), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    calls_wait(t, &t->n_done, N_THREADS * N_ROUNDS);
    bow_client_free(t->client);
    t->client = NULL;
    bow_group_unref(group);
    assert_int_equal(t->n_done, N_THREADS * N_ROUNDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_load_every_reply_is_its_requests),
        TEST(test_load_small_calls_pass_between_large_ones),
        TEST(test_load_f19_cancel_races_with_replies_from_many_threads),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
