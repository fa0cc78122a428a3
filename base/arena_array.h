/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_ARENA_ARRAY_H
#define BOWLINE_BASE_ARENA_ARRAY_H

/*
 * Arrays in an arena that grow by one element after the other, with no more to them than what
 * anybody can see: a pointer and a count. How much room there is follows from the count: an array
 * of 0, 1, 2, 4, 8, .. elements is full, and goes on in one of twice the room.
 *
 *     n     0   1   2   3   4   5  ..  8   9  ..
 *     room  0   1   2   4   4   8  ..  8  16  ..
 *
 * That is so of an array which was made here, and of no other: so the arena knows those, and one of
 * somebody else's (on the stack, with just the room that it needs) is copied once.
 */

#include "base/arena.h"

/**
 * Room for one more element behind the `n` of `array`, which stay as they are. `array` may be
 * anybody's, or NULL when `n` is 0.
 *
 * Returns: the array, or one that has taken its place; NULL out of memory, which the arena notes
 */
void *bow__arena_array_extend(struct bow__arena *arena, void *array, size_t n, size_t element_size);

/** The room of an array of `n` elements, as above: `n` rounded up to a power of two. */
static inline size_t bow__arena_array_room(size_t n)
{
    return n <= 1 ? n : (size_t)1 << (sizeof(long) * 8 - (size_t)__builtin_clzl(n - 1));
}

#endif
