/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long a turn waits, and who wakes it (L11–L13, L31, L35). */

#include "tests/support/loops.h"
#include "tests/support/ready.h"
#include "tests/support/sanitized.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop.h"

#include <bowline/loop_stats.h>
#include <bowline/timer.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

static void fire(struct bow_timer *timer, void *user)
{
    (void)timer;
    ++*(int *)user;
}

/* L11 */

static void test_loop_l11_with_tasks_pending_the_poll_does_not_block(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(atomic_load(&t.fake.last_timeout_ns), 0);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l11_without_tasks_it_blocks_until_the_next_timer(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, 123456789);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(atomic_load(&t.fake.last_timeout_ns), 123456789);
    assert_int_equal(n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct chooser {
    enum bow_loop_select choice;
    int n_asked;
    int n_pending;
};

static enum bow_loop_select choose(struct bow_loop *loop, bool tasks_pending, void *user)
{
    struct chooser *chooser = user;

    (void)loop;
    chooser->n_asked++;
    chooser->n_pending += tasks_pending;
    return chooser->choice;
}

static void test_loop_l11_the_strategy_can_be_replaced(void **state)
{
    struct loops t;
    struct chooser chooser = {.choice = BOW_LOOP_CONTINUE};
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.select = choose;
    options.select_user = &chooser;
    struct bow_loop *loop = loops_new(&t, &options);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(atomic_load(&t.fake.n_waits), 0);

    chooser.choice = BOW_LOOP_BUSY_WAIT;
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(atomic_load(&t.fake.n_waits), 1);
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 0);

    chooser.choice = BOW_LOOP_SELECT;
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 1);
    assert_int_equal(chooser.n_pending, 0);

    /* Whatever it says, a task is not left waiting for I/O. */
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 1);
    assert_int_equal(n, 1);
    assert_int_equal(chooser.n_asked, 4);
    assert_int_equal(chooser.n_pending, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l11_the_adaptive_one_spins_for_a_bounded_time(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    loops_begin(&t);
    t.fake.tick_ns = FAKE_US;
    options.thread = BOW_LOOP_OWNER;
    options.spin_ns = 50 * FAKE_US;
    struct bow_loop *loop = loops_new(&t, &options);
    assert_int_equal(bow_loop_run_once(loop, FAKE_MS), 0);
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 1);
    assert_in_range(atomic_load(&t.fake.n_waits), 45, 55);
    assert_in_range(atomic_load(&t.fake.last_timeout_ns), 940 * FAKE_US, 960 * FAKE_US);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l11_busy_wait_never_sleeps_and_needs_no_wake_up(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_timer timer;
    struct bow_task task;
    atomic_int n = 0;
    int n_fired = 0;

    (void)state;
    loops_begin(&t);
    t.fake.tick_ns = FAKE_US;
    options.thread = BOW_LOOP_OWNER;
    options.strategy = BOW_LOOP_BUSY_WAIT;
    struct bow_loop *loop = loops_new(&t, &options);
    bow_timer_init(&timer, loop, fire, &n_fired);
    bow_timer_start(&timer, 100 * FAKE_US);
    for (int i = 0; n_fired == 0 && i < 1000; i++) {
        assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    }
    assert_int_equal(n_fired, 1);
    bow_loop_unref(loop);

    options.thread = BOW_LOOP_OWN_THREAD;
    loop = loops_new(&t, &options);
    for (int i = 1; i <= 100; i++) {
        bow_task_init(&task, "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &task), 0);
        while (atomic_load(&n) < i) {
            sched_yield();
        }
    }
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 0);
    assert_int_equal(atomic_load(&t.fake.n_signals), 0);
    loops_stop(loop);
    loops_end(&t);
}

static void test_loop_l11_going_round_without_polling_is_no_fixed_strategy(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop = NULL;

    (void)state;
    loops_begin(&t);
    options.strategy = BOW_LOOP_CONTINUE;
    assert_int_equal(bow_loop_new(t.context, &options, &loop), -EINVAL);
    assert_null(loop);
    loops_end(&t);
}

/* L12, F02 */

static int interrupt(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    (void)user;
    if (timeout_ns <= 5 * FAKE_MS) {
        return 0;
    }
    fake_system_advance(fake, 5 * FAKE_MS);
    return -EINTR;
}

static void test_loop_l12_f02_a_signal_does_not_restart_the_timeout(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin(&t);
    t.fake.on_wait = interrupt;
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, 50 * FAKE_MS);
    while (n == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    assert_int_equal(atomic_load(&t.fake.now_ns) - FAKE_START, 50 * FAKE_MS);
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 10);
    assert_string_equal(t.log, "");
    bow_loop_unref(loop);
    loops_end(&t);
}

