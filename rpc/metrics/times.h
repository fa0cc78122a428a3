/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_METRICS_TIMES_H
#define BOWLINE_RPC_METRICS_TIMES_H

/*
 * Times as one loop counts them: a histogram with the buckets of <bowline/histogram.h>, of which
 * only those parts are in memory that have counted something. A part spans four octaves, so what
 * calls of a method take is mostly in two or three of the ten.
 *
 * Design. One writer, the loop; readers on any thread add up what they find. `parts` is stored with
 * release once its memory is zeroed, and loaded with acquire by readers; it goes with the times.
 */

#include "base/buckets.h"
#include "base/count.h"
#include <bowline/context.h>

#define BOW__TIMES_PART_BUCKETS ((size_t)4 * BOW__BUCKETS_PER_OCTAVE)
#define BOW__TIMES_PARTS                                                                           \
    ((BOW_HISTOGRAM_BUCKETS + BOW__TIMES_PART_BUCKETS - 1) / BOW__TIMES_PART_BUCKETS)

struct bow__times_part {
    _Atomic(uint64_t) n[BOW__TIMES_PART_BUCKETS];
};

struct bow__times {
    _Atomic(uint64_t) sum_ns;
    _Atomic(uint64_t) max_ns;
    _Atomic(struct bow__times_part *) parts[BOW__TIMES_PARTS]; /* NULL: nothing was counted */
};

/** Count `n` times of `ns`. `*times` is made when it is NULL. Without memory they are not counted.
 * Loop. */
void bow__times_record(_Atomic(struct bow__times *) *times, struct bow_context *context,
                       uint64_t ns, uint64_t n);

/** Add what was counted; NULL: nothing was. Thread: any. */
void bow__times_add(_Atomic(struct bow__times *) const *times, struct bow_histogram *sum);

/** Nobody counts or reads any more. */
void bow__times_free(_Atomic(struct bow__times *) *times, struct bow_context *context);

#endif
