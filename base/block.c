/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counted blocks: one allocation each, header and bytes together. Knows nothing
 * of who shares them.
 */

#include "base/block.h"
#include "base/alloc.h"

#include <assert.h>
#include <errno.h>

#define FIRST_BYTES ((size_t)64 << 10)
#define MAX_STEP_BYTES ((size_t)512 << 10)

static bool block_bytes(size_t cap, size_t *ret_bytes)
{
    return !__builtin_add_overflow(sizeof(struct bow__block), cap, ret_bytes);
}

static struct bow__block *begin(struct bow_context *context, void *memory, size_t n_bytes)
{
    struct bow__block *block = memory;

    if (block == NULL) {
        return NULL;
    }
    block->context = context;
    atomic_init(&block->refs, 1);
    block->cap = n_bytes - sizeof(*block);
    block->next = NULL;
    return block;
}

struct bow__block *bow__block_new(struct bow_context *context, size_t cap)
{
    size_t n_bytes = 0;

    if (!block_bytes(cap, &n_bytes)) {
        return NULL;
    }
    return begin(context, bow__alloc(context, n_bytes), n_bytes);
}

struct bow__block *bow__block_new_spare(struct bow_context *context, size_t cap)
{
    size_t n_bytes = 0;

    if (!block_bytes(cap, &n_bytes)) {
        return NULL;
    }
    void *memory = bow__alloc_spare(context, n_bytes, &n_bytes);
    return begin(context, memory, n_bytes);
}

struct bow__block *bow__block_new_to_fill(struct bow_context *context, size_t cap)
{
    struct bow__block *block = bow__block_new_spare(context, cap);

    if (block != NULL) {
        return block;
    }
    block = bow__block_new(context, cap);
    if (block != NULL) {
        bow__populate(context, block, sizeof(*block) + cap);
    }
    return block;
}

struct bow__block *bow__block_ref(struct bow__block *block)
{
    /* relaxed: who takes a reference already holds one */
    atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    return block;
}

struct bow__block *bow__block_unref(struct bow__block *block)
{
    if (block == NULL) {
        return NULL;
    }
    /* release: our reads and writes of the bytes come before the free of the last holder ... */
    if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_release) != 1) {
        return NULL;
    }
    /* ... which pairs with it by this load (not a fence: ThreadSanitizer does not see fences) */
    (void)atomic_load_explicit(&block->refs, memory_order_acquire);
    bow__free(block->context, block, sizeof(*block) + block->cap);
    return NULL;
}

int bow__block_grow(struct bow__block **block, size_t cap)
{
    struct bow__block *old = *block;
    size_t n_bytes = 0;

    assert(atomic_load_explicit(&old->refs, memory_order_relaxed) == 1);
    if (cap <= old->cap) {
        return 0;
    }
    if (!block_bytes(cap, &n_bytes)) {
        return -ENOMEM;
    }
    struct bow__block *grown = bow__resize(old->context, old, sizeof(*old) + old->cap, n_bytes);
    if (grown == NULL) {
        return -ENOMEM;
    }
    grown->cap = cap;
    *block = grown;
    return 0;
}

int bow__block_make_room(struct bow_context *context, struct bow__block **block, size_t n,
                         size_t expected)
{
    size_t old_cap = *block != NULL ? (*block)->cap : 0;
    size_t whole = n > expected ? n : expected;

    if (*block != NULL && n <= old_cap) {
        return 0;
    }
    if (*block == NULL) {
        *block = bow__block_new_spare(context, whole);
    }
    if (*block != NULL && old_cap == 0) {
        return 0;
    }
    size_t cap = old_cap + (old_cap < MAX_STEP_BYTES ? old_cap : MAX_STEP_BYTES);
    cap = cap > FIRST_BYTES ? cap : FIRST_BYTES;
    cap = cap < whole ? cap : whole;
    cap = cap > n ? cap : n;
    if (*block == NULL) {
        *block = bow__block_new(context, cap);
        return *block != NULL ? 0 : -ENOMEM;
    }
    return bow__block_grow(block, cap);
}

void bow__block_shrink(struct bow__block **block, size_t cap)
{
    struct bow__block *old = *block;

    assert(atomic_load_explicit(&old->refs, memory_order_relaxed) == 1);
    if (cap >= old->cap) {
        return;
    }
    struct bow__block *shrunk =
        bow__resize(old->context, old, sizeof(*old) + old->cap, sizeof(*old) + cap);
    if (shrunk != NULL) {
        shrunk->cap = cap;
        *block = shrunk;
    }
}
