/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap against a model: an array searched for its least element.
 */

#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_MODEL 300
#define N_MANY 100000

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void test_heap_empty_has_no_min(void **state)
{
    struct bow__heap heap;

    (void)state;
    bow__heap_init(&heap);
    assert_null(bow__heap_min(&heap));
    assert_int_equal(heap.n_nodes, 0);
}

static void test_heap_node_knows_whether_it_is_in(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node a = {0};
    struct bow__heap_node b = {0};

    (void)state;
    bow__heap_init(&heap);
    assert_false(bow__heap_node_is_in(&a));
    bow__heap_insert(&heap, &a, 1);
    bow__heap_insert(&heap, &b, 2);
    assert_true(bow__heap_node_is_in(&a));
    assert_true(bow__heap_node_is_in(&b));
    bow__heap_remove(&heap, &a);
    assert_false(bow__heap_node_is_in(&a));
    assert_ptr_equal(bow__heap_min(&heap), &b);
    bow__heap_remove(&heap, &b);
    assert_false(bow__heap_node_is_in(&b));
    assert_null(bow__heap_min(&heap));
    bow__heap_insert(&heap, &a, 3);
    assert_ptr_equal(bow__heap_min(&heap), &a);
}

/* Nodes leave in order, whatever was removed from the middle. */
static void assert_pops_in_order(struct bow__heap *heap, size_t n_nodes)
{
    uint64_t key = 0;
    uint64_t seq = 0;

    for (size_t i = 0; i < n_nodes; i++) {
        struct bow__heap_node *node = bow__heap_min(heap);
        assert_non_null(node);
        assert_true(node->key > key || (node->key == key && node->seq >= seq));
        key = node->key;
        seq = node->seq;
        bow__heap_remove(heap, node);
    }
    assert_null(bow__heap_min(heap));
    assert_int_equal(heap->n_nodes, 0);
}

static void test_heap_equal_keys_leave_in_order_of_insertion(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node nodes[100] = {0};

    (void)state;
    bow__heap_init(&heap);
    for (size_t i = 0; i < 100; i++) {
        bow__heap_insert(&heap, &nodes[i], i % 2); /* odd ones later, each half in order */
    }
    for (size_t i = 0; i < 100; i++) {
        size_t expected = i < 50 ? i * 2 : (i - 50) * 2 + 1;
        assert_ptr_equal(bow__heap_min(&heap), &nodes[expected]);
        bow__heap_remove(&heap, &nodes[expected]);
    }
}

static void test_heap_reinserted_node_goes_behind_its_equals(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node a = {0};
    struct bow__heap_node b = {0};

    (void)state;
    bow__heap_init(&heap);
    bow__heap_insert(&heap, &a, 7);
    bow__heap_insert(&heap, &b, 7);
    bow__heap_remove(&heap, &a);
    bow__heap_insert(&heap, &a, 7);
    assert_ptr_equal(bow__heap_min(&heap), &b);
}

static void test_heap_keys_span_all_of_u64(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node never = {0};
    struct bow__heap_node now = {0};

    (void)state;
    bow__heap_init(&heap);
    bow__heap_insert(&heap, &never, UINT64_MAX);
    bow__heap_insert(&heap, &now, 0);
    assert_ptr_equal(bow__heap_min(&heap), &now);
    bow__heap_remove(&heap, &now);
    assert_ptr_equal(bow__heap_min(&heap), &never);
}

static struct bow__heap_node *model_min(struct bow__heap_node *nodes)
{
    struct bow__heap_node *least = NULL;

    for (size_t i = 0; i < N_MODEL; i++) {
        struct bow__heap_node *node = &nodes[i];
        if (!bow__heap_node_is_in(node)) {
            continue;
        }
        if (least == NULL || node->key < least->key ||
            (node->key == least->key && node->seq < least->seq)) {
            least = node;
        }
    }
    return least;
}

/* Every link of the tree leads back, and no child is before its parent. */
static size_t count_checked(const struct bow__heap *heap)
{
    static const struct bow__heap_node *stack[N_MODEL];
    size_t n_stack = 0;
    size_t n_nodes = 0;

    if (heap->root != NULL) {
        assert_ptr_equal(heap->root->prev, heap->root);
        assert_null(heap->root->next);
        stack[n_stack++] = heap->root;
    }
    while (n_stack > 0) {
        const struct bow__heap_node *parent = stack[--n_stack];
        const struct bow__heap_node *before = parent;
        n_nodes++;
        for (const struct bow__heap_node *c = parent->child; c != NULL; c = c->next) {
            assert_ptr_equal(c->prev, before);
            assert_true(c->key > parent->key || (c->key == parent->key && c->seq > parent->seq));
            before = c;
            stack[n_stack++] = c;
        }
    }
    return n_nodes;
}

static void test_heap_random_operations_match_the_model(void **state)
{
    static struct bow__heap_node nodes[N_MODEL];
    struct bow__heap heap;
    uint64_t seed = 0x9e3779b97f4a7c15;
    size_t n_in = 0;

    (void)state;
    bow__heap_init(&heap);
    for (int i = 0; i < 20000; i++) {
        struct bow__heap_node *node = &nodes[next_random(&seed) % N_MODEL];
        if (next_random(&seed) % 4 == 0 && bow__heap_min(&heap) != NULL) {
            node = bow__heap_min(&heap);
        }
        if (bow__heap_node_is_in(node)) {
            bow__heap_remove(&heap, node);
            n_in--;
        } else {
            bow__heap_insert(&heap, node, next_random(&seed) % 50);
            n_in++;
        }
        assert_int_equal(heap.n_nodes, n_in);
        assert_ptr_equal(bow__heap_min(&heap), model_min(nodes));
        if (i % 100 == 0) {
            assert_int_equal(count_checked(&heap), n_in);
        }
    }
    assert_pops_in_order(&heap, n_in);
}

