/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The bump arena: chunks that grow with what was used, large allocations in
 * chunks of their own so that the current one is not thrown away half full.
 * Knows nothing of messages or calls.
 */

#include "base/arena.h"
#include "base/alloc.h"
#include "base/block.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CHUNK_BYTES ((size_t)1024)
#define MAX_CHUNK_BYTES ((size_t)65536)
#define LARGE_BYTES ((size_t)4096)

struct bow__arena_chunk {
    struct bow__arena_chunk *next;
    size_t n_bytes; /* with this header */
    _Alignas(BOW__ARENA_ALIGNMENT) uint8_t data[];
};

struct bow__arena_block {
    struct bow__arena_block *next;
    struct bow__block *block;
};

static size_t room(const struct bow__arena *arena)
{
    return (size_t)((uintptr_t)arena->end - (uintptr_t)arena->next);
}

static void *fail(struct bow__arena *arena)
{
    bow__arena_note_failure(arena);
    return NULL;
}

static void *take(struct bow_context *context, size_t n_bytes)
{
    return context != NULL ? bow__alloc(context, n_bytes) : malloc(n_bytes);
}

static void give_back(struct bow_context *context, void *memory, size_t n_bytes)
{
    if (context != NULL) {
        bow__free(context, memory, n_bytes);
    } else {
        free(memory);
    }
}

static void start(struct bow__arena *arena)
{
    arena->next = arena->first;
    arena->end = arena->first_size > 0 ? arena->first + arena->first_size : arena->first;
    bow__poison(arena->first, arena->first_size);
}

void bow__arena_init(struct bow__arena *arena, struct bow_context *context, void *first,
                     size_t first_size, size_t max_bytes)
{
    *arena = (struct bow__arena){
        .context = context,
        .first = first,
        .first_size = first_size,
        .max_bytes = max_bytes,
    };
    start(arena);
}

void bow__arena_reset(struct bow__arena *arena)
{
    /* Blocks first: their links live in the chunks. */
    while (arena->blocks != NULL) {
        bow__block_unref(arena->blocks->block);
        arena->blocks = arena->blocks->next;
    }
    while (arena->chunks != NULL) {
        struct bow__arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        bow__unpoison(chunk, chunk->n_bytes);
        give_back(arena->context, chunk, chunk->n_bytes);
    }
    arena->arrays = NULL;
    arena->used = 0;
    arena->failed = false;
    start(arena);
}

void bow__arena_fini(struct bow__arena *arena)
{
    bow__arena_reset(arena);
    bow__unpoison(arena->first, arena->first_size);
    *arena = (struct bow__arena){0};
}

static struct bow__arena_chunk *add_chunk(struct bow__arena *arena, size_t n_bytes)
{
    if (n_bytes > arena->max_bytes - arena->used) {
        return fail(arena);
    }
    struct bow__arena_chunk *chunk = take(arena->context, n_bytes);
    if (chunk == NULL) {
        return fail(arena);
    }
    chunk->n_bytes = n_bytes;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used += n_bytes;
    return chunk;
}

/* As large as all that was used before, so that their number grows with its logarithm; near the
 * cap what is left of it, so that the cap is not reached early. */
static size_t next_chunk_bytes(const struct bow__arena *arena, size_t least)
{
    size_t n_bytes = arena->used + arena->first_size;
    size_t left = arena->max_bytes - arena->used;

    if (n_bytes < MIN_CHUNK_BYTES) {
        n_bytes = MIN_CHUNK_BYTES;
    }
    if (n_bytes > MAX_CHUNK_BYTES) {
        n_bytes = MAX_CHUNK_BYTES;
    }
    if (n_bytes > left) {
        n_bytes = left;
    }
    return n_bytes > least ? n_bytes : least;
}

/* The start of a chunk is aligned, so this serves both kinds of allocation. */
void *bow__arena_alloc_apart(struct bow__arena *arena, size_t size)
{
    size_t least = 0;

    if (__builtin_add_overflow(size, sizeof(struct bow__arena_chunk), &least)) {
        return fail(arena);
    }
    bool large = size >= LARGE_BYTES;
    struct bow__arena_chunk *chunk =
        add_chunk(arena, large ? least : next_chunk_bytes(arena, least));
    if (chunk == NULL) {
        return NULL;
    }
    if (!large) {
        arena->next = chunk->data + size;
        arena->end = (uint8_t *)chunk + chunk->n_bytes;
        bow__poison(arena->next, room(arena));
    }
    return chunk->data;
}

char *bow__arena_dup(struct bow__arena *arena, const void *bytes, size_t len)
{
    if (len == SIZE_MAX) {
        return fail(arena);
    }
    char *copy = bow__arena_alloc_bytes(arena, len + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    copy[len] = '\0';
    return copy;
}

char *bow__arena_vprintf(struct bow__arena *arena, const char *format, va_list args)
{
    va_list again;

    /* Format into what is free, for most texts fit, and only a longer one is formatted twice. */
    va_copy(again, args);
    bow__unpoison(arena->next, room(arena));
    int len = vsnprintf((char *)arena->next, room(arena), format, again);
    bow__poison(arena->next, room(arena));
    va_end(again);
    if (len < 0) {
        return fail(arena);
    }
    size_t size = (size_t)len + 1;
    bool fits = size <= room(arena);
    char *text = bow__arena_alloc_bytes(arena, size);
    if (text != NULL && !fits) {
        vsnprintf(text, size, format, args);
    }
    return text;
}

int bow__arena_adopt(struct bow__arena *arena, struct bow__block *block)
{
    struct bow__arena_block *adopted = bow__arena_alloc(arena, sizeof(*adopted));
    if (adopted == NULL) {
        return -ENOMEM;
    }
    size_t n_bytes = sizeof(*block) + block->cap;
    if (n_bytes > arena->max_bytes - arena->used) {
        bow__arena_note_failure(arena);
        return -ENOMEM;
    }
    arena->used += n_bytes;
    adopted->block = block;
    adopted->next = arena->blocks;
    arena->blocks = adopted;
    return 0;
}
