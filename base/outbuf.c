/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Output in order. Segments and small bytes share the chunks: a segment header
 * lies in the chunk right before its bytes, and one for a block lies there
 * alone, so that queueing allocates nothing but chunks.
 *
 *     chunk:  [segment|bytes.......][segment → block][segment|bytes...|  free  ]
 *
 * Each segment holds a reference to the chunk it lies in, the outbuf one to the
 * chunk it writes to. Knows nothing of sockets and frames.
 */

#include "base/outbuf.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct bow__outbuf_segment {
    struct bow__outbuf_segment *next;
    const uint8_t *data;
    size_t len;
    struct bow__block *chunk; /* where this segment lies, and its bytes unless `block` */
    struct bow__block *block; /* where the bytes lie, or NULL */
};

#define SEGMENT_ALIGNMENT _Alignof(struct bow__outbuf_segment)

_Static_assert(SEGMENT_ALIGNMENT + sizeof(struct bow__outbuf_segment) <= BOW__OUTBUF_PIECE_BYTES,
               "a reservation for a piece must hold its segment");

void bow__outbuf_init(struct bow__outbuf *out, struct bow__pool *pool)
{
    *out = (struct bow__outbuf){.pool = pool};
}

static void release_chunk(struct bow__pool *pool, struct bow__block *chunk)
{
    /* relaxed: chunks stay on the thread of their pool */
    if (chunk->cap == BOW__CHUNK_BYTES &&
        atomic_load_explicit(&chunk->refs, memory_order_relaxed) == 1) {
        bow__pool_put(pool, chunk);
        return;
    }
    bow__block_unref(chunk);
}

static void pop_segment(struct bow__outbuf *out)
{
    struct bow__outbuf_segment *segment = out->head;

    out->head = segment->next;
    if (out->head == NULL) {
        out->tail = NULL;
    }
    bow__block_unref(segment->block);
    release_chunk(out->pool, segment->chunk);
}

static inline void drop_write_chunk(struct bow__outbuf *out)
{
    if (out->chunk != NULL) {
        release_chunk(out->pool, out->chunk);
    }
    out->chunk = NULL;
    out->chunk_used = 0;
}

void bow__outbuf_fini(struct bow__outbuf *out)
{
    while (out->head != NULL) {
        pop_segment(out);
    }
    drop_write_chunk(out);
    *out = (struct bow__outbuf){0};
}

static size_t segment_offset(size_t used)
{
    return (used + SEGMENT_ALIGNMENT - 1) & ~(SEGMENT_ALIGNMENT - 1);
}

/* True when bytes written next in the chunk continue the last segment: only one of this chunk's
 * can end where its free part begins. */
static bool continues_tail(const struct bow__outbuf *out)
{
    const struct bow__outbuf_segment *tail = out->tail;

    return tail != NULL && tail->data + tail->len == out->chunk->data + out->chunk_used;
}

/* Where in the chunk `len` bytes would go, behind a segment of their own if need be; beyond
 * its capacity less `len` there is no room. */
static size_t write_offset(const struct bow__outbuf *out)
{
    if (continues_tail(out)) {
        return out->chunk_used;
    }
    return segment_offset(out->chunk_used) + sizeof(struct bow__outbuf_segment);
}

static bool has_room(const struct bow__outbuf *out, size_t len)
{
    return out->chunk != NULL && write_offset(out) + len <= out->chunk->cap;
}

/* For `n` contiguous bytes and a segment. */
static int add_chunk(struct bow__outbuf *out, size_t n)
{
    struct bow__block *chunk =
        n <= BOW__CHUNK_BYTES / 2
            ? bow__pool_get(out->pool)
            : bow__block_new_to_fill(out->pool->context, n + BOW__OUTBUF_PIECE_BYTES);
    if (chunk == NULL) {
        return -ENOMEM;
    }
    drop_write_chunk(out);
    out->chunk = chunk;
    return 0;
}

