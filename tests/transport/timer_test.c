/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Intrusive timers (L12, L33, L34, L36; F04, F05, F06). */

#include "tests/support/loops.h"

#include <bowline/timer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * In place of the C library's, for this program and the library in it: the wall
 * clock steps to and fro by an hour at each look; the monotonic one is the kernel's.
 */
static _Atomic(int) n_wall_clock_reads;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    if (clock == CLOCK_REALTIME) {
        now->tv_sec += atomic_fetch_add(&n_wall_clock_reads, 1) % 2 == 0 ? 3600 : -3600;
    }
    return rc;
}

struct recorder {
    struct bow_timer timer;
    struct recorder **fired; /* in the order of firing */
    size_t *n_fired;
    uint64_t deadline_ns;
    uint64_t fired_at_ns;
    size_t armed_as; /* the how-manieth arming this was */
    bool is_armed;
};

static void record(struct bow_timer *timer, void *user)
{
    struct recorder *recorder = user;

    recorder->fired[(*recorder->n_fired)++] = recorder;
    recorder->fired_at_ns = bow_loop_now(timer->loop);
}

/* L12 */

static void test_timer_l12_fires_at_its_nanosecond(void **state)
{
    struct loops t;
    struct recorder *fired[3];
    struct recorder recorders[3];
    const uint64_t delays[3] = {1234567, 1234568, 999};
    size_t n_fired = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 3; i++) {
        recorders[i] = (struct recorder){.fired = fired, .n_fired = &n_fired};
        bow_timer_init(&recorders[i].timer, loop, record, &recorders[i]);
        bow_timer_start(&recorders[i].timer, delays[i]);
        assert_true(bow_timer_is_armed(&recorders[i].timer));
    }
    while (n_fired < 3) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(recorders[i].fired_at_ns, FAKE_START + delays[i]);
        assert_false(bow_timer_is_armed(&recorders[i].timer));
    }
    assert_ptr_equal(fired[0], &recorders[2]);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L33 */

static void test_timer_l33_equal_deadlines_fire_in_the_order_of_arming(void **state)
{
    struct loops t;
    struct recorder *fired[64];
    struct recorder recorders[64];
    size_t n_fired = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 64; i++) {
        recorders[i] = (struct recorder){.fired = fired, .n_fired = &n_fired};
        bow_timer_init(&recorders[i].timer, loop, record, &recorders[i]);
        bow_timer_start(&recorders[i].timer, FAKE_MS);
    }
    bow_timer_start(&recorders[0].timer, FAKE_MS); /* arming anew moves it behind the others */
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(n_fired, 64);
    for (int i = 0; i < 64; i++) {
        assert_ptr_equal(fired[i], &recorders[(i + 1) % 64]);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L34, F06 */

static void test_timer_l34_f06_overflowing_delays_saturate(void **state)
{
    struct loops t;
    struct recorder *fired[8];
    struct recorder recorders[6];
    size_t n_fired = 0;
    const uint64_t delays[6] = {
        BOW_NEVER, BOW_NEVER - 1, (uint64_t)-1, BOW_NEVER - FAKE_START, INT64_MAX, 0};

    (void)state;
    loops_begin(&t);
    t.fake.stands_still = true;
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 6; i++) {
        recorders[i] = (struct recorder){.fired = fired, .n_fired = &n_fired};
        bow_timer_init(&recorders[i].timer, loop, record, &recorders[i]);
        bow_timer_start(&recorders[i].timer, delays[i]);
    }
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(n_fired, 1);
    assert_ptr_equal(fired[0], &recorders[5]);
    /* Ten years on still only zero has fired; the others never do, or in 292 years. */
    fake_system_advance(&t.fake, 10 * 365 * 86400 * FAKE_S);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n_fired, 1);
    fake_system_advance(&t.fake, INT64_MAX);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n_fired, 2);
    assert_ptr_equal(fired[1], &recorders[4]);
    assert_true(bow_timer_is_armed(&recorders[0].timer));
    for (int i = 0; i < 4; i++) {
        bow_timer_stop(&recorders[i].timer);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_timer_l34_f06_start_at_takes_the_past_and_never(void **state)
{
    struct loops t;
    struct recorder *fired[4];
    size_t n_fired = 0;
    struct recorder recorder = {.fired = fired, .n_fired = &n_fired};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&recorder.timer, loop, record, &recorder);
    bow_timer_start_at(&recorder.timer, 1);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n_fired, 1);
    bow_timer_start_at(&recorder.timer, FAKE_START + 5 * FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(recorder.fired_at_ns, FAKE_START + 5 * FAKE_MS);
    bow_timer_start_at(&recorder.timer, FAKE_START);
    bow_timer_start_at(&recorder.timer, BOW_NEVER);
    assert_false(bow_timer_is_armed(&recorder.timer));
    bow_loop_unref(loop);
    loops_end(&t);
}

