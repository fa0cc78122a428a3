/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loops, groups and executors after fork(): those that run in the parent are refused in the child,
 * at once; those that were only made work there, apart from the parent's.
 */

#include "tests/support/forks.h"
#include "tests/support/loops.h"
#include "transport/address/resolver.h"
#include "transport/executor/future.h"
#include "transport/loop/loop.h"

#include <bowline/executor.h>
#include <bowline/group.h>
#include <bowline/submit.h>
#include <bowline/timer.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static int count(void *user)
{
    ++*(int *)user;
    return 0;
}

static int do_nothing(void *user)
{
    (void)user;
    return 0;
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    (void)count(user);
}

static void refuse_loop(struct bow_loop *loop)
{
    struct bow_future *future = NULL;
    struct bow_task task;

    bow_task_init(&task, "nothing", do_nothing, NULL);
    FORKS_EXPECT(bow_loop_post(loop, &task) == -ECHILD);
    FORKS_EXPECT(bow_loop_post_lazy(loop, &task) == -ECHILD);
    FORKS_EXPECT(bow_loop_execute(loop, "nothing", do_nothing, NULL) == -ECHILD);
    FORKS_EXPECT(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 0, 0, "nothing", do_nothing, NULL,
                                   NULL) == -ECHILD);
    FORKS_EXPECT(bow_loop_run(loop) == -ECHILD);
    FORKS_EXPECT(bow_loop_run_once(loop, BOW_NEVER) == -ECHILD);
    FORKS_EXPECT(bow_loop_fd(loop) == -ECHILD);
    FORKS_EXPECT(bow_loop_shutdown(loop, 0, 0) == -ECHILD);
    FORKS_EXPECT(bow_loop_join(loop, BOW_NEVER) == -ECHILD);
    FORKS_EXPECT(bow_loop_terminated(loop, NULL, &future) == -ECHILD);
    bow_loop_wake(loop);
}

static void test_fork_loop_with_a_thread_is_refused_in_the_child(void **state)
{
    struct forks forks;
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new(&t, NULL);
    assert_int_equal(bow_loop_execute(loop, "nothing", do_nothing, NULL), 0);
    forks_begin(&forks, &loop, 1);
    if (forks.pid == 0) {
        refuse_loop(loop);
        bow_loop_unref(loop);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(bow_loop_execute(loop, "count", count, &n), 0);
    bow_loop_unref(loop);
    assert_int_equal(n, 1);
    loops_end(&t);
}

/* Its descriptors in the child are copies: neither closing nor freeing them is told to the parent's
 * poller. */
static void test_fork_loop_of_its_owner_is_refused_in_the_child(void **state)
{
    struct forks forks;
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        int n_fds = loops_count_fds();
        refuse_loop(loop);
        bow_loop_unref(loop);
        FORKS_EXPECT(loops_count_fds() == n_fds - 2); /* the poller, the wake-up */
        _exit(0);
    }
    forks_end(&forks);
    bow_loop_wake(loop);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_execute(loop, "count", count, &n), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

static int watched_pipe[2];

static void on_events(struct bow__watch *watch, uint32_t events)
{
    char byte;

    (void)events;
    assert_int_equal(read(watch->fd, &byte, 1), 1);
}

static const struct bow__watch_ops watch_ops = {.on_events = on_events};

/* To take a descriptor out of the poller in the child would take the parent's out. */
static void test_fork_watches_of_the_parent_stay(void **state)
{
    struct bow__watch watch = {.ops = &watch_ops};
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(pipe(watched_pipe), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    bow__list_init(&watch.link);
    assert_int_equal(bow__loop_watch(loop, &watch, watched_pipe[0], BOW_POLL_IN), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow__loop_rewatch(loop, &watch, BOW_POLL_OUT) == -ECHILD);
        bow__loop_unwatch(loop, &watch);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(write(watched_pipe[1], "x", 1), 1);
    struct pollfd readable = {.fd = watched_pipe[0], .events = POLLIN};
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(poll(&readable, 1, 0), 0); /* the loop has read it */
    bow__loop_unwatch(loop, &watch);
    close(watched_pipe[0]);
    close(watched_pipe[1]);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* Set up before, run after: as around daemon(). Both may run theirs. */
static void test_fork_loop_that_was_only_made_runs_in_both(void **state)
{
    struct bow_timer timer;
    struct forks forks;
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&timer, loop, on_timer, &n);
    bow_timer_start(&timer, 0);
    assert_int_equal(bow_loop_execute(loop, "count", count, &n), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_loop_run_once(loop, 0) == 0);
        FORKS_EXPECT(n == 2);
        bow_loop_wake(loop); /* its own */
        forks_tell(&forks);
        forks_hear(&forks);
        bow_loop_unref(loop);
        _exit(0);
    }
    forks_hear(&forks);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 2);
    struct pollfd readable = {.fd = bow_loop_fd(loop), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, 0), 0);
    forks_tell(&forks);
    forks_end(&forks);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* Somebody polls the descriptor, so it stays the one that it was. */