/* A new last segment in the chunk, which has room for it; its bytes are the caller's to name. */
static struct bow__outbuf_segment *push_segment(struct bow__outbuf *out)
{
    size_t offset = segment_offset(out->chunk_used);
    struct bow__outbuf_segment *segment = (void *)(out->chunk->data + offset);

    *segment = (struct bow__outbuf_segment){.chunk = bow__block_ref(out->chunk)};
    out->chunk_used = offset + sizeof(*segment);
    segment->data = out->chunk->data + out->chunk_used;
    if (out->tail != NULL) {
        out->tail->next = segment;
    } else {
        out->head = segment;
    }
    out->tail = segment;
    return segment;
}

uint8_t *bow__outbuf_reserve(struct bow__outbuf *out, size_t n, size_t *ret_cap)
{
    if (!has_room(out, n) && add_chunk(out, n) < 0) {
        return NULL;
    }
    out->reserved_at = write_offset(out);
    out->n_reserved = out->chunk->cap - out->reserved_at;
    *ret_cap = out->n_reserved;
    return out->chunk->data + out->reserved_at;
}

void bow__outbuf_commit(struct bow__outbuf *out, size_t len)
{
    assert(len <= out->n_reserved);
    out->n_reserved = 0;
    if (len == 0) {
        if (out->n_bytes == 0) {
            drop_write_chunk(out);
        }
        return;
    }
    bool continues = out->reserved_at == out->chunk_used;
    struct bow__outbuf_segment *segment = continues ? out->tail : push_segment(out);
    segment->len += len;
    out->chunk_used += len;
    out->n_bytes += len;
}

static int append_copy(struct bow__outbuf *out, const void *bytes, size_t len)
{
    struct bow__block *block = bow__block_new_to_fill(out->pool->context, len);
    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, bytes, len);
    int rc = bow__outbuf_append_block(out, block, 0, len);
    bow__block_unref(block);
    return rc;
}

int bow__outbuf_append(struct bow__outbuf *out, const void *bytes, size_t len)
{
    size_t cap = 0;

    if (len == 0) {
        return 0;
    }
    if (len > BOW__CHUNK_BYTES / 2) {
        return append_copy(out, bytes, len);
    }
    uint8_t *place = bow__outbuf_reserve(out, len, &cap);
    if (place == NULL) {
        return -ENOMEM;
    }
    memcpy(place, bytes, len);
    bow__outbuf_commit(out, len);
    return 0;
}

int bow__outbuf_append_block(struct bow__outbuf *out, struct bow__block *block, size_t offset,
                             size_t len)
{
    assert(out->n_reserved == 0);
    assert(offset <= block->cap && len <= block->cap - offset);
    if (len == 0) {
        return 0;
    }
    /* Room for the segment alone, but one that continues the tail would have none of its own. */
    if (!has_room(out, SEGMENT_ALIGNMENT + sizeof(struct bow__outbuf_segment)) &&
        add_chunk(out, 0) < 0) {
        return -ENOMEM;
    }
    struct bow__outbuf_segment *segment = push_segment(out);
    segment->block = bow__block_ref(block);
    segment->data = block->data + offset;
    segment->len = len;
    out->n_bytes += len;
    return 0;
}

int bow__outbuf_drain(const struct bow__outbuf *out, struct iovec *iov, int max)
{
    int n = 0;

    for (const struct bow__outbuf_segment *at = out->head; at != NULL && n < max; at = at->next) {
        /* iovec has no const form; sendmsg only reads */
        iov[n].iov_base = (void *)(uintptr_t)at->data;
        iov[n].iov_len = at->len;
        n++;
    }
    return n;
}

void bow__outbuf_sent(struct bow__outbuf *out, size_t n)
{
    assert(n <= out->n_bytes);
    assert(out->n_reserved == 0);
    out->n_bytes -= n;
    while (n > 0) {
        struct bow__outbuf_segment *head = out->head;
        if (n < head->len) {
            head->data += n;
            head->len -= n;
            return;
        }
        n -= head->len;
        pop_segment(out);
    }
    if (out->n_bytes == 0) {
        drop_write_chunk(out);
    }
}
