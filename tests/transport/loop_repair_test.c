/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A poller that fails or returns early (L19, L20). */

#include "tests/support/bad_poller.h"
#include "tests/support/loops.h"
#include "tests/support/ready.h"

#include <bowline/loop_stats.h>
#include <bowline/timer.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct bad_loop {
    struct loops t;
    struct bad_poller bad;
    struct bow_loop *loop;
};

static void begin(struct bad_loop *b, uint32_t max_early_polls)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    if (max_early_polls != UINT32_MAX) {
        options.max_early_polls = max_early_polls;
    }
    loops_begin_with(&b->t, &b->bad.fake.system);
    b->loop = loops_new(&b->t, &options);
}

static void end(struct bad_loop *b)
{
    bow_loop_unref(b->loop);
    assert_int_equal(b->bad.n_open, 0);
    loops_end(&b->t);
}

static struct bow_loop_stats stats_of(const struct bow_loop *loop)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    return stats;
}

static void turns(struct bad_loop *b, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(bow_loop_run_once(b->loop, 3600 * FAKE_S), 0);
    }
}

static int count_lines(const char *log)
{
    int n = 0;

    for (; *log != '\0'; log++) {
        n += *log == '\n';
    }
    return n;
}

/* L19 */

static void test_loop_l19_512_early_returns_rebuild_the_poller(void **state)
{
    struct bad_loop b;
    struct ready ready;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    begin(&b, UINT32_MAX);
    ready_open(&ready, b.loop);
    turns(&b, 511);
    assert_int_equal(stats_of(b.loop).rebuilds, 0);
    assert_string_equal(b.t.log, "");
    turns(&b, 1);
    assert_int_equal(stats_of(b.loop).rebuilds, 1);
    assert_non_null(strstr(b.t.log, "early"));
    assert_int_equal(b.bad.n_opened, 2);
    assert_int_equal(b.bad.n_open, 1); /* the old one was closed */
    assert_int_equal(ready.n_events, 0);
    turns(&b, 1); /* the new one knows the watch */
    assert_int_equal(ready.n_events, 1);
    assert_true(bow_loop_is_healthy(b.loop));
    ready_close(&ready);
    end(&b);
}

static void test_loop_l19_the_threshold_is_an_option_and_0_is_off(void **state)
{
    struct bad_loop b;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    begin(&b, 3);
    turns(&b, 2);
    assert_int_equal(stats_of(b.loop).rebuilds, 0);
    turns(&b, 1);
    assert_int_equal(stats_of(b.loop).rebuilds, 1);
    end(&b);

    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    begin(&b, 0);
    turns(&b, 5000);
    assert_int_equal(stats_of(b.loop).rebuilds, 0);
    assert_int_equal(b.bad.n_opened, 1);
    end(&b);
}

static void check_never_rebuilt(int wait_result, int good_every)
{
    struct bad_loop b;

    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    b.bad.wait_result = wait_result;
    b.bad.good_every = good_every;
    begin(&b, 3);
    turns(&b, 1000);
    assert_int_equal(b.bad.n_sleeps, 1000);
    assert_int_equal(stats_of(b.loop).rebuilds, 0);
    end(&b);
}

/* Two early ones, then one that waits as asked, for ever: nothing wrong with that poller. */
static void test_loop_l19_only_early_returns_in_a_row_count_and_no_signals(void **state)
{
    (void)state;
    check_never_rebuilt(0, 3);
    check_never_rebuilt(-EINTR, 0);
}

static void test_loop_l19_a_failing_poll_rebuilds_too(void **state)
{
    struct bad_loop b;
    struct ready ready;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    b.bad.wait_result = -EBADF;
    begin(&b, UINT32_MAX);
    ready_open(&ready, b.loop);
    turns(&b, 1);
    assert_int_equal(stats_of(b.loop).rebuilds, 1);
    assert_int_equal(stats_of(b.loop).failed_polls, 1);
    turns(&b, 1);
    assert_int_equal(ready.n_events, 1);
    assert_int_equal(stats_of(b.loop).pauses, 0);
    assert_true(bow_loop_is_healthy(b.loop));
    assert_int_equal(count_lines(b.t.log), 1);
    assert_non_null(strstr(b.t.log, "EBADF"));
    ready_close(&ready);
    end(&b);
}

