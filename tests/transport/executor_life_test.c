/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The life of an executor: threads, quiet period and time-out, the last reference (L44). */

#include "tests/support/gate.h"
#include "tests/support/loops.h"

#include <bowline/executor.h>
#include <dirent.h>
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
    options.prefix = "shop";
    options.name = "db";
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

static void turn(struct bow_executor *executor)
{
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
}

/* A task that waits until the test lets it go. */
struct blocked {
    struct bow_executor *executor;
    struct bow_task task;
    struct gate entered;
    struct gate let_go;
    char name[16];
    int join_rc;
    bool was_inside;
};

static int block(void *user)
{
    struct blocked *blocked = user;

    pthread_getname_np(pthread_self(), blocked->name, sizeof(blocked->name));
    blocked->was_inside = bow_executor_in_executor(blocked->executor);
    blocked->join_rc = bow_executor_join(blocked->executor, BOW_NEVER);
    gate_add(&blocked->entered);
    gate_wait(&blocked->let_go, 1);
    return 0;
}

static void post_blocked(struct blocked *blocked, struct bow_executor *executor)
{
    memset(blocked, 0, sizeof(*blocked));
    gate_init(&blocked->entered);
    gate_init(&blocked->let_go);
    blocked->executor = executor;
    bow_task_init(&blocked->task, "block", block, blocked);
    assert_int_equal(bow_executor_post(executor, &blocked->task), 0);
}

static void end_blocked(struct blocked *blocked)
{
    gate_fini(&blocked->entered);
    gate_fini(&blocked->let_go);
}

static void test_executor_l44_threads_start_by_need_and_are_named(void **state)
{
    struct loops t;
    struct blocked blocked[3];

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2);
    assert_int_equal(atomic_load(&t.fake.n_threads), 0);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_NOT_STARTED);
    post_blocked(&blocked[0], executor);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_STARTED);
    gate_wait(&blocked[0].entered, 1);
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    post_blocked(&blocked[1], executor);
    post_blocked(&blocked[2], executor);
    gate_wait(&blocked[1].entered, 1);
    assert_int_equal(atomic_load(&t.fake.n_threads), 2); /* the third waits */
    assert_int_equal(gate_count(&blocked[2].entered), 0);
    for (int i = 0; i < 3; i++) {
        gate_add(&blocked[i].let_go);
    }
    assert_false(bow_executor_in_executor(executor));
    bow_executor_unref(executor);
    assert_string_equal(blocked[0].name, "shop-db-0");
    assert_string_equal(blocked[1].name, "shop-db-1");
    for (int i = 0; i < 3; i++) {
        assert_true(blocked[i].was_inside);
        assert_int_equal(blocked[i].join_rc, -EDEADLK);
        end_blocked(&blocked[i]);
    }
    loops_end(&t);
}

static int open_gate(void *user)
{
    gate_add(user);
    return 0;
}

/* A thread that has just run a task may not be idle yet, so now and then one more starts. */
static void test_executor_l44_idle_thread_is_used_before_another_starts(void **state)
{
    struct loops t;
    struct gate gate;

    (void)state;
    loops_begin(&t);
    gate_init(&gate);
    struct bow_executor *executor = new_executor(&t, 100);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(bow_executor_execute(executor, "gate", open_gate, &gate), 0);
        gate_wait(&gate, i + 1);
    }
    assert_true(atomic_load(&t.fake.n_threads) < 60);
    bow_executor_unref(executor);
    gate_fini(&gate);
    loops_end(&t);
}

static void test_executor_l44_thread_that_cannot_start_is_the_callers_error(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    t.fake.thread_error = -EAGAIN;
    struct bow_executor *executor = new_executor(&t, 2);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_executor_post(executor, &task), -EAGAIN);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_NOT_STARTED);
    t.fake.thread_error = 0;
    assert_int_equal(bow_executor_post(executor, &task), 0);
    bow_executor_unref(executor);
    assert_int_equal(n, 1);
    loops_end(&t);
}

static void test_executor_l44_second_thread_that_cannot_start_only_delays(void **state)
{
    struct loops t;
    struct blocked blocked;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2);
    post_blocked(&blocked, executor);
    gate_wait(&blocked.entered, 1);
    t.fake.thread_error = -EAGAIN;
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_executor_post(executor, &task), 0);
    gate_add(&blocked.let_go);
    bow_executor_unref(executor);
    assert_int_equal(n, 1);
    end_blocked(&blocked);
    loops_end(&t);
}

static void test_executor_l44_new_work_restarts_the_quiet_period(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    bow_task_init(&task, "count", loops_count_run, &n);
    turn(executor);
    assert_int_equal(bow_executor_shutdown(executor, 10 * FAKE_MS, FAKE_S), 0);
    fake_system_advance(&t.fake, 8 * FAKE_MS);
    assert_int_equal(bow_executor_post(executor, &task), 0);
    turn(executor);
    fake_system_advance(&t.fake, 9 * FAKE_MS);
    turn(executor);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_SHUTTING_DOWN);
    fake_system_advance(&t.fake, FAKE_MS);
    turn(executor);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_TERMINATED);
    assert_int_equal(n, 1);
    assert_int_equal(bow_executor_run(executor), 0);
    assert_int_equal(bow_executor_run_once(executor, BOW_NEVER), 0);
    bow_executor_unref(executor);
    loops_end(&t);
}

