/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_HEAP_H
#define BOWLINE_BASE_HEAP_H

/*
 * An intrusive heap ordered by (key, seq). Inserting never allocates; it is O(1)
 * amortised, and removing any node O(log n). There is no order of use in which work
 * piles up for a single call to do. Nodes belong to their owner.
 */

#include <bowline/heap_node.h>
#include <stdbool.h>
#include <stddef.h>

struct bow__heap {
    struct bow__heap_node *root;
    uint64_t next_seq;
    size_t n_nodes;
    size_t n_loose; /* children of the root, or more than it has */
};

void bow__heap_init(struct bow__heap *heap);
void bow__heap_insert(struct bow__heap *heap, struct bow__heap_node *node, uint64_t key);
void bow__heap_remove(struct bow__heap *heap, struct bow__heap_node *node);
static inline struct bow__heap_node *bow__heap_min(const struct bow__heap *heap)
{
    return heap->root;
}
static inline bool bow__heap_node_is_in(const struct bow__heap_node *node)
{
    return node->prev != (struct bow__heap_node *)0;
}

#endif