static void ignore(int number)
{
    (void)number;
}

/* With the kernel's signals: were the time-out restarted at each, this would never end. */
static uint64_t time_a_timer_of_50_ms(struct bow_loop *loop)
{
    struct bow_timer timer;
    int n = 0;

    bow_timer_init(&timer, loop, fire, &n);
    uint64_t started = bow_loop_now(loop);
    bow_timer_start(&timer, 50 * FAKE_MS);
    while (n == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    return bow_loop_now(loop) - started;
}

static void test_loop_l12_f02_a_timer_fires_in_time_though_signals_keep_coming(void **state)
{
    struct loops t;
    struct sigaction before;
    const struct sigaction action = {.sa_handler = ignore};
    const struct itimerval every_5_ms = {{0, 5000}, {0, 5000}};
    const struct itimerval off = {{0, 0}, {0, 0}};
    uint64_t best = BOW_NEVER;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every_5_ms, NULL), 0);
    /* Whoever else uses the machine may make it late, but not each time. */
    for (int i = 0; i < 5 && best > 60 * FAKE_MS; i++) {
        uint64_t took = time_a_timer_of_50_ms(loop);
        assert_true(took >= 50 * FAKE_MS);
        best = took < best ? took : best;
    }
    assert_true(best <= 60 * FAKE_MS);
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &before, NULL);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L13, F01 */

#define N_PRODUCERS 8
/* A sanitizer makes each post slower by about as much as this is less. */
#define N_POSTS (TEST_IS_SANITIZED ? 100000 : 1000000)

struct producer {
    struct bow_loop *loop;
    int n_posts;
    int n_failed;
    atomic_int n_run;
    pthread_t thread;
};

/* Short bursts, each waited for, so that the loop is forever just falling asleep. */
static void *produce(void *argument)
{
    struct producer *producer = argument;

    for (int i = 1; i <= producer->n_posts; i++) {
        if (bow_loop_execute(producer->loop, "count", loops_count_run, &producer->n_run) != 0) {
            producer->n_failed++;
        }
        bool is_last = i % 8 == 0 || i == producer->n_posts;
        while (is_last && atomic_load(&producer->n_run) < i) {
            sched_yield();
        }
    }
    return NULL;
}

static void test_loop_l13_f01_no_wake_up_is_lost(void **state)
{
    struct loops t;
    struct producer producers[N_PRODUCERS];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    int n_posts = N_POSTS / N_PRODUCERS;

    (void)state;
    loops_begin_real(&t);
    options.max_pending_tasks = UINT32_MAX;
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < N_PRODUCERS; i++) {
        producers[i] = (struct producer){.loop = loop, .n_posts = n_posts};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    /* No timer is armed and a producer posts nothing while it waits: a lost wake-up hangs here. */
    for (int i = 0; i < N_PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        assert_int_equal(producers[i].n_failed, 0);
        assert_int_equal(producers[i].n_run, n_posts);
    }
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_true(stats.wakeups_sent > 100); /* it did fall asleep */
    loops_stop(loop);
    loops_end(&t);
}

/* The same window, hit on purpose: a task comes after the loop looked, before it sleeps. */

struct ambush {
    struct bow_loop *loop;
    struct bow_task task;
    uint64_t delay_ns;
    atomic_int n;
    void *(*act)(void *ambush); /* on another thread, before the first sleep */
};

static void *post_task(void *argument)
{
    struct ambush *ambush = argument;
    int rc = bow_loop_post(ambush->loop, &ambush->task);
    return rc == 0 ? NULL : argument;
}

static int act_before_the_wait(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    struct ambush *ambush = user;
    pthread_t thread;
    void *failed = NULL;

    (void)fake;
    if (ambush->act == NULL || timeout_ns == 0) {
        return 0;
    }
    assert_int_equal(pthread_create(&thread, NULL, ambush->act, ambush), 0);
    ambush->act = NULL;
    pthread_join(thread, &failed);
    assert_null(failed);
    return 0;
}

