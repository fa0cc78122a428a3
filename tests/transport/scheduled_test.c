/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scheduled tasks, from any thread (L32, L33, L36). */

#include "tests/support/loops.h"

#include <bowline/loop_stats.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A task that takes a while and notes when it began. */
struct worker {
    struct loops *t;
    uint64_t cost_ns;
    uint64_t began_ns[8];
    int n_runs;
    int n_max; /* fails at this run; 0: never */
    struct bow_scheduled *self;
    int cancel_rc;
};

static int work(void *user)
{
    struct worker *worker = user;

    worker->began_ns[worker->n_runs % 8] = atomic_load(&worker->t->fake.now_ns) - FAKE_START;
    worker->n_runs++;
    fake_system_advance(&worker->t->fake, worker->cost_ns);
    return worker->n_runs == worker->n_max ? -EPROTO : 0;
}

static void run_until(struct bow_loop *loop, const struct worker *worker, int n_runs)
{
    while (worker->n_runs < n_runs) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
}

/* Schedule before the first turn, as from outside, or after it, as from inside. */
static struct bow_scheduled *schedule(struct bow_loop *loop, enum bow_schedule_kind kind,
                                      uint64_t delay_ns, uint64_t period_ns, struct worker *worker)
{
    struct bow_scheduled *scheduled = NULL;

    assert_int_equal(
        bow_loop_schedule(loop, kind, delay_ns, period_ns, "work", work, worker, &scheduled), 0);
    return scheduled;
}

/* L32 */

static void test_scheduled_l32_once_runs_once_after_its_delay(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct worker worker = {.t = &t};
    struct bow_scheduled *once = schedule(loop, BOW_SCHEDULE_ONCE, 5 * FAKE_MS, 0, &worker);
    run_until(loop, &worker, 1);
    assert_int_equal(worker.began_ns[0], 5 * FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(worker.n_runs, 1);
    assert_int_equal(bow_scheduled_cancel(once), -EALREADY);
    assert_false(bow_scheduled_is_cancelled(once));
    bow_scheduled_unref(once);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l32_fixed_rate_counts_from_the_deadline(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct worker worker = {.t = &t, .cost_ns = 3 * FAKE_MS};
    struct bow_scheduled *rate =
        schedule(loop, BOW_SCHEDULE_FIXED_RATE, 5 * FAKE_MS, 10 * FAKE_MS, &worker);
    run_until(loop, &worker, 3);
    assert_int_equal(worker.began_ns[0], 5 * FAKE_MS);
    assert_int_equal(worker.began_ns[1], 15 * FAKE_MS);
    assert_int_equal(worker.began_ns[2], 25 * FAKE_MS);
    assert_int_equal(bow_scheduled_cancel(rate), 0);
    bow_scheduled_unref(rate);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l32_fixed_delay_counts_from_the_end_of_the_run(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    struct worker worker = {.t = &t, .cost_ns = 3 * FAKE_MS};
    struct bow_scheduled *delay =
        schedule(loop, BOW_SCHEDULE_FIXED_DELAY, 5 * FAKE_MS, 10 * FAKE_MS, &worker);
    run_until(loop, &worker, 3);
    assert_int_equal(worker.began_ns[0], 5 * FAKE_MS);
    assert_int_equal(worker.began_ns[1], 18 * FAKE_MS);
    assert_int_equal(worker.began_ns[2], 31 * FAKE_MS);
    assert_int_equal(bow_scheduled_cancel(delay), 0);
    bow_scheduled_unref(delay);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l32_a_periodic_one_that_fails_ends(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct worker worker = {.t = &t, .n_max = 2};
    struct bow_scheduled *rate = schedule(loop, BOW_SCHEDULE_FIXED_RATE, 0, FAKE_MS, &worker);
    run_until(loop, &worker, 2);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(worker.n_runs, 2);
    assert_int_equal(bow_scheduled_cancel(rate), -EALREADY);
    assert_non_null(strstr(t.log, "work"));
    bow_scheduled_unref(rate);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l32_wrong_arguments_are_refused(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(
        bow_loop_schedule(loop, BOW_SCHEDULE_FIXED_RATE, 1, 0, "count", loops_count_run, &n, NULL),
        -EINVAL);
    assert_int_equal(bow_loop_schedule(loop, (enum bow_schedule_kind)3, 1, 1, "count",
                                       loops_count_run, &n, NULL),
                     -EINVAL);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L33 */

struct numbered {
    int number;
    int *order;
    int *n_run;
};

static int note_number(void *user)
{
    struct numbered *numbered = user;

    numbered->order[(*numbered->n_run)++] = numbered->number;
    return 0;
}

static void test_scheduled_l33_deadline_first_then_order_of_scheduling(void **state)
{
    struct loops t;
    int order[8];
    int n_run = 0;
    struct numbered numbered[6];
    const uint64_t delays[6] = {20, 10, 20, 10, 0, 10};
    const int expected[6] = {4, 1, 3, 5, 0, 2};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 6; i++) {
        numbered[i] = (struct numbered){i, order, &n_run};
        assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, delays[i] * FAKE_MS, 0, "note",
                                           note_number, &numbered[i], NULL),
                         0);
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0); /* registers them */
    fake_system_advance(&t.fake, FAKE_S);            /* all due in one turn */
    while (n_run < 6) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(order[i], expected[i]);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l33_due_ones_wait_while_the_queue_is_full(void **state)
{
    struct loops t;
    int order[8];
    int n_run = 0;
    struct numbered numbered[5];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.max_pending_tasks = 2;
    struct bow_loop *loop = loops_new(&t, &options);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    for (int i = 0; i < 5; i++) {
        numbered[i] = (struct numbered){i, order, &n_run};
        assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, FAKE_MS, 0, "note", note_number,
                                           &numbered[i], NULL),
                         0);
    }
    const int expected[] = {2, 4, 5};
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
        assert_int_equal(n_run, expected[turn]);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(order[i], i);
    }
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.tasks_rejected, 0);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L34 */

static void test_scheduled_l34_f06_an_overflowing_delay_never_comes_due(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    t.fake.stands_still = true;
    struct bow_loop *loop = loops_new_owner(&t);
    struct worker worker = {.t = &t};
    struct bow_scheduled *never = schedule(loop, BOW_SCHEDULE_ONCE, BOW_NEVER - 5, 0, &worker);
    struct bow_scheduled *cancelled = schedule(loop, BOW_SCHEDULE_ONCE, BOW_NEVER, 0, &worker);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    size_t bytes = bow_context_bytes(t.context);
    assert_int_equal(bow_scheduled_cancel(cancelled), 0);
    bow_scheduled_unref(cancelled);
    assert_true(bow_context_bytes(t.context) < bytes);
    fake_system_advance(&t.fake, 1000 * 86400 * FAKE_S);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(worker.n_runs, 0);
    bow_loop_unref(loop);
    assert_true(bow_scheduled_is_cancelled(never));
    bow_scheduled_unref(never); /* after the loop */
    loops_end(&t);
}

/* L36 */

static void test_scheduled_l36_cancelled_from_another_thread_it_does_not_start(void **state)
{
    struct loops t;
    struct bow_scheduled *scheduled = NULL;
    atomic_int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 3600 * FAKE_S, 0, "count",
                                           loops_count_run, &n, &scheduled),
                         0);
        if (i % 2 == 0) {
            sched_yield();
        }
        assert_false(bow_scheduled_is_cancelled(scheduled));
        assert_int_equal(bow_scheduled_cancel(scheduled), 0);
        assert_true(bow_scheduled_is_cancelled(scheduled));
        assert_int_equal(bow_scheduled_cancel(scheduled), 0);
        bow_scheduled_unref(scheduled);
    }
    loops_stop(loop);
    assert_int_equal(n, 0);
    loops_end(&t);
}

