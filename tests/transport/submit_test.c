/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Work whose value comes through a future, one piece or several (L43). */

#include "tests/support/gate.h"
#include "tests/support/loops.h"

#include <bowline/submit.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct bow_executor *new_executor(struct loops *t, uint32_t n_threads, uint32_t max_pending)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = n_threads;
    options.max_pending_tasks = max_pending;
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

/* One piece of work: succeeds or fails, at once or when let go. */
struct job {
    int rc;
    struct gate *entered;
    struct gate *let_go;
    atomic_int n_runs;
};

static int do_job(void *user, void **ret_value)
{
    struct job *job = user;

    if (job->entered != NULL) {
        gate_add(job->entered);
    }
    if (job->let_go != NULL) {
        gate_wait(job->let_go, 1);
    }
    atomic_fetch_add(&job->n_runs, 1);
    if (job->rc == 0) {
        *ret_value = job;
    }
    return job->rc;
}

static void invocations_init(struct bow_invocation *invocations, struct job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        invocations[i] = (struct bow_invocation){
            .name = "job", .fn = do_job, .user = &jobs[i], .promise = BOW_PROMISE_OPTIONS_INIT};
    }
}

static void drop_all(struct bow_invocation *invocations, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bow_future_unref(invocations[i].future);
    }
}

static void test_submit_l43_value_and_failure_come_through_the_future(void **state)
{
    struct loops t;
    struct job good = {.rc = 0};
    struct job bad = {.rc = -EBADF};
    struct bow_future *futures[2] = {NULL, NULL};

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2, 0);
    assert_int_equal(bow_executor_submit(executor, "good", do_job, &good, NULL, &futures[0]), 0);
    assert_int_equal(bow_executor_submit(executor, "bad", do_job, &bad, NULL, &futures[1]), 0);
    assert_int_equal(bow_future_wait(futures[0], BOW_NEVER), 0);
    assert_int_equal(bow_future_wait(futures[1], BOW_NEVER), 0);
    assert_ptr_equal(bow_future_value(futures[0]), &good);
    assert_int_equal(bow_future_error(futures[1]), -EBADF);
    bow_future_unref(futures[0]);
    bow_future_unref(futures[1]);
    bow_executor_unref(executor);
    assert_string_equal(t.log, ""); /* the failure is the future's to tell */
    loops_end(&t);
}

static void test_submit_l43_cancelled_work_does_not_begin_and_running_work_ends(void **state)
{
    struct loops t;
    struct gate entered;
    struct gate let_go;
    struct job running = {.entered = &entered, .let_go = &let_go};
    struct job queued = {.rc = 0};
    struct bow_future *futures[2] = {NULL, NULL};

    (void)state;
    loops_begin(&t);
    gate_init(&entered);
    gate_init(&let_go);
    struct bow_executor *executor = new_executor(&t, 1, 0);
    assert_int_equal(bow_executor_submit(executor, "job", do_job, &running, NULL, &futures[0]), 0);
    assert_int_equal(bow_executor_submit(executor, "job", do_job, &queued, NULL, &futures[1]), 0);
    gate_wait(&entered, 1);
    assert_int_equal(bow_future_cancel(futures[0]), -EBUSY);
    assert_int_equal(bow_future_cancel(futures[1]), 0);
    gate_add(&let_go);
    assert_int_equal(bow_future_wait(futures[0], BOW_NEVER), 0);
    bow_executor_unref(executor);
    assert_int_equal(running.n_runs, 1);
    assert_int_equal(queued.n_runs, 0);
    bow_future_unref(futures[0]);
    bow_future_unref(futures[1]);
    gate_fini(&entered);
    gate_fini(&let_go);
    loops_end(&t);
}

