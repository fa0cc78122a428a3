/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_POOL_H
#define BOWLINE_BASE_POOL_H

/*
 * A loop's pool: memory that its connections use for a moment and that idle ones do not hold on to.
 * Output chunks of BOW__CHUNK_BYTES, and small blocks in free lists by size class, for what lives
 * as long as a call. Belongs to one thread. Keeps at most `max_idle` chunks and
 * BOW__POOL_SMALL_BYTES of small blocks; bow__pool_trim() lets go of half of those and all of
 * these, and the loop calls it when it has been idle.
 */

#include "base/block.h"
#include "base/shared.h"

#include <stdbool.h>

#define BOW__CHUNK_BYTES ((size_t)65536 - 64)

/** Sizes are rounded up to a multiple of this; larger ones than the last class holds are not kept.
 */
#define BOW__POOL_CLASS_BYTES ((size_t)64)
#define BOW__POOL_N_CLASSES ((size_t)16)
#define BOW__POOL_SMALL_BYTES ((size_t)128 * 1024)

struct bow__pool_small;

struct bow__pool {
    struct bow_context *context;
    struct bow__block *idle;
    size_t n_idle;
    size_t max_idle;
    struct bow__pool_small *small[BOW__POOL_N_CLASSES];
    size_t n_small_bytes; /* in them */
    size_t max_small_bytes;
};

void bow__pool_init(struct bow__pool *pool, struct bow_context *context, size_t max_idle);
void bow__pool_fini(struct bow__pool *pool);
/** NULL: out of memory. */
BOW__SHARED struct bow__block *bow__pool_get(struct bow__pool *pool);
/** Takes the only reference. */
BOW__SHARED void bow__pool_put(struct bow__pool *pool, struct bow__block *block);

/** `size` bytes, not zeroed, aligned for any type; NULL: out of memory. */
void *bow__pool_alloc(struct bow__pool *pool, size_t size);
/** With the size it was asked for with. */
void bow__pool_free(struct bow__pool *pool, void *memory, size_t size);
/** `memory` is not NULL. NULL: out of memory, and it is as it was. */
void *bow__pool_resize(struct bow__pool *pool, void *memory, size_t old_size, size_t new_size);

void bow__pool_trim(struct bow__pool *pool);
/** Let go of all small blocks. */
void bow__pool_trim_small(struct bow__pool *pool);
bool bow__pool_is_empty(const struct bow__pool *pool);

#endif
