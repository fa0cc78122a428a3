/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Histograms: every value is in the one bucket whose bounds hold it, and quantiles are as near to
 * the exact ones of sorted values as the header says.
 */

#include <bowline/histogram.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_VALUES 20000u
#define HOUR_NS UINT64_C(3600000000000)

static void test_histogram_buckets_follow_each_other_without_gaps(void **state)
{
    uint64_t next = 0;

    (void)state;
    for (size_t i = 0; i < BOW_HISTOGRAM_BUCKETS; i++) {
        uint64_t least = 1;
        uint64_t greatest = 0;
        assert_int_equal(bow_histogram_bounds(i, &least, &greatest), 0);
        assert_int_equal(least, next);
        assert_true(greatest >= least);
        assert_int_equal(bow_histogram_bucket(least), i);
        assert_int_equal(bow_histogram_bucket(greatest), i);
        next = greatest + 1;
    }
    assert_int_equal(next, 0); /* the last one ends with all numbers */
}

static void test_histogram_bounds_of_no_bucket_are_refused(void **state)
{
    uint64_t least = 7;
    uint64_t greatest = 8;

    (void)state;
    assert_int_equal(bow_histogram_bounds(BOW_HISTOGRAM_BUCKETS, &least, &greatest), -EINVAL);
    assert_int_equal(least, 7);
    assert_int_equal(greatest, 8);
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* The same numbers each time. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void expect_near(uint64_t found, uint64_t exact)
{
    uint64_t off = found > exact ? found - exact : exact - found;

    if (off > exact / 64) {
        fail_msg("%llu is not within 1/64 of %llu", (unsigned long long)found,
                 (unsigned long long)exact);
    }
}

static void expect_quantiles(uint64_t *values, size_t n)
{
    static const double shares[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    struct bow_histogram *histogram = calloc(1, sizeof(*histogram));
    uint64_t sum = 0;

    assert_non_null(histogram);
    for (size_t i = 0; i < n; i++) {
        bow_histogram_record(histogram, values[i]);
        sum += values[i];
    }
    qsort(values, n, sizeof(*values), by_value);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        double exact_rank = shares[i] * (double)n;
        size_t rank = (size_t)exact_rank;
        rank += (double)rank < exact_rank;
        rank = rank == 0 ? 1 : rank;
        expect_near(bow_histogram_quantile(histogram, shares[i]), values[rank - 1]);
    }
    assert_int_equal(bow_histogram_quantile(histogram, 1), values[n - 1]);
    assert_int_equal(histogram->count, n);
    assert_int_equal(histogram->sum, sum);
    assert_int_equal(histogram->max, values[n - 1]);
    free(histogram);
}

/* As even on each scale: from a microsecond to an hour. */
static void test_histogram_quantiles_are_near_the_exact_ones(void **state)
{
    static uint64_t values[N_VALUES];
    uint64_t seed = 0x9E3779B97F4A7C15;

    (void)state;
    for (size_t i = 0; i < N_VALUES; i++) {
        unsigned n_bits = 10 + (unsigned)(next_random(&seed) % 32);
        values[i] = (UINT64_C(1) << n_bits) + next_random(&seed) % (UINT64_C(1) << n_bits);
        values[i] = values[i] < HOUR_NS ? values[i] : HOUR_NS;
    }
    expect_quantiles(values, N_VALUES);
    for (size_t i = 0; i < N_VALUES; i++) { /* two humps, far apart */
        values[i] = i % 100 < 97 ? 150000 + next_random(&seed) % 1000 : 80000000;
    }
    expect_quantiles(values, N_VALUES);
    for (size_t i = 0; i < N_VALUES; i++) {
        values[i] = next_random(&seed) % 64;
    }
    expect_quantiles(values, N_VALUES);
    values[0] = 1234567;
    expect_quantiles(values, 1);
}

static void test_histogram_small_values_are_exact(void **state)
{
    struct bow_histogram histogram = BOW_HISTOGRAM_INIT;

    (void)state;
    for (uint64_t value = 0; value < 64; value++) {
        bow_histogram_record(&histogram, value);
    }
    for (uint64_t value = 0; value < 64; value++) {
        assert_int_equal(bow_histogram_quantile(&histogram, (double)(value + 1) / 64), value);
    }
}

static void test_histogram_odd_shares_have_an_answer(void **state)
{
    struct bow_histogram histogram = BOW_HISTOGRAM_INIT;

    (void)state;
    assert_int_equal(bow_histogram_quantile(&histogram, 0.5), 0);
    bow_histogram_record(&histogram, 5);
    bow_histogram_record(&histogram, 50);
    assert_int_equal(bow_histogram_quantile(&histogram, -1), 5);
    assert_int_equal(bow_histogram_quantile(&histogram, 2), 50);
    assert_int_equal(bow_histogram_quantile(&histogram, __builtin_nan("")), 5);
}

static void test_histogram_what_is_beyond_its_range_is_the_greatest(void **state)
{
    struct bow_histogram histogram = BOW_HISTOGRAM_INIT;

    (void)state;
    bow_histogram_record(&histogram, UINT64_MAX);
    bow_histogram_record(&histogram, UINT64_C(1) << 42);
    assert_int_equal(histogram.buckets[BOW_HISTOGRAM_BUCKETS - 1], 2);
    assert_int_equal(bow_histogram_quantile(&histogram, 0.5), UINT64_MAX);
}

static void test_histogram_two_add_up(void **state)
{
    struct bow_histogram first = BOW_HISTOGRAM_INIT;
    struct bow_histogram second = BOW_HISTOGRAM_INIT;
    struct bow_histogram both = BOW_HISTOGRAM_INIT;

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) {
        bow_histogram_record(i % 3 == 0 ? &first : &second, i * i);
        bow_histogram_record(&both, i * i);
    }
    bow_histogram_add(&first, &second);
    assert_memory_equal(&first, &both, sizeof(both));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram_buckets_follow_each_other_without_gaps),
        cmocka_unit_test(test_histogram_bounds_of_no_bucket_are_refused),
        cmocka_unit_test(test_histogram_quantiles_are_near_the_exact_ones),
        cmocka_unit_test(test_histogram_small_values_are_exact),
        cmocka_unit_test(test_histogram_odd_shares_have_an_answer),
        cmocka_unit_test(test_histogram_what_is_beyond_its_range_is_the_greatest),
        cmocka_unit_test(test_histogram_two_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
