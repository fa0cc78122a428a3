/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arrays of repeated and unknown fields. They grow by doubling, so that whatever
 * order a peer sends elements in, the copying stays linear in their number; a
 * packed field, whose count is known, gets exactly what it needs. The capacity
 * stands in front of the elements:
 *
 *     | padding | capacity | element 0 | element 1 | ...
 *                          ^ what the message's struct points to
 */
#include "rpc/core/codec/decode_array.h"

#define HEAD_BYTES 16   /* keeps the elements at the arena's alignment */
#define FIRST_BYTES 32u /* room of an array's first elements */

_Static_assert(HEAD_BYTES >= sizeof(size_t), "the capacity fits");

void *bow__decode_reserve(struct bow__arena *arena, void *array, size_t n, size_t n_more,
                          size_t element_size)
{
    size_t capacity = n > 0 ? bow__decode_capacity(array) : 0;
    if (n + n_more <= capacity) {
        return array;
    }
    /* No overflow: there is at most one element per byte of a message below 2 GiB. */
    size_t grown = n > 0 ? 2 * capacity : n_more == 1 ? FIRST_BYTES / element_size : 0;
    if (grown < n + n_more) {
        grown = n + n_more;
    }
    char *memory = bow__arena_alloc(arena, HEAD_BYTES + grown * element_size);
    if (memory == NULL) {
        return NULL;
    }
    char *elements = memory + HEAD_BYTES;
    memcpy(elements - sizeof grown, &grown, sizeof grown);
    if (n > 0) {
        memcpy(elements, array, n * element_size);
    }
    return elements;
}
