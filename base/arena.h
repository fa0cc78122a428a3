/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_ARENA_H
#define BOWLINE_BASE_ARENA_H

/*
 * A bump arena with a cap: allocations are freed all at once. It may start in
 * memory that the owner provides (a call's own slab), so that a small call
 * allocates nothing. One user at a time; no locks.
 *
 * What is not allocated is poisoned, as all is once the arena was reset.
 *
 * Invariant: once an allocation failed, `failed` stays set until reset, so that
 * the owner of a half-built message can tell at the end.
 */

#include "base/poison.h"
#include <bowline/arena.h>
#include <stdarg.h>

struct bow__block;
struct bow__arena_chunk;

struct bow__arena_arrays;

struct bow__arena {
    struct bow_context *context; /* NULL: malloc, which nobody counts */
    uint8_t *next;               /* first free byte of the current chunk */
    uint8_t *end;
    struct bow__arena_chunk *chunks; /* newest first; not the owner's first memory */
    struct bow__arena_block *blocks; /* adopted blocks, released on reset */
    uint8_t *first;                  /* the owner's memory, or NULL */
    size_t first_size;
    size_t used;      /* bytes of chunks and adopted blocks */
    size_t max_bytes; /* cap on `used` */
    bool failed;
    bool is_own;                      /* made by bow_arena_new(), and so freed alone */
    struct bow__arena_arrays *arrays; /* those of base/arena_array.h, or NULL */
};

/** Start in `first` (may be NULL with 0); further chunks come from `context` up to `max_bytes`. */
void bow__arena_init(struct bow__arena *arena, struct bow_context *context, void *first,
                     size_t first_size, size_t max_bytes);

/** Free all but the owner's first memory and start anew; clears `failed`. */
void bow__arena_reset(struct bow__arena *arena);

/* What <bowline/arena.h> calls struct bow_arena is a struct bow__arena. */

static inline struct bow_arena *bow__arena_as_public(struct bow__arena *arena)
{
    return (struct bow_arena *)arena;
}

static inline struct bow__arena *bow__arena_of(struct bow_arena *arena)
{
    return (struct bow__arena *)arena;
}

/** Note that an allocation failed. */
static inline void bow__arena_note_failure(struct bow__arena *arena)
{
    __atomic_store_n(&arena->failed, true, __ATOMIC_RELAXED);
}

/** Whether one did, asked where another thread may be using the arena: relaxed, for who built a
 * message that lacks something asks on its own thread. */
static inline bool bow__arena_has_failed(const struct bow__arena *arena)
{
    return __atomic_load_n(&arena->failed, __ATOMIC_RELAXED);
}

/** Whether there is anything to free but the owner's first memory. */
static inline bool bow__arena_has_grown(const struct bow__arena *arena)
{
    return arena->chunks != NULL || arena->blocks != NULL;
}

/** Free all. The arena is zeroed memory afterwards, and the owner's first memory the owner's. */
void bow__arena_fini(struct bow__arena *arena);

#define BOW__ARENA_ALIGNMENT 16u

/** The same as those below, where the current chunk has no room. */
void *bow__arena_alloc_apart(struct bow__arena *arena, size_t size);

/** `size` bytes without alignment (strings); NULL sets `failed`. Size 0 gives a valid pointer. */
static inline void *bow__arena_alloc_bytes(struct bow__arena *arena, size_t size)
{
    uint8_t *memory = arena->next;

    size = size > 0 ? size : 1;
    if (size > (uintptr_t)arena->end - (uintptr_t)memory) {
        return bow__arena_alloc_apart(arena, size);
    }
    arena->next = memory + size;
    bow__unpoison(memory, size);
    return memory;
}

/** `size` bytes aligned to 16, not zeroed; NULL sets `failed`. Size 0 gives a valid pointer. */
static inline void *bow__arena_alloc(struct bow__arena *arena, size_t size)
{
    size_t n_left = (uintptr_t)arena->end - (uintptr_t)arena->next;
    size_t padding = -(uintptr_t)arena->next & (BOW__ARENA_ALIGNMENT - 1);

    size = size > 0 ? size : 1;
    if (padding > n_left || size > n_left - padding) {
        return bow__arena_alloc_apart(arena, size);
    }
    uint8_t *memory = arena->next + padding;
    arena->next = memory + size;
    bow__unpoison(memory, size);
    return memory;
}

/** Give back the last `n` bytes before `end`, where the latest allocation ends; of one in a chunk
 * of its own nothing is given back. */
static inline void bow__arena_give_back(struct bow__arena *arena, const void *end, size_t n)
{
    if (arena->next == end) {
        arena->next -= n;
        bow__poison(arena->next, n);
    }
}

/** Copy `len` bytes and add a NUL. */
char *bow__arena_dup(struct bow__arena *arena, const void *bytes, size_t len);

/** printf into the arena; NULL sets `failed`. */
char *bow__arena_vprintf(struct bow__arena *arena, const char *format, va_list args)
    BOW_PRINTF(2, 0);

/**
 * Keep `block` until reset: the arena takes the caller's reference and counts the
 * block's size against the cap. Returns 0, or -ENOMEM (cap or allocation; `failed` set,
 * the reference stays the caller's).
 */
int bow__arena_adopt(struct bow__arena *arena, struct bow__block *block);

#endif
