/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Histograms of programs: counted by one thread, added up, asked for quantiles. How loops count
 * theirs is in rpc/metrics/times.c.
 */

#include "base/buckets.h"

#include <errno.h>

_Static_assert(BOW_HISTOGRAM_BUCKETS ==
                   (BOW__BUCKETS_MAX_BITS - BOW__BUCKETS_BITS + 1) * BOW__BUCKETS_PER_OCTAVE + 1,
               "the octaves below 2^42, the values below the first of them, and the last bucket");

size_t bow_histogram_bucket(uint64_t value)
{
    return bow__bucket_of(value);
}

int bow_histogram_bounds(size_t index, uint64_t *ret_least, uint64_t *ret_greatest)
{
    if (index >= BOW_HISTOGRAM_BUCKETS) {
        return -EINVAL;
    }
    if (index == BOW_HISTOGRAM_BUCKETS - 1) {
        *ret_least = UINT64_C(1) << BOW__BUCKETS_MAX_BITS;
        *ret_greatest = UINT64_MAX;
        return 0;
    }
    uint64_t octave = index / BOW__BUCKETS_PER_OCTAVE;
    uint64_t shift = octave > 0 ? octave - 1 : 0;
    uint64_t mantissa = index - shift * BOW__BUCKETS_PER_OCTAVE;
    *ret_least = mantissa << shift;
    *ret_greatest = *ret_least + (UINT64_C(1) << shift) - 1;
    return 0;
}

void bow_histogram_record(struct bow_histogram *histogram, uint64_t value)
{
    histogram->buckets[bow__bucket_of(value)]++;
    histogram->count++;
    histogram->sum += value;
    histogram->max = value > histogram->max ? value : histogram->max;
}

void bow_histogram_add(struct bow_histogram *histogram, const struct bow_histogram *other)
{
    for (size_t i = 0; i < BOW_HISTOGRAM_BUCKETS; i++) {
        histogram->buckets[i] += other->buckets[i];
    }
    histogram->count += other->count;
    histogram->sum += other->sum;
    histogram->max = other->max > histogram->max ? other->max : histogram->max;
}

/* From 1: ceil(q × count), without the C library's mathematics. */
static uint64_t rank_of(double q, uint64_t count)
{
    if (!(q > 0)) {
        return 1;
    }
    if (q >= 1) {
        return count;
    }
    double exact = q * (double)count;
    uint64_t rank = (uint64_t)exact;
    rank += (double)rank < exact;
    return rank < 1 ? 1 : rank < count ? rank : count;
}

/* The middle of a bucket is within half its width of all its values. */
static uint64_t middle_of(size_t index, uint64_t max)
{
    uint64_t least = 0;
    uint64_t greatest = 0;

    (void)bow_histogram_bounds(index, &least, &greatest);
    uint64_t middle = least + (greatest - least) / 2;
    return middle < max && index < BOW_HISTOGRAM_BUCKETS - 1 ? middle : max;
}

uint64_t bow_histogram_quantile(const struct bow_histogram *histogram, double q)
{
    if (histogram->count == 0) {
        return 0;
    }
    uint64_t left = rank_of(q, histogram->count);
    if (left == histogram->count) {
        return histogram->max;
    }
    size_t index = 0;
    while (index < BOW_HISTOGRAM_BUCKETS - 1 && histogram->buckets[index] < left) {
        left -= histogram->buckets[index];
        index++;
    }
    return middle_of(index, histogram->max);
}
