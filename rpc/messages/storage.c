/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The two places that the pieces of messages come from. Knows nothing of messages.
 */
#include "rpc/messages/storage.h"
#include "base/arena_array.h"
#include <stdlib.h>
#include <string.h>

void *bow__storage_take(struct bow_arena *arena, size_t n)
{
    if (arena != NULL) {
        return bow__arena_alloc(bow__arena_of(arena), n);
    }
    return malloc(n > 0 ? n : 1);
}

void *bow__storage_copy(struct bow_arena *arena, const void *data, size_t len)
{
    if (len == 0) {
        return NULL;
    }
    void *copy = arena != NULL ? bow__arena_alloc_bytes(bow__arena_of(arena), len) : malloc(len);
    if (copy != NULL) {
        memcpy(copy, data, len);
    }
    return copy;
}

char *bow__storage_copy_text(struct bow_arena *arena, const char *text, size_t len)
{
    if (arena != NULL) {
        return bow__arena_dup(bow__arena_of(arena), text, len);
    }
    char *copy = len < SIZE_MAX ? malloc(len + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

void bow__storage_drop(struct bow_arena *arena, void *piece)
{
    if (arena == NULL) {
        free(piece);
    }
}

/* In the heap whoever made the array, protobuf-c for instance, may have made it just large enough.
 * What it has is known to malloc() alone, so that one is asked each time; it has little to do where
 * there is room. */
static void *extend_heap(void *array, size_t n, size_t element_size)
{
    size_t size = 0;

    if (__builtin_mul_overflow(bow__arena_array_room(n + 1), element_size, &size)) {
        return NULL;
    }
    return realloc(array, size);
}

void *bow__storage_extend(struct bow_arena *arena, void *array, size_t n, size_t element_size)
{
    if (arena != NULL) {
        return bow__arena_array_extend(bow__arena_of(arena), array, n, element_size);
    }
    return extend_heap(array, n, element_size);
}
