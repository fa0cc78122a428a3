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

/* Under a ceiling what waits to be used again goes before what is used passes it. */
static void give_way(struct bow_context *context)
{
    size_t n_spares = bow__large_spare_bytes(&context->large);
    size_t n_left =
        context->max_bytes - atomic_load_explicit(&context->n_bytes, memory_order_relaxed);

    if (n_spares > n_left) {
        bow__large_release(&context->large, n_spares - n_left);
    }
}

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
    give_way(context);
    return true;
}

static void discharge(struct bow_context *context, size_t size)
{
    size_t before = atomic_fetch_sub_explicit(&context->n_bytes, size, memory_order_relaxed);
    assert(before >= size);
    (void)before;
}

/* When the system is short of memory, too, what waits goes first. */
static void *alloc_again(struct bow_context *context, size_t size)
{
    if (bow__large_spare_bytes(&context->large) == 0) {
        return NULL;
    }
    bow__large_release(&context->large, SIZE_MAX);
    return context->allocator.alloc(context->allocator.user, size);
}

void *bow__alloc(struct bow_context *context, size_t size)
{
    assert(size > 0);
    if (!charge(context, size)) {
        return NULL;
    }
    void *memory = context->allocator.alloc(context->allocator.user, size);
    if (memory == NULL) {
        memory = alloc_again(context, size);
    }
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
    if (context->max_bytes > 0) {
        give_way(context);
    }
}

void *bow__alloc_spare(struct bow_context *context, size_t size, size_t *ret_size)
{
    void *memory = bow__large_take(&context->large, size, &size);

    if (memory == NULL) {
        return NULL;
    }
    if (!charge(context, size)) {
        context->allocator.free(context->allocator.user, memory, size);
        return NULL;
    }
    *ret_size = size;
    return memory;
}

void bow__populate(struct bow_context *context, void *memory, size_t size)
{
    if (context->allocator.user == &context->large) {
        bow__large_populate(memory, size);
    }
}

size_t bow__spare_bytes(struct bow_context *context)
{
    return bow__large_spare_bytes(&context->large);
}

void bow__expect_large(struct bow_context *context, size_t size)
{
    bow__large_expect(&context->large, size);
}

void bow__trim(struct bow_context *context, uint64_t now_ns)
{
    bow__large_trim(&context->large, now_ns);
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