static void start_in_the_past(struct bow_timer *timer, void *user)
{
    ++*(int *)user;
    bow_timer_start_at(timer, 1);
}

static void test_timer_l33_one_armed_for_the_past_holds_up_none_that_is_due(void **state)
{
    struct loops t;
    struct bow_timer restless;
    struct recorder *fired[1];
    size_t n_fired = 0;
    struct recorder recorder = {.fired = fired, .n_fired = &n_fired};
    int n_restless = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&restless, loop, start_in_the_past, &n_restless);
    bow_timer_init(&recorder.timer, loop, record, &recorder);
    bow_timer_start(&restless, FAKE_MS);
    bow_timer_start(&recorder.timer, FAKE_MS);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(n_restless, 1);
    assert_int_equal(n_fired, 1);
    bow_timer_stop(&restless);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* F04 */

static void test_timer_l34_f04_steps_of_the_wall_clock_move_nothing(void **state)
{
    struct loops t;
    struct recorder *fired[1];
    size_t n_fired = 0;
    struct recorder recorder = {.fired = fired, .n_fired = &n_fired};
    struct timespec wall;

    (void)state;
    loops_begin_real(&t);
    int n_reads = n_wall_clock_reads;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &wall), 0);
    assert_int_equal(n_wall_clock_reads, n_reads + 1); /* ours is in place */
    struct bow_loop *loop = loops_new_owner(&t);
    bow_timer_init(&recorder.timer, loop, record, &recorder);
    uint64_t started = bow_loop_now(loop);
    bow_timer_start(&recorder.timer, 20 * FAKE_MS);
    while (n_fired == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    assert_in_range(recorder.fired_at_ns - started, 20 * FAKE_MS, 10 * FAKE_S);
    assert_int_equal(n_wall_clock_reads, n_reads + 1); /* nobody else asked */
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L36 */

struct chain {
    struct bow_timer timer;
    struct bow_timer *other;
    int n_fired;
};

static void stop_other_and_itself(struct bow_timer *timer, void *user)
{
    struct chain *chain = user;

    assert_false(bow_timer_is_armed(timer));
    chain->n_fired++;
    bow_timer_stop(timer);
    bow_timer_stop(chain->other);
    bow_timer_start(timer, FAKE_MS);
    bow_timer_stop(timer);
}

static void test_timer_l36_f20_cancel_is_at_once_also_from_inside_a_timer(void **state)
{
    struct loops t;
    struct chain chains[2];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 2; i++) {
        chains[i] = (struct chain){.other = &chains[1 - i].timer};
        bow_timer_init(&chains[i].timer, loop, stop_other_and_itself, &chains[i]);
        bow_timer_start(&chains[i].timer, FAKE_MS); /* both are due in one turn */
    }
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_run_once(loop, FAKE_S), 0);
    assert_int_equal(chains[0].n_fired, 1);
    assert_int_equal(chains[1].n_fired, 0);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void free_itself(struct bow_timer *timer, void *user)
{
    ++*(int *)user;
    free(timer);
}

static void test_timer_l36_f20_its_memory_may_go_when_it_fires(void **state)
{
    struct loops t;
    int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 5; i++) {
        struct bow_timer *timer = malloc(sizeof(*timer));
        assert_non_null(timer);
        bow_timer_init(timer, loop, free_itself, &n);
        bow_timer_start(timer, (uint64_t)i % 2);
    }
    while (n < 5) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

/* F05 */