static void test_submit_l43_full_queue_and_shutdown_are_the_callers_errors(void **state)
{
    struct loops t;
    struct job job = {.rc = 0};
    struct bow_future *future = NULL;
    struct bow_future *none = NULL;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0, 1);
    assert_int_equal(bow_executor_submit(executor, "job", do_job, &job, NULL, &future), 0);
    assert_int_equal(bow_executor_submit(executor, "job", do_job, &job, NULL, &none), -EAGAIN);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    bow_executor_shutdown(executor, 0, 0);
    assert_int_equal(bow_executor_run(executor), 0);
    assert_int_equal(bow_executor_submit(executor, "job", do_job, &job, NULL, &none), -ESHUTDOWN);
    assert_null(none);
    bow_executor_unref(executor);
    bow_future_unref(future);

    struct bow_loop *loop = loops_new_threaded(&t);
    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_submit(loop, "job", do_job, &job, NULL, &none), -ESHUTDOWN);
    bow_loop_unref(loop);
    assert_int_equal(job.n_runs, 1);
    loops_end(&t);
}

static void test_submit_l43_invoke_all_waits_for_each(void **state)
{
    struct loops t;
    struct job jobs[4] = {{.rc = 0}, {.rc = -EIO}, {.rc = 0}, {.rc = 0}};
    struct bow_invocation invocations[4];

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 2, 0);
    struct bow_loop *loop = loops_new_threaded(&t);
    invocations_init(invocations, jobs, 4);
    assert_int_equal(bow_executor_invoke_all(executor, invocations, 4, BOW_NEVER), 0);
    assert_int_equal(bow_future_error(invocations[1].future), -EIO);
    assert_ptr_equal(bow_future_value(invocations[3].future), &jobs[3]);
    drop_all(invocations, 4);
    assert_int_equal(bow_loop_invoke_all(loop, invocations, 4, 10 * FAKE_S), 0);
    assert_ptr_equal(bow_future_value(invocations[0].future), &jobs[0]);
    drop_all(invocations, 4);
    assert_int_equal(bow_loop_invoke_all(loop, NULL, 0, BOW_NEVER), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(jobs[i].n_runs, 2);
    }
    bow_loop_unref(loop);
    bow_executor_unref(executor);
    loops_end(&t);
}

static void test_submit_l43_invoke_all_cancels_at_the_timeout_what_has_not_begun(void **state)
{
    struct loops t;
    struct gate let_go;
    struct job jobs[3] = {{.rc = 0}, {.let_go = &let_go}, {.rc = 0}};
    struct bow_invocation invocations[3];

    (void)state;
    loops_begin(&t);
    gate_init(&let_go);
    struct bow_executor *executor = new_executor(&t, 1, 0);
    invocations_init(invocations, jobs, 3);
    int rc = bow_executor_invoke_all(executor, invocations, 3, 50 * FAKE_MS);
    assert_int_equal(rc, -ETIMEDOUT);
    assert_int_equal(bow_future_get_state(invocations[2].future), BOW_FUTURE_CANCELLED);
    gate_add(&let_go);
    assert_int_equal(bow_future_wait(invocations[1].future, BOW_NEVER), 0);
    bow_executor_unref(executor);
    assert_int_equal(jobs[2].n_runs, 0);
    drop_all(invocations, 3);
    gate_fini(&let_go);
    loops_end(&t);
}

static void test_submit_l43_invoke_any_takes_the_first_success_and_cancels_the_rest(void **state)
{
    struct loops t;
    struct gate let_go;
    struct job jobs[4] = {{.rc = -EIO}, {.rc = 0}, {.let_go = &let_go}, {.rc = 0}};
    struct bow_invocation invocations[4];
    size_t winner = 99;

    (void)state;
    loops_begin(&t);
    gate_init(&let_go);
    struct bow_executor *executor = new_executor(&t, 1, 0);
    invocations_init(invocations, jobs, 4);
    assert_int_equal(bow_executor_invoke_any(executor, invocations, 4, BOW_NEVER, &winner), 0);
    assert_int_equal(winner, 1);
    assert_ptr_equal(bow_future_value(invocations[1].future), &jobs[1]);
    assert_int_equal(bow_future_error(invocations[0].future), -EIO);
    assert_int_equal(bow_future_get_state(invocations[3].future), BOW_FUTURE_CANCELLED);
    gate_add(&let_go);
    bow_executor_unref(executor);
    assert_int_equal(jobs[3].n_runs, 0);
    drop_all(invocations, 4);
    gate_fini(&let_go);
    loops_end(&t);
}

