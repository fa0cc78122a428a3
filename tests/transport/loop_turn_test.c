/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One turn: its order and its shares of time (L10, L14, L15). */

#include "tests/support/loops.h"
#include "tests/support/ready.h"
#include "transport/loop/loop.h"

#include <bowline/timer.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* L10 */

struct notes {
    struct bow_loop *loop;
    char text[64];
    struct bow_task task;
    struct bow_task tail;
    struct bow__deferred flush;
    struct bow__deferred free;
    struct bow_timer timer;
};

static void note(struct notes *notes, const char *what)
{
    strcat(notes->text, what);
}

static int note_tail(void *user)
{
    note(user, "tail ");
    return 0;
}

static int note_task(void *user)
{
    struct notes *notes = user;

    note(notes, "task ");
    bow__loop_defer_flush(notes->loop, &notes->flush);
    bow__loop_defer_free(notes->loop, &notes->free);
    return bow_loop_post_tail(notes->loop, &notes->tail);
}

static void note_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    note(user, "timer ");
}

static void note_flush(struct bow__deferred *deferred)
{
    note(BOW__CONTAINER(deferred, struct notes, flush), "flush ");
}

static void note_free(struct bow__deferred *deferred)
{
    note(BOW__CONTAINER(deferred, struct notes, free), "free ");
}

static void note_event(struct ready *ready)
{
    struct notes *notes = ready->user;

    note(notes, "event ");
    bow__loop_defer_flush(notes->loop, &notes->flush);
    bow__loop_defer_flush(notes->loop, &notes->flush); /* twice is once */
    bow_timer_start(&notes->timer, 0);
    assert_int_equal(bow_loop_post(notes->loop, &notes->task), 0);
    ready_close(ready);
}