struct held {
    atomic_int n_begun;
    atomic_int may_end;
};

static int hold(void *user)
{
    struct held *held = user;

    atomic_fetch_add(&held->n_begun, 1);
    while (atomic_load(&held->may_end) == 0) {
        sched_yield();
    }
    return 0;
}

static void cancel_while_it_runs(enum bow_schedule_kind kind, bool becomes_cancelled)
{
    struct loops t;
    struct held held = {0};
    struct bow_scheduled *scheduled = NULL;

    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_schedule(loop, kind, 0, FAKE_MS, "hold", hold, &held, &scheduled), 0);
    while (atomic_load(&held.n_begun) == 0) {
        sched_yield();
    }
    assert_int_equal(bow_scheduled_cancel(scheduled), -EBUSY);
    assert_int_equal(bow_scheduled_is_cancelled(scheduled), becomes_cancelled);
    atomic_store(&held.may_end, 1);
    loops_stop(loop);
    assert_int_equal(held.n_begun, 1); /* a periodic one did not go on */
    bow_scheduled_unref(scheduled);
    loops_end(&t);
}

static void test_scheduled_l36_cancel_says_that_it_is_running(void **state)
{
    (void)state;
    cancel_while_it_runs(BOW_SCHEDULE_ONCE, false);
    cancel_while_it_runs(BOW_SCHEDULE_FIXED_RATE, true);
    cancel_while_it_runs(BOW_SCHEDULE_FIXED_DELAY, true);
}

static int cancel_itself(void *user)
{
    struct worker *worker = user;

    worker->n_runs++;
    worker->cancel_rc = bow_scheduled_cancel(worker->self);
    worker->self = bow_scheduled_unref(worker->self);
    return 0;
}

