/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections that end because nobody calls, or because they are old: no call fails by it.
 */

#include "call_fixture.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define N_IN_FLIGHT 16

static void start(struct calls *t, uint64_t idle_ns, uint64_t max_age_ns, uint64_t grace_ns)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.idle_timeout_ns = idle_ns;
    options.max_age_ns = max_age_ns;
    options.max_age_grace_ns = grace_ns;
    t->server = calls_start_server(t, &options);
}

static void new_client(struct calls *t, uint64_t idle_ns)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    options.idle_timeout_ns = idle_ns;
    t->client = calls_new_client(t, &options);
}

static void expect_say(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    if (calls__echo__say__call(t->client, &request, NULL, &result) == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

/* At least: a machine that stalls makes more connections idle than the test means to. */
static void wait_metric(struct calls *t, size_t offset, uint64_t n)
{
    time_t begin = time(NULL);
    uint64_t value = 0;

    do {
        struct bow_metrics metrics = BOW_METRICS_INIT;
        assert_int_equal(bow_server_metrics(t->server, &metrics), 0);
        memcpy(&value, (const char *)&metrics + offset, sizeof(value));
    } while (value < n && time(NULL) - begin < 20);
    assert_true(value >= n);
}

#define WAIT_METRIC(t, name, n) wait_metric((t), offsetof(struct bow_metrics, name), (n))

static void start_hold(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, 1);
}

static void test_idle_connection_is_closed_by_the_server_and_the_next_call_works(void **state)
{
    struct calls *t = *state;

    start(t, 40 * MS, 0, 0);
    new_client(t, BOW_NEVER);
    for (uint64_t round = 1; round <= 3; round++) {
        expect_say(t);
        WAIT_METRIC(t, connections_idle, round);
        WAIT_METRIC(t, connections_closed, round);
    }
    expect_say(t);
    WAIT_METRIC(t, connections_opened, 4);
}

static void test_idle_connection_is_closed_by_the_client_and_the_next_call_works(void **state)
{
    struct calls *t = *state;

    start(t, 0, 0, 0);
    new_client(t, 40 * MS);
    for (uint64_t round = 1; round <= 3; round++) {
        expect_say(t);
        WAIT_METRIC(t, connections_closed, round);
        assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_IDLE);
    }
    expect_say(t);
    WAIT_METRIC(t, connections_opened, 4);
    CALLS_WAIT_METRIC(t, connections_idle, 0);
}

static void test_idle_connection_with_a_call_stays(void **state)
{
    struct calls *t = *state;

    start(t, 20 * MS, 0, 0);
    new_client(t, 20 * MS);
    start_hold(t);
    struct bow_client *holder = t->client;
    /* As long as it takes that another one, which came later, is idle three times. */
    new_client(t, BOW_NEVER);
    for (uint64_t round = 1; round <= 3; round++) {
        expect_say(t);
        WAIT_METRIC(t, connections_idle, round);
    }
    assert_int_equal(t->n_done, 0);
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    bow_client_free(holder);
}

/* Nobody reads what the server says: it closes all the same, and the next call works. */
static void test_idle_connection_of_a_client_that_attends_to_nothing_is_closed(void **state)
{
    struct bow_client_options options;
    struct calls *t = *state;

    start(t, 20 * MS, 0, 0);
    calls_client_options(t, &options);
    options.loop = NULL;
    t->client = calls_new_client(t, &options);
    expect_say(t);
    WAIT_METRIC(t, connections_closed, 1);
    expect_say(t);
    WAIT_METRIC(t, connections_opened, 2);
}

/* How far the context's clock is ahead of the system's. */
static _Atomic uint64_t ahead_ns;

static uint64_t read_ahead(void *user)
{
    (void)user;
    return bow_system_default()->now_ns(NULL) + ahead_ns;
}

/* The server has no idle_timeout_ns, and does not ask such a client whether it lives. */
static void test_idle_f66_client_that_attends_to_nothing_is_not_held_for_ever(void **state)
{
    struct bow_client_options options;
    struct calls *t = *state;

    ahead_ns = 0;
    t->system.now_ns = read_ahead;
    start(t, 0, 0, 0);
    calls_client_options(t, &options);
    options.loop = NULL;
    t->client = calls_new_client(t, &options);
    expect_say(t);
    WAIT_METRIC(t, connections_opened, 1);
    ahead_ns = BOW_LIMIT_UNATTENDED_NS - 60 * 1000 * MS;
    close(calls_raw_connect(t)); /* the server's loop looks at the clock */
    WAIT_METRIC(t, connections_opened, 2);
    WAIT_METRIC(t, connections_closed, 1);
    CALLS_WAIT_METRIC(t, connections_idle, 0);
    ahead_ns = BOW_LIMIT_UNATTENDED_NS;
    close(calls_raw_connect(t));
    WAIT_METRIC(t, connections_idle, 1);
    expect_say(t);
}

