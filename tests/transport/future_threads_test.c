/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Futures and other threads: waiting (L41), racing completions, removing what runs (L40). */

#include "tests/support/gate.h"
#include "tests/support/loops.h"

#include <bowline/submit.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct bow_executor *new_executor(struct loops *t, uint32_t n_threads)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = n_threads;
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

/* Work that ends when it is let go, with the gate as its value. */
static int wait_for_gate(void *user, void **ret_value)
{
    gate_wait(user, 1);
    *ret_value = user;
    return 0;
}

/* L41 */

static void test_future_l41_wait_ends_with_the_completion_or_the_time(void **state)
{
    struct loops t;
    struct gate let_go;
    struct bow_future *future = NULL;

    (void)state;
    loops_begin(&t);
    gate_init(&let_go);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_submit(loop, "wait", wait_for_gate, &let_go, NULL, &future), 0);
    assert_int_equal(bow_future_wait(future, 0), -ETIMEDOUT);
    assert_int_equal(bow_future_wait(future, FAKE_MS), -ETIMEDOUT);
    gate_add(&let_go);
    assert_int_equal(bow_future_wait(future, BOW_NEVER), 0);
    assert_ptr_equal(bow_future_value(future), &let_go);
    assert_int_equal(bow_future_wait(future, 0), 0);
    bow_future_unref(future);
    bow_loop_unref(loop);
    gate_fini(&let_go);
    loops_end(&t);
}

struct waits {
    struct bow_future *future; /* of a pending promise whose home is here */
    struct bow_future *done;
    struct bow_future *ending;
    int rc;
    int done_rc;
    int ending_rc;
};

static int wait_inside(void *user, void **ret_value)
{
    struct waits *waits = user;

    (void)ret_value;
    waits->rc = bow_future_wait(waits->future, BOW_NEVER);
    waits->done_rc = bow_future_wait(waits->done, BOW_NEVER);
    waits->ending_rc = waits->ending != NULL ? bow_future_wait(waits->ending, BOW_NEVER) : -EDEADLK;
    return 0;
}

static void check_wait_inside(struct loops *t, struct bow_promise_options *options)
{
    struct waits waits = {.rc = 0};
    struct bow_promise *pending = NULL;
    struct bow_promise *done = NULL;
    struct bow_future *future = NULL;

    assert_int_equal(bow_promise_new(t->context, options, &pending), 0);
    assert_int_equal(bow_promise_new(t->context, options, &done), 0);
    assert_int_equal(bow_promise_succeed(done, NULL), 0);
    waits.future = bow_promise_future(pending);
    waits.done = bow_promise_future(done);
    if (options->loop != NULL) {
        assert_int_equal(bow_loop_terminated(options->loop, NULL, &waits.ending), 0);
        assert_int_equal(bow_loop_submit(options->loop, "wait", wait_inside, &waits, NULL, &future),
                         0);
    } else {
        assert_int_equal(
            bow_executor_submit(options->executor, "wait", wait_inside, &waits, NULL, &future), 0);
    }
    assert_int_equal(bow_future_wait(future, BOW_NEVER), 0);
    assert_int_equal(waits.rc, -EDEADLK);
    assert_int_equal(waits.done_rc, 0); /* nothing to wait for */
    assert_int_equal(waits.ending_rc, -EDEADLK);
    bow_future_unref(future);
    bow_future_unref(waits.ending);
    bow_promise_unref(pending);
    bow_promise_unref(done);
}

static void test_future_l41_wait_on_the_homes_own_thread_is_refused(void **state)
{
    struct loops t;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;

    (void)state;
    loops_begin(&t);
    options.loop = loops_new_threaded(&t);
    check_wait_inside(&t, &options);
    options.loop = bow_loop_unref(options.loop);
    options.executor = new_executor(&t, 1);
    check_wait_inside(&t, &options);
    bow_executor_unref(options.executor);
    loops_end(&t);
}