static void test_fork_loop_whose_descriptor_was_asked_for_keeps_it(void **state)
{
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct pollfd readable = {.fd = bow_loop_fd(loop), .events = POLLIN};
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_loop_run_once(loop, 0) == 0);
        FORKS_EXPECT(bow_loop_fd(loop) == readable.fd);
        FORKS_EXPECT(poll(&readable, 1, 0) == 0);
        bow_loop_wake(loop);
        FORKS_EXPECT(poll(&readable, 1, 0) == 1);
        FORKS_EXPECT(bow_loop_run_once(loop, 0) == 0);
        _exit(0);
    }
    forks_end(&forks);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct forking {
    struct forks forks;
    struct bow_loop *loop;
};

static int fork_inside(void *user)
{
    struct forking *forking = user;

    forks_begin(&forking->forks, NULL, 0);
    return forking->forks.pid == 0 ? 0 : bow_loop_shutdown(forking->loop, 0, 0);
}

/* It should have called exec() or _exit(). */
static void test_fork_child_that_returns_from_a_callback_leaves_the_loop(void **state)
{
    struct forking forking;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    forking.loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(forking.loop, "fork", fork_inside, &forking), 0);
    int rc = bow_loop_run(forking.loop);
    if (forking.forks.pid == 0) {
        FORKS_EXPECT(rc == -ECHILD);
        _exit(0);
    }
    assert_int_equal(rc, 0);
    forks_end(&forking.forks);
    bow_loop_unref(forking.loop);
    loops_end(&t);
}

/* Groups */

static void test_fork_group_is_refused_in_the_child(void **state)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;
    struct bow_loop *loops[2];
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    options.n_loops = 2;
    assert_int_equal(bow_group_new(t.context, &options, &group), 0);
    loops[0] = bow_group_get(group, 0);
    loops[1] = bow_group_get(group, 1);
    forks_begin(&forks, loops, 2);
    if (forks.pid == 0) {
        refuse_loop(bow_group_next(group));
        bow_group_shutdown(group, 0, 0);
        FORKS_EXPECT(bow_group_join(group, BOW_NEVER) == -ECHILD);
        bow_group_unref(group);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(bow_loop_execute(loops[1], "nothing", do_nothing, NULL), 0);
    bow_group_unref(group);
    loops_end(&t);
}

static void test_fork_group_that_was_only_made_works_in_the_child(void **state)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;
    struct forks forks;
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    options.n_loops = 2;
    assert_int_equal(bow_group_new(t.context, &options, &group), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_loop_execute(bow_group_get(group, 1), "count", count, &n) == 0);
        bow_group_unref(group);
        FORKS_EXPECT(n == 1);
        _exit(0);
    }
    forks_end(&forks);
    bow_group_unref(group);
    loops_end(&t);
}

/* Executors, and who waits */

static int return_nothing(void *user, void **ret_value)
{
    (void)user;
    (void)ret_value;
    return 0;
}

static void refuse_executor(struct bow_executor *executor, struct bow_strand *strand)
{
    struct bow_task task;

    bow_task_init(&task, "nothing", do_nothing, NULL);
    FORKS_EXPECT(bow_executor_post(executor, &task) == -ECHILD);
    FORKS_EXPECT(bow_strand_post(strand, &task) == -ECHILD);
    FORKS_EXPECT(bow_executor_execute(executor, "nothing", do_nothing, NULL) == -ECHILD);
    FORKS_EXPECT(bow_executor_run(executor) == -ECHILD);
    FORKS_EXPECT(bow_executor_run_once(executor, BOW_NEVER) == -ECHILD);
    FORKS_EXPECT(bow_executor_shutdown(executor, 0, 0) == -ECHILD);
    FORKS_EXPECT(bow_executor_join(executor, BOW_NEVER) == -ECHILD);
    bow_strand_unref(strand);
    bow_executor_unref(executor);
}

/* Run by its owner, so that no thread is anywhere when the process is copied. */
static void test_fork_executor_is_refused_in_the_child(void **state)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct bow_strand *strand = NULL;
    struct bow_future *future = NULL;
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    options.n_threads = 0;
    assert_int_equal(bow_executor_new(t.context, &options, &executor), 0);
    assert_int_equal(bow_strand_new(executor, &strand), 0);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    assert_int_equal(bow_executor_submit(executor, "nothing", return_nothing, NULL, NULL, &future),
                     0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_future_wait(future, BOW_NEVER) == -ECHILD);
        refuse_executor(executor, strand);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
    assert_true(bow_future_is_done(future));
    bow_future_unref(future);
    bow_strand_unref(strand);
    bow_executor_unref(executor);
    loops_end(&t);
}

static void test_fork_executor_that_was_only_made_works_in_the_child(void **state)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct forks forks;
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    options.n_threads = 1;
    assert_int_equal(bow_executor_new(t.context, &options, &executor), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_executor_execute(executor, "count", count, &n) == 0);
        bow_executor_unref(executor);
        FORKS_EXPECT(n == 1);
        _exit(0);
    }
    forks_end(&forks);
    bow_executor_unref(executor);
    loops_end(&t);
}

/* Names */

static void on_resolved(const struct bow__resolved *resolved, void *user)
{
    *(int *)user = resolved->n;
}

