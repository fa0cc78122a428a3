/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The life of a loop: states, threads, who is inside (L01–L04). */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* L01 */

struct seen_states {
    struct bow_loop *loop;
    enum bow_loop_state in_task;
    enum bow_loop_state in_hook;
    enum bow_loop_state in_last_task;
    struct bow_loop_hook hook;
    struct bow_task last;
};

static int see_in_task(void *user)
{
    struct seen_states *seen = user;

    seen->in_task = bow_loop_get_state(seen->loop);
    return 0;
}

static int see_in_last_task(void *user)
{
    struct seen_states *seen = user;

    seen->in_last_task = bow_loop_get_state(seen->loop);
    return 0;
}

static void see_in_hook(struct bow_loop_hook *hook)
{
    struct seen_states *seen = BOW__CONTAINER(hook, struct seen_states, hook);

    seen->in_hook = bow_loop_get_state(seen->loop);
    bow_task_init(&seen->last, "last", see_in_last_task, seen);
    assert_int_equal(bow_loop_post(seen->loop, &seen->last), 0);
}

static void test_loop_l01_life_passes_through_all_states_in_order(void **state)
{
    struct loops t;
    struct bow_task task;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct seen_states seen = {.loop = loop, .hook.fn = see_in_hook};
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);
    assert_int_equal(bow_loop_add_hook(loop, &seen.hook), 0);
    bow_task_init(&task, "see", see_in_task, &seen);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(seen.in_task, BOW_LOOP_STARTED);

    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_SHUTTING_DOWN);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(seen.in_hook, BOW_LOOP_SHUTTING_DOWN);
    assert_int_equal(seen.in_last_task, BOW_LOOP_SHUTDOWN);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);

    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L02 */

static void test_loop_l02_first_task_starts_the_thread(void **state)
{
    struct loops t;
    atomic_int n = 0;
    struct bow_task task;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(atomic_load(&t.fake.n_threads), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    loops_stop(loop);
    assert_int_equal(n, 1);
    loops_end(&t);
}

static int start_with_timer(struct bow_loop *loop, atomic_int *n)
{
    return bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, FAKE_MS, 0, "count", loops_count_run, n,
                             NULL);
}

static void test_loop_l02_first_timer_starts_the_thread(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(start_with_timer(loop, &n), 0);
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    loops_stop(loop);
    loops_end(&t);
}

#define N_RACERS 8

struct racer {
    struct bow_loop *loop;
    pthread_barrier_t *barrier;
    struct bow_task task;
    int rc;
    pthread_t thread;
};

static void *race(void *argument)
{
    struct racer *racer = argument;

    pthread_barrier_wait(racer->barrier);
    racer->rc = bow_loop_post(racer->loop, &racer->task);
    return NULL;
}

static void test_loop_l02_racing_threads_start_it_once(void **state)
{
    struct loops t;
    struct racer racers[N_RACERS];
    pthread_barrier_t barrier;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    pthread_barrier_init(&barrier, NULL, N_RACERS);
    for (int i = 0; i < N_RACERS; i++) {
        racers[i] = (struct racer){.loop = loop, .barrier = &barrier};
        bow_task_init(&racers[i].task, "count", loops_count_run, &n);
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < N_RACERS; i++) {
        pthread_join(racers[i].thread, NULL);
        assert_int_equal(racers[i].rc, 0);
    }
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    loops_stop(loop);
    assert_int_equal(n, N_RACERS);
    pthread_barrier_destroy(&barrier);
    loops_end(&t);
}

static void test_loop_l02_failed_start_returns_the_error_and_the_state(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    bow_task_init(&task, "count", loops_count_run, &n);
    t.fake.thread_error = -EAGAIN;
    assert_int_equal(bow_loop_post(loop, &task), -EAGAIN);
    assert_int_equal(bow_loop_post_lazy(loop, &task), -EAGAIN);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), -EAGAIN);
    assert_int_equal(start_with_timer(loop, &n), -EAGAIN);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);

    t.fake.thread_error = 0;
    assert_int_equal(bow_loop_post(loop, &task), 0);
    loops_stop(loop);
    assert_int_equal(n, 1);
    loops_end(&t);
}

/* L03 */

struct seen_thread {
    char name[32];
    size_t stack_bytes;
    cpu_set_t cpus;
};

static int see_thread(void *user)
{
    struct seen_thread *seen = user;
    pthread_attr_t attributes;

    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    sched_getaffinity(0, sizeof(seen->cpus), &seen->cpus);
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &seen->stack_bytes);
    pthread_attr_destroy(&attributes);
    return 0;
}

