/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_HEAP_NODE_H
#define BOWLINE_HEAP_NODE_H

/*
 * A place in one of the library's heaps. It is public only so that a struct
 * bow_timer can be embedded; all of it is private.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow__heap_node {
    struct bow__heap_node *child;
    struct bow__heap_node *next; /* younger sibling */
    struct bow__heap_node *prev; /* older sibling, or the parent of a first child; self at the
                                    root; NULL in no heap */
    uint64_t key;
    uint64_t seq;  /* equal keys leave in the order of insertion */
    uint64_t rank; /* about the logarithm of how many are in this tree */
};

#ifdef __cplusplus
}
#endif
#endif
