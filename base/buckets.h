/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_BUCKETS_H
#define BOWLINE_BASE_BUCKETS_H

/*
 * Which bucket of a histogram counts a value: the picture is in <bowline/histogram.h>. Inline, for
 * loops count with it.
 */

#include <bowline/histogram.h>

/** An octave, the values from one power of two to the next, has 2^5 buckets. */
#define BOW__BUCKETS_BITS 5u
#define BOW__BUCKETS_PER_OCTAVE (1u << BOW__BUCKETS_BITS)
/** Values from 2^42 on are in the last bucket. */
#define BOW__BUCKETS_MAX_BITS 42u

static inline size_t bow__bucket_of(uint64_t value)
{
    if (value >= UINT64_C(1) << BOW__BUCKETS_MAX_BITS) {
        return BOW_HISTOGRAM_BUCKETS - 1;
    }
    /* The first octave begins with the values below it, and each value has a bucket there. */
    unsigned n_bits = 63u - (unsigned)__builtin_clzll(value | BOW__BUCKETS_PER_OCTAVE);
    unsigned octave = n_bits - BOW__BUCKETS_BITS;
    return (size_t)(octave * BOW__BUCKETS_PER_OCTAVE + (value >> octave));
}

#endif