/* Falling keys make one chain of children, rising ones one fan: neither may recurse. */
static void test_heap_of_many_nodes_in_any_order_sorts(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node *nodes = calloc(N_MANY, sizeof(*nodes));
    uint64_t seed = 42;

    (void)state;
    assert_non_null(nodes);
    bow__heap_init(&heap);
    for (size_t i = 0; i < N_MANY; i++) {
        bow__heap_insert(&heap, &nodes[i], i);
    }
    assert_pops_in_order(&heap, N_MANY);
    for (size_t i = 0; i < N_MANY; i++) {
        bow__heap_insert(&heap, &nodes[i], N_MANY - i);
    }
    assert_pops_in_order(&heap, N_MANY);
    for (size_t i = 0; i < N_MANY; i++) {
        bow__heap_insert(&heap, &nodes[i], next_random(&seed) % N_MANY);
    }
    for (size_t i = 0; i < N_MANY; i += 2) {
        bow__heap_remove(&heap, &nodes[i]);
    }
    assert_pops_in_order(&heap, N_MANY / 2);
    free(nodes);
}

/* The next removal of the root looks at all its children. */
static size_t n_to_look_at(const struct bow__heap *heap)
{
    size_t n = 0;

    if (heap->root == NULL) {
        return 0;
    }
    for (const struct bow__heap_node *c = heap->root->child; c != NULL; c = c->next) {
        n++;
    }
    return n;
}

static void test_heap_filled_in_any_order_leaves_little_to_the_first_removal(void **state)
{
    struct bow__heap heap;
    struct bow__heap_node *nodes = calloc(N_MANY, sizeof(*nodes));
    uint64_t seed = 7;

    (void)state;
    assert_non_null(nodes);
    for (int order = 0; order < 3; order++) {
        bow__heap_init(&heap);
        for (size_t i = 0; i < N_MANY; i++) {
            const uint64_t keys[3] = {i, N_MANY - i, next_random(&seed)};
            bow__heap_insert(&heap, &nodes[i], keys[order]);
            assert_in_range(n_to_look_at(&heap), 0, 17); /* of 2^17 nodes */
        }
        memset(nodes, 0, N_MANY * sizeof(*nodes));
    }
    free(nodes);
}

/* Whoever is next in line is taken out and put in again; `next` chooses. */
static void check_never_much_to_do(struct bow__heap_node *(*next)(struct bow__heap *heap,
                                                                  struct bow__heap_node *nodes,
                                                                  size_t i, uint64_t *key))
{
    struct bow__heap heap;
    struct bow__heap_node *nodes = calloc(N_MANY, sizeof(*nodes));
    size_t worst = 0;

    assert_non_null(nodes);
    bow__heap_init(&heap);
    for (size_t i = 0; i < 10 * (size_t)N_MANY; i++) {
        uint64_t key = 0;
        struct bow__heap_node *node = next(&heap, nodes, i, &key);
        if (bow__heap_node_is_in(node)) {
            bow__heap_remove(&heap, node);
        }
        bow__heap_insert(&heap, node, key);
        size_t n = n_to_look_at(&heap);
        worst = n > worst ? n : worst;
    }
    assert_in_range(worst, 1, 200);
    assert_pops_in_order(&heap, heap.n_nodes);
    free(nodes);
}

/* All have the same time to live: a pairing heap gives one node a child at each step. */
static struct bow__heap_node *next_oldest(struct bow__heap *heap, struct bow__heap_node *nodes,
                                          size_t i, uint64_t *key)
{
    (void)heap;
    *key = i;
    return &nodes[i % N_MANY];
}

static struct bow__heap_node *next_any(struct bow__heap *heap, struct bow__heap_node *nodes,
                                       size_t i, uint64_t *key)
{
    uint64_t seed = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
    (void)heap;

    size_t which = (size_t)next_random(&seed) % N_MANY;
    *key = i + next_random(&seed) % (3 * (uint64_t)N_MANY);
    return &nodes[which];
}

/* Now and then the first one, which is due; its new place is far behind or at the front. */
static struct bow__heap_node *next_due(struct bow__heap *heap, struct bow__heap_node *nodes,
                                       size_t i, uint64_t *key)
{
    struct bow__heap_node *node = next_any(heap, nodes, i, key);

    if (i % 3 == 0 && bow__heap_min(heap) != NULL) {
        node = bow__heap_min(heap);
        *key = i % 2 == 0 ? node->key + 1 : *key;
    }
    return node;
}

static void test_heap_never_leaves_much_to_a_removal_while_nodes_come_and_go(void **state)
{
    (void)state;
    check_never_much_to_do(next_oldest);
    check_never_much_to_do(next_any);
    check_never_much_to_do(next_due);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_empty_has_no_min),
        cmocka_unit_test(test_heap_node_knows_whether_it_is_in),
        cmocka_unit_test(test_heap_equal_keys_leave_in_order_of_insertion),
        cmocka_unit_test(test_heap_reinserted_node_goes_behind_its_equals),
        cmocka_unit_test(test_heap_keys_span_all_of_u64),
        cmocka_unit_test(test_heap_random_operations_match_the_model),
        cmocka_unit_test(test_heap_of_many_nodes_in_any_order_sorts),
        cmocka_unit_test(test_heap_filled_in_any_order_leaves_little_to_the_first_removal),
        cmocka_unit_test(test_heap_never_leaves_much_to_a_removal_while_nodes_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