static int first_cpu(void)
{
    cpu_set_t cpus;

    assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET((size_t)i, &cpus)) {
            return i;
        }
    }
    return -1;
}

static void test_loop_l03_thread_has_the_name_stack_and_cpu_asked_for(void **state)
{
    struct loops t;
    struct seen_thread seen = {.name = ""};
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    char name[] = "a-name-that-is-cut";

    (void)state;
    loops_begin(&t);
    options.name = name;
    options.stack_bytes = 1 << 20;
    options.cpu = first_cpu();
    struct bow_loop *loop = loops_new(&t, &options);
    memset(name, 'x', sizeof(name) - 1); /* it was copied */
    assert_int_equal(bow_loop_execute(loop, "see", see_thread, &seen), 0);
    loops_stop(loop);
    assert_string_equal(seen.name, "a-name-that-is-");
    assert_int_equal(seen.stack_bytes, 1 << 20);
    assert_int_equal(CPU_COUNT(&seen.cpus), 1);
    assert_true(CPU_ISSET((size_t)options.cpu, &seen.cpus));
    loops_end(&t);
}

static void test_loop_l03_wrong_options_are_refused(void **state)
{
    struct loops t;
    struct bow_loop *loop = NULL;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    loops_begin(&t);
    options.io_ratio = 101;
    assert_int_equal(bow_loop_new(t.context, &options, &loop), -EINVAL);
    options.io_ratio = 100;
    options.cpu = -2;
    assert_int_equal(bow_loop_new(t.context, &options, &loop), -EINVAL);
    options.cpu = -1;
    options.thread = (enum bow_loop_thread)2;
    assert_int_equal(bow_loop_new(t.context, &options, &loop), -EINVAL);
    options.thread = BOW_LOOP_OWNER;
    options.size = sizeof(options) + 8;
    assert_int_equal(bow_loop_new(t.context, &options, &loop), -EINVAL);
    t.fake.wake_error = -EMFILE;
    assert_int_equal(bow_loop_new(t.context, NULL, &loop), -EMFILE);
    assert_null(loop);
    loops_end(&t);
}

/* L04 */

struct seen_inside {
    struct bow_loop *loop;
    struct loops *t;
    bool in_loop;
    uint64_t n_signals; /* sent by a post from inside */
    struct bow_task task;
    atomic_int n;
};

static int post_inside(void *user)
{
    struct seen_inside *seen = user;
    uint64_t before = atomic_load(&seen->t->fake.n_signals);

    seen->in_loop = bow_loop_in_loop(seen->loop);
    bow_task_init(&seen->task, "count", loops_count_run, &seen->n);
    int rc = bow_loop_post(seen->loop, &seen->task);
    seen->n_signals = atomic_load(&seen->t->fake.n_signals) - before;
    return rc != 0 || seen->n != 0 ? -EINVAL : 0;
}

static void test_loop_l04_post_from_inside_needs_no_wake_up(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    struct seen_inside seen = {.loop = loop, .t = &t, .n_signals = 99};
    assert_false(bow_loop_in_loop(loop));
    assert_int_equal(bow_loop_execute(loop, "post", post_inside, &seen), 0);
    loops_stop(loop);
    assert_true(seen.in_loop);
    assert_int_equal(seen.n_signals, 0);
    assert_int_equal(seen.n, 1);
    assert_string_equal(t.log, "");
    loops_end(&t);
}

static void test_loop_l04_in_loop_is_the_thread_that_ran_it_last(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_false(bow_loop_in_loop(loop));
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_true(bow_loop_in_loop(loop));
    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_false(bow_loop_in_loop(loop));
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l01_life_passes_through_all_states_in_order),
        cmocka_unit_test(test_loop_l02_first_task_starts_the_thread),
        cmocka_unit_test(test_loop_l02_first_timer_starts_the_thread),
        cmocka_unit_test(test_loop_l02_racing_threads_start_it_once),
        cmocka_unit_test(test_loop_l02_failed_start_returns_the_error_and_the_state),
        cmocka_unit_test(test_loop_l03_thread_has_the_name_stack_and_cpu_asked_for),
        cmocka_unit_test(test_loop_l03_wrong_options_are_refused),
        cmocka_unit_test(test_loop_l04_post_from_inside_needs_no_wake_up),
        cmocka_unit_test(test_loop_l04_in_loop_is_the_thread_that_ran_it_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