static void test_loop_l13_f01_a_post_between_the_check_and_the_poll_wakes_it(void **state)
{
    struct loops t;
    struct ambush ambush = {.act = post_task};

    (void)state;
    loops_begin(&t);
    t.fake.on_wait = act_before_the_wait;
    t.fake.user = &ambush;
    struct bow_loop *loop = loops_new_owner(&t);
    ambush.loop = loop;
    bow_task_init(&ambush.task, "count", loops_count_run, &ambush.n);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0); /* it would hang here */
    assert_int_equal(ambush.n, 1);
    assert_int_equal(atomic_load(&t.fake.n_signals), 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct held {
    atomic_int has_begun;
    atomic_int may_end;
};

static int hold(void *user)
{
    struct held *held = user;

    atomic_store(&held->has_begun, 1);
    while (atomic_load(&held->may_end) == 0) {
        sched_yield();
    }
    return 0;
}

static void test_loop_l13_the_wake_up_is_skipped_while_the_loop_is_awake(void **state)
{
    struct loops t;
    struct held held = {0};
    struct bow_task tasks[100];
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_execute(loop, "hold", hold, &held), 0);
    while (atomic_load(&held.has_begun) == 0) {
        sched_yield();
    }
    uint64_t before = atomic_load(&t.fake.n_signals);
    for (int i = 0; i < 100; i++) {
        bow_task_init(&tasks[i], "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    assert_int_equal(atomic_load(&t.fake.n_signals), before);
    atomic_store(&held.may_end, 1);
    bow_loop_shutdown(loop, 0, 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    assert_int_equal(n, 100);
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_true(stats.wakeups_skipped >= 100);
    assert_true(stats.wakeups_sent <= 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_inbox_wakes_once_and_only_for_what_is_due_earlier(void **state)
{
    struct bow__inbox inbox;

    (void)state;
    bow__inbox_init(&inbox);
    assert_false(bow__inbox_must_signal(&inbox, 0)); /* awake */
    assert_true(bow__inbox_sleep(&inbox, 1000));
    assert_false(bow__inbox_must_signal(&inbox, 1000));
    assert_false(bow__inbox_must_signal(&inbox, 2000));
    assert_false(bow__inbox_must_signal(&inbox, BOW_NEVER));
    assert_true(bow__inbox_must_signal(&inbox, 999));
    assert_false(bow__inbox_must_signal(&inbox, 0)); /* somebody has just done it */

    assert_true(bow__inbox_sleep(&inbox, BOW_NEVER));
    assert_false(bow__inbox_must_signal(&inbox, BOW_NEVER));
    assert_true(bow__inbox_must_signal(&inbox, BOW_NEVER - 1));
}

static void test_inbox_with_a_task_does_not_sleep(void **state)
{
    struct bow__inbox inbox;
    struct bow_task task;

    (void)state;
    bow__inbox_init(&inbox);
    bow_task_init(&task, "none", loops_count_run, NULL);
    assert_true(bow__inbox_push(&inbox, &task));
    assert_false(bow__inbox_sleep(&inbox, BOW_NEVER));
    assert_false(bow__inbox_must_signal(&inbox, 0));
    assert_ptr_equal(bow__inbox_close(&inbox).first, &task);
    assert_false(bow__inbox_push(&inbox, &task));
    assert_true(bow__inbox_is_empty(&inbox));
    assert_null(bow__inbox_take(&inbox).first);
    assert_null(bow__inbox_close(&inbox).first);
}

/* L31 */

static void *post_lazily(void *argument)
{
    struct ambush *ambush = argument;
    int rc = bow_loop_post_lazy(ambush->loop, &ambush->task);
    return rc == 0 ? NULL : argument;
}

static void test_loop_l31_a_lazy_task_runs_when_the_loop_wakes_and_does_not_wake_it(void **state)
{
    struct loops t;
    struct ambush ambush = {.act = post_lazily};

    (void)state;
    loops_begin(&t);
    t.fake.on_wait = act_before_the_wait;
    t.fake.user = &ambush;
    struct bow_loop *loop = loops_new_owner(&t);
    ambush.loop = loop;
    bow_task_init(&ambush.task, "count", loops_count_run, &ambush.n);
    assert_int_equal(bow_loop_run_once(loop, 7 * FAKE_MS), 0);
    assert_int_equal(atomic_load(&t.fake.n_signals), 0);
    assert_int_equal(atomic_load(&t.fake.now_ns) - FAKE_START, 7 * FAKE_MS); /* slept it out */
    assert_int_equal(ambush.n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L35 */

static void *plan(void *argument)
{
    struct ambush *ambush = argument;
    int rc = bow_loop_schedule(ambush->loop, BOW_SCHEDULE_ONCE, ambush->delay_ns, 0, "count",
                               loops_count_run, &ambush->n, NULL);
    return rc == 0 ? NULL : argument;
}

/* Signals sent by scheduling for `delay_ns` while the loop sleeps until 10 ms (0: for ever). */
static uint64_t signals_of_scheduling(uint64_t delay_ns, uint64_t sleep_ns)
{
    struct loops t;
    struct ambush ambush = {.delay_ns = delay_ns, .act = plan};

    loops_begin(&t);
    t.fake.on_wait = act_before_the_wait;
    t.fake.user = &ambush;
    struct bow_loop *loop = loops_new_owner(&t);
    ambush.loop = loop;
    assert_int_equal(bow_loop_run_once(loop, sleep_ns), 0);
    while (ambush.n == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    uint64_t n_signals = atomic_load(&t.fake.n_signals);
    bow_loop_unref(loop);
    loops_end(&t);
    return n_signals;
}

static void test_loop_l35_scheduling_wakes_only_for_an_earlier_deadline(void **state)
{
    (void)state;
    assert_int_equal(signals_of_scheduling(9 * FAKE_MS, 10 * FAKE_MS), 1);
    assert_int_equal(signals_of_scheduling(10 * FAKE_MS, 10 * FAKE_MS), 0);
    assert_int_equal(signals_of_scheduling(11 * FAKE_MS, 10 * FAKE_MS), 0);
    assert_int_equal(signals_of_scheduling(11 * FAKE_MS, BOW_NEVER), 1);
}

/* What is overdue is judged with what has arrived: a timer that comes due while the loop does not
 * look fires when the next poll's channels have been served. */

struct judge {
    struct bow_timer timer;
    struct bow_timer early;
    struct loops *t;
    struct bow_loop *loop;
    struct ready peer;
    struct ready other;
    bool has_arrived;
    int n_fired;
    int n_seen; /* events of the peer by then */
};

static void on_judge(struct bow_timer *timer, void *user)
{
    struct judge *judge = user;

    (void)timer;
    judge->n_fired++;
    judge->n_seen = judge->peer.n_events;
}

/* Two seconds in which the peer's bytes come. */
static void pass_two_seconds(struct judge *judge)
{
    if (!judge->has_arrived) {
        judge->has_arrived = true;
        fake_system_advance(&judge->t->fake, 2 * FAKE_S);
        ready_open(&judge->peer, judge->loop);
    }
}

static void judge_begin(struct judge *judge, struct loops *t)
{
    *judge = (struct judge){.t = t};
    loops_begin(t);
    judge->loop = loops_new_owner(t);
    assert_int_equal(bow_loop_run_once(judge->loop, 0), 0);
    bow_timer_init(&judge->timer, judge->loop, on_judge, judge);
    bow_timer_start(&judge->timer, FAKE_S);
}

static void judge_end(struct judge *judge)
{
    for (int i = 0; i < 10 && judge->n_fired == 0; i++) {
        assert_int_equal(bow_loop_run_once(judge->loop, BOW_NEVER), 0);
    }
    assert_int_equal(judge->n_fired, 1);
    assert_true(judge->n_seen > 0);
    ready_close(&judge->peer);
    bow_loop_unref(judge->loop);
    loops_end(judge->t);
}

static int stop_and_go_on(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    (void)fake;
    if (timeout_ns == 0) {
        return 0;
    }
    pass_two_seconds(user);
    return -EINTR;
}

static void test_loop_wait_f35_a_stopped_process_reads_before_it_judges(void **state)
{
    struct judge judge;
    struct loops t;

    (void)state;
    judge_begin(&judge, &t);
    t.fake.user = &judge;
    t.fake.on_wait = stop_and_go_on;
    judge_end(&judge);
}

static void take_long(struct ready *ready)
{
    struct judge *judge = ready->user;

    pass_two_seconds(judge);
    ready_close(ready);
}

static void test_loop_wait_f35_after_a_long_callback_others_are_read_first(void **state)
{
    struct judge judge;
    struct loops t;

    (void)state;
    judge_begin(&judge, &t);
    ready_open(&judge.other, judge.loop);
    judge.other.then = take_long;
    judge.other.user = &judge;
    judge_end(&judge);
}

static int run_long(void *user)
{
    pass_two_seconds(user);
    return 0;
}

/* Within the same call of run_once(): who drives a loop now and then need not come again. */
static void test_loop_wait_f35_after_a_long_task_others_are_read_first(void **state)
{
    struct judge judge;
    struct loops t;
    atomic_int n_more = 0;

    (void)state;
    judge_begin(&judge, &t);
    assert_int_equal(bow_loop_execute(judge.loop, "long", run_long, &judge), 0);
    assert_int_equal(bow_loop_run_once(judge.loop, 0), 0);
    assert_int_equal(judge.n_fired, 0);
    assert_int_equal(bow_loop_execute(judge.loop, "more", loops_count_run, &n_more), 0);
    assert_int_equal(bow_loop_run_once(judge.loop, 0), 0);
    assert_int_equal(judge.n_fired, 1);
    judge_end(&judge);
}

static void on_early(struct bow_timer *timer, void *user)
{
    (void)timer;
    pass_two_seconds(user);
}

/* Each of two timers' callbacks takes its time; the second is late by then. */
static void test_loop_wait_f35_after_a_long_timer_others_are_read_first(void **state)
{
    struct judge judge;
    struct loops t;

    (void)state;
    judge_begin(&judge, &t);
    bow_timer_init(&judge.early, judge.loop, on_early, &judge);
    bow_timer_start(&judge.early, FAKE_S / 2);
    judge_end(&judge);
}

#define FIRST_BATCH 64

/* Others fill the first batch; the peer is not in it. */
static void test_loop_wait_f35_a_full_batch_is_not_all(void **state)
{
    struct judge judge;
    struct loops t;
    struct ready flood[FIRST_BATCH];

    (void)state;
    judge_begin(&judge, &t);
    for (int i = 0; i < FIRST_BATCH; i++) {
        ready_open(&flood[i], judge.loop);
    }
    pass_two_seconds(&judge);
    assert_int_equal(bow_loop_run_once(judge.loop, 0), 0);
    assert_true(judge.n_fired == 0 || judge.n_seen > 0);
    for (int i = 0; i < FIRST_BATCH; i++) {
        ready_close(&flood[i]);
    }
    judge_end(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l11_with_tasks_pending_the_poll_does_not_block),
        cmocka_unit_test(test_loop_l11_without_tasks_it_blocks_until_the_next_timer),
        cmocka_unit_test(test_loop_l11_the_strategy_can_be_replaced),
        cmocka_unit_test(test_loop_l11_the_adaptive_one_spins_for_a_bounded_time),
        cmocka_unit_test(test_loop_l11_busy_wait_never_sleeps_and_needs_no_wake_up),
        cmocka_unit_test(test_loop_l11_going_round_without_polling_is_no_fixed_strategy),
        cmocka_unit_test(test_loop_l12_f02_a_signal_does_not_restart_the_timeout),
        cmocka_unit_test(test_loop_l12_f02_a_timer_fires_in_time_though_signals_keep_coming),
        cmocka_unit_test(test_loop_l13_f01_no_wake_up_is_lost),
        cmocka_unit_test(test_loop_l13_f01_a_post_between_the_check_and_the_poll_wakes_it),
        cmocka_unit_test(test_loop_l13_the_wake_up_is_skipped_while_the_loop_is_awake),
        cmocka_unit_test(test_inbox_wakes_once_and_only_for_what_is_due_earlier),
        cmocka_unit_test(test_inbox_with_a_task_does_not_sleep),
        cmocka_unit_test(test_loop_l31_a_lazy_task_runs_when_the_loop_wakes_and_does_not_wake_it),
        cmocka_unit_test(test_loop_l35_scheduling_wakes_only_for_an_earlier_deadline),
        cmocka_unit_test(test_loop_wait_f35_a_stopped_process_reads_before_it_judges),
        cmocka_unit_test(test_loop_wait_f35_after_a_long_callback_others_are_read_first),
        cmocka_unit_test(test_loop_wait_f35_after_a_long_task_others_are_read_first),
        cmocka_unit_test(test_loop_wait_f35_after_a_long_timer_others_are_read_first),
        cmocka_unit_test(test_loop_wait_f35_a_full_batch_is_not_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
