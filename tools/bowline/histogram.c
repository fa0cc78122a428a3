/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Log-linear buckets. What is counted is none of this file's business. */
#include "histogram.h"

#include <math.h>

#define BITS 7 /* of a value within its power of two */
#define PER_POWER (1u << BITS)

static unsigned index_of(uint64_t ns)
{
    unsigned shift = 0;

    while (ns >> shift >= 2 * PER_POWER) {
        shift++;
    }
    unsigned index = shift * PER_POWER + (unsigned)(ns >> shift);
    return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* The greatest value that a bucket counts. */
static uint64_t last_of(unsigned index)
{
    unsigned shift = index < 2 * PER_POWER ? 0 : index / PER_POWER - 1;
    uint64_t first = (uint64_t)(index - shift * PER_POWER) << shift;

    return first + ((UINT64_C(1) << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->counts[index_of(ns)]++;
    histogram->least_ns = histogram->n == 0 || ns < histogram->least_ns ? ns : histogram->least_ns;
    histogram->most_ns = ns > histogram->most_ns ? ns : histogram->most_ns;
    histogram->sum_ns += (double)ns;
    histogram->n++;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    double wanted = ceil((double)histogram->n * percent / 100);
    uint64_t seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t last = last_of(i);
            return last < histogram->most_ns ? last : histogram->most_ns;
        }
    }
    return histogram->most_ns;
}

unsigned histogram_rows(const struct histogram *histogram, struct histogram_row *rows)
{
    double least = (double)(histogram->least_ns > 0 ? histogram->least_ns : 1);
    double ratio = pow((double)histogram->most_ns / least, 1.0 / HISTOGRAM_ROWS);
    unsigned n = ratio > 1.002 ? HISTOGRAM_ROWS : 1;
    unsigned row = 0;

    for (unsigned i = 0; i < n; i++) {
        rows[i] = (struct histogram_row){.upto_ns = (uint64_t)(least * pow(ratio, i + 1.0))};
    }
    rows[n - 1].upto_ns = histogram->most_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        while (row + 1 < n && last_of(i) > rows[row].upto_ns) {
            row++;
        }
        rows[row].count += histogram->counts[i];
    }
    return histogram->n > 0 ? n : 0;
}