/* One that never said what it speaks is the first frame's business, however short the other time.
 */
static void test_silent_connection_is_closed_in_time_before_it_is_idle(void **state)
{
    struct bow_server_options options;
    struct calls *t = *state;
    char byte = 0;

    calls_server_options(t, &options);
    options.idle_timeout_ns = 1;
    options.first_frame_timeout_ns = 50 * MS;
    t->server = calls_start_server(t, &options);
    int fd = calls_raw_connect(t);
    WAIT_METRIC(t, first_frame_timeouts, 1);
    assert_true(read(fd, &byte, 1) <= 0);
    close(fd);
}

static void test_old_connection_is_left_by_its_client_and_its_calls_end_well(void **state)
{
    struct calls *t = *state;

    start(t, 0, 30 * MS, 0);
    new_client(t, BOW_NEVER);
    start_hold(t);
    WAIT_METRIC(t, connections_aged, 1);
    expect_say(t);
    WAIT_METRIC(t, connections_aged, 2);
    WAIT_METRIC(t, connections_closed, 1);
    assert_int_equal(t->n_done, 0);
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    WAIT_METRIC(t, connections_closed, 2);
}

static void test_old_connection_cuts_its_calls_off_after_the_grace(void **state)
{
    struct calls *t = *state;

    start(t, 0, 30 * MS, 30 * MS);
    new_client(t, BOW_NEVER);
    start_hold(t);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    calls_wait(t, &t->n_cancelled, 1);
    expect_say(t);
}

/* Calls without end, several in flight, while connections come of age. */

struct mill {
    struct calls *t;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool stop;
    int n_running;
    int n_failed;
    char text[256];
};

static void on_ground(struct bow_result *result, const Calls__Reply *reply, void *user);

/* Under the lock. */
static void grind(struct mill *mill)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    if (mill->stop ||
        calls__echo__say__start(mill->t->client, &request, NULL, on_ground, mill, NULL) < 0) {
        mill->n_running--;
        mill->n_failed += !mill->stop;
        pthread_cond_signal(&mill->over);
    }
}

static void on_ground(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct mill *mill = user;

    (void)reply;
    pthread_mutex_lock(&mill->lock);
    if (result->status.code != BOW_OK) {
        mill->n_failed++;
        strncpy(mill->text, result->status.message, sizeof(mill->text) - 1);
    }
    grind(mill);
    pthread_mutex_unlock(&mill->lock);
}

static void test_old_connections_fail_no_call_of_many(void **state)
{
    struct mill mill = {.t = *state, .n_running = N_IN_FLIGHT};
    struct calls *t = *state;

    pthread_mutex_init(&mill.lock, NULL);
    pthread_cond_init(&mill.over, NULL);
    start(t, 0, 5 * MS, 0);
    new_client(t, BOW_NEVER);
    pthread_mutex_lock(&mill.lock);
    for (int i = 0; i < N_IN_FLIGHT; i++) {
        grind(&mill);
    }
    pthread_mutex_unlock(&mill.lock);
    WAIT_METRIC(t, connections_aged, 20);
    pthread_mutex_lock(&mill.lock);
    mill.stop = true;
    while (mill.n_running > 0) {
        pthread_cond_wait(&mill.over, &mill.lock);
    }
    pthread_mutex_unlock(&mill.lock);
    if (mill.n_failed > 0) {
        fail_msg("%d calls failed; the last: %s", mill.n_failed, mill.text);
    }
    pthread_cond_destroy(&mill.over);
    pthread_mutex_destroy(&mill.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_idle_connection_is_closed_by_the_server_and_the_next_call_works),
        TEST(test_idle_connection_is_closed_by_the_client_and_the_next_call_works),
        TEST(test_idle_connection_with_a_call_stays),
        TEST(test_idle_connection_of_a_client_that_attends_to_nothing_is_closed),
        TEST(test_idle_f66_client_that_attends_to_nothing_is_not_held_for_ever),
        TEST(test_silent_connection_is_closed_in_time_before_it_is_idle),
        TEST(test_old_connection_is_left_by_its_client_and_its_calls_end_well),
        TEST(test_old_connection_cuts_its_calls_off_after_the_grace),
        TEST(test_old_connections_fail_no_call_of_many),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
