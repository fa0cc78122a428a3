/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pool of output chunks: a stack of idle blocks, so that the one used last,
 * which is in the cache, goes out first. Knows nothing of what is written in them.
 */

#include "base/pool.h"
#include "base/poison.h"

#include <assert.h>

void bow__pool_init(struct bow__pool *pool, struct bow_context *context, size_t max_idle)
{
    *pool = (struct bow__pool){.context = context, .max_idle = max_idle};
}

static void release(struct bow__pool *pool, size_t n_keep)
{
    while (pool->n_idle > n_keep) {
        struct bow__block *block = pool->idle;
        pool->idle = block->next;
        pool->n_idle--;
        bow__unpoison(block->data, block->cap);
        bow__block_unref(block);
    }
}

void bow__pool_fini(struct bow__pool *pool)
{
    release(pool, 0);
    *pool = (struct bow__pool){0};
}

struct bow__block *bow__pool_get(struct bow__pool *pool)
{
    struct bow__block *block = pool->idle;
    if (block == NULL) {
        return bow__block_new(pool->context, BOW__CHUNK_BYTES);
    }
    pool->idle = block->next;
    pool->n_idle--;
    block->next = NULL;
    bow__unpoison(block->data, block->cap);
    return block;
}

void bow__pool_put(struct bow__pool *pool, struct bow__block *block)
{
    assert(block->cap == BOW__CHUNK_BYTES);
    assert(atomic_load_explicit(&block->refs, memory_order_relaxed) == 1);
    if (pool->n_idle >= pool->max_idle) {
        bow__block_unref(block);
        return;
    }
    bow__poison(block->data, block->cap);
    block->next = pool->idle;
    pool->idle = block;
    pool->n_idle++;
}

void bow__pool_trim(struct bow__pool *pool)
{
    /* Rounded down, so that a pool which stays idle ends empty. */
    release(pool, pool->n_idle / 2);
}
