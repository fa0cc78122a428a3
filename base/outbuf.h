/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_OUTBUF_H
#define BOWLINE_BASE_OUTBUF_H

/*
 * Bytes on their way out, in order: small ones encoded in place into pooled
 * chunks, large ones as references into blocks of their own. A session fills it,
 * the channel drains it with one sendmsg.
 *
 *     reserve → write → commit        bytes in the current chunk, contiguous
 *     append_block                    a reference to [offset, offset + len) of a block
 *     drain(iov) → sendmsg → sent(n)  front to back
 *
 * Invariant: bytes returned by drain() stay in place until sent() passed them;
 * reserve/commit may follow a drain before its sent(). A reservation is committed
 * (or dropped, or made anew) before anything else is appended or sent.
 * An empty outbuf holds no chunk.
 */

#include "base/pool.h"
#include <sys/uio.h>

/** What a reference to a block takes of a chunk: after a reserve of that much more than is then
 * committed, the next append_block cannot fail. */
#define BOW__OUTBUF_PIECE_BYTES ((size_t)64)

struct bow__outbuf_segment;

struct bow__outbuf {
    struct bow__pool *pool;
    struct bow__outbuf_segment *head;
    struct bow__outbuf_segment *tail;
    struct bow__block *chunk; /* written to now, or NULL */
    size_t chunk_used;
    size_t n_bytes;     /* committed and not yet sent */
    size_t n_reserved;  /* contiguous bytes promised by the last reserve */
    size_t reserved_at; /* where in the chunk */
};

void bow__outbuf_init(struct bow__outbuf *out, struct bow__pool *pool);
void bow__outbuf_fini(struct bow__outbuf *out);

/** At least `n` contiguous writable bytes, or NULL. `*ret_cap` says how many. More than
 * BOW__CHUNK_BYTES / 2 of them take a chunk of their own, which is no pooled one. */
uint8_t *bow__outbuf_reserve(struct bow__outbuf *out, size_t n, size_t *ret_cap);

/** The first `len` reserved bytes are part of the output now. 0 drops the reservation. */
void bow__outbuf_commit(struct bow__outbuf *out, size_t len);

/** Copy `len` bytes in (any length). Returns 0 or -ENOMEM (nothing was appended). */
int bow__outbuf_append(struct bow__outbuf *out, const void *bytes, size_t len);

/** Append a part of a block by reference (takes a reference of its own). Returns 0 or -ENOMEM. */
int bow__outbuf_append_block(struct bow__outbuf *out, struct bow__block *block, size_t offset,
                             size_t len);

/** What it holds in memory, of blocks the bytes that have not left. */
static inline size_t bow__outbuf_memory(const struct bow__outbuf *out)
{
    return (out->n_bytes + BOW__CHUNK_BYTES - 1) / BOW__CHUNK_BYTES * BOW__CHUNK_BYTES;
}

/** Fill at most `max` pieces from the front. Returns how many. */
int bow__outbuf_drain(const struct bow__outbuf *out, struct iovec *iov, int max);

/** `n` bytes from the front have left. */
void bow__outbuf_sent(struct bow__outbuf *out, size_t n);

#endif