static void
test_executor_l44_after_the_timeout_what_was_accepted_runs_and_more_is_refused(void **state)
{
    struct loops t;
    struct blocked blocked;
    struct bow_task queued;
    struct bow_task late;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 1);
    post_blocked(&blocked, executor);
    gate_wait(&blocked.entered, 1);
    bow_task_init(&queued, "count", loops_count_run, &n);
    bow_task_init(&late, "count", loops_count_run, &n);
    assert_int_equal(bow_executor_shutdown(executor, FAKE_S, 2 * FAKE_S), 0);
    assert_int_equal(bow_executor_post(executor, &queued), 0);
    fake_system_advance(&t.fake, 2 * FAKE_S); /* its only thread is busy meanwhile */
    assert_int_equal(bow_executor_post(executor, &late), -ESHUTDOWN);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_SHUTDOWN);
    assert_int_equal(bow_executor_join(executor, 0), -ETIMEDOUT);
    gate_add(&blocked.let_go);
    assert_int_equal(bow_executor_join(executor, BOW_NEVER), 0);
    assert_int_equal(n, 1);
    bow_executor_unref(executor);
    end_blocked(&blocked);
    loops_end(&t);
}

static void test_executor_l44_running_task_is_no_quiet(void **state)
{
    struct loops t;
    struct blocked blocked;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2);
    post_blocked(&blocked, executor);
    gate_wait(&blocked.entered, 1);
    assert_int_equal(bow_executor_shutdown(executor, 0, FAKE_S), 0);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_executor_post(executor, &task), 0);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_SHUTTING_DOWN);
    gate_add(&blocked.let_go);
    assert_int_equal(bow_executor_join(executor, BOW_NEVER), 0);
    assert_int_equal(n, 1);
    bow_executor_unref(executor);
    end_blocked(&blocked);
    loops_end(&t);
}

static void test_executor_l44_one_that_never_started_ends_at_once(void **state)
{
    struct loops t;
    struct bow_strand *strand = NULL;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2);
    assert_int_equal(bow_strand_new(executor, &strand), 0);
    assert_int_equal(bow_executor_shutdown(executor, FAKE_S, FAKE_S), 0);
    assert_int_equal(bow_executor_get_state(executor), BOW_LOOP_TERMINATED);
    assert_int_equal(bow_executor_join(executor, 0), 0);
    bow_executor_unref(executor);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_strand_post(strand, &task), -ESHUTDOWN); /* it keeps the memory */
    assert_int_equal(bow_strand_execute(strand, "count", loops_count_run, &n), -ESHUTDOWN);
    bow_strand_unref(strand);
    assert_int_equal(n, 0);
    loops_end(&t);
}

struct last {
    struct bow_executor *executor;
    struct bow_task task;
    struct bow_task after;
    struct gate done;
};

static int run_after(void *user)
{
    gate_add(&((struct last *)user)->done);
    return 0;
}

static int drop_last(void *user)
{
    struct last *last = user;

    bow_executor_unref(last->executor);
    gate_add(&last->done);
    return 0;
}

static void begin_last(struct last *last, struct bow_executor *executor)
{
    last->executor = executor;
    gate_init(&last->done);
    bow_task_init(&last->task, "drop", drop_last, last);
    bow_task_init(&last->after, "after", run_after, last);
    assert_int_equal(bow_executor_post(executor, &last->task), 0);
}

static void test_executor_l44_f20_last_reference_may_go_inside_a_task_of_its_owner(void **state)
{
    struct loops t;
    struct last last;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    begin_last(&last, executor);
    assert_int_equal(bow_executor_post(executor, &last.after), 0);
    turn(executor);
    assert_int_equal(gate_count(&last.done), 2);
    gate_fini(&last.done);
    loops_end(&t);
}

static int count_threads(void)
{
    int n = 0;

    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

static void test_executor_l44_f20_last_reference_may_go_inside_a_task_of_a_thread(void **state)
{
    struct loops t;
    struct last last;

    (void)state;
    loops_begin(&t);
    int n_threads = count_threads();
    begin_last(&last, new_executor(&t, 3));
    gate_wait(&last.done, 1);
    while (count_threads() > n_threads) {
        sched_yield(); /* there is nobody left to ask */
    }
    gate_fini(&last.done);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_l44_threads_start_by_need_and_are_named),
        cmocka_unit_test(test_executor_l44_idle_thread_is_used_before_another_starts),
        cmocka_unit_test(test_executor_l44_thread_that_cannot_start_is_the_callers_error),
        cmocka_unit_test(test_executor_l44_second_thread_that_cannot_start_only_delays),
        cmocka_unit_test(test_executor_l44_new_work_restarts_the_quiet_period),
        cmocka_unit_test(
            test_executor_l44_after_the_timeout_what_was_accepted_runs_and_more_is_refused),
        cmocka_unit_test(test_executor_l44_running_task_is_no_quiet),
        cmocka_unit_test(test_executor_l44_one_that_never_started_ends_at_once),
        cmocka_unit_test(test_executor_l44_f20_last_reference_may_go_inside_a_task_of_its_owner),
        cmocka_unit_test(test_executor_l44_f20_last_reference_may_go_inside_a_task_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
