/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_METRICS_BOUNDS_H
#define BOWLINE_RPC_METRICS_BOUNDS_H

/*
 * The bounds that histograms have where they are shown, and which of the fine buckets each counts.
 * They are the same wherever numbers go, so that sums over pages and reports add up. Knows no form
 * of either.
 */

#include <bowline/histogram.h>
#include <stdbool.h>

#define BOW__US UINT64_C(1000)
#define BOW__MS UINT64_C(1000000)
#define BOW__S UINT64_C(1000000000)

static const uint64_t bow__time_bounds_ns[] = {
    10 * BOW__US,   50 * BOW__US,  100 * BOW__US, 250 * BOW__US,  500 * BOW__US, 1 * BOW__MS,
    2500 * BOW__US, 5 * BOW__MS,   10 * BOW__MS,  25 * BOW__MS,   50 * BOW__MS,  100 * BOW__MS,
    250 * BOW__MS,  500 * BOW__MS, 1 * BOW__S,    2500 * BOW__MS, 5 * BOW__S,    10 * BOW__S,
    30 * BOW__S,    60 * BOW__S,   300 * BOW__S,
};

/* 64 bytes to 256 MiB, as powers of two: what the buckets of struct bow_sizes are. */
static const unsigned bow__size_bound_bits[] = {6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28};

#define BOW__N_TIME_BOUNDS (sizeof(bow__time_bounds_ns) / sizeof(bow__time_bounds_ns[0]))
#define BOW__N_SIZE_BOUNDS (sizeof(bow__size_bound_bits) / sizeof(bow__size_bound_bits[0]))

/** Whether bound `i` of times counts a fine bucket: it reaches the middle of it. The last bucket,
 * which has no end, none counts. */
static inline bool bow__time_bound_counts(size_t i, size_t bucket)
{
    uint64_t least = 0;
    uint64_t greatest = 0;

    (void)bow_histogram_bounds(bucket, &least, &greatest);
    return bucket < BOW_HISTOGRAM_BUCKETS - 1 &&
           least + (greatest - least) / 2 <= bow__time_bounds_ns[i];
}

#endif
