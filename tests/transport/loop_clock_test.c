/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Whether a time has come, by the cheap clock as long as that is enough. */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define START_NS (1000 * FAKE_S)

/* In place of the C library's, for this program and the library in it. */
static uint64_t fine_ns;
static uint64_t coarse_ns;
static int n_fine_reads;

static void tell(struct timespec *now, uint64_t ns)
{
    now->tv_sec = (time_t)(ns / FAKE_S);
    now->tv_nsec = (long)(ns % FAKE_S);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock == CLOCK_MONOTONIC && fine_ns > 0) {
        n_fine_reads++;
        tell(now, fine_ns);
        return 0;
    }
    if (clock == CLOCK_MONOTONIC_COARSE) {
        tell(now, coarse_ns);
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static struct bow_loop *begin(struct loops *t)
{
    loops_begin_real(t);
    struct bow_loop *loop = loops_new_owner(t);
    fine_ns = START_NS;
    coarse_ns = START_NS;
    n_fine_reads = 0;
    return loop;
}

static void end(struct loops *t, struct bow_loop *loop)
{
    fine_ns = 0;
    bow_loop_unref(loop);
    loops_end(t);
}

static void test_loop_clock_far_times_read_the_cheap_clock_alone(void **state)
{
    struct loops t;
    struct bow_loop *loop = begin(&t);

    (void)state;
    assert_false(bow__loop_has_passed(loop, START_NS + FAKE_S));
    assert_false(bow__loop_has_passed(loop, BOW_NEVER - 1));
    assert_false(bow__loop_has_passed(loop, BOW_NEVER));
    assert_int_equal(n_fine_reads, 0);
    end(&t, loop);
}

static void test_loop_clock_near_times_are_told_to_the_nanosecond(void **state)
{
    struct loops t;
    struct bow_loop *loop = begin(&t);

    (void)state;
    assert_false(bow__loop_has_passed(loop, START_NS + 1));
    assert_true(bow__loop_has_passed(loop, START_NS));
    assert_true(bow__loop_has_passed(loop, 1));
    end(&t, loop);
}

/* Ten ticks of the slowest kernel behind. */
static void test_loop_clock_a_late_tick_changes_nothing(void **state)
{
    struct loops t;
    struct bow_loop *loop = begin(&t);

    (void)state;
    fine_ns = START_NS + 100 * FAKE_MS;
    assert_true(bow__loop_has_passed(loop, START_NS + 100 * FAKE_MS));
    assert_false(bow__loop_has_passed(loop, START_NS + 100 * FAKE_MS + 1));
    end(&t, loop);
}

static void test_loop_clock_another_system_is_asked_itself(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    coarse_ns = 1; /* what would be far from it */
    assert_false(bow__loop_has_passed(loop, FAKE_START + FAKE_S));
    fake_system_advance(&t.fake, FAKE_S);
    assert_true(bow__loop_has_passed(loop, FAKE_START + FAKE_S));
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_clock_far_times_read_the_cheap_clock_alone),
        cmocka_unit_test(test_loop_clock_near_times_are_told_to_the_nanosecond),
        cmocka_unit_test(test_loop_clock_a_late_tick_changes_nothing),
        cmocka_unit_test(test_loop_clock_another_system_is_asked_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
