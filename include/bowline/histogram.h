/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_HISTOGRAM_H
#define BOWLINE_HISTOGRAM_H

/*
 * How values are spread: times in nanoseconds, or whatever else is a count. Buckets are log-linear:
 * up to 63 each value has one of its own, above that each power of two has 32, as wide as each
 * other. So a quantile is off by 1/64 of itself at most (1.6 %), from a microsecond to an hour as
 * from a byte to a terabyte. What is 2^42 or more (73 minutes in ns) is in the last bucket.
 *
 *     value    0   1  …  63 │ 64  66  …  126 │ 128  132  …  252 │ 256 …        2^42 ─►
 *     bucket   0   1  …  63 │ 64  65  …   95 │  96   97  …  127 │ 128 …        1216
 *
 * Histograms add up: those of several loops, methods or processes, bucket by bucket.
 *
 *     struct bow_histogram times = BOW_HISTOGRAM_INIT;
 *     bow_histogram_record(&times, 1250000);
 *     uint64_t p99_ns = bow_histogram_quantile(&times, 0.99);
 */

#include <bowline/visibility.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BOW_HISTOGRAM_BUCKETS 1217u

/** Read and copy it as you like; nearly 10 KiB. Begin with BOW_HISTOGRAM_INIT. */
struct bow_histogram {
    uint64_t count; /* all buckets together */
    uint64_t sum;   /* of the values; wraps */
    uint64_t max;   /* 0 while there is none */
    uint64_t buckets[BOW_HISTOGRAM_BUCKETS];
};

#ifdef __cplusplus
#define BOW_HISTOGRAM_INIT                                                                         \
    {                                                                                              \
    }
#else
#define BOW_HISTOGRAM_INIT                                                                         \
    {                                                                                              \
        0                                                                                          \
    }
#endif

/** Count `value`. Thread: one at a time. */
BOW_EXPORT void bow_histogram_record(struct bow_histogram *histogram, uint64_t value);

/** Add what `other` (borrowed) has counted. Thread: one at a time. */
BOW_EXPORT void bow_histogram_add(struct bow_histogram *histogram,
                                  const struct bow_histogram *other);

/**
 * Find the value that the share `q` of all values do not exceed: 0.5 is the median, 0.99 what one
 * in a hundred exceeds, 1 the greatest, which is exact. `q` below 0 counts as 0 (the least), above
 * 1 as 1.
 *
 * Of the values in order it is number ceil(q × count), within 1/64 of that value; exact below 64.
 *
 * Returns: the value; 0 of an empty histogram. Thread: any
 */
BOW_EXPORT uint64_t bow_histogram_quantile(const struct bow_histogram *histogram, double q);

/** Which bucket counts `value`. Thread: any. */
BOW_EXPORT size_t bow_histogram_bucket(uint64_t value);

/** The least and the greatest value that bucket `index` counts. Returns 0; -EINVAL: there is no
 * such bucket, and nothing is written. Thread: any. */
BOW_EXPORT int bow_histogram_bounds(size_t index, uint64_t *ret_least, uint64_t *ret_greatest);

#ifdef __cplusplus
}
#endif
#endif
