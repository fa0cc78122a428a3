/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arenas of programs: from a context or from malloc(), their limit, their reset. */

#include "base/arena.h"
#include "tests/support/alloc.h"
#include <bowline/arena.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_arena_own_gives_aligned_memory_from_its_context(void **state)
{
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow_arena *arena = bow_arena_new(context, 0);
    assert_non_null(arena);
    size_t n_first = bow_context_bytes(context);
    assert_in_range(n_first, 2000, 2048);
    for (size_t n = 0; n < 200; n++) {
        char *memory = bow_arena_alloc(arena, n);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 16, 0);
        memset(memory, 1, n);
    }
    assert_true(bow_arena_used(arena) > 200 * 100 - n_first);
    assert_int_equal(bow_context_bytes(context), n_first + bow_arena_used(arena));
    bow_arena_free(arena);
    test_context_end(context, &alloc); /* its reference is gone, too */
}

static void test_arena_own_outlives_its_context(void **state)
{
    struct bow_context *context = NULL;

    (void)state;
    assert_int_equal(bow_context_new(NULL, &context), 0);
    struct bow_arena *arena = bow_arena_new(context, 0);
    bow_context_unref(context);
    assert_non_null(bow_arena_alloc(arena, 10000));
    bow_arena_free(arena);
}

static void test_arena_own_without_a_context_lives_in_the_heap(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);

    (void)state;
    assert_non_null(arena);
    for (unsigned i = 0; i < 100; i++) {
        char *memory = bow_arena_alloc(arena, 10000);
        assert_non_null(memory);
        memset(memory, 1, 10000);
    }
    assert_in_range(bow_arena_used(arena), 1000000, 1100000);
    bow_arena_free(arena);
}

static void test_arena_own_ends_at_its_limit_and_remembers(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 10000);
    size_t n_given = 0;

    (void)state;
    while (bow_arena_alloc(arena, 100) != NULL) {
        assert_false(bow_arena_failed(arena));
        n_given += 100;
    }
    assert_in_range(n_given, 8000, 10000);
    assert_in_range(bow_arena_used(arena), 1, 10000);
    assert_true(bow_arena_failed(arena));
    (void)bow_arena_alloc(arena, 1);
    assert_true(bow_arena_failed(arena));
    bow_arena_free(arena);
}

static void test_arena_own_reset_forgets_and_keeps_its_first_block(void **state)
{
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow_arena *arena = bow_arena_new(context, 3000);
    assert_non_null(bow_arena_alloc(arena, 100));
    assert_null(bow_arena_alloc(arena, 10000));
    bow_arena_reset(arena);
    assert_false(bow_arena_failed(arena));
    size_t n_calls = alloc.n_calls;
    for (unsigned i = 0; i < 1000; i++) {
        assert_non_null(bow_arena_alloc(arena, 1500));
        bow_arena_reset(arena);
    }
    assert_int_equal(alloc.n_calls, n_calls);
    assert_int_equal(bow_arena_used(arena), 0);
    bow_arena_free(arena);
    test_context_end(context, &alloc);
}

static int fill(struct bow_context *context, void *user)
{
    struct bow_arena *arena = bow_arena_new(context, 0);
    int rc = 0;

    (void)user;
    if (arena == NULL) {
        return -12;
    }
    for (unsigned i = 0; i < 10; i++) {
        if (bow_arena_alloc(arena, 1000) == NULL) {
            rc = -12;
        }
    }
    assert_int_equal(bow_arena_failed(arena), rc != 0);
    bow_arena_free(arena);
    return rc;
}

static void test_arena_own_without_memory_remembers_each_failure(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, fill, NULL) > 1);
}

static void test_arena_own_null_is_one_that_failed(void **state)
{
    (void)state;
    assert_null(bow_arena_alloc(NULL, 1));
    assert_true(bow_arena_failed(NULL));
    assert_int_equal(bow_arena_used(NULL), 0);
    bow_arena_reset(NULL);
    bow_arena_free(NULL);
}

/* As a call's is: whoever frees it takes the memory from under the call. */
static void test_arena_of_a_call_is_not_freed_alone(void **state)
{
    struct test_alloc alloc;
    struct bow__arena arena;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__arena_init(&arena, context, NULL, 0, SIZE_MAX);
    char *memory = bow_arena_alloc(bow__arena_as_public(&arena), 10);
    bow_arena_reset(bow__arena_as_public(&arena));
    bow_arena_free(bow__arena_as_public(&arena));
    memset(memory, 1, 10);
    assert_true(bow_arena_used(bow__arena_as_public(&arena)) > 0);
    bow__arena_fini(&arena);
    test_context_end(context, &alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_own_gives_aligned_memory_from_its_context),
        cmocka_unit_test(test_arena_own_outlives_its_context),
        cmocka_unit_test(test_arena_own_without_a_context_lives_in_the_heap),
        cmocka_unit_test(test_arena_own_ends_at_its_limit_and_remembers),
        cmocka_unit_test(test_arena_own_reset_forgets_and_keeps_its_first_block),
        cmocka_unit_test(test_arena_own_without_memory_remembers_each_failure),
        cmocka_unit_test(test_arena_own_null_is_one_that_failed),
        cmocka_unit_test(test_arena_of_a_call_is_not_freed_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
