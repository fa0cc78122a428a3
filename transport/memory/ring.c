/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes in a ring; see the header. */

#include "transport/memory/ring.h"
#include "base/alloc.h"

#include <errno.h>
#include <string.h>

#define FIRST_BYTES ((size_t)4 << 10)

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

int bow__ring_init(struct bow__ring *ring, struct bow_context *context, size_t max_bytes)
{
    size_t cap = min(FIRST_BYTES, max_bytes);

    *ring = (struct bow__ring){.bytes = bow__alloc(context, cap)};
    if (ring->bytes == NULL) {
        return -ENOMEM;
    }
    ring->cap = cap;
    ring->max_bytes = max_bytes;
    return 0;
}

void bow__ring_fini(struct bow__ring *ring, struct bow_context *context)
{
    bow__free(context, ring->bytes, ring->cap);
    *ring = (struct bow__ring){.bytes = NULL};
}

static void copy_out(const struct bow__ring *ring, uint8_t *into, size_t n)
{
    size_t front = min(n, ring->cap - ring->start);

    memcpy(into, ring->bytes + ring->start, front);
    memcpy(into + front, ring->bytes, n - front);
}

/* Room for `wanted` bytes in all, if there is memory; at least twice what it was. */
static void grow(struct bow__ring *ring, struct bow_context *context, size_t wanted)
{
    size_t cap = min(wanted > 2 * ring->cap ? wanted : 2 * ring->cap, ring->max_bytes);
    uint8_t *bytes = bow__alloc(context, cap);

    if (bytes == NULL) {
        ring->max_bytes = ring->cap;
        return;
    }
    copy_out(ring, bytes, ring->len);
    bow__free(context, ring->bytes, ring->cap);
    ring->bytes = bytes;
    ring->cap = cap;
    ring->start = 0;
}

size_t bow__ring_put(struct bow__ring *ring, struct bow_context *context, const void *bytes,
                     size_t len)
{
    size_t n = min(len, bow__ring_room(ring));

    if (n > ring->cap - ring->len) {
        grow(ring, context, ring->len + n);
        n = min(len, bow__ring_room(ring));
    }
    if (n == 0) {
        return 0;
    }
    size_t at = (ring->start + ring->len) % ring->cap;
    size_t front = min(n, ring->cap - at);
    memcpy(ring->bytes + at, bytes, front);
    memcpy(ring->bytes, (const uint8_t *)bytes + front, n - front);
    ring->len += n;
    return n;
}

size_t bow__ring_take(struct bow__ring *ring, void *bytes, size_t max)
{
    size_t n = min(max, ring->len);

    if (n == 0) {
        return 0;
    }
    copy_out(ring, bytes, n);
    ring->len -= n;
    /* Emptied, it begins anew, so that what comes next lies in one piece. */
    ring->start = ring->len > 0 ? (ring->start + n) % ring->cap : 0;
    return n;
}