static void open_pair(struct ready *ready, struct bow_loop *loop, uint32_t events, int *ret_peer)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *ready = (struct ready){.watch.ops = &ready_ops, .loop = loop};
    assert_int_equal(bow__loop_watch(loop, &ready->watch, fds[0], events), 0);
    *ret_peer = fds[1];
}

/* Both ends are ready for both; what each is told of is what it asked for. */
static void test_loop_l19_interests_are_kept_and_0_stays_out(void **state)
{
    struct bad_loop b;
    struct ready in;
    struct ready out;
    struct ready none;
    int peers[3];

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    begin(&b, 1);
    open_pair(&in, b.loop, BOW_POLL_IN, &peers[0]);
    open_pair(&out, b.loop, BOW_POLL_OUT, &peers[1]);
    open_pair(&none, b.loop, 0, &peers[2]);
    close(peers[2]); /* a hang-up, of which it must hear nothing */
    turns(&b, 1);
    assert_int_equal(stats_of(b.loop).rebuilds, 1);
    turns(&b, 2);
    assert_int_equal(in.n_events, 0);
    assert_int_equal(out.n_events, 2);
    assert_int_equal(none.n_events, 0);
    assert_int_equal(bow__loop_rewatch(b.loop, &none.watch, BOW_POLL_IN), 0);
    assert_int_equal(bow__loop_rewatch(b.loop, &out.watch, 0), 0);
    turns(&b, 1);
    assert_int_equal(none.n_events, 1);
    assert_int_equal(out.n_events, 2);
    ready_close(&in);
    ready_close(&out);
    ready_close(&none);
    close(peers[0]);
    close(peers[1]);
    end(&b);
}

struct lost {
    struct ready ready;
    struct ready *other; /* unwatched meanwhile */
    int error;
    int n;
};

static void on_lost(struct bow__watch *watch, int error)
{
    struct lost *lost = BOW__CONTAINER(watch, struct lost, ready.watch);

    lost->error = error;
    lost->n++;
    ready_close(lost->other);
    ready_close(&lost->ready);
}

static const struct bow__watch_ops lost_ops = {.on_lost = on_lost};

static void test_loop_l19_one_that_is_not_taken_is_told_the_error_and_may_close_others(void **state)
{
    struct bad_loop b;
    struct lost lost = {.n = 0};
    struct ready other;
    struct ready third;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    begin(&b, 1);
    ready_open(&other, b.loop);
    ready_open(&lost.ready, b.loop);
    ready_open(&third, b.loop);
    lost.ready.watch.ops = &lost_ops;
    lost.other = &other;
    b.bad.refused_fd = lost.ready.watch.fd;
    b.bad.refused_error = -ENOSPC;
    turns(&b, 1);
    assert_int_equal(lost.n, 1);
    assert_int_equal(lost.error, -ENOSPC);
    turns(&b, 1);
    assert_int_equal(third.n_events, 1);
    assert_int_equal(other.n_events, 0);
    assert_int_equal(lost.ready.n_events, 0);
    assert_non_null(strstr(b.t.log, "ENOSPC"));
    ready_close(&third);
    end(&b);
}

static int fail_once(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    (void)timeout_ns;
    (void)user;
    fake->on_wait = NULL;
    return -EBADF;
}

static bool is_readable(int fd)
{
    struct pollfd outer = {.fd = fd, .events = POLLIN};
    return poll(&outer, 1, 0) == 1;
}

/* Who polls bow_loop_fd() in a loop of his own has registered that number there. */
static void test_loop_l19_the_loops_descriptor_outlives_its_poller(void **state)
{
    struct loops t;
    struct ready ready;
    struct bow_task task;
    atomic_int n = 0;
    int peer = -1;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    open_pair(&ready, loop, BOW_POLL_IN, &peer);
    int fd = bow_loop_fd(loop);
    for (int round = 1; round <= 3; round++) {
        t.fake.on_wait = fail_once;
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(stats_of(loop).rebuilds, round);
        assert_int_equal(bow_loop_fd(loop), fd);
        assert_false(is_readable(fd));
        assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), 1);
        assert_true(is_readable(fd));
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(ready.n_events, round);
        assert_int_equal(recv(ready.watch.fd, &(char){0}, 1, 0), 1);
        assert_false(is_readable(fd));
        bow_task_init(&task, "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &task), 0);
        assert_true(is_readable(fd));
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(n, round);
        assert_false(is_readable(fd));
    }
    ready_close(&ready);
    assert_false(is_readable(fd));
    close(peer);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L20 */