static void test_loop_l10_phases_of_a_turn_come_in_order(void **state)
{
    struct loops t;
    struct ready ready;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct notes notes = {.loop = loop, .flush.fn = note_flush, .free.fn = note_free};
    bow__list_init(&notes.flush.link);
    bow__list_init(&notes.free.link);
    bow_task_init(&notes.task, "task", note_task, &notes);
    bow_task_init(&notes.tail, "tail", note_tail, &notes);
    bow_timer_init(&notes.timer, loop, note_timer, &notes);
    ready_open(&ready, loop);
    ready.then = note_event;
    ready.user = &notes;
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_string_equal(notes.text, "event flush timer task flush tail free ");
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L14 */

#define N_TASKS 2000

struct spender {
    struct fake_system *fake;
    uint64_t cost_ns;
    int n_runs;
};

static int spend(void *user)
{
    struct spender *spender = user;

    fake_system_advance(spender->fake, spender->cost_ns);
    spender->n_runs++;
    return 0;
}

static void spend_on_io(struct ready *ready)
{
    fake_system_advance(ready->user, FAKE_MS);
    ready_close(ready);
}

/* How many tasks of 10 µs run in a turn that spent 1 ms on I/O. */
static int tasks_at_ratio(uint32_t ratio)
{
    struct loops t;
    struct ready ready;
    static struct bow_task tasks[N_TASKS];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.io_ratio = ratio;
    struct bow_loop *loop = loops_new(&t, &options);
    struct spender spender = {.fake = &t.fake, .cost_ns = 10 * FAKE_US};
    for (int i = 0; i < N_TASKS; i++) {
        bow_task_init(&tasks[i], "spend", spend, &spender);
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    ready_open(&ready, loop);
    ready.then = spend_on_io;
    ready.user = &t.fake;
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    int n = spender.n_runs;
    bow_loop_unref(loop);
    assert_int_equal(spender.n_runs, N_TASKS);
    loops_end(&t);
    return n;
}

static void test_loop_l14_io_ratio_shares_the_time(void **state)
{
    (void)state;
    /* The budgets end with the first look at the clock after them, every 64 tasks. */
    assert_int_equal(tasks_at_ratio(50), 128); /* 1 ms */
    assert_int_equal(tasks_at_ratio(0), 128);  /* the default is 50 */
    assert_int_equal(tasks_at_ratio(80), 64);  /* 250 µs */
    assert_int_equal(tasks_at_ratio(20), 448); /* 4 ms */
    assert_int_equal(tasks_at_ratio(100), N_TASKS);
}

struct reposter {
    struct bow_loop *loop;
    struct bow_task task;
    int n_runs;
};

static int repost(void *user)
{
    struct reposter *reposter = user;

    reposter->n_runs++;
    int rc = bow_loop_post(reposter->loop, &reposter->task);
    return rc == -ESHUTDOWN ? 0 : rc;
}

static void test_loop_l14_at_100_those_present_at_the_start_run(void **state)
{
    struct loops t;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.io_ratio = 100;
    struct bow_loop *loop = loops_new(&t, &options);
    struct reposter reposters[3];
    for (int i = 0; i < 3; i++) {
        reposters[i] = (struct reposter){.loop = loop};
        bow_task_init(&reposters[i].task, "repost", repost, &reposters[i]);
        assert_int_equal(bow_loop_post(loop, &reposters[i].task), 0);
    }
    for (int turn = 1; turn <= 5; turn++) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(reposters[0].n_runs, turn);
        assert_int_equal(reposters[2].n_runs, turn);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l14_the_clock_is_read_every_64_tasks(void **state)
{
    struct loops t;
    static struct bow_task tasks[640];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.io_ratio = 100;
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < 640; i++) {
        bow_task_init(&tasks[i], "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    uint64_t before = atomic_load(&t.fake.n_clock_reads);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 640);
    assert_int_equal(atomic_load(&t.fake.n_clock_reads) - before, 11); /* and after the poll */
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L15, F03 */

struct spinner {
    struct bow_timer timer;
    int n_fired;
};

static void spin(struct bow_timer *timer, void *user)
{
    struct spinner *spinner = user;

    spinner->n_fired++;
    bow_timer_start(timer, 0);
}

static void echo(struct ready *ready)
{
    char byte;

    assert_int_equal(recv(ready->watch.fd, &byte, 1, 0), 1);
    assert_int_equal(send(ready->watch.fd, &byte, 1, MSG_NOSIGNAL), 1);
}

static void test_loop_l15_f03_restless_tasks_and_timers_do_not_starve_io(void **state)
{
    struct loops t;
    int pair[2];
    struct bow_scheduled *periodic = NULL;
    atomic_int n_periodic = 0;

    (void)state;
    loops_begin(&t);
    t.fake.tick_ns = 10;
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    struct reposter reposter = {.loop = loop};
    struct spinner spinner = {.n_fired = 0};
    struct ready server = {.watch.ops = &ready_ops, .loop = loop, .then = echo};
    bow_task_init(&reposter.task, "repost", repost, &reposter);
    assert_int_equal(bow_loop_post(loop, &reposter.task), 0);
    bow_timer_init(&spinner.timer, loop, spin, &spinner);
    bow_timer_start(&spinner.timer, 0);
    assert_int_equal(bow_loop_schedule(loop, BOW_SCHEDULE_FIXED_DELAY, 0, 1, "periodic",
                                       loops_count_run, &n_periodic, &periodic),
                     0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(bow__loop_watch(loop, &server.watch, pair[0], BOW_POLL_IN), 0);
    for (int i = 0; i < 100; i++) {
        char sent = (char)i;
        char got = 0;
        assert_int_equal(send(pair[1], &sent, 1, MSG_NOSIGNAL), 1);
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
        assert_int_equal(recv(pair[1], &got, 1, 0), 1);
        assert_int_equal(got, sent);
    }
    assert_int_equal(spinner.n_fired, 100); /* once a turn */
    assert_in_range(reposter.n_runs, 100, 100 * 64);
    assert_in_range(n_periodic, 50, 200);
    ready_close(&server);
    close(pair[1]);
    bow_scheduled_cancel(periodic);
    bow_scheduled_unref(periodic);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l15_f03_a_flood_of_io_does_not_starve_tasks_or_timers(void **state)
{
    struct loops t;
    struct ready flood[8];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct reposter reposter = {.loop = loop};
    struct spinner spinner = {.n_fired = 0};
    for (int i = 0; i < 8; i++) {
        ready_open(&flood[i], loop); /* never read: ready in each turn */
    }
    bow_task_init(&reposter.task, "repost", repost, &reposter);
    assert_int_equal(bow_loop_post(loop, &reposter.task), 0);
    bow_timer_init(&spinner.timer, loop, spin, &spinner);
    bow_timer_start(&spinner.timer, 0);
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
        assert_int_equal(flood[7].n_events, i);
        assert_int_equal(spinner.n_fired, i);
        assert_true(reposter.n_runs >= i);
    }
    for (int i = 0; i < 8; i++) {
        ready_close(&flood[i]);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l10_phases_of_a_turn_come_in_order),
        cmocka_unit_test(test_loop_l14_io_ratio_shares_the_time),
        cmocka_unit_test(test_loop_l14_at_100_those_present_at_the_start_run),
        cmocka_unit_test(test_loop_l14_the_clock_is_read_every_64_tasks),
        cmocka_unit_test(test_loop_l15_f03_restless_tasks_and_timers_do_not_starve_io),
        cmocka_unit_test(test_loop_l15_f03_a_flood_of_io_does_not_starve_tasks_or_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
