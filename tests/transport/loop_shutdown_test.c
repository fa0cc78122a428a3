/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How a loop ends: shutdown, what becomes of its work, the last reference (L06–L08). */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <bowline/loop_stats.h>
#include <bowline/timer.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* L06 */

static void test_loop_l06_new_work_restarts_the_quiet_period(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    t.fake.stands_still = true;
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_shutdown(loop, 10 * FAKE_MS, FAKE_S), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_next_timeout(loop), 10 * FAKE_MS);

    fake_system_advance(&t.fake, 8 * FAKE_MS);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    fake_system_advance(&t.fake, 9 * FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_SHUTTING_DOWN);
    fake_system_advance(&t.fake, FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);
    assert_int_equal(n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct restless {
    struct bow_loop *loop;
    struct fake_system *fake;
    struct bow_task task;
    uint64_t n_runs;
};

static int post_again(void *user)
{
    struct restless *restless = user;

    restless->n_runs++;
    fake_system_advance(restless->fake, FAKE_MS);
    int rc = bow_loop_post(restless->loop, &restless->task);
    return rc == -ESHUTDOWN ? 0 : rc;
}

static void test_loop_l06_after_the_timeout_nothing_is_waited_for(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct restless restless = {.loop = loop, .fake = &t.fake};
    bow_task_init(&restless.task, "restless", post_again, &restless);
    assert_int_equal(bow_loop_post(loop, &restless.task), 0);
    assert_int_equal(bow_loop_shutdown(loop, 10 * FAKE_MS, 200 * FAKE_MS), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    uint64_t took = atomic_load(&t.fake.now_ns) - FAKE_START;
    assert_in_range(took, 200 * FAKE_MS, 300 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l06_what_comes_due_is_no_new_work(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_FIXED_RATE, 4 * FAKE_MS, 4 * FAKE_MS,
                                       "count", loops_count_run, &n, NULL),
                     0);
    assert_int_equal(bow_loop_shutdown(loop, 10 * FAKE_MS, FAKE_S), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(n, 2); /* it goes on meanwhile */
    assert_int_equal(atomic_load(&t.fake.now_ns) - FAKE_START, 10 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l06_a_later_call_may_only_shorten(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_shutdown(loop, 50 * FAKE_MS, FAKE_S), 0);
    assert_int_equal(bow_loop_shutdown(loop, 20 * FAKE_MS, 2 * FAKE_S), 0);
    assert_int_equal(bow_loop_shutdown(loop, 500 * FAKE_MS, FAKE_S), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    uint64_t took = atomic_load(&t.fake.now_ns) - FAKE_START;
    assert_in_range(took, 20 * FAKE_MS, 21 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct noted_hook {
    struct bow_loop_hook hook;
    char letter;
    char *notes;
    size_t *n_notes;
};

static void note_hook(struct bow_loop_hook *hook)
{
    struct noted_hook *noted = BOW__CONTAINER(hook, struct noted_hook, hook);

    noted->notes[(*noted->n_notes)++] = noted->letter;
}

static void test_loop_l06_hooks_run_newest_first_and_only_if_not_removed(void **state)
{
    struct loops t;
    char notes[8] = "";
    size_t n_notes = 0;
    struct noted_hook hooks[5];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 5; i++) {
        hooks[i] = (struct noted_hook){{.fn = note_hook}, (char)('a' + i), notes, &n_notes};
        assert_int_equal(bow_loop_add_hook(loop, &hooks[i].hook), 0);
    }
    bow_loop_remove_hook(loop, &hooks[4].hook);
    bow_loop_remove_hook(loop, &hooks[2].hook);
    bow_loop_remove_hook(loop, &hooks[2].hook); /* it is not in, and changes nothing */
    bow_loop_remove_hook(loop, &hooks[1].hook);
    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_string_equal(notes, "da");
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l06_shutdown_of_one_that_never_started_needs_no_thread(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_shutdown(loop, FAKE_S, FAKE_S), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);
    assert_int_equal(bow_loop_join(loop, 0), 0);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), -ESHUTDOWN);
    assert_int_equal(atomic_load(&t.fake.n_threads), 0);
    bow_loop_unref(loop);
    loops_end(&t);
}

static int join_itself(void *user)
{
    struct bow_loop *loop = user;

    return bow_loop_join(loop, 0) == -EDEADLK ? 0 : -EINVAL;
}

static void test_loop_l06_join_waits_no_longer_than_asked_and_not_for_itself(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_execute(loop, "join", join_itself, loop), 0);
    assert_int_equal(bow_loop_join(loop, 0), -ETIMEDOUT);
    assert_int_equal(bow_loop_join(loop, FAKE_MS), -ETIMEDOUT);
    loops_stop(loop);
    assert_non_null(strstr(t.log, "on loop"));
    assert_non_null(strstr(t.log, "itself it would wait for ever"));
    loops_end(&t);
}

/* L07 */

struct rejections {
    atomic_int n;
    _Atomic(const char *) name;
    _Atomic(void *) task_user;
};

static void note_rejection(struct bow_loop *loop, const char *name, bow_task_fn fn, void *task_user,
                           void *user)
{
    struct rejections *rejections = user;

    (void)loop;
    if (fn != loops_count_run) {
        return;
    }
    atomic_store(&rejections->name, name);
    atomic_store(&rejections->task_user, task_user);
    atomic_fetch_add(&rejections->n, 1);
}

static void test_loop_l07_task_after_shutdown_is_rejected(void **state)
{
    struct loops t;
    struct rejections rejections = {0};
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.rejected = note_rejection;
    options.rejected_user = &rejections;
    struct bow_loop *loop = loops_new(&t, &options);
    bow_task_init(&task, "posted", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    assert_int_equal(n, 1);

    assert_int_equal(bow_loop_post(loop, &task), -ESHUTDOWN);
    assert_int_equal(rejections.n, 1);
    assert_string_equal(rejections.name, "posted");
    assert_ptr_equal(rejections.task_user, &n);
    assert_int_equal(bow_loop_post_lazy(loop, &task), -ESHUTDOWN);
    assert_int_equal(bow_loop_execute(loop, "executed", loops_count_run, &n), -ESHUTDOWN);
    assert_int_equal(rejections.n, 3);
    assert_string_equal(rejections.name, "executed");
    assert_int_equal(
        bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 0, 0, "s", loops_count_run, &n, NULL),
        -ESHUTDOWN);
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.tasks_rejected, 3);
    assert_int_equal(n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct flooder {
    struct bow_loop *loop;
    atomic_int *n_run;
    int n_accepted;
    int n_refused;
    pthread_t thread;
};

static void *flood(void *argument)
{
    struct flooder *flooder = argument;

    while (flooder->n_refused < 10) {
        if (bow_loop_execute(flooder->loop, "count", loops_count_run, flooder->n_run) == 0) {
            flooder->n_accepted++;
        } else {
            flooder->n_refused++;
        }
    }
    return NULL;
}

static void test_loop_l07_every_accepted_task_runs_though_the_loop_ends(void **state)
{
    struct loops t;
    struct flooder flooders[4];
    struct rejections rejections = {0};
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    atomic_int n_run = 0;
    int n_accepted = 0;
    int n_refused = 0;

    (void)state;
    loops_begin(&t);
    options.rejected = note_rejection;
    options.rejected_user = &rejections;
    options.max_pending_tasks = 1u << 30;
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < 4; i++) {
        flooders[i] = (struct flooder){.loop = loop, .n_run = &n_run};
        assert_int_equal(pthread_create(&flooders[i].thread, NULL, flood, &flooders[i]), 0);
    }
    while (atomic_load(&n_run) < 100) {
        sched_yield();
    }
    bow_loop_shutdown(loop, 0, 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(flooders[i].thread, NULL);
        n_accepted += flooders[i].n_accepted;
        n_refused += flooders[i].n_refused;
    }
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    assert_int_equal(n_run, n_accepted);
    assert_int_equal(n_refused, 40);
    assert_int_equal(rejections.n, n_refused);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L08 */

struct closing {
    struct bow__watch watch;
    struct bow__deferred gone;
    struct bow_loop *loop;
    bool is_told;
    bool is_gone;
    bool hook_was_later;
    struct bow_loop_hook hook;
};

static void on_gone(struct bow__deferred *deferred)
{
    struct closing *closing = BOW__CONTAINER(deferred, struct closing, gone);

    closing->is_gone = true;
    bow__loop_count_channel(closing->loop, -1);
}

static void on_shutdown(struct bow__watch *watch)
{
    struct closing *closing = BOW__CONTAINER(watch, struct closing, watch);

    closing->is_told = true;
    assert_int_equal(bow__loop_watch(closing->loop, watch, watch->fd, BOW_POLL_IN), -ESHUTDOWN);
    bow__loop_unwatch(closing->loop, watch);
    close(watch->fd);
    bow__loop_defer_free(closing->loop, &closing->gone);
}

static const struct bow__watch_ops closing_ops = {.on_shutdown = on_shutdown};

static void on_closing_hook(struct bow_loop_hook *hook)
{
    struct closing *closing = BOW__CONTAINER(hook, struct closing, hook);

    closing->hook_was_later = closing->is_gone;
}

static void never(struct bow_timer *timer, void *user)
{
    (void)timer;
    *(bool *)user = true;
}

static void test_loop_l08_shutdown_closes_watches_and_disarms_timers(void **state)
{
    struct loops t;
    bool has_fired = false;
    struct bow_timer timer;
    struct bow_scheduled *scheduled = NULL;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct closing closing = {
        .watch.ops = &closing_ops, .gone.fn = on_gone, .loop = loop, .hook.fn = on_closing_hook};
    bow__list_init(&closing.gone.link);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    int fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(bow__loop_watch(loop, &closing.watch, fd, BOW_POLL_IN), 0);
    bow__loop_count_channel(loop, 1);
    assert_int_equal(bow_loop_add_hook(loop, &closing.hook), 0);
    bow_timer_init(&timer, loop, never, &has_fired);
    bow_timer_start(&timer, FAKE_S);
    assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, FAKE_S, 0, "never", loops_count_run,
                                       &n, &scheduled),
                     0);

    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_true(closing.is_told);
    assert_true(closing.is_gone);
    assert_true(closing.hook_was_later);
    assert_false(bow_timer_is_armed(&timer));
    assert_false(has_fired);
    assert_true(bow_scheduled_is_cancelled(scheduled));
    assert_int_equal(n, 0);
    bow_timer_start(&timer, 0);
    assert_false(bow_timer_is_armed(&timer));
    bow_timer_stop(&timer);
    bow_scheduled_unref(scheduled);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void *let_channel_go(void *argument)
{
    bow__loop_count_channel(argument, -1);
    return NULL;
}

static void test_loop_l08_the_loop_ends_after_its_last_channel(void **state)
{
    struct loops t;
    pthread_t thread;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow__loop_count_channel(loop, 1);
    assert_int_equal(bow__loop_n_channels(loop), 1);
    bow_loop_shutdown(loop, 0, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
        assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_SHUTTING_DOWN);
    }
    assert_int_equal(pthread_create(&thread, NULL, let_channel_go, loop), 0);
    assert_int_equal(bow_loop_run(loop), 0); /* asleep without end until the thread wakes it */
    pthread_join(thread, NULL);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* References */

static int drop_own_loop(void *user)
{
    bow_loop_unref(user);
    return 0;
}

static int give_up_own_loop(void *user)
{
    atomic_int *may_go = ((void **)user)[1];

    while (atomic_load(may_go) == 0) {
        sched_yield();
    }
    bow_loop_unref(((void **)user)[0]);
    return 0;
}

static void test_loop_l06_f20_last_unref_on_its_own_thread_ends_thread_and_memory(void **state)
{
    struct loops t;
    atomic_int may_go = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    void *user[2] = {loop, &may_go};
    assert_int_equal(bow_loop_execute(loop, "give up", give_up_own_loop, user), 0);
    atomic_store(&may_go, 1); /* the task now has the only reference */
    loops_await_threads(&t);
    loops_end(&t);
}

static void test_loop_l06_f20_unref_inside_an_owners_turn_ends_it(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "drop", drop_own_loop, loop), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    loops_end(&t);
}

static void test_loop_unref_of_an_owners_loop_runs_what_was_accepted(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    assert_null(bow_loop_unref(loop));
    assert_int_equal(n, 1);
    assert_null(bow_loop_unref(NULL));
    loops_end(&t);
}

static void test_loop_held_memory_refuses_posts_after_the_last_reference(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    bow__loop_hold(loop);
    bow_loop_unref(loop);
    assert_int_equal(n, 1);
    assert_int_equal(bow__loop_post_internal(loop, &task, 0), -ESHUTDOWN);
    bow__loop_release(loop);
    loops_end(&t);
}

static int start_and_stop(struct bow_context *context, void *user)
{
    struct bow_loop *loop = NULL;
    atomic_int n = 0;

    (void)user;
    int rc = bow_loop_new(context, NULL, &loop);
    if (rc < 0) {
        return rc;
    }
    rc = bow_loop_execute(loop, "count", loops_count_run, &n);
    if (rc == 0) {
        rc = bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 0, 0, "count", loops_count_run, &n, NULL);
    }
    bow_loop_unref(loop);
    return rc;
}

static void test_loop_survives_each_failing_allocation(void **state)
{
    (void)state;
    assert_in_range(test_alloc_fail_each(NULL, start_and_stop, NULL), 4, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l06_new_work_restarts_the_quiet_period),
        cmocka_unit_test(test_loop_l06_after_the_timeout_nothing_is_waited_for),
        cmocka_unit_test(test_loop_l06_what_comes_due_is_no_new_work),
        cmocka_unit_test(test_loop_l06_a_later_call_may_only_shorten),
        cmocka_unit_test(test_loop_l06_hooks_run_newest_first_and_only_if_not_removed),
        cmocka_unit_test(test_loop_l06_shutdown_of_one_that_never_started_needs_no_thread),
        cmocka_unit_test(test_loop_l06_join_waits_no_longer_than_asked_and_not_for_itself),
        cmocka_unit_test(test_loop_l07_task_after_shutdown_is_rejected),
        cmocka_unit_test(test_loop_l07_every_accepted_task_runs_though_the_loop_ends),
        cmocka_unit_test(test_loop_l08_shutdown_closes_watches_and_disarms_timers),
        cmocka_unit_test(test_loop_l08_the_loop_ends_after_its_last_channel),
        cmocka_unit_test(test_loop_l06_f20_last_unref_on_its_own_thread_ends_thread_and_memory),
        cmocka_unit_test(test_loop_l06_f20_unref_inside_an_owners_turn_ends_it),
        cmocka_unit_test(test_loop_unref_of_an_owners_loop_runs_what_was_accepted),
        cmocka_unit_test(test_loop_held_memory_refuses_posts_after_the_last_reference),
        cmocka_unit_test(test_loop_survives_each_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