static void test_submit_l43_invoke_any_fails_with_the_last_error_or_the_timeout(void **state)
{
    struct loops t;
    struct gate let_go;
    struct job bad[2] = {{.rc = -EIO}, {.rc = -ENOENT}};
    struct job slow[2] = {{.let_go = &let_go}, {.rc = 0}};
    struct bow_invocation invocations[2];
    size_t winner = 99;

    (void)state;
    loops_begin(&t);
    gate_init(&let_go);
    struct bow_loop *loop = loops_new_threaded(&t);
    invocations_init(invocations, bad, 2);
    assert_int_equal(bow_loop_invoke_any(loop, invocations, 2, BOW_NEVER, &winner), -ENOENT);
    assert_non_null(invocations[0].future);
    drop_all(invocations, 2);
    invocations_init(invocations, slow, 2);
    assert_int_equal(bow_loop_invoke_any(loop, invocations, 2, FAKE_MS, &winner), -ETIMEDOUT);
    assert_int_equal(bow_future_get_state(invocations[1].future), BOW_FUTURE_CANCELLED);
    gate_add(&let_go);
    bow_loop_unref(loop);
    drop_all(invocations, 2);
    assert_int_equal(winner, 99);
    assert_int_equal(bow_loop_invoke_any(NULL, NULL, 0, 0, &winner), -EINVAL);
    gate_fini(&let_go);
    loops_end(&t);
}

static void test_submit_l43_invoking_takes_back_all_when_one_is_refused(void **state)
{
    struct loops t;
    struct job jobs[3] = {{.rc = 0}, {.rc = 0}, {.rc = 0}};
    struct bow_invocation invocations[3];
    size_t winner = 99;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0, 2);
    invocations_init(invocations, jobs, 3);
    assert_int_equal(bow_executor_invoke_all(executor, invocations, 3, BOW_NEVER), -EAGAIN);
    assert_null(invocations[0].future);
    assert_null(invocations[2].future);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    assert_int_equal(bow_executor_invoke_any(executor, invocations, 3, BOW_NEVER, &winner),
                     -EDEADLK); /* it is this thread's by now */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jobs[i].n_runs, 0);
    }
    bow_executor_unref(executor);
    loops_end(&t);
}

static int submit_some(struct bow_context *context, void *user)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct job jobs[2] = {{.rc = 0}, {.rc = 0}};
    struct bow_invocation invocations[2];
    size_t winner = 99;
    (void)user;
    options.n_threads = 1;
    int rc = bow_executor_new(context, &options, &executor);
    if (rc < 0) {
        return rc;
    }
    invocations_init(invocations, jobs, 2);
    rc = bow_executor_invoke_any(executor, invocations, 2, BOW_NEVER, &winner);
    if (rc == 0) {
        assert_int_equal(winner, 0);
        drop_all(invocations, 2);
    }
    bow_executor_unref(executor);
    return rc;
}

static void test_submit_l43_each_failing_allocation_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, submit_some, NULL) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit_l43_value_and_failure_come_through_the_future),
        cmocka_unit_test(test_submit_l43_cancelled_work_does_not_begin_and_running_work_ends),
        cmocka_unit_test(test_submit_l43_full_queue_and_shutdown_are_the_callers_errors),
        cmocka_unit_test(test_submit_l43_invoke_all_waits_for_each),
        cmocka_unit_test(test_submit_l43_invoke_all_cancels_at_the_timeout_what_has_not_begun),
        cmocka_unit_test(test_submit_l43_invoke_any_takes_the_first_success_and_cancels_the_rest),
        cmocka_unit_test(test_submit_l43_invoke_any_fails_with_the_last_error_or_the_timeout),
        cmocka_unit_test(test_submit_l43_invoking_takes_back_all_when_one_is_refused),
        cmocka_unit_test(test_submit_l43_each_failing_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
