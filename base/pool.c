/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pool: stacks of idle blocks, so that the one used last, which is in the cache, goes out
 * first. Small blocks beyond the last class come from the context and go back to it at once, and so
 * do all where whoever touches a freed one is to be found. Knows nothing of what is written in
 * them.
 */

#include "base/pool.h"
#include "base/alloc.h"
#include "base/misuse.h"
#include "base/poison.h"

#include <assert.h>
#include <string.h>

/** An idle one. */
struct bow__pool_small {
    struct bow__pool_small *next;
};

void bow__pool_init(struct bow__pool *pool, struct bow_context *context, size_t max_idle)
{
    bool keeps_small = !BOW__POISONS && !bow__quarantines(context);

    *pool = (struct bow__pool){.context = context,
                               .max_idle = max_idle,
                               .max_small_bytes = keeps_small ? BOW__POOL_SMALL_BYTES : 0};
}

static size_t class_of(size_t size)
{
    return (size - 1) / BOW__POOL_CLASS_BYTES;
}

/* What is allocated for `size` bytes. */
static size_t bytes_of(size_t size)
{
    size_t index = class_of(size);

    return index < BOW__POOL_N_CLASSES ? (index + 1) * BOW__POOL_CLASS_BYTES : size;
}

void bow__pool_trim_small(struct bow__pool *pool)
{
    for (size_t index = 0; index < BOW__POOL_N_CLASSES; index++) {
        struct bow__pool_small *small = pool->small[index];
        while (small != NULL) {
            struct bow__pool_small *next = small->next;
            bow__free(pool->context, small, (index + 1) * BOW__POOL_CLASS_BYTES);
            small = next;
        }
        pool->small[index] = NULL;
    }
    pool->n_small_bytes = 0;
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
    bow__pool_trim_small(pool);
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

void *bow__pool_alloc(struct bow__pool *pool, size_t size)
{
    assert(size > 0);
    size_t index = class_of(size);
    if (index >= BOW__POOL_N_CLASSES || pool->small[index] == NULL) {
        return bow__alloc(pool->context, bytes_of(size));
    }
    struct bow__pool_small *small = pool->small[index];
    pool->small[index] = small->next;
    pool->n_small_bytes -= (index + 1) * BOW__POOL_CLASS_BYTES;
    return small;
}

void bow__pool_free(struct bow__pool *pool, void *memory, size_t size)
{
    struct bow__pool_small *small = memory;
    size_t index = class_of(size);
    size_t n_bytes = (index + 1) * BOW__POOL_CLASS_BYTES;

    if (index >= BOW__POOL_N_CLASSES || pool->n_small_bytes + n_bytes > pool->max_small_bytes) {
        bow__free(pool->context, memory, bytes_of(size));
        return;
    }
    small->next = pool->small[index];
    pool->small[index] = small;
    pool->n_small_bytes += n_bytes;
}

void *bow__pool_resize(struct bow__pool *pool, void *memory, size_t old_size, size_t new_size)
{
    size_t old_bytes = bytes_of(old_size);
    size_t new_bytes = bytes_of(new_size);

    if (old_bytes == new_bytes) {
        return memory;
    }
    if (class_of(old_size) >= BOW__POOL_N_CLASSES && class_of(new_size) >= BOW__POOL_N_CLASSES) {
        return bow__resize(pool->context, memory, old_bytes, new_bytes);
    }
    void *moved = bow__pool_alloc(pool, new_size);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, memory, old_size < new_size ? old_size : new_size);
    bow__pool_free(pool, memory, old_size);
    return moved;
}

void bow__pool_trim(struct bow__pool *pool)
{
    /* Rounded down, so that a pool which stays idle ends empty. */
    release(pool, pool->n_idle / 2);
    bow__pool_trim_small(pool);
}

bool bow__pool_is_empty(const struct bow__pool *pool)
{
    return pool->n_idle == 0 && pool->n_small_bytes == 0;
}
