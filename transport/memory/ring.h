/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_MEMORY_RING_H
#define BOWLINE_TRANSPORT_MEMORY_RING_H

/*
 * Bytes in a ring that grows by what is in it, up to a bound. It has memory from the
 * beginning, so that want of memory later means less room, not an error. Knows
 * nothing of threads, nor of whose bytes they are.
 */

#include <bowline/context.h>

struct bow__ring {
    uint8_t *bytes;
    size_t cap;
    size_t start;
    size_t len;
    size_t max_bytes; /* what it may hold: lowered when it could not grow */
};

/** Returns 0 or -ENOMEM. */
int bow__ring_init(struct bow__ring *ring, struct bow_context *context, size_t max_bytes);
/** Idempotent. */
void bow__ring_fini(struct bow__ring *ring, struct bow_context *context);

/** Bytes that may be put in. */
static inline size_t bow__ring_room(const struct bow__ring *ring)
{
    return ring->max_bytes - ring->len;
}

/** Put in what there is room for. Returns how many bytes that were. */
size_t bow__ring_put(struct bow__ring *ring, struct bow_context *context, const void *bytes,
                     size_t len);
/** Take at most `max` bytes out. Returns how many. */
size_t bow__ring_take(struct bow__ring *ring, void *bytes, size_t max);

#endif