struct ticker {
    struct bow_timer timer;
    struct bad_poller *bad;
    int n;
    uint64_t worst_ns; /* how late it was at most */
    uint64_t due_ns;
};

static void tick(struct bow_timer *timer, void *user)
{
    struct ticker *ticker = user;
    uint64_t now = atomic_load(&ticker->bad->fake.now_ns);

    if (now - ticker->due_ns > ticker->worst_ns) {
        ticker->worst_ns = now - ticker->due_ns;
    }
    ticker->n++;
    ticker->due_ns = now + 100 * FAKE_MS;
    bow_timer_start_at(timer, ticker->due_ns);
}

static void test_loop_l20_an_error_that_repeats_makes_io_rest_for_a_second(void **state)
{
    struct bad_loop b;
    struct ticker ticker = {.bad = &b.bad};

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1000000;
    b.bad.wait_result = -EBADF;
    begin(&b, UINT32_MAX);
    bow_timer_init(&ticker.timer, b.loop, tick, &ticker);
    ticker.due_ns = FAKE_START + 100 * FAKE_MS;
    bow_timer_start_at(&ticker.timer, ticker.due_ns);
    assert_true(bow_loop_is_healthy(b.loop));
    while (atomic_load(&b.bad.fake.now_ns) < FAKE_START + 20 * FAKE_S) {
        turns(&b, 1);
    }
    assert_in_range(b.bad.n_waits, 20, 22); /* two at once, then one a second */
    assert_int_equal(stats_of(b.loop).failed_polls, b.bad.n_waits);
    assert_int_equal(stats_of(b.loop).pauses, b.bad.n_waits - 1);
    assert_false(bow_loop_is_healthy(b.loop));
    assert_int_equal(ticker.n, 200); /* timers go on, in time */
    assert_int_equal(ticker.worst_ns, 0);
    assert_in_range(count_lines(b.t.log), 4, 6); /* the 1st, 2nd, 4th, 8th, 16th */
    bow_timer_stop(&ticker.timer);
    end(&b);
}

static void test_loop_l20_it_is_healthy_again_when_a_poll_keeps_its_word(void **state)
{
    struct bad_loop b;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 3;
    b.bad.wait_result = -EBADF;
    begin(&b, UINT32_MAX);
    turns(&b, 2);
    assert_false(bow_loop_is_healthy(b.loop));
    uint64_t before = atomic_load(&b.bad.fake.now_ns);
    turns(&b, 1); /* rests */
    assert_int_equal(b.bad.n_waits, 2);
    assert_int_equal(atomic_load(&b.bad.fake.now_ns) - before, FAKE_S);
    turns(&b, 1); /* the third fails too, and the fourth is opened */
    turns(&b, 1);
    before = atomic_load(&b.bad.fake.now_ns);
    turns(&b, 1); /* a short wait, though there is nothing to wait for in this hour */
    assert_int_equal(atomic_load(&b.bad.fake.now_ns) - before, FAKE_MS);
    assert_true(bow_loop_is_healthy(b.loop));
    before = atomic_load(&b.bad.fake.now_ns);
    turns(&b, 1);
    assert_int_equal(atomic_load(&b.bad.fake.now_ns) - before, 3600 * FAKE_S);
    end(&b);
}

static void test_loop_l20_pollers_that_keep_returning_early_are_no_spin(void **state)
{
    struct bad_loop b;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1000000;
    begin(&b, 16);
    turns(&b, 2 * 16);
    assert_false(bow_loop_is_healthy(b.loop));
    while (atomic_load(&b.bad.fake.now_ns) < FAKE_START + 10 * FAKE_S) {
        turns(&b, 1);
    }
    assert_in_range(b.bad.n_waits, 10 * 16, 12 * 16);
    end(&b);
}

