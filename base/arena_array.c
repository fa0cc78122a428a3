/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The arrays that an arena knows: a set of their addresses, open addressing, at most half full. Of
 * arrays that are full their count tells all, so one of up to two elements is never in it, and it
 * is asked for none of 4, 8, 16, .. Addresses of arrays that have been left for larger ones stay,
 * for memory of an arena is not used twice before its reset, and then the set is gone, too.
 */

#include "base/arena_array.h"

#include <string.h>

#define FIRST_SLOTS 16u
#define LEAST_KNOWN 3u /* an array of fewer elements is always full */

struct bow__arena_arrays {
    size_t n;
    size_t n_slots; /* a power of two */
    uintptr_t slots[];
};

/* The slot of `address`, or the free one where it belongs. */
static uintptr_t *slot_of(struct bow__arena_arrays *arrays, uintptr_t address)
{
    /* Addresses are aligned, so the multiplication's upper half decides. */
    size_t at = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32);

    for (;; at++) {
        uintptr_t *slot = &arrays->slots[at & (arrays->n_slots - 1)];
        if (*slot == address || *slot == 0) {
            return slot;
        }
    }
}

static struct bow__arena_arrays *new_set(struct bow__arena *arena, size_t n_slots)
{
    size_t size = sizeof(struct bow__arena_arrays) + n_slots * sizeof(uintptr_t);
    struct bow__arena_arrays *arrays = bow__arena_alloc(arena, size);

    if (arrays != NULL) {
        memset(arrays, 0, size);
        arrays->n_slots = n_slots;
    }
    return arrays;
}

/* A set with room for one more; NULL out of memory. */
static struct bow__arena_arrays *set_with_room(struct bow__arena *arena)
{
    struct bow__arena_arrays *old = arena->arrays;

    if (old != NULL && 2 * (old->n + 1) <= old->n_slots) {
        return old;
    }
    struct bow__arena_arrays *arrays = new_set(arena, old != NULL ? 2 * old->n_slots : FIRST_SLOTS);
    if (arrays == NULL) {
        return NULL;
    }
    for (size_t i = 0; old != NULL && i < old->n_slots; i++) {
        if (old->slots[i] != 0) {
            *slot_of(arrays, old->slots[i]) = old->slots[i];
        }
    }
    arrays->n = old != NULL ? old->n : 0;
    arena->arrays = arrays;
    return arrays;
}

static bool is_known(const struct bow__arena *arena, const void *array)
{
    return arena->arrays != NULL && *slot_of(arena->arrays, (uintptr_t)array) != 0;
}

static void *make(struct bow__arena *arena, size_t room, size_t element_size)
{
    size_t size = 0;
    struct bow__arena_arrays *arrays = NULL;

    if (room >= LEAST_KNOWN) {
        arrays = set_with_room(arena);
        if (arrays == NULL) {
            return NULL;
        }
    }
    if (__builtin_mul_overflow(room, element_size, &size)) {
        bow__arena_note_failure(arena);
        return NULL;
    }
    void *array = bow__arena_alloc(arena, size);
    if (array != NULL && arrays != NULL) {
        *slot_of(arrays, (uintptr_t)array) = (uintptr_t)array;
        arrays->n++;
    }
    return array;
}

void *bow__arena_array_extend(struct bow__arena *arena, void *array, size_t n, size_t element_size)
{
    if (n < bow__arena_array_room(n) && is_known(arena, array)) {
        return array;
    }
    void *grown = make(arena, bow__arena_array_room(n + 1), element_size);
    if (grown != NULL && n > 0) {
        memcpy(grown, array, n * element_size);
    }
    return grown;
}
