/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A quota over several loops: never more than its maximum, little of it spare, nothing lost.
 */

#include "rpc/server/dispatch/quota.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N_THREADS 4
#define N_ROUNDS 50000

static uint32_t take_all(struct bow__quota *quota, struct bow__quota_local *part)
{
    uint32_t n = 0;

    while (bow__quota_acquire(quota, part)) {
        n++;
    }
    return n;
}

static void give_all(struct bow__quota *quota, struct bow__quota_local *part, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bow__quota_release(quota, part);
    }
}

static void test_quota_of_one_loop_is_exact_and_fetched_once(void **state)
{
    struct bow__quota_local part = {0};
    struct bow__quota quota;

    (void)state;
    bow__quota_init(&quota, 1000, 1);
    assert_int_equal(take_all(&quota, &part), 1000);
    give_all(&quota, &part, 1000);
    assert_int_equal(part.n_spare, 1000);
    assert_int_equal(take_all(&quota, &part), 1000);
}

static void test_quota_below_sixteen_a_loop_is_exact(void **state)
{
    struct bow__quota_local parts[4] = {{0}};
    struct bow__quota quota;

    (void)state;
    bow__quota_init(&quota, 63, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take_all(&quota, &parts[i]), 63);
        assert_false(bow__quota_acquire(&quota, &parts[(i + 1) % 4]));
        give_all(&quota, &parts[i], 63);
        assert_int_equal(parts[i].n_spare, 0);
    }
}

static void test_quota_of_busy_loops_leaves_seven_eighths_to_one(void **state)
{
    struct bow__quota_local parts[4] = {{0}};
    struct bow__quota quota;

    (void)state;
    for (uint32_t max = 64; max < 100000; max = max * 3 / 2) {
        bow__quota_init(&quota, max, 4);
        for (int i = 0; i < 3; i++) {
            give_all(&quota, &parts[i], take_all(&quota, &parts[i]));
        }
        uint32_t n = take_all(&quota, &parts[3]);
        assert_true(n <= max);
        assert_true(n >= max - max / 8);
        for (int i = 0; i < 4; i++) {
            parts[i].n_spare = 0;
        }
    }
}

static void test_quota_given_back_elsewhere_is_left_for_all(void **state)
{
    struct bow__quota_local parts[2] = {{0}};
    struct bow__quota quota;

    (void)state;
    bow__quota_init(&quota, 2, 2);
    assert_int_equal(take_all(&quota, &parts[0]), 2);
    bow__quota_release_remote(&quota);
    assert_true(bow__quota_acquire(&quota, &parts[1]));
    assert_false(bow__quota_acquire(&quota, &parts[1]));
}

struct race {
    struct bow__quota quota;
    struct bow__quota_local parts[N_THREADS];
    atomic_uint n_used;
    atomic_uint n_over;
    atomic_uint n_next; /* thread */
};

static void *race_thread(void *user)
{
    struct race *race = user;
    struct bow__quota_local *part = &race->parts[atomic_fetch_add(&race->n_next, 1)];
    uint32_t n = 0;

    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        if ((round * 2654435761u) >> 30 != 0 && bow__quota_acquire(&race->quota, part)) {
            n++;
            unsigned used = atomic_fetch_add(&race->n_used, 1) + 1;
            atomic_fetch_add(&race->n_over, used > race->quota.max);
        } else if (n > 0) {
            n--;
            atomic_fetch_sub(&race->n_used, 1);
            if (round % 16 == 0) {
                bow__quota_release_remote(&race->quota);
            } else {
                bow__quota_release(&race->quota, part);
            }
        }
    }
    atomic_fetch_sub(&race->n_used, n);
    give_all(&race->quota, part, n);
    return NULL;
}

static void test_quota_under_races_is_never_exceeded_and_loses_nothing(void **state)
{
    static const uint32_t maxima[] = {3, 100, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
        struct race race = {0};
        pthread_t threads[N_THREADS];
        bow__quota_init(&race.quota, maxima[i], N_THREADS);
        for (int k = 0; k < N_THREADS; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, race_thread, &race), 0);
        }
        for (int k = 0; k < N_THREADS; k++) {
            pthread_join(threads[k], NULL);
        }
        uint32_t sum = atomic_load(&race.quota.n_left);
        for (int k = 0; k < N_THREADS; k++) {
            sum += race.parts[k].n_spare;
        }
        assert_int_equal(sum, maxima[i]);
        assert_int_equal(race.n_over, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_of_one_loop_is_exact_and_fetched_once),
        cmocka_unit_test(test_quota_below_sixteen_a_loop_is_exact),
        cmocka_unit_test(test_quota_of_busy_loops_leaves_seven_eighths_to_one),
        cmocka_unit_test(test_quota_given_back_elsewhere_is_left_for_all),
        cmocka_unit_test(test_quota_under_races_is_never_exceeded_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
