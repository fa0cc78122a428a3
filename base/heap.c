/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A heap-ordered tree whose root has few children, at all times. A pairing heap
 * hangs each new node under the root, and the first removal of a root then has all
 * of them to look at: with a million timers pending that is a third of a second in
 * which the loop does nothing else. Here trees of the same rank, about the logarithm
 * of their size, are linked as a binary counter counts, and only such.
 *
 * Invariant: below a root that has just come up, the children have rising ranks, so
 * they are no more than there are bits in the number of nodes. Inserting keeps that;
 * what a removed node leaves takes its place among its siblings, in whatever order
 * of ranks, and after so many insertions that is put right.
 *
 * Loops only, for a chain of 10^5 timers must not be a stack of 10^5 frames.
 * Knows nothing of time: keys are numbers.
 */

#include "base/heap.h"

#include <assert.h>

/* A tree of rank r took 2^r insertions. */
#define MAX_RANKS 64

/* So many children may have come to the root before they are put in order. */
#define MAX_LOOSE 128

void bow__heap_init(struct bow__heap *heap)
{
    *heap = (struct bow__heap){0};
}

static bool is_before(const struct bow__heap_node *a, const struct bow__heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void push_child(struct bow__heap_node *parent, struct bow__heap_node *child)
{
    child->next = parent->child;
    child->prev = parent;
    if (child->next != NULL) {
        child->next->prev = child;
    }
    parent->child = child;
}

/* Of two trees of one rank the earlier one becomes the parent. Its own `next` and `prev` are the
 * caller's. */
static struct bow__heap_node *link_trees(struct bow__heap_node *a, struct bow__heap_node *b)
{
    struct bow__heap_node *parent = is_before(a, b) ? a : b;

    push_child(parent, parent == a ? b : a);
    parent->rank++;
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

/* Trees of different ranks. */
struct forest {
    struct bow__heap_node *trees[MAX_RANKS]; /* by rank; only those in `ranks` are set */
    uint64_t ranks;                          /* one bit for each */
};

static int lowest(uint64_t ranks)
{
    return __builtin_ctzll(ranks);
}

static int highest(uint64_t ranks)
{
    return MAX_RANKS - 1 - __builtin_clzll(ranks);
}

static void collect(struct forest *forest, struct bow__heap_node *siblings)
{
    while (siblings != NULL) {
        struct bow__heap_node *tree = siblings;
        siblings = siblings->next;
        while ((forest->ranks >> tree->rank & 1) != 0) {
            forest->ranks &= ~(UINT64_C(1) << tree->rank);
            tree = link_trees(forest->trees[tree->rank], tree);
            assert(tree->rank < MAX_RANKS);
        }
        forest->trees[tree->rank] = tree;
        forest->ranks |= UINT64_C(1) << tree->rank;
    }
}

static struct bow__heap_node *take_first(struct forest *forest)
{
    struct bow__heap_node *first = NULL;

    for (uint64_t left = forest->ranks; left != 0; left &= left - 1) {
        struct bow__heap_node *tree = forest->trees[lowest(left)];
        if (first == NULL || is_before(tree, first)) {
            first = tree;
        }
    }
    forest->ranks &= ~(UINT64_C(1) << first->rank);
    return first;
}

/* Let the trees be the first children of `parent`, with rising ranks. */
static size_t plant(struct bow__heap_node *parent, const struct forest *forest)
{
    size_t n = 0;

    if (forest->ranks != 0 && parent->rank < (uint64_t)highest(forest->ranks)) {
        parent->rank = (uint64_t)highest(forest->ranks);
    }
    for (uint64_t left = forest->ranks; left != 0; n++) {
        int rank = highest(left);
        left &= ~(UINT64_C(1) << rank);
        push_child(parent, forest->trees[rank]);
    }
    return n;
}

/* Make one tree of what a removed node leaves, inside the heap: the first of them comes up. */
static struct bow__heap_node *join(struct bow__heap_node *siblings)
{
    struct forest forest = {.ranks = 0};

    if (siblings == NULL || siblings->next == NULL) {
        return siblings;
    }
    collect(&forest, siblings);
    struct bow__heap_node *first = take_first(&forest);
    plant(first, &forest);
    return first;
}

/* The same for the root, whose children are put in order with those that come to it. */
static void join_at_root(struct bow__heap *heap, struct bow__heap_node *siblings)
{
    struct forest forest = {.ranks = 0};

    if (siblings == NULL) {
        set_root(heap, NULL);
        return;
    }
    collect(&forest, siblings);
    struct bow__heap_node *first = take_first(&forest);
    struct bow__heap_node *own = first->child;
    first->child = NULL;
    collect(&forest, own);
    heap->n_loose = plant(first, &forest);
    set_root(heap, first);
}

static void tidy(struct bow__heap *heap)
{
    struct forest forest = {.ranks = 0};
    struct bow__heap_node *children = heap->root->child;

    heap->root->child = NULL;
    collect(&forest, children);
    heap->n_loose = plant(heap->root, &forest);
}

/* Link the first children of the root as long as two neighbours are of one rank. */
static void carry(struct bow__heap *heap)
{
    struct bow__heap_node *root = heap->root;
    struct bow__heap_node *first = root->child;
    struct bow__heap_node *second = first->next;

    while (second != NULL && second->rank == first->rank) {
        struct bow__heap_node *rest = second->next;
        first = link_trees(second, first);
        assert(first->rank < MAX_RANKS);
        root->child = rest;
        push_child(root, first);
        second = rest;
        heap->n_loose--;
    }
    if (root->rank < first->rank) {
        root->rank = first->rank;
    }
}

static void add_below_root(struct bow__heap *heap, struct bow__heap_node *node)
{
    push_child(heap->root, node);
    heap->n_loose++;
    carry(heap);
    if (heap->n_loose > MAX_LOOSE) {
        tidy(heap);
    }
}

static void add_above_root(struct bow__heap *heap, struct bow__heap_node *node)
{
    struct bow__heap_node *old = heap->root;

    node->rank = old->rank > 0 ? old->rank : 1;
    push_child(node, old);
    set_root(heap, node);
    heap->n_loose = 1;
}

void bow__heap_insert(struct bow__heap *heap, struct bow__heap_node *node, uint64_t key)
{
    assert(!bow__heap_node_is_in(node));
    node->child = NULL;
    node->rank = 0;
    node->key = key;
    node->seq = heap->next_seq++;
    if (heap->root == NULL) {
        set_root(heap, node);
        heap->n_loose = 0;
    } else if (is_before(node, heap->root)) {
        add_above_root(heap, node);
    } else {
        add_below_root(heap, node);
    }
    heap->n_nodes++;
}

/* Put `other` (NULL: nothing) where `node` is among its siblings. */
static void replace(struct bow__heap_node *node, struct bow__heap_node *other)
{
    struct bow__heap_node *from_here = other != NULL ? other : node->next;

    if (other != NULL) {
        other->next = node->next;
        if (other->next != NULL) {
            other->next->prev = other;
        }
    }
    if (node->prev->child == node) {
        node->prev->child = from_here;
    } else {
        node->prev->next = from_here;
    }
    if (from_here != NULL) {
        from_here->prev = node->prev;
    }
}

void bow__heap_remove(struct bow__heap *heap, struct bow__heap_node *node)
{
    assert(bow__heap_node_is_in(node));
    if (node == heap->root) {
        join_at_root(heap, node->child);
    } else {
        /* Nothing below `node` is before its parent. */
        replace(node, join(node->child));
    }
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    heap->n_nodes--;
}