static int resolve(struct bow_loop *loop)
{
    struct bow__resolve *request = NULL;
    int n = 0;

    int rc = bow_loop_run_once(loop, 0);
    if (rc == 0) {
        rc = bow__resolve_start(loop, "127.0.0.1", 1, on_resolved, &n, &request);
    }
    while (rc == 0 && n == 0) {
        rc = bow_loop_run_once(loop, BOW_NEVER);
    }
    return rc == 0 ? n : rc;
}

/* The thread that resolved the parent's is not there. */
static void test_fork_names_are_resolved_in_the_child(void **state)
{
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct bow_loop *another = loops_new_owner(&t);
    assert_int_equal(resolve(loop), 1);
    loops_await_threads(&t); /* no lock of a sanitizer is held by one that is on its way out */
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(resolve(loop) == -ECHILD);
        FORKS_EXPECT(resolve(another) == 1);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(resolve(loop), 1);
    bow_loop_unref(another);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* Futures */

static void on_done(struct bow_future *future, void *user)
{
    (void)future;
    (void)count(user);
}

static void refuse_future(struct bow_promise *promise)
{
    struct bow_future *future = bow_promise_future(promise);
    struct bow_future_listener listener = {.fn = on_done};

    FORKS_EXPECT(!bow_future_is_done(future));
    FORKS_EXPECT(bow_future_wait(future, 0) == -ECHILD);
    FORKS_EXPECT(bow_future_listen(future, &listener) == -ECHILD);
    FORKS_EXPECT(bow_future_unlisten(future, &listener) == -ECHILD);
    FORKS_EXPECT(bow_future_cancel(future) == -ECHILD);
    FORKS_EXPECT(bow_promise_report(promise, 1, 2) == -ECHILD);
    FORKS_EXPECT(bow_promise_set_uncancellable(promise) == -ECHILD);
    FORKS_EXPECT(bow_promise_succeed(promise, NULL) == -ECHILD);
    FORKS_EXPECT(bow_promise_fail(promise, -EIO) == -ECHILD);
    bow_promise_unref(promise);
}

/* A thread of the parent's was inside when it forked: here this one is. */
static void test_fork_f60_future_that_was_used_is_refused_in_the_child(void **state)
{
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_promise *promise = NULL;
    struct forks forks;
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    options.loop = loops_new_owner(&t); /* has not run, so it is nobody's */
    assert_int_equal(bow_promise_new(t.context, &options, &promise), 0);
    struct bow_future *future = bow_promise_future(promise);
    assert_int_equal(bow_promise_report(promise, 1, 2), 0);
    pthread_mutex_lock(&future->mutex);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        refuse_future(promise);
        _exit(0);
    }
    pthread_mutex_unlock(&future->mutex);
    forks_end(&forks);
    assert_int_equal(bow_promise_succeed(promise, NULL), 0);
    bow_promise_unref(promise);
    bow_loop_unref(options.loop);
    loops_end(&t);
}

static void test_fork_f60_future_that_was_only_made_works_in_both(void **state)
{
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_promise *promise = NULL;
    struct forks forks;
    struct loops t;
    int n = 0;
    struct bow_future_listener listener = {.fn = on_done, .user = &n};

    (void)state;
    loops_begin_real(&t);
    options.loop = loops_new_owner(&t);
    assert_int_equal(bow_promise_new(t.context, &options, &promise), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_future_listen(bow_promise_future(promise), &listener) == 0);
        FORKS_EXPECT(bow_promise_succeed(promise, NULL) == 0);
        FORKS_EXPECT(bow_loop_run_once(options.loop, 0) == 0);
        FORKS_EXPECT(n == 1);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(bow_future_listen(bow_promise_future(promise), &listener), 0);
    assert_int_equal(bow_promise_succeed(promise, NULL), 0);
    assert_int_equal(bow_loop_run_once(options.loop, 0), 0);
    assert_int_equal(n, 1);
    bow_promise_unref(promise);
    bow_loop_unref(options.loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_loop_with_a_thread_is_refused_in_the_child),
        cmocka_unit_test(test_fork_loop_of_its_owner_is_refused_in_the_child),
        cmocka_unit_test(test_fork_watches_of_the_parent_stay),
        cmocka_unit_test(test_fork_loop_that_was_only_made_runs_in_both),
        cmocka_unit_test(test_fork_loop_whose_descriptor_was_asked_for_keeps_it),
        cmocka_unit_test(test_fork_child_that_returns_from_a_callback_leaves_the_loop),
        cmocka_unit_test(test_fork_group_is_refused_in_the_child),
        cmocka_unit_test(test_fork_group_that_was_only_made_works_in_the_child),
        cmocka_unit_test(test_fork_executor_is_refused_in_the_child),
        cmocka_unit_test(test_fork_executor_that_was_only_made_works_in_the_child),
        cmocka_unit_test(test_fork_names_are_resolved_in_the_child),
        cmocka_unit_test(test_fork_f60_future_that_was_used_is_refused_in_the_child),
        cmocka_unit_test(test_fork_f60_future_that_was_only_made_works_in_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
