/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_BLOCK_H
#define BOWLINE_BASE_BLOCK_H

/*
 * A counted block of bytes: a message of its own, a chunk of output, a shared
 * piece of a pipeline's bytes. Counts are atomic (relaxed up, release/acquire
 * down), for blocks cross threads.
 */

#include <bowline/context.h>
#include <stdatomic.h>

struct bow__block {
    struct bow_context *context;
    atomic_uint refs;
    size_t cap;              /* bytes in data[] */
    struct bow__block *next; /* for the list its one owner keeps it in (pools, queues) */
    _Alignas(16) uint8_t data[];
};

/** One reference, `cap` bytes not zeroed; NULL out of memory or above the ceiling. */
struct bow__block *bow__block_new(struct bow_context *context, size_t cap);

/** The same, of at least `cap` bytes, all of which are about to be written: fresh pages are taken
 * at once. */
struct bow__block *bow__block_new_to_fill(struct bow_context *context, size_t cap);

/** The same from memory that an earlier block has left, of up to twice `cap` bytes; NULL when none
 * waits. */
struct bow__block *bow__block_new_spare(struct bow_context *context, size_t cap);

struct bow__block *bow__block_ref(struct bow__block *block);

/** NULL is allowed. Returns NULL. */
struct bow__block *bow__block_unref(struct bow__block *block);

/**
 * Make `*block` hold `cap` bytes, keeping its content; the caller holds the only
 * reference. Returns 0 or -ENOMEM (the block is unchanged).
 */
int bow__block_grow(struct bow__block **block, size_t cap);

/**
 * Make `*block`, which may be NULL, hold the first `n` bytes of a message that is to have
 * `expected`. A spare is taken for the whole of it, since that costs nothing; fresh memory grows
 * with what has arrived: at first it is 64 KiB, and then twice what it was, or 512 KiB more.
 * Returns 0 or -ENOMEM (the block is unchanged).
 */
int bow__block_make_room(struct bow_context *context, struct bow__block **block, size_t n,
                         size_t expected);

/** Give back what is beyond `cap` bytes, if that can be; the caller holds the only reference. */
void bow__block_shrink(struct bow__block **block, size_t cap);

#endif
