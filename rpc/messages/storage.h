/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_STORAGE_H
#define BOWLINE_RPC_MESSAGES_STORAGE_H

/*
 * Where the pieces of a message lie: in an arena, or, where that is NULL, in the heap, each from
 * malloc() as protobuf_c_message_free_unpacked() expects it.
 */

#include <bowline/arena.h>

/** `n` bytes aligned for any type, not zeroed; NULL out of memory, which an arena notes. */
void *bow__storage_take(struct bow_arena *arena, size_t n);

/** A copy of `len` bytes, which need no alignment; of none NULL, which is no failure. */
void *bow__storage_copy(struct bow_arena *arena, const void *data, size_t len);

/** The same with a NUL behind them: never NULL, unless out of memory. */
char *bow__storage_copy_text(struct bow_arena *arena, const char *text, size_t len);

/** Give back a piece of the heap (NULL is allowed); nothing in an arena. */
void bow__storage_drop(struct bow_arena *arena, void *piece);

/** Room for one more behind the `n` elements of `array`, as bow__arena_array_extend(). */
void *bow__storage_extend(struct bow_arena *arena, void *array, size_t n, size_t element_size);

#endif