static void test_loop_l20_without_a_new_poller_the_old_one_is_kept(void **state)
{
    struct bad_loop b;
    struct ready ready;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 1;
    b.bad.wait_result = -EBADF;
    b.bad.open_error = -EMFILE;
    begin(&b, UINT32_MAX);
    ready_open(&ready, b.loop);
    turns(&b, 2);
    assert_int_equal(stats_of(b.loop).rebuilds, 0);
    assert_non_null(strstr(b.t.log, "EMFILE"));
    assert_false(bow_loop_is_healthy(b.loop));
    b.bad.open_error = 0;
    turns(&b, 2); /* the rest, then one more failure, and this time a new poller */
    assert_int_equal(stats_of(b.loop).rebuilds, 1);
    turns(&b, 2);
    assert_int_equal(ready.n_events, 1);
    assert_true(bow_loop_is_healthy(b.loop));
    ready_close(&ready);
    end(&b);
}

/* A busy loop never waits, so a poll that does not fail is all it can have. */
static void test_loop_l20_a_busy_loop_recovers_too(void **state)
{
    struct bad_loop b;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    bad_poller_init(&b.bad);
    b.bad.n_bad = 2;
    b.bad.wait_result = -EBADF;
    options.thread = BOW_LOOP_OWNER;
    options.strategy = BOW_LOOP_BUSY_WAIT;
    loops_begin_with(&b.t, &b.bad.fake.system);
    b.loop = loops_new(&b.t, &options);
    turns(&b, 2);
    assert_false(bow_loop_is_healthy(b.loop));
    turns(&b, 2);
    assert_true(bow_loop_is_healthy(b.loop));
    end(&b);
}

static int always_fail(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    (void)fake;
    (void)timeout_ns;
    (void)user;
    return -EBADF;
}

/* The loop's own thread, with real time: posts wake it while it rests, and so does the end. */
static void test_loop_l20_tasks_and_shutdown_reach_a_loop_that_rests(void **state)
{
    struct loops t;
    struct bow_system system;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    loops_end(&t);
    system = t.fake.system;
    system.now_ns = bow_system_default()->now_ns;
    system.wake_wait = bow_system_default()->wake_wait;
    t.fake.on_wait = always_fail;
    loops_begin_with(&t, &system);
    struct bow_loop *loop = loops_new_threaded(&t);
    for (int i = 1; i <= 50; i++) {
        bow_task_init(&task, "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &task), 0);
        while (atomic_load(&n) < i) {
            sched_yield();
        }
    }
    /* 50 rests of a second each, were they not cut short. */
    assert_in_range(atomic_load(&t.fake.n_waits), 1, 20);
    assert_false(bow_loop_is_healthy(loop));
    loops_stop(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l19_512_early_returns_rebuild_the_poller),
        cmocka_unit_test(test_loop_l19_the_threshold_is_an_option_and_0_is_off),
        cmocka_unit_test(test_loop_l19_only_early_returns_in_a_row_count_and_no_signals),
        cmocka_unit_test(test_loop_l19_a_failing_poll_rebuilds_too),
        cmocka_unit_test(test_loop_l19_interests_are_kept_and_0_stays_out),
        cmocka_unit_test(
            test_loop_l19_one_that_is_not_taken_is_told_the_error_and_may_close_others),
        cmocka_unit_test(test_loop_l19_the_loops_descriptor_outlives_its_poller),
        cmocka_unit_test(test_loop_l20_an_error_that_repeats_makes_io_rest_for_a_second),
        cmocka_unit_test(test_loop_l20_it_is_healthy_again_when_a_poll_keeps_its_word),
        cmocka_unit_test(test_loop_l20_pollers_that_keep_returning_early_are_no_spin),
        cmocka_unit_test(test_loop_l20_without_a_new_poller_the_old_one_is_kept),
        cmocka_unit_test(test_loop_l20_a_busy_loop_recovers_too),
        cmocka_unit_test(test_loop_l20_tasks_and_shutdown_reach_a_loop_that_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
