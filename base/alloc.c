/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counting of memory: charge first, then allocate, so that the ceiling is never
 * passed, not even for a moment or by two threads at once. Knows nothing of what
 * the memory is for.
 */

#include "base/alloc.h"
#include "base/context.h"

#include <assert.h>
#include <string.h>

static bool charge(struct bow_context *context, size_t size)
{
    if (context->max_bytes == 0) {
        atomic_fetch_add_explicit(&context->n_bytes, size, memory_order_relaxed);
        return true;
    }
    /* Compare-and-swap, for add-and-undo would let a refused giant refuse others meanwhile. */
    size_t n_bytes = atomic_load_explicit(&context->n_bytes, memory_order_relaxed);
    do {
        if (size > context->max_bytes - n_bytes) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&context->n_bytes, &n_bytes, n_bytes + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void discharge(struct bow_context *context, size_t size)
{
    size_t before = atomic_fetch_sub_explicit(&context->n_bytes, size, memory_order_relaxed);
    assert(before >= size);
    (void)before;
}

void *bow__alloc(struct bow_context *context, size_t size)
{
    assert(size > 0);
    if (!charge(context, size)) {
        return NULL;
    }
    void *memory = context->allocator.alloc(context->allocator.user, size);
    if (memory == NULL) {
        discharge(context, size);
    }
    return memory;
}

void *bow__alloc_zero(struct bow_context *context, size_t size)
{
    void *memory = bow__alloc(context, size);
    if (memory == NULL) {
        return NULL;
    }
    return memset(memory, 0, size);
}

void *bow__alloc_array(struct bow_context *context, size_t count, size_t size)
{
    size_t n_bytes = 0;

    if (__builtin_mul_overflow(count, size, &n_bytes)) {
        return NULL;
    }
    return bow__alloc_zero(context, n_bytes);
}

static void *resize_down(struct bow_context *context, void *memory, size_t old_size,
                         size_t new_size)
{
    void *moved = context->allocator.resize(context->allocator.user, memory, old_size, new_size);
    if (moved != NULL) {
        discharge(context, old_size - new_size);
    }
    return moved;
}

void *bow__resize(struct bow_context *context, void *memory, size_t old_size, size_t new_size)
{
    assert(new_size > 0);
    assert((memory == NULL) == (old_size == 0));
    if (memory == NULL) {
        return bow__alloc(context, new_size);
    }
    if (new_size <= old_size) {
        return resize_down(context, memory, old_size, new_size);
    }
    if (!charge(context, new_size - old_size)) {
        return NULL;
    }
    void *moved = context->allocator.resize(context->allocator.user, memory, old_size, new_size);
    if (moved == NULL) {
        discharge(context, new_size - old_size);
    }
    return moved;
}

void bow__free(struct bow_context *context, void *memory, size_t size)
{
    if (memory == NULL) {
        return;
    }
    context->allocator.free(context->allocator.user, memory, size);
    discharge(context, size);
}

bool bow__has_spares(struct bow_context *context)
{
    return bow__large_has_spares(&context->large);
}

void bow__trim(struct bow_context *context)
{
    bow__large_trim(&context->large);
}

char *bow__dup(struct bow_context *context, const char *text, size_t len)
{
    if (len == SIZE_MAX) {
        return NULL;
    }
    char *copy = bow__alloc(context, len + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}
