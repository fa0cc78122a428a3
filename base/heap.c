/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pairing heap: one link on insert, two passes over the children on removal.
 * Loops only, for a chain of 10^5 timers must not be a stack of 10^5 frames.
 * Knows nothing of time: keys are numbers.
 */

#include "base/heap.h"

#include <assert.h>

void bow__heap_init(struct bow__heap *heap)
{
    *heap = (struct bow__heap){0};
}

static bool is_before(const struct bow__heap_node *a, const struct bow__heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

/* Of two roots the earlier one becomes the parent. Their `next` and `prev` are the caller's. */
static struct bow__heap_node *link_roots(struct bow__heap_node *a, struct bow__heap_node *b)
{
    struct bow__heap_node *parent = is_before(a, b) ? a : b;
    struct bow__heap_node *child = parent == a ? b : a;

    child->next = parent->child;
    child->prev = parent;
    if (parent->child != NULL) {
        parent->child->prev = child;
    }
    parent->child = child;
    return parent;
}

static void set_root(struct bow__heap *heap, struct bow__heap_node *root)
{
    heap->root = root;
    if (root != NULL) {
        root->next = NULL;
        root->prev = root;
    }
}

/* First pass: link neighbours two by two, front to back, into a list that is back to front. */
static struct bow__heap_node *link_pairs(struct bow__heap_node *siblings)
{
    struct bow__heap_node *pairs = NULL;

    while (siblings != NULL) {
        struct bow__heap_node *first = siblings;
        struct bow__heap_node *second = first->next;
        siblings = second != NULL ? second->next : NULL;
        struct bow__heap_node *pair = second != NULL ? link_roots(first, second) : first;
        pair->next = pairs;
        pairs = pair;
    }
    return pairs;
}

/* Second pass: link the pairs, last one first, into one tree. */
static struct bow__heap_node *link_siblings(struct bow__heap_node *siblings)
{
    struct bow__heap_node *pairs = link_pairs(siblings);
    struct bow__heap_node *root = pairs;

    if (pairs == NULL) {
        return NULL;
    }
    pairs = pairs->next;
    while (pairs != NULL) {
        struct bow__heap_node *pair = pairs;
        pairs = pairs->next;
        root = link_roots(root, pair);
    }
    return root;
}

static void cut(struct bow__heap_node *node)
{
    if (node->prev->child == node) {
        node->prev->child = node->next;
    } else {
        node->prev->next = node->next;
    }
    if (node->next != NULL) {
        node->next->prev = node->prev;
    }
}

void bow__heap_insert(struct bow__heap *heap, struct bow__heap_node *node, uint64_t key)
{
    assert(!bow__heap_node_is_in(node));
    node->child = NULL;
    node->key = key;
    node->seq = heap->next_seq++;
    set_root(heap, heap->root != NULL ? link_roots(heap->root, node) : node);
    heap->n_nodes++;
}

void bow__heap_remove(struct bow__heap *heap, struct bow__heap_node *node)
{
    assert(bow__heap_node_is_in(node));
    struct bow__heap_node *rest = link_siblings(node->child);
    if (node == heap->root) {
        set_root(heap, rest);
    } else {
        cut(node);
        if (rest != NULL) {
            set_root(heap, link_roots(heap->root, rest));
        }
    }
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    heap->n_nodes--;
}
