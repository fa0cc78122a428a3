/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A client of a group: which of its loops a call belongs to, and how many connections that makes.
 */

#include "call_fixture.h"

#include <bowline/group.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_LOOPS 8 /* by chance a thread would choose its own loop seldom */
#define N_CALLS 4

struct caller {
    struct calls *t;
    struct bow_group *group;
    struct bow_loop *loop; /* that its calls are begun on; NULL: on none */
    struct bow_loop *ended_on;
    int n_strayed; /* calls that ended on another one than the first, or than its own */
    int n_done;    /* under the lock of t */
};

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct caller *caller = user;
    struct bow_loop *current = bow_group_current(caller->group);
    (void)result;

    pthread_mutex_lock(&caller->t->lock);
    caller->ended_on = caller->ended_on == NULL ? current : caller->ended_on;
    caller->n_strayed += current == NULL || current != caller->ended_on || reply == NULL ||
                         (caller->loop != NULL && current != caller->loop);
    caller->n_done++;
    pthread_cond_broadcast(&caller->t->changed);
    pthread_mutex_unlock(&caller->t->lock);
}

static int call_some(void *user)
{
    struct caller *caller = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    for (int i = 0; i < N_CALLS; i++) {
        assert_int_equal(
            calls__echo__say__start(caller->t->client, &request, NULL, on_done, caller, NULL), 0);
    }
    return 0;
}

static struct bow_group *use_group(struct calls *t)
{
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_client_options options;
    struct bow_group *group = NULL;

    group_options.n_loops = N_LOOPS;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    bow_client_free(t->client);
    calls_client_options(t, &options);
    options.loop = NULL;
    options.group = group;
    t->client = calls_new_client(t, &options);
    return group;
}

static void end(struct calls *t, struct bow_group *group)
{
    bow_client_free(t->client);
    t->client = NULL;
    bow_group_unref(group);
}

static void test_group_call_of_a_loop_ends_on_that_loop(void **state)
{
    struct calls *t = *state;
    struct bow_group *group = use_group(t);

    for (uint32_t i = 0; i < N_LOOPS; i++) {
        struct caller caller = {.t = t, .group = group, .loop = bow_group_get(group, i)};
        assert_int_equal(bow_loop_execute(caller.loop, "call", call_some, &caller), 0);
        calls_wait(t, &caller.n_done, N_CALLS);
        assert_int_equal(caller.n_strayed, 0);
        CALLS_WAIT_METRIC(t, connections_opened, i + 1); /* one for each loop in use */
    }
    end(t, group);
}

static void test_group_calls_of_a_thread_end_on_one_loop(void **state)
{
    struct calls *t = *state;
    struct bow_group *group = use_group(t);
    struct caller caller = {.t = t, .group = group};

    assert_int_equal(call_some(&caller), 0);
    calls_wait(t, &caller.n_done, N_CALLS);
    assert_int_equal(call_some(&caller), 0);
    calls_wait(t, &caller.n_done, 2 * N_CALLS);
    assert_int_equal(caller.n_strayed, 0);
    CALLS_WAIT_METRIC(t, connections_opened, 1);
    end(t, group);
}

static void expect_all(const struct bow_method_metrics *method, void *user)
{
    struct bow_histogram times;
    int *n_visited = user;

    ++*n_visited;
    assert_string_equal(method->path, "/calls.Echo/Say");
    assert_int_equal(method->started, N_LOOPS * N_CALLS);
    assert_int_equal(method->ended[BOW_OK], N_LOOPS * N_CALLS);
    assert_int_equal(method->in_flight, 0);
    assert_int_equal(method->attempts, N_LOOPS * N_CALLS);
    assert_int_equal(method->sent.count, N_LOOPS * N_CALLS);
    bow_method_metrics_times(method, BOW_TIME_CALL, BOW_OK, &times);
    assert_int_equal(times.count, N_LOOPS * N_CALLS);
    bow_method_metrics_times(method, BOW_TIME_QUEUE, BOW_N_CODES, &times);
    assert_true(times.count >= N_LOOPS); /* until there was a connection */
}

static void test_group_calls_of_all_loops_are_counted_as_one_methods(void **state)
{
    struct calls *t = *state;
    struct bow_group *group = use_group(t);
    struct caller caller = {.t = t, .group = group};
    int n_visited = 0;

    for (uint32_t i = 0; i < N_LOOPS; i++) {
        assert_int_equal(bow_loop_execute(bow_group_get(group, i), "call", call_some, &caller), 0);
        calls_wait(t, &caller.n_done, (int)(i + 1) * N_CALLS);
    }
    bow_client_each_method(t->client, expect_all, &n_visited);
    assert_int_equal(n_visited, 1);
    end(t, group);
}

static int call_blocking(void *user)
{
    struct caller *caller = user;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    bool is_refused = calls__echo__say__call(caller->t->client, &request, NULL, &result) == NULL &&
                      result.status.code == BOW_FAILED_PRECONDITION;
    bow_result_fini(&result);
    pthread_mutex_lock(&caller->t->lock);
    caller->n_strayed += !is_refused;
    caller->n_done++;
    pthread_cond_broadcast(&caller->t->changed);
    pthread_mutex_unlock(&caller->t->lock);
    return 0;
}

/* It would wait for itself, or two loops for each other. */
static void test_group_blocking_call_on_any_of_its_loops_is_refused(void **state)
{
    struct calls *t = *state;
    struct bow_group *group = use_group(t);

    for (uint32_t i = 0; i < N_LOOPS; i++) {
        struct caller caller = {.t = t, .group = group};
        assert_int_equal(bow_loop_execute(bow_group_get(group, i), "call", call_blocking, &caller),
                         0);
        calls_wait(t, &caller.n_done, 1);
        assert_int_equal(caller.n_strayed, 0);
    }
    end(t, group);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_group_call_of_a_loop_ends_on_that_loop),
        TEST(test_group_calls_of_a_thread_end_on_one_loop),
        TEST(test_group_calls_of_all_loops_are_counted_as_one_methods),
        TEST(test_group_blocking_call_on_any_of_its_loops_is_refused),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