static void test_timer_l36_arming_never_allocates_however_often(void **state)
{
    struct loops t;
    struct recorder *fired[1];
    size_t n_fired = 0;
    static struct recorder recorders[1000];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 1000; i++) {
        recorders[i] = (struct recorder){.fired = fired, .n_fired = &n_fired};
        bow_timer_init(&recorders[i].timer, loop, record, &recorders[i]);
    }
    size_t n_calls = t.alloc.n_calls;
    size_t n_bytes = bow_context_bytes(t.context);
    for (uint64_t i = 0; i < 1000000; i++) {
        bow_timer_start(&recorders[i % 1000].timer, FAKE_S + i * 7919 % 1000);
        if (i % 3 != 0) {
            bow_timer_stop(&recorders[(i + 1) % 1000].timer);
        }
    }
    for (int i = 0; i < 1000; i++) {
        bow_timer_stop(&recorders[i].timer);
    }
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER);
    assert_int_equal(t.alloc.n_calls, n_calls);
    assert_int_equal(bow_context_bytes(t.context), n_bytes);
    bow_loop_unref(loop);
    loops_end(&t);
}

#define N_MODEL 50

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* The model: of all that are armed and due, the earliest deadline, then the earliest arming. */
static struct recorder *model_next(struct recorder *recorders, uint64_t now_ns)
{
    struct recorder *best = NULL;

    for (int i = 0; i < N_MODEL; i++) {
        struct recorder *one = &recorders[i];
        if (!one->is_armed || one->deadline_ns > now_ns) {
            continue;
        }
        if (best == NULL || one->deadline_ns < best->deadline_ns ||
            (one->deadline_ns == best->deadline_ns && one->armed_as < best->armed_as)) {
            best = one;
        }
    }
    return best;
}

static void test_timer_l36_f05_random_operations_match_a_sorted_list(void **state)
{
    struct loops t;
    struct recorder *fired[N_MODEL];
    struct recorder recorders[N_MODEL];
    size_t n_fired = 0;
    size_t n_armings = 0;
    uint64_t seed = 20240229;

    (void)state;
    loops_begin(&t);
    t.fake.stands_still = true;
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < N_MODEL; i++) {
        recorders[i] = (struct recorder){.fired = fired, .n_fired = &n_fired};
        bow_timer_init(&recorders[i].timer, loop, record, &recorders[i]);
    }
    for (int step = 0; step < 20000; step++) {
        struct recorder *one = &recorders[next_random(&seed) % N_MODEL];
        if (next_random(&seed) % 4 != 0) {
            uint64_t delay = next_random(&seed) % 50;
            one->deadline_ns = bow_loop_now(loop) + delay;
            one->armed_as = n_armings++;
            bow_timer_start(&one->timer, delay);
        } else {
            bow_timer_stop(&one->timer);
        }
        one->is_armed = bow_timer_is_armed(&one->timer);
        if (next_random(&seed) % 8 != 0) {
            continue;
        }
        fake_system_advance(&t.fake, next_random(&seed) % 40);
        n_fired = 0;
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        for (size_t i = 0; i < n_fired; i++) {
            struct recorder *expected = model_next(recorders, bow_loop_now(loop));
            assert_ptr_equal(fired[i], expected);
            expected->is_armed = false;
        }
        assert_null(model_next(recorders, bow_loop_now(loop)));
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timer_l12_fires_at_its_nanosecond),
        cmocka_unit_test(test_timer_l33_equal_deadlines_fire_in_the_order_of_arming),
        cmocka_unit_test(test_timer_l34_f06_overflowing_delays_saturate),
        cmocka_unit_test(test_timer_l34_f06_start_at_takes_the_past_and_never),
        cmocka_unit_test(test_timer_l33_one_armed_for_the_past_holds_up_none_that_is_due),
        cmocka_unit_test(test_timer_l34_f04_steps_of_the_wall_clock_move_nothing),
        cmocka_unit_test(test_timer_l36_f20_cancel_is_at_once_also_from_inside_a_timer),
        cmocka_unit_test(test_timer_l36_f20_its_memory_may_go_when_it_fires),
        cmocka_unit_test(test_timer_l36_arming_never_allocates_however_often),
        cmocka_unit_test(test_timer_l36_f05_random_operations_match_a_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
