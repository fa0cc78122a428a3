/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The allocator for tests: each block carries its size and whether it is alive.
 */

#include "tests/support/alloc.h"

#include "base/slot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALIVE UINT64_C(0x616c6976655f626c)
#define FREED UINT64_C(0x66726565645f626c)
#define JUNK 0xA5

struct header {
    uint64_t state;
    size_t size;
    _Alignas(16) uint8_t data[];
};

static void broken(const char *what, size_t size, size_t said)
{
    fprintf(stderr, "test allocator: %s: block of %zu bytes, caller says %zu\n", what, size, said);
    abort();
}

static struct header *header_of(void *memory)
{
    return (struct header *)(void *)((uint8_t *)memory - offsetof(struct header, data));
}

static bool must_fail(struct test_alloc *alloc)
{
    size_t n = atomic_fetch_add(&alloc->n_calls, 1) + 1;
    bool fails =
        alloc->fail_at != 0 && (n == alloc->fail_at || (alloc->fail_after && n > alloc->fail_at));
    if (fails) {
        atomic_fetch_add(&alloc->n_failed, 1);
    }
    return fails;
}

static void *counted_alloc(void *user, size_t size)
{
    struct test_alloc *alloc = user;
    size_t n_bytes = 0;

    if (size == 0) {
        broken("alloc of nothing", 0, size);
    }
    if (must_fail(alloc) || __builtin_add_overflow(sizeof(struct header), size, &n_bytes)) {
        return NULL;
    }
    struct header *header = malloc(n_bytes);
    if (header == NULL) {
        return NULL;
    }
    header->state = ALIVE;
    header->size = size;
    memset(header->data, JUNK, size);
    atomic_fetch_add(&alloc->n_blocks, 1);
    atomic_fetch_add(&alloc->n_bytes, size);
    return header->data;
}

static void check(const char *verb, void *memory, size_t said)
{
    struct header *header = header_of(memory);

    if (header->state != ALIVE) {
        broken(verb, 0, said);
    }
    if (header->size != said) {
        broken(verb, header->size, said);
    }
}

static void counted_free(void *user, void *memory, size_t size)
{
    struct test_alloc *alloc = user;

    if (memory == NULL) {
        broken("free of NULL", 0, size);
    }
    check("free", memory, size);
    header_of(memory)->state = FREED;
    memset(memory, JUNK, size);
    atomic_fetch_sub(&alloc->n_blocks, 1);
    atomic_fetch_sub(&alloc->n_bytes, size);
    free(header_of(memory));
}

/* Always moves, so that a pointer kept across a resize is found. */
static void *counted_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    check("resize", memory, old_size);
    void *moved = counted_alloc(user, new_size);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, memory, old_size < new_size ? old_size : new_size);
    counted_free(user, memory, old_size);
    return moved;
}

void test_alloc_init(struct test_alloc *alloc)
{
    memset(alloc, 0, sizeof(*alloc));
    alloc->allocator = (struct bow_allocator){
        .alloc = counted_alloc,
        .resize = counted_resize,
        .free = counted_free,
        .user = alloc,
    };
}

struct bow_context *test_context_new(struct test_alloc *alloc)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    options.allocator = &alloc->allocator;
    assert_int_equal(bow_context_new(&options, &context), 0);
    return context;
}

void test_context_end(struct bow_context *context, struct test_alloc *alloc)
{
    assert_int_equal(bow_context_bytes(context), 0);
    /* the context itself, and what it keeps for upper layers */
    assert_in_range(atomic_load(&alloc->n_blocks), 1, 1 + BOW__N_SLOTS);
    assert_null(bow_context_unref(context));
    assert_int_equal(atomic_load(&alloc->n_blocks), 0);
    assert_int_equal(atomic_load(&alloc->n_bytes), 0);
}

/* Returns false when the run met no failure. */
static bool run_failing(struct test_alloc *alloc, const struct bow_context_options *given,
                        int (*scenario)(struct bow_context *context, void *user), void *user)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    if (given != NULL) {
        options = *given;
    }
    options.allocator = &alloc->allocator;
    int rc = bow_context_new(&options, &context);
    if (rc == 0) {
        rc = scenario(context, user);
        test_context_end(context, alloc);
    }
    bool failed = atomic_load(&alloc->n_failed) > 0;
    if (rc != 0 && !(failed && rc == -ENOMEM)) {
        fail_msg("allocation %zu failing: the scenario returned %d", alloc->fail_at, rc);
    }
    return failed;
}

size_t test_alloc_fail_each(const struct bow_context_options *options,
                            int (*scenario)(struct bow_context *context, void *user), void *user)
{
    struct test_alloc alloc;

    for (size_t at = 1;; at++) {
        test_alloc_init(&alloc);
        alloc.fail_at = at;
        if (!run_failing(&alloc, options, scenario, user)) {
            return atomic_load(&alloc.n_calls);
        }
        test_alloc_init(&alloc);
        alloc.fail_at = at;
        alloc.fail_after = true;
        (void)run_failing(&alloc, options, scenario, user);
    }
}
