/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_POOL_H
#define BOWLINE_BASE_POOL_H

/*
 * A loop's pool of equal blocks: output chunks of BOW__CHUNK_BYTES that idle
 * connections do not hold on to. Belongs to one thread. Keeps at most
 * `max_idle` blocks; bow__pool_trim() lets go of half of them, and the loop calls
 * it when it has been idle.
 */

#include "base/block.h"
#include "base/shared.h"

#define BOW__CHUNK_BYTES ((size_t)65536 - 64)

struct bow__pool {
    struct bow_context *context;
    struct bow__block *idle;
    size_t n_idle;
    size_t max_idle;
};

void bow__pool_init(struct bow__pool *pool, struct bow_context *context, size_t max_idle);
void bow__pool_fini(struct bow__pool *pool);
/** NULL: out of memory. */
BOW__SHARED struct bow__block *bow__pool_get(struct bow__pool *pool);
/** Takes the only reference. */
BOW__SHARED void bow__pool_put(struct bow__pool *pool, struct bow__block *block);
void bow__pool_trim(struct bow__pool *pool);

#endif
