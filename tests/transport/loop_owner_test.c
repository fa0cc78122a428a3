/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A loop that its owner drives, alone or inside another loop (L05). */

#include "base/alloc.h"
#include "tests/support/loops.h"
#include "tests/support/ready.h"
#include "transport/loop/loop.h"

#include <bowline/loop_stats.h>
#include <bowline/timer.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* The outer loop: is the descriptor readable now, or within a time nobody waits out? */
static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd outer = {.fd = fd, .events = POLLIN};
    return poll(&outer, 1, timeout_ms) == 1;
}

static void fire(struct bow_timer *timer, void *user)
{
    (void)timer;
    ++*(int *)user;
}

static int run_nested(void *user)
{
    struct bow_loop *loop = user;
    bool is_refused = bow_loop_run_once(loop, 0) == -EBUSY && bow_loop_run(loop) == -EBUSY;
    return is_refused ? 0 : -EINVAL;
}

static void test_loop_l05_run_once_does_one_turn_and_waits_as_long_as_asked(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 7 * FAKE_MS), 0);
    assert_int_equal(atomic_load(&t.fake.now_ns), FAKE_START + 7 * FAKE_MS);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_loop_next_timeout(loop), 0);
    assert_int_equal(bow_loop_run_once(loop, 7 * FAKE_MS), 0);
    assert_int_equal(n, 1);
    assert_int_equal(atomic_load(&t.fake.now_ns), FAKE_START + 7 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l05_next_timeout_is_the_nearest_timers(void **state)
{
    struct loops t;
    struct bow_timer timers[2];
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER);
    bow_timer_init(&timers[0], loop, fire, &n);
    bow_timer_init(&timers[1], loop, fire, &n);
    bow_timer_start(&timers[0], 30 * FAKE_MS);
    bow_timer_start(&timers[1], 20 * FAKE_MS);
    fake_system_advance(&t.fake, 5 * FAKE_MS);
    assert_int_equal(bow_loop_next_timeout(loop), 15 * FAKE_MS);
    fake_system_advance(&t.fake, FAKE_S);
    assert_int_equal(bow_loop_next_timeout(loop), 0);
    bow_timer_stop(&timers[0]);
    bow_timer_stop(&timers[1]);
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l05_only_one_may_run_it_and_only_an_owners(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *threaded = loops_new_threaded(&t);
    assert_int_equal(bow_loop_run(threaded), -EINVAL);
    assert_int_equal(bow_loop_run_once(threaded, 0), -EINVAL);
    bow_loop_unref(threaded);

    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "nested", run_nested, loop), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_non_null(strstr(t.log, "has a thread of its own"));
    assert_non_null(strstr(t.log, "is being run, by another thread or further up"));
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l05_timer_armed_after_a_long_pause_counts_from_now(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    fake_system_advance(&t.fake, 3600 * FAKE_S);
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, FAKE_S);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(n, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* One descriptor, polled by somebody else's loop; with the real clock. */

static void test_loop_l05_fd_is_readable_for_a_timer(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    int fd = bow_loop_fd(loop);
    assert_true(fd >= 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_false(is_readable(fd, 0));

    /* Armed between two turns, as a callback of the outer loop would. */
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, 2 * FAKE_MS);
    assert_true(is_readable(fd, -1));
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 1);
    assert_false(is_readable(fd, 0));

    /* Moved, and stopped. */
    bow_timer_start(&timer, 0);
    bow_timer_start(&timer, 3600 * FAKE_S);
    assert_false(is_readable(fd, 0));
    bow_timer_start(&timer, 0);
    assert_true(is_readable(fd, -1));
    bow_timer_stop(&timer);
    assert_false(is_readable(fd, 0));
    bow_loop_unref(loop);
    loops_end(&t);
}

static void rearm(struct bow_timer *timer, void *user)
{
    ++*(int *)user;
    bow_timer_start(timer, FAKE_MS);
}

static void test_loop_l05_fd_is_readable_for_a_timer_armed_in_a_turn(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    int fd = bow_loop_fd(loop);
    bow_timer_init(&timer, loop, rearm, &n);
    bow_timer_start(&timer, 0);
    while (n < 5) {
        assert_true(is_readable(fd, -1));
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l05_fd_is_readable_for_a_task_posted_between_turns(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    int fd = bow_loop_fd(loop);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_false(is_readable(fd, 0));
    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_true(is_readable(fd, -1));
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 1);
    assert_false(is_readable(fd, 0));
    bow_loop_unref(loop);
    loops_end(&t);
}

static void *post_from_afar(void *argument)
{
    void **user = argument;
    int rc = bow_loop_post(user[0], user[1]);
    return rc == 0 ? NULL : argument;
}

static void test_loop_l05_fd_is_readable_for_another_threads_task(void **state)
{
    struct loops t;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    int fd = bow_loop_fd(loop);
    void *user[2] = {loop, &task};
    for (int i = 1; i <= 50; i++) {
        pthread_t thread;
        void *failed = NULL;
        bow_task_init(&task, "count", loops_count_run, &n);
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(pthread_create(&thread, NULL, post_from_afar, user), 0);
        assert_true(is_readable(fd, -1));
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
        assert_int_equal(n, i);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

struct quiet_watch {
    struct bow__watch watch;
    int n_events;
};

static void on_quiet(struct bow__watch *watch, uint32_t events)
{
    struct quiet_watch *quiet = BOW__CONTAINER(watch, struct quiet_watch, watch);
    uint64_t value;

    (void)events;
    quiet->n_events++;
    assert_int_equal(read(watch->fd, &value, sizeof(value)), sizeof(value));
}

static const struct bow__watch_ops quiet_ops = {.on_events = on_quiet};

static void test_loop_l05_fd_is_readable_for_io_and_for_shutdown(void **state)
{
    struct loops t;
    struct quiet_watch quiet = {.watch.ops = &quiet_ops};
    const uint64_t one = 1;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    int fd = bow_loop_fd(loop);
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(bow__loop_watch(loop, &quiet.watch, event, BOW_POLL_IN), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_false(is_readable(fd, 0));
    assert_int_equal(write(event, &one, sizeof(one)), sizeof(one));
    assert_true(is_readable(fd, -1));
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(quiet.n_events, 1);
    bow__loop_unwatch(loop, &quiet.watch);
    close(event);

    assert_false(is_readable(fd, 0));
    bow_loop_shutdown(loop, FAKE_MS, FAKE_S);
    while (bow_loop_get_state(loop) != BOW_LOOP_TERMINATED) {
        assert_true(is_readable(fd, -1));
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l05_fd_costs_nothing_until_it_is_asked_for(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(atomic_load(&t.fake.n_arms), 0);

    assert_true(bow_loop_fd(loop) >= 0);
    bow_timer_start(&timer, 5 * FAKE_MS);
    assert_int_equal(atomic_load(&t.fake.n_arms), 1);
    assert_int_equal(atomic_load(&t.fake.last_armed_ns), 5 * FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(atomic_load(&t.fake.n_arms), 1); /* the same deadline is not set again */
    assert_int_equal(bow_loop_run_once(loop, FAKE_MS), 0);
    assert_int_equal(atomic_load(&t.fake.n_arms), 2); /* unless a sleep may have used the timer */
    assert_int_equal(atomic_load(&t.fake.last_armed_ns), 4 * FAKE_MS);
    bow_loop_unref(loop);
    loops_end(&t);
}

static struct bow_loop *signalled;

static void on_signal(int number)
{
    (void)number;
    bow_loop_wake(signalled);
}

static void
test_loop_l31_wake_from_a_signal_handler_makes_one_turn_and_carries_no_work(void **state)
{
    struct loops t;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    signalled = loop;
    int fd = bow_loop_fd(loop);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_false(is_readable(fd, 0));
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    raise(SIGUSR1);
    assert_true(is_readable(fd, -1));
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_false(is_readable(fd, 0));
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.tasks_run, 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    bow_loop_unref(loop);
    loops_end(&t);
}

static int fail_to_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    (void)poller;
    (void)timeout_ns;
    return -EBADF;
}

/* Nobody can be told but the log; and it is tried again with the next turn. */
static void test_loop_l20_an_arming_that_fails_is_logged_and_tried_again(void **state)
{
    struct loops t;
    struct bow_timer timer;
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_true(bow_loop_fd(loop) >= 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    int (*arm)(struct bow_poller *, uint64_t) = t.fake.poller_ops.arm;
    t.fake.poller_ops.arm = fail_to_arm;
    bow_timer_init(&timer, loop, fire, &n);
    bow_timer_start(&timer, FAKE_S);
    assert_non_null(strstr(t.log, "arming the loop's descriptor failed: EBADF"));
    t.fake.poller_ops.arm = arm;
    uint64_t n_arms = atomic_load(&t.fake.n_arms);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(atomic_load(&t.fake.n_arms), n_arms + 1);
    assert_int_equal(atomic_load(&t.fake.last_armed_ns), FAKE_S);
    bow_timer_stop(&timer);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* Small blocks that were all freed: malloc keeps what they took. */
static void burst(struct bow_context *context)
{
    enum { N = 3000, SIZE = 4096 };
    void *blocks[N];

    for (unsigned i = 0; i < N; i++) {
        blocks[i] = bow__alloc(context, SIZE);
        assert_non_null(blocks[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        bow__free(context, blocks[i], SIZE);
    }
}

/* A loop over the fake system, with malloc's own blocks. */
static struct bow_loop *new_loop_over_malloc(struct loops *t,
                                             const struct bow_loop_options *options)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_loop *loop = NULL;

    context_options.system = &t->fake.system;
    assert_int_equal(bow_context_new(&context_options, &context), 0);
    assert_int_equal(bow_loop_new(context, options, &loop), 0);
    return loop;
}

static void end_loop_over_malloc(struct bow_loop *loop)
{
    struct bow_context *context = bow_loop_context(loop);

    bow_loop_unref(loop);
    assert_int_equal(bow_context_bytes(context), 0);
    bow_context_unref(context);
}

/* No turn comes by itself in which it would be given back. */
static void test_loop_f43_owner_is_told_when_freed_memory_may_go(void **state)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct loops t;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    struct bow_loop *loop = new_loop_over_malloc(&t, &options);
    assert_true(bow_loop_fd(loop) >= 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER);
    burst(bow_loop_context(loop));
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_in_range(bow_loop_next_timeout(loop), 1, FAKE_S / 2);
    assert_in_range(atomic_load(&t.fake.last_armed_ns), 1, FAKE_S / 2);
    for (unsigned i = 0; i < 4; i++) {
        fake_system_advance(&t.fake, FAKE_S / 2);
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    assert_false(bow__may_trim(bow_loop_context(loop)));
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER);
    end_loop_over_malloc(loop);
    loops_end(&t);
}

/* Something comes each time before it would sleep. */
static void test_loop_f43_loop_that_spins_gives_freed_memory_back(void **state)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct ready ready;
    struct loops t;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.spin_ns = 50 * FAKE_US;
    struct bow_loop *loop = new_loop_over_malloc(&t, &options);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    ready_open(&ready, loop);
    burst(bow_loop_context(loop));
    assert_true(bow__may_trim(bow_loop_context(loop)));
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
        fake_system_advance(&t.fake, FAKE_S / 2);
    }
    assert_int_equal(atomic_load(&t.fake.n_sleeps), 0);
    assert_false(bow__may_trim(bow_loop_context(loop)));
    ready_close(&ready);
    end_loop_over_malloc(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l05_run_once_does_one_turn_and_waits_as_long_as_asked),
        cmocka_unit_test(test_loop_l05_next_timeout_is_the_nearest_timers),
        cmocka_unit_test(test_loop_l05_only_one_may_run_it_and_only_an_owners),
        cmocka_unit_test(test_loop_l05_timer_armed_after_a_long_pause_counts_from_now),
        cmocka_unit_test(test_loop_l05_fd_is_readable_for_a_timer),
        cmocka_unit_test(test_loop_l05_fd_is_readable_for_a_timer_armed_in_a_turn),
        cmocka_unit_test(test_loop_l05_fd_is_readable_for_a_task_posted_between_turns),
        cmocka_unit_test(test_loop_l05_fd_is_readable_for_another_threads_task),
        cmocka_unit_test(test_loop_l05_fd_is_readable_for_io_and_for_shutdown),
        cmocka_unit_test(test_loop_f43_owner_is_told_when_freed_memory_may_go),
        cmocka_unit_test(test_loop_f43_loop_that_spins_gives_freed_memory_back),
        cmocka_unit_test(test_loop_l20_an_arming_that_fails_is_logged_and_tried_again),
        cmocka_unit_test(test_loop_l05_fd_costs_nothing_until_it_is_asked_for),
        cmocka_unit_test(
            test_loop_l31_wake_from_a_signal_handler_makes_one_turn_and_carries_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
