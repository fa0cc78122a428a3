/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A mapping's length follows from the size that was asked for, which is told again with resize
 * and free: up to the largest class the next power of two, since blocks grow by doubling, beyond
 * it the next multiple of 64 KiB. Only pages that were written to take memory.
 *
 * Under AddressSanitizer all blocks are malloc's, for it watches the borders of those. Under
 * ThreadSanitizer, which does not see mremap(), bytes are moved, not pages.
 */

#include "base/large.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALLEST_MAPPING ((size_t)65536)
#define PAGE_BYTES ((size_t)65536) /* of the largest that Linux has; lengths are multiples */

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define MOVES_PAGES 0
#else
#define MOVES_PAGES 1
#endif

static bool is_large(size_t size)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    (void)size;
    return false;
#else
    return size >= BOW__LARGE_BYTES;
#endif
}

/* BOW__LARGE_CLASSES when it is in none. */
static unsigned class_of(size_t size)
{
    unsigned n = 0;

    while (n < BOW__LARGE_CLASSES && size > SMALLEST_MAPPING << n) {
        n++;
    }
    return n;
}

/* 0 when there is no such length. */
static size_t length_of(size_t size)
{
    unsigned n = class_of(size);

    if (n < BOW__LARGE_CLASSES) {
        return SMALLEST_MAPPING << n;
    }
    return size > SIZE_MAX - PAGE_BYTES ? 0 : (size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

/* acquire and release pair up over the slot: the bytes of who gave it back are behind us */
static void *take_spare(struct bow__large *large, unsigned n)
{
    for (size_t i = 0; i < BOW__LARGE_SPARES; i++) {
        void *memory = atomic_exchange_explicit(&large->spares[n][i], NULL, memory_order_acquire);
        if (memory != NULL) {
            atomic_fetch_sub_explicit(&large->n_spares, 1, memory_order_relaxed);
            return memory;
        }
    }
    return NULL;
}

static bool keep_spare(struct bow__large *large, unsigned n, void *memory)
{
    atomic_fetch_add_explicit(&large->n_spares, 1, memory_order_relaxed);
    for (size_t i = 0; i < BOW__LARGE_SPARES; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&large->spares[n][i], &none, memory,
                                                    memory_order_release, memory_order_relaxed)) {
            return true;
        }
    }
    atomic_fetch_sub_explicit(&large->n_spares, 1, memory_order_relaxed);
    return false;
}

static void *map_large(struct bow__large *large, size_t size)
{
    unsigned n = class_of(size);
    size_t length = length_of(size);

    atomic_fetch_add_explicit(&large->n_taken, 1, memory_order_relaxed);
    void *memory = n < BOW__LARGE_CLASSES ? take_spare(large, n) : NULL;

    if (memory == NULL && length > 0) {
        memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = memory == MAP_FAILED ? NULL : memory;
    }
    return memory;
}

static void unmap_large(struct bow__large *large, void *memory, size_t size)
{
    unsigned n = class_of(size);

    if (n == BOW__LARGE_CLASSES || !keep_spare(large, n, memory)) {
        (void)munmap(memory, length_of(size));
    }
}

static void *large_alloc(void *user, size_t size)
{
    return is_large(size) ? map_large(user, size) : malloc(size);
}

static void large_free(void *user, void *memory, size_t size)
{
    if (is_large(size)) {
        unmap_large(user, memory, size);
    } else {
        free(memory);
    }
}

static void *move(void *user, void *memory, size_t old_size, size_t new_size)
{
    void *moved = large_alloc(user, new_size);

    if (moved != NULL) {
        memcpy(moved, memory, old_size < new_size ? old_size : new_size);
        large_free(user, memory, old_size);
    }
    return moved;
}

static void *large_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    if (!is_large(old_size) && !is_large(new_size)) {
        return realloc(memory, new_size);
    }
    if (is_large(old_size) != is_large(new_size)) {
        return move(user, memory, old_size, new_size);
    }
    size_t old_length = length_of(old_size);
    size_t new_length = length_of(new_size);
    if (old_length == new_length) {
        return memory;
    }
    if (new_length == 0) {
        return NULL;
    }
    if (!MOVES_PAGES) {
        return move(user, memory, old_size, new_size);
    }
    void *moved = mremap(memory, old_length, new_length, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

struct bow_allocator bow__large_allocator(struct bow__large *large)
{
    return (struct bow_allocator){
        .alloc = large_alloc,
        .resize = large_resize,
        .free = large_free,
        .user = large,
    };
}

void bow__large_trim(struct bow__large *large)
{
    unsigned n = atomic_load_explicit(&large->n_taken, memory_order_relaxed);

    if (atomic_exchange_explicit(&large->n_taken_at_trim, n, memory_order_relaxed) == n) {
        bow__large_fini(large);
    }
}

void bow__large_fini(struct bow__large *large)
{
    for (unsigned n = 0; n < BOW__LARGE_CLASSES; n++) {
        for (void *memory = take_spare(large, n); memory != NULL; memory = take_spare(large, n)) {
            (void)munmap(memory, SMALLEST_MAPPING << n);
        }
    }
}
