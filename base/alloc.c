/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counting of memory: charge first, then allocate, so that the ceiling is never
 * passed, not even for a moment or by two threads at once. Knows nothing of what
 * the memory is for.
 */

#include "base/alloc.h"
#include "base/context.h"

#include <assert.h>
#include <bowline/limits.h>
#include <string.h>

/* How much of a block of `size` bytes lies in a mapping, not in malloc's heap. */
static size_t mapped(const struct bow_context *context, size_t size)
{
    return context->trim.is_on && size >= BOW__LARGE_BYTES ? size : 0;
}

static void count_mapped(struct bow_context *context, size_t before, size_t after)
{
    if (before != after) {
        atomic_fetch_add_explicit(&context->n_mapped, after - before, memory_order_relaxed);
    }
}

/* In use, in malloc's heap. A snapshot of two counters: it may be some blocks off. */
static size_t used_bytes(const struct bow_context *context)
{
    size_t n_bytes = atomic_load_explicit(&context->n_bytes, memory_order_relaxed);
    size_t n_mapped = atomic_load_explicit(&context->n_mapped, memory_order_relaxed);

    return n_bytes > n_mapped ? n_bytes - n_mapped : 0;
}

/* The same with the spares that lie there. */
static size_t heap_bytes(const struct bow_context *context)
{
    return used_bytes(context) + bow__large_middle_bytes(&context->large);
}

/* Less is not worth the walk over malloc's free blocks. */
static size_t least_kept(const struct bow_context *context)
{
    size_t share = context->max_bytes / 16;

    return share > BOW_LIMIT_KEPT_BYTES ? share : BOW_LIMIT_KEPT_BYTES;
}

/* Under a ceiling what waits to be used again goes before what is used passes it: a container may
 * be no larger. Small blocks take what malloc keeps, so that only large ones ask for it. */
static void give_way(struct bow_context *context)
{
    size_t n_spares = bow__large_spare_bytes(&context->large);
    size_t n_heap = heap_bytes(context);
    size_t n_kept = bow__trim_kept(&context->trim, n_heap);
    size_t n_left =
        context->max_bytes - atomic_load_explicit(&context->n_bytes, memory_order_relaxed);

    if (n_kept + n_spares > n_left && n_kept >= least_kept(context)) {
        bow__trim_now(&context->trim, n_heap);
    }
    if (n_spares > n_left) {
        bow__large_release(&context->large, n_spares - n_left);
    }
}

static bool reserve(struct bow_context *context, size_t size)
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

/* For a block that grows, or a new one, that had 0 bytes. */
static bool charge(struct bow_context *context, size_t old_size, size_t new_size)
{
    if (!reserve(context, new_size - old_size)) {
        return false;
    }
    count_mapped(context, mapped(context, old_size), mapped(context, new_size));
    bow__trim_note(&context->trim, used_bytes(context));
    if (context->max_bytes > 0) {
        give_way(context);
    }
    return true;
}

/* For one that shrinks, at last to 0 bytes. */
static void discharge(struct bow_context *context, size_t old_size, size_t new_size)
{
    count_mapped(context, mapped(context, old_size), mapped(context, new_size));
    size_t before =
        atomic_fetch_sub_explicit(&context->n_bytes, old_size - new_size, memory_order_relaxed);
    assert(before >= old_size - new_size);
    (void)before;
}

bool bow__charge_foreign(struct bow_context *context, size_t size)
{
    return charge(context, 0, size);
}

void bow__discharge_foreign(struct bow_context *context, size_t size)
{
    discharge(context, size, 0);
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
    if (!charge(context, 0, size)) {
        return NULL;
    }
    void *memory = context->allocator.alloc(context->allocator.user, size);
    if (memory == NULL) {
        memory = alloc_again(context, size);
    }
    if (memory == NULL) {
        discharge(context, size, 0);
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
        discharge(context, old_size, new_size);
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
    if (!charge(context, old_size, new_size)) {
        return NULL;
    }
    void *moved = context->allocator.resize(context->allocator.user, memory, old_size, new_size);
    if (moved == NULL) {
        discharge(context, new_size, old_size);
    }
    return moved;
}

void bow__free(struct bow_context *context, void *memory, size_t size)
{
    if (memory == NULL) {
        return;
    }
    context->allocator.free(context->allocator.user, memory, size);
    discharge(context, size, 0);
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
    if (!charge(context, 0, size)) {
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

bool bow__may_trim(struct bow_context *context)
{
    return bow__large_spare_bytes(&context->large) > 0 ||
           bow__trim_kept(&context->trim, heap_bytes(context)) >= BOW_LIMIT_KEPT_BYTES;
}

void bow__expect_large(struct bow_context *context, size_t size)
{
    bow__large_expect(&context->large, size);
}

void bow__trim(struct bow_context *context, uint64_t now_ns)
{
    bow__large_trim(&context->large, now_ns);
    bow__trim_look(&context->trim, used_bytes(context), heap_bytes(context), context->system,
                   now_ns);
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