/* Where the work runs counts too, wherever the listeners are. */
static void test_future_l41_wait_where_the_work_runs_is_refused(void **state)
{
    struct loops t;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct gate open;
    struct bow_future *future = NULL;

    (void)state;
    loops_begin(&t);
    gate_init(&open);
    gate_add(&open);
    options.loop = loops_new_threaded(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    assert_int_equal(bow_executor_submit(executor, "wait", wait_for_gate, &open, &options, &future),
                     0);
    assert_int_equal(bow_future_wait(future, BOW_NEVER), -EDEADLK);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    assert_int_equal(bow_future_wait(future, BOW_NEVER), 0);
    bow_future_unref(future);
    bow_executor_unref(executor);
    bow_loop_unref(options.loop);
    gate_fini(&open);
    loops_end(&t);
}

#define N_WAITERS 4

static void *wait_for(void *argument)
{
    struct bow_future *future = argument;

    assert_int_equal(bow_future_wait(future, BOW_NEVER), 0);
    assert_int_equal(bow_future_error(future), -EIO);
    bow_future_unref(future);
    return NULL;
}

static void test_future_l41_every_waiter_is_released(void **state)
{
    struct loops t;
    struct bow_promise *promise = NULL;
    pthread_t threads[N_WAITERS];

    (void)state;
    loops_begin(&t);
    assert_int_equal(bow_promise_new(t.context, NULL, &promise), 0);
    for (int i = 0; i < N_WAITERS; i++) {
        pthread_create(&threads[i], NULL, wait_for, bow_future_ref(bow_promise_future(promise)));
    }
    assert_int_equal(bow_promise_fail(promise, -EIO), 0);
    bow_promise_unref(promise);
    for (int i = 0; i < N_WAITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    loops_end(&t);
}

struct racer {
    struct bow_promise *promise;
    atomic_int *n_won;
    int kind;
};

static void *try_to_win(void *argument)
{
    struct racer *racer = argument;
    struct bow_future *future = bow_promise_future(racer->promise);
    int rc = 0;

    switch (racer->kind) {
    case 0:
        rc = bow_promise_succeed(racer->promise, racer);
        break;
    case 1:
        rc = bow_promise_fail(racer->promise, -EIO);
        break;
    default:
        rc = bow_future_cancel(future);
        break;
    }
    if (rc == 0) {
        atomic_fetch_add(racer->n_won, 1);
    } else {
        assert_int_equal(rc, -EALREADY);
    }
    bow_promise_unref(racer->promise);
    return NULL;
}

static void count_end(struct bow_future *future, void *user)
{
    assert_true(bow_future_is_done(future));
    atomic_fetch_add((atomic_int *)user, 1);
}

static void test_future_l40_one_of_several_threads_completes_it(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    for (int round = 0; round < 50; round++) {
        struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
        struct bow_promise *promise = NULL;
        struct racer racers[3];
        pthread_t threads[3];
        atomic_int n_won = 0;
        atomic_int n_told = 0;
        struct bow_future_listener early = {.fn = count_end, .user = &n_told};
        struct bow_future_listener late = {.fn = count_end, .user = &n_told};

        options.loop = loop;
        assert_int_equal(bow_promise_new(t.context, &options, &promise), 0);
        struct bow_future *future = bow_future_ref(bow_promise_future(promise));
        assert_int_equal(bow_future_listen(future, &early), 0);
        for (int i = 0; i < 3; i++) {
            racers[i] = (struct racer){bow_promise_ref(promise), &n_won, i};
            pthread_create(&threads[i], NULL, try_to_win, &racers[i]);
        }
        assert_int_equal(bow_future_listen(future, &late), 0);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
        }
        bow_promise_unref(promise);
        assert_int_equal(n_won, 1);
        while (atomic_load(&n_told) < 2) {
            sched_yield();
        }
        bow_future_unref(future);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

struct held {
    struct gate entered;
    struct gate let_go;
};

static void hold_on(struct bow_future *future, void *user)
{
    struct held *held = user;

    assert_true(bow_future_is_done(future));
    gate_add(&held->entered);
    gate_wait(&held->let_go, 1);
}

static void test_future_l40_removing_a_listener_that_runs_says_so(void **state)
{
    struct loops t;
    struct held held;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_future_listener listener = {.fn = hold_on, .user = &held};
    struct bow_promise *promise = NULL;

    (void)state;
    loops_begin(&t);
    gate_init(&held.entered);
    gate_init(&held.let_go);
    options.loop = loops_new_threaded(&t);
    assert_int_equal(bow_promise_new(t.context, &options, &promise), 0);
    struct bow_future *future = bow_promise_future(promise);
    assert_int_equal(bow_future_listen(future, &listener), 0);
    assert_int_equal(bow_promise_succeed(promise, NULL), 0);
    gate_wait(&held.entered, 1);
    assert_int_equal(bow_future_unlisten(future, &listener), -EBUSY);
    gate_add(&held.let_go);
    bow_loop_unref(options.loop);
    assert_int_equal(bow_future_unlisten(future, &listener), -ENOENT);
    bow_promise_unref(promise);
    gate_fini(&held.entered);
    gate_fini(&held.let_go);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_future_l41_wait_ends_with_the_completion_or_the_time),
        cmocka_unit_test(test_future_l41_wait_on_the_homes_own_thread_is_refused),
        cmocka_unit_test(test_future_l41_wait_where_the_work_runs_is_refused),
        cmocka_unit_test(test_future_l41_every_waiter_is_released),
        cmocka_unit_test(test_future_l40_one_of_several_threads_completes_it),
        cmocka_unit_test(test_future_l40_removing_a_listener_that_runs_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
