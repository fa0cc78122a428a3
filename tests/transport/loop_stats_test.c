/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a loop tells about itself, and who held it (L39). */

#include "tests/support/net.h"
#include "tests/support/ready.h"

#include <bowline/loop_stats.h>
#include <bowline/timer.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct bow_loop_stats stats_of(const struct bow_loop *loop)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    return stats;
}

/* Something that takes its time. */
struct work {
    struct fake_system *fake;
    struct bow_loop *loop;
    uint64_t cost_ns;
    int n;
};

static int work(void *user)
{
    struct work *self = user;

    fake_system_advance(self->fake, self->cost_ns);
    self->n++;
    return 0;
}

static void work_on_event(struct ready *ready)
{
    work(ready->user);
}

static void work_on_time(struct bow_timer *timer, void *user)
{
    (void)timer;
    work(user);
}

static void test_loop_l39_io_time_and_task_time_are_told_apart(void **state)
{
    struct loops t;
    struct ready ready;
    struct work io = {.fake = &t.fake, .cost_ns = 3 * FAKE_MS};
    struct work task = {.fake = &t.fake, .cost_ns = 5 * FAKE_MS};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    ready_open(&ready, loop);
    ready.then = work_on_event;
    ready.user = &io;
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_execute(loop, "work", work, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    ready_close(&ready);
    assert_int_equal(bow_loop_execute(loop, "work", work, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0); /* asleep: that is neither */
    assert_int_equal(io.n, 3);
    assert_int_equal(task.n, 2);
    assert_int_equal(stats_of(loop).io_ns, 9 * FAKE_MS);
    assert_int_equal(stats_of(loop).task_ns, 10 * FAKE_MS);
    assert_int_equal(stats_of(loop).max_turn_ns, 8 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l39_the_times_cost_no_reading_of_the_clock(void **state)
{
    struct loops t;
    struct ready ready;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    ready_open(&ready, loop);
    uint64_t before = atomic_load(&t.fake.n_clock_reads);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    /* Before the wait and after it, as it has to be for the time-out. */
    assert_int_equal(atomic_load(&t.fake.n_clock_reads) - before, 200);
    ready_close(&ready);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l39_lag_is_how_late_a_timer_fires(void **state)
{
    struct loops t;
    struct work task = {.fake = &t.fake, .cost_ns = 30 * FAKE_MS};
    struct work due = {.fake = &t.fake};
    struct bow_timer timer;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&timer, loop, work_on_time, &due);
    bow_timer_start(&timer, 10 * FAKE_MS);
    assert_int_equal(bow_loop_execute(loop, "work", work, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(due.n, 1);
    assert_int_equal(stats_of(loop).lag_ns, 20 * FAKE_MS);
    bow_timer_start(&timer, 10 * FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(due.n, 2);
    assert_int_equal(stats_of(loop).lag_ns, 0);
    assert_int_equal(stats_of(loop).max_lag_ns, 20 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* A tail that posts itself again waits for the next turn. */
struct tail {
    struct bow_task task;
    struct bow_loop *loop;
    bool again;
};

static int run_tail(void *user)
{
    struct tail *tail = user;
    return tail->again ? bow_loop_post_tail(tail->loop, &tail->task) : 0;
}

static void test_loop_l39_queue_lengths_are_those_after_the_turn(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct work task = {.fake = &t.fake, .cost_ns = FAKE_MS};
    struct ready ready;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.io_ratio = 99; /* hardly any time for tasks, so 64 of them run */
    struct bow_loop *loop = loops_new(&t, &options);
    struct tail tail = {.loop = loop, .again = true};
    bow_task_init(&tail.task, "tail", run_tail, &tail);
    assert_int_equal(bow_loop_post_tail(loop, &tail.task), 0);
    ready_open(&ready, loop);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bow_loop_execute(loop, "work", work, &task), 0);
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(stats_of(loop).pending_tasks, 36);
    assert_int_equal(stats_of(loop).pending_tails, 1);
    tail.again = false;
    ready_close(&ready);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* The watchdog */

struct reports {
    char text[256]; /* "what/name/ms " of each */
    int n;
    uintptr_t fn; /* of the last one */
};

static void note_report(struct bow_loop *loop, const struct bow_loop_held *held, void *user)
{
    struct reports *reports = user;
    size_t len = strlen(reports->text);

    assert_true(bow_loop_in_loop(loop));
    snprintf(reports->text + len, sizeof(reports->text) - len, "%s/%s/%" PRIu64 " ", held->what,
             held->name != NULL ? held->name : "", held->held_ns / FAKE_MS);
    reports->fn = held->fn;
    reports->n++;
}

static struct bow_loop_options watched(struct reports *reports)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    options.max_hold_ns = 10 * FAKE_MS;
    options.held = note_report;
    options.held_user = reports;
    return options;
}

static void test_loop_l39_the_watchdog_names_task_timer_and_event(void **state)
{
    struct loops t;
    struct reports reports = {.n = 0};
    const struct bow_loop_options options = watched(&reports);
    struct work quick = {.fake = &t.fake, .cost_ns = 10 * FAKE_MS};
    struct work slow = {.fake = &t.fake, .cost_ns = 11 * FAKE_MS};
    struct bow_timer timer;
    struct ready ready;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new(&t, &options);
    assert_int_equal(bow_loop_execute(loop, "quick", work, &quick), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(stats_of(loop).max_hold_ns, 10 * FAKE_MS); /* the longest, if not too long */
    assert_int_equal(bow_loop_execute(loop, "slow", work, &slow), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_string_equal(reports.text, "task/slow/11 "); /* the limit itself is allowed */
    assert_int_equal(reports.fn, 0);
    assert_non_null(strstr(t.log, "task slow held it for 11000 us"));

    bow_timer_init(&timer, loop, work_on_time, &slow);
    bow_timer_start(&timer, 0);
    ready_open(&ready, loop);
    ready.then = work_on_event;
    ready.user = &slow;
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_string_equal(reports.text, "task/slow/11 watch//11 timer//11 ");
    assert_int_equal(reports.fn, (uintptr_t)work_on_time);
    assert_int_equal(stats_of(loop).holds, 3);
    assert_int_equal(stats_of(loop).max_hold_ns, 11 * FAKE_MS);
    ready_close(&ready);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l39_the_log_gets_a_line_a_second_and_the_callback_all(void **state)
{
    struct loops t;
    struct reports reports = {.n = 0};
    const struct bow_loop_options options = watched(&reports);
    struct work slow = {.fake = &t.fake, .cost_ns = 100 * FAKE_MS};
    int n_lines = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < 30; i++) {
        reports.text[0] = '\0';
        assert_int_equal(bow_loop_execute(loop, "slow", work, &slow), 0);
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    assert_int_equal(reports.n, 30);
    for (const char *c = t.log; *c != '\0'; c++) {
        n_lines += *c == '\n';
    }
    assert_int_equal(n_lines, 3);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l39_without_a_limit_nobody_looks(void **state)
{
    struct loops t;
    struct work slow = {.fake = &t.fake, .cost_ns = 3600 * FAKE_S};
    uint64_t since_ns = 7;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "slow", work, &slow), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(stats_of(loop).holds, 0);
    assert_int_equal(stats_of(loop).max_hold_ns, 0);
    assert_string_equal(t.log, "");
    assert_null(bow_loop_get_holder(loop, &since_ns));
    assert_int_equal(since_ns, 7);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* Three handlers in a row; the one that holds is named, not the two that it is called through. */
static size_t pass_on(struct probe *probe, const struct bow_buf *bytes)
{
    fake_system_advance(&probe->net->t.fake, 9 * FAKE_MS);
    return bow_handler_fire_read(&probe->handler, bytes);
}

static size_t take_long(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct work *self = *(struct work **)(void *)(handler + 1);

    work(self);
    return bytes->len;
}

static const struct bow_handler_ops slow_ops = {.name = "slow", .on_read = take_long};

static void test_loop_l39_of_nested_handlers_the_one_that_held_it_is_named(void **state)
{
    struct net net;
    struct probe probes[2];
    struct reports reports = {.n = 0};
    const struct bow_loop_options options = watched(&reports);
    struct work slow = {.cost_ns = 50 * FAKE_MS};
    struct {
        struct bow_handler handler;
        struct work *work;
    } last = {.handler.ops = &slow_ops, .work = &slow};
    int peer = -1;

    (void)state;
    net_begin_fake(&net);
    slow.fake = &net.t.fake;
    net_stop(&net);
    net.loop = loops_new(&net.t, &options);
    probe_init(&probes[0], &net);
    probe_init(&probes[1], &net);
    probes[0].on_read = pass_on;
    probes[1].on_read = pass_on;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, probes, 2);
    bow_channel_add_last(channel, &last.handler);
    assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), 1);
    net_run_until(&net, slow.n == 1);
    assert_string_equal(reports.text, "handler/slow/50 ");
    close(peer);
    net_run_until(&net, probes[0].n_removed == 1);
    probe_fini(&probes[0]);
    probe_fini(&probes[1]);
    net_end(&net);
}

/* For what never returns, another thread asks. */

struct stuck {
    atomic_bool may_go;
};

static int get_stuck(void *user)
{
    struct stuck *stuck = user;

    while (!atomic_load(&stuck->may_go)) {
        sched_yield();
    }
    return 0;
}

static void test_loop_l39_another_thread_may_ask_who_holds_it(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct stuck stuck = {.may_go = false};
    uint64_t since_ns = 0;
    const char *name = NULL;

    (void)state;
    loops_begin_real(&t);
    options.max_hold_ns = FAKE_S;
    struct bow_loop *loop = loops_new(&t, &options);
    uint64_t before = bow_loop_now(loop);
    assert_null(bow_loop_get_holder(loop, &since_ns));
    assert_int_equal(bow_loop_execute(loop, "stuck", get_stuck, &stuck), 0);
    while ((name = bow_loop_get_holder(loop, &since_ns)) == NULL || strcmp(name, "stuck") != 0) {
        sched_yield();
    }
    assert_in_range(since_ns, before, bow_loop_now(loop));
    atomic_store(&stuck.may_go, true);
    loops_stop(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l39_io_time_and_task_time_are_told_apart),
        cmocka_unit_test(test_loop_l39_the_times_cost_no_reading_of_the_clock),
        cmocka_unit_test(test_loop_l39_lag_is_how_late_a_timer_fires),
        cmocka_unit_test(test_loop_l39_queue_lengths_are_those_after_the_turn),
        cmocka_unit_test(test_loop_l39_the_watchdog_names_task_timer_and_event),
        cmocka_unit_test(test_loop_l39_the_log_gets_a_line_a_second_and_the_callback_all),
        cmocka_unit_test(test_loop_l39_without_a_limit_nobody_looks),
        cmocka_unit_test(test_loop_l39_of_nested_handlers_the_one_that_held_it_is_named),
        cmocka_unit_test(test_loop_l39_another_thread_may_ask_who_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
