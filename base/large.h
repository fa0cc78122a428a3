/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_LARGE_H
#define BOWLINE_BASE_LARGE_H

/*
 * The memory that a context takes when its options name no allocator: malloc's for small blocks,
 * and a mapping of its own for each large one, which goes back to the system when it is freed.
 * malloc would keep it: the threshold at which it maps grows with the blocks that it sees, and
 * then one small block at the top of its heap holds what a burst has left below.
 *
 * A few mappings that were given back wait, with their pages, for the next that needs one of the
 * same length, until nobody does. Thread: any, without a lock. Knows nothing of counting
 * and ceilings.
 */

#include <bowline/context.h>
#include <stdatomic.h>

#define BOW__LARGE_BYTES ((size_t)32768 + 1) /* and more have a mapping of their own */
#define BOW__LARGE_CLASSES 6                 /* of lengths that wait: 64 KiB, ... 2 MiB */
#define BOW__LARGE_SPARES 4                  /* of each */

struct bow__large {
    _Atomic(void *) spares[BOW__LARGE_CLASSES][BOW__LARGE_SPARES];
    /* Hints for who trims, so relaxed. */
    atomic_uint n_spares;
    atomic_uint n_taken;
    atomic_uint n_taken_at_trim;
};

/** An allocator over `large`, which is zeroed, and must stay where it is. */
struct bow_allocator bow__large_allocator(struct bow__large *large);

/** Whether bow__large_trim() would do something. */
static inline bool bow__large_has_spares(struct bow__large *large)
{
    return atomic_load_explicit(&large->n_spares, memory_order_relaxed) > 0;
}

/** Give the mappings that wait back to the system, if none was wanted since the last time. */
void bow__large_trim(struct bow__large *large);
/** Give all back that wait. */
void bow__large_fini(struct bow__large *large);

#endif