static void test_scheduled_l36_f20_it_may_cancel_and_release_itself(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct worker periodic = {.t = &t, .cancel_rc = 1};
    struct worker once = {.t = &t, .cancel_rc = 1};
    assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_FIXED_RATE, 0, FAKE_MS, "self",
                                       cancel_itself, &periodic, &periodic.self),
                     0);
    assert_int_equal(
        bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 0, 0, "self", cancel_itself, &once, &once.self),
        0);
    run_until(loop, &once, 1);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(periodic.n_runs, 1);
    assert_int_equal(periodic.cancel_rc, 0);
    assert_int_equal(once.cancel_rc, -EALREADY);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_scheduled_l36_one_that_is_due_can_still_be_cancelled(void **state)
{
    struct loops t;
    struct worker victim = {0};
    struct worker killer = {0};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    victim.t = &t;
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    struct bow_scheduled *first = NULL;
    assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, FAKE_MS, 0, "killer", cancel_itself,
                                       &killer, &first),
                     0);
    /* The killer runs in the same turn, when its victim stands in the queue behind it. */
    killer.self = schedule(loop, BOW_SCHEDULE_ONCE, FAKE_MS, 0, &victim);
    run_until(loop, &killer, 1);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(killer.cancel_rc, 0);
    assert_int_equal(victim.n_runs, 0);
    bow_scheduled_unref(first);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* F05 */

static void test_scheduled_l36_f05_a_million_cancelled_leave_the_memory_flat(void **state)
{
    struct loops t;
    struct bow_scheduled *scheduled = NULL;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    size_t bytes = bow_context_bytes(t.context);
    for (int i = 0; i < 1000000; i++) {
        assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, 3600 * FAKE_S, 0, "count",
                                           loops_count_run, &n, &scheduled),
                         0);
        assert_int_equal(bow_scheduled_cancel(scheduled), 0);
        bow_scheduled_unref(scheduled);
        assert_int_equal(bow_context_bytes(t.context), bytes);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

#define N_CANCELLERS 4
#define N_EACH 20000

struct canceller {
    struct bow_loop *loop;
    atomic_int n_run;
    int n_cancelled;
    int n_wrong;
    pthread_t thread;
};

static void *schedule_and_cancel(void *argument)
{
    struct canceller *canceller = argument;

    for (int i = 0; i < N_EACH; i++) {
        struct bow_scheduled *scheduled = NULL;
        /* Due at once, soon, or never: the cancel meets it in each of its states. */
        uint64_t delay_ns = i % 3 == 0 ? 0 : i % 3 == 1 ? 20 * FAKE_US : 3600 * FAKE_S;
        if (bow_loop_schedule(canceller->loop, BOW_SCHEDULE_ONCE, delay_ns, 0, "count",
                              loops_count_run, &canceller->n_run, &scheduled) != 0) {
            canceller->n_wrong++;
            continue;
        }
        if (i % 4 == 0) {
            sched_yield();
        }
        canceller->n_cancelled += bow_scheduled_cancel(scheduled) == 0;
        bow_scheduled_unref(scheduled);
    }
    return NULL;
}

static void test_scheduled_l36_each_either_runs_or_is_cancelled(void **state)
{
    struct loops t;
    struct canceller cancellers[N_CANCELLERS];

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    for (int i = 0; i < N_CANCELLERS; i++) {
        cancellers[i] = (struct canceller){.loop = loop};
        assert_int_equal(
            pthread_create(&cancellers[i].thread, NULL, schedule_and_cancel, &cancellers[i]), 0);
    }
    for (int i = 0; i < N_CANCELLERS; i++) {
        pthread_join(cancellers[i].thread, NULL);
    }
    loops_stop(loop);
    for (int i = 0; i < N_CANCELLERS; i++) {
        assert_int_equal(cancellers[i].n_wrong, 0);
        assert_int_equal(cancellers[i].n_run + cancellers[i].n_cancelled, N_EACH);
    }
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scheduled_l32_once_runs_once_after_its_delay),
        cmocka_unit_test(test_scheduled_l32_fixed_rate_counts_from_the_deadline),
        cmocka_unit_test(test_scheduled_l32_fixed_delay_counts_from_the_end_of_the_run),
        cmocka_unit_test(test_scheduled_l32_a_periodic_one_that_fails_ends),
        cmocka_unit_test(test_scheduled_l32_wrong_arguments_are_refused),
        cmocka_unit_test(test_scheduled_l33_deadline_first_then_order_of_scheduling),
        cmocka_unit_test(test_scheduled_l33_due_ones_wait_while_the_queue_is_full),
        cmocka_unit_test(test_scheduled_l34_f06_an_overflowing_delay_never_comes_due),
        cmocka_unit_test(test_scheduled_l36_cancelled_from_another_thread_it_does_not_start),
        cmocka_unit_test(test_scheduled_l36_cancel_says_that_it_is_running),
        cmocka_unit_test(test_scheduled_l36_f20_it_may_cancel_and_release_itself),
        cmocka_unit_test(test_scheduled_l36_one_that_is_due_can_still_be_cancelled),
        cmocka_unit_test(test_scheduled_l36_f05_a_million_cancelled_leave_the_memory_flat),
        cmocka_unit_test(test_scheduled_l36_each_either_runs_or_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
