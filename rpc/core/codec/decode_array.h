/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_ARRAY_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_ARRAY_H

/*
 * Arrays that grow in the arena.
 */

#include "base/arena.h"
#include <string.h>

/**
 * Make room for `n_more` elements behind the `n` of `array` (made by this function,
 * or NULL with n == 0). Returns the array, perhaps moved, or NULL out of memory.
 */
void *bow__decode_reserve(struct bow__arena *arena, void *array, size_t n, size_t n_more,
                          size_t element_size);

/** How many elements `array` (of bow__decode_reserve()) has room for. */
static inline size_t bow__decode_capacity(const void *array)
{
    size_t capacity;
    memcpy(&capacity, (const char *)array - sizeof capacity, sizeof capacity);
    return capacity;
}

#endif
