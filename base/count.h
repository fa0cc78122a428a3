/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_COUNT_H
#define BOWLINE_BASE_COUNT_H

/*
 * A number that one thread writes and others may read at any time. Relaxed: each is right by
 * itself, and nobody concludes from one to another. Plain loads and stores for the processor, so
 * that counting costs what it costs without threads.
 */

#include <stdatomic.h>
#include <stdint.h>

/** Add `n` to a counter that only the calling thread writes. */
static inline void bow__count(_Atomic(uint64_t) *counter, uint64_t n)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, before + n, memory_order_relaxed);
}

/** Raise a maximum that only the calling thread writes. */
static inline void bow__count_most(_Atomic(uint64_t) *most, uint64_t value)
{
    if (value > atomic_load_explicit(most, memory_order_relaxed)) {
        atomic_store_explicit(most, value, memory_order_relaxed);
    }
}

/** Thread: any. */
static inline uint64_t bow__counted(const _Atomic(uint64_t) *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
