/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_LARGE_H
#define BOWLINE_BASE_LARGE_H

/*
 * The memory that a context takes when its options name no allocator: malloc's for small blocks,
 * and a mapping of its own for each large one, so that what is freed does not stay below one small
 * block at the top of malloc's heap.
 *
 * Fresh pages are dear: each costs a fault, and where a hypervisor has to find it, microseconds. So
 * what is freed waits as a spare, with its pages, for the next that needs one, if all that wait
 * together are not above a bound, and until nobody wants them. Thread: any. Knows nothing of
 * counting and ceilings.
 */

#include <bowline/context.h>
#include <stdatomic.h>

#define BOW__LARGE_BYTES ((size_t)32768 + 1)     /* and more have a mapping of their own */
#define BOW__LARGE_CLASSES 110                   /* of lengths that wait, up to 1 GiB */
#define BOW__LARGE_QUIET_NS UINT64_C(1000000000) /* a spare waits for so long, at least */

#define BOW__LARGE_TRIMS 10 /* one that nobody wanted for so many goes, whatever others do */

struct bow__spare;

/* The newest first, for it is in the cache, and what is left over from a burst stays behind. */
struct bow__spares {
    struct bow__spare *newest;
    struct bow__spare *oldest;
};

struct bow__large {
    /* What follows belongs to who has set it; see lock() in large.c. */
    atomic_flag busy;
    struct bow__spares spares[BOW__LARGE_CLASSES];
    uint64_t n_kept; /* ever: the age of spares */
    uint64_t n_kept_at_trim[BOW__LARGE_TRIMS];
    uint64_t n_taken; /* or looked for in vain */
    uint64_t n_taken_at_trim;
    uint64_t n_trims;
    uint64_t wanted_at_ns; /* when that was seen to have changed */
    uint64_t trimmed_at_ns;
    /* Changed by that one, and read by all as a hint, so relaxed. */
    atomic_size_t n_bytes;        /* that wait */
    atomic_size_t n_middle_bytes; /* of them, in malloc's heap */
    atomic_size_t max_bytes;
};

void bow__large_init(struct bow__large *large);
/** Give all spares back. */
void bow__large_fini(struct bow__large *large);

/** An allocator over `large`, which is initialised, and must stay where it is. */
struct bow_allocator bow__large_allocator(struct bow__large *large);

/** A spare for `size` bytes, of at most twice as many; `*ret_size` is what it is to be freed with.
 * NULL: none waits. */
void *bow__large_take(struct bow__large *large, size_t size, size_t *ret_size);

/** Take the pages of a block of the allocator's at once, if it is a large one: that costs less than
 * a fault for each. */
void bow__large_populate(void *memory, size_t size);

/** Let blocks of `size` bytes wait, too: several of them are below the bound. */
void bow__large_expect(struct bow__large *large, size_t size);

/** Bytes that wait. */
static inline size_t bow__large_spare_bytes(const struct bow__large *large)
{
    return atomic_load_explicit(&large->n_bytes, memory_order_relaxed);
}

/** Of those that wait, the bytes that lie in malloc's heap, which goes on to hold them. */
static inline size_t bow__large_middle_bytes(const struct bow__large *large)
{
    return atomic_load_explicit(&large->n_middle_bytes, memory_order_relaxed);
}

/** Give back so many bytes of spares, if there are, those first that waited longest. */
void bow__large_release(struct bow__large *large, size_t n_bytes);

/** Give all back if none was wanted for BOW__LARGE_QUIET_NS, else, as often, those that were not
 * for long. May be called at any time. */
void bow__large_trim(struct bow__large *large, uint64_t now_ns);

#endif
