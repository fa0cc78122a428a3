/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_HISTOGRAM_H
#define BOWLINE_TOOLS_BOWLINE_HISTOGRAM_H

/*
 * How long calls took: counts in buckets that are 1/128 of their value wide, so that a percentile
 * is off by less than 1 %, from a nanosecond to a quarter of an hour.
 */

#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BUCKETS 4352
#define HISTOGRAM_ROWS 16

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t n;
    uint64_t least_ns, most_ns;
    double sum_ns;
};

/** A few rows of equal ratio, from the least to the most. */
struct histogram_row {
    uint64_t upto_ns;
    uint64_t count;
};

void histogram_add(struct histogram *histogram, uint64_t ns);

/** What `percent` of all are not above. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

/** Returns how many rows there are. */
unsigned histogram_rows(const struct histogram *histogram, struct histogram_row *rows);

#endif
