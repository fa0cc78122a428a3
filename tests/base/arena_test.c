/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The arena: alignment, its cap, the owner's first memory, adopted blocks.
 */

#include "base/arena.h"
#include "base/block.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CAP ((size_t)1 << 20)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    bow__arena_init(&fixture.arena, fixture.context, NULL, 0, CAP);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    bow__arena_fini(&f->arena);
    test_context_end(f->context, &f->alloc);
    return 0;
}

static void restart(struct fixture *f, void *first, size_t first_size, size_t max_bytes)
{
    bow__arena_fini(&f->arena);
    bow__arena_init(&f->arena, f->context, first, first_size, max_bytes);
}

static char *format(struct bow__arena *arena, const char *text, ...) BOW_PRINTF(2, 3);

static char *format(struct bow__arena *arena, const char *text, ...)
{
    va_list args;

    va_start(args, text);
    char *made = bow__arena_vprintf(arena, text, args);
    va_end(args);
    return made;
}

static void test_arena_untouched_allocates_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(bow_context_bytes(f->context), 0);
    bow__arena_reset(&f->arena);
    assert_false(f->arena.failed);
}

static void test_arena_alloc_is_aligned_and_disjoint(void **state)
{
    struct fixture *f = *state;
    uint8_t *pieces[200];

    for (size_t i = 0; i < 200; i++) {
        if (i % 3 == 0) {
            assert_non_null(bow__arena_alloc_bytes(&f->arena, 1)); /* disturbs the alignment */
        }
        pieces[i] = bow__arena_alloc(&f->arena, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t at = 0; at < i; at++) {
            assert_int_equal(pieces[i][at], i);
        }
    }
    assert_false(f->arena.failed);
}

static void test_arena_alloc_of_nothing_is_a_valid_pointer(void **state)
{
    struct fixture *f = *state;

    assert_non_null(bow__arena_alloc(&f->arena, 0));
    assert_non_null(bow__arena_alloc_bytes(&f->arena, 0));
}

static void test_arena_small_use_stays_in_the_first_memory(void **state)
{
    struct fixture *f = *state;
    uint8_t first[256];

    restart(f, first + 1, sizeof(first) - 1, CAP); /* not even aligned */
    uint8_t *memory = bow__arena_alloc(&f->arena, 100);
    assert_true(memory > first && memory + 100 <= first + sizeof(first));
    assert_int_equal((uintptr_t)memory % 16, 0);
    assert_int_equal(bow_context_bytes(f->context), 0);
    assert_int_equal(f->arena.used, 0);
    assert_non_null(bow__arena_alloc(&f->arena, 200)); /* no longer fits */
    assert_int_not_equal(bow_context_bytes(f->context), 0);
    bow__arena_reset(&f->arena);
    assert_int_equal(bow_context_bytes(f->context), 0);
    assert_ptr_equal(bow__arena_alloc(&f->arena, 100), memory);
}

static void test_arena_large_piece_does_not_waste_the_chunk(void **state)
{
    struct fixture *f = *state;

    uint8_t *a = bow__arena_alloc(&f->arena, 16);
    assert_non_null(bow__arena_alloc(&f->arena, 100000));
    uint8_t *b = bow__arena_alloc(&f->arena, 16);
    assert_ptr_equal(b, a + 16);
}

static void test_arena_chunks_grow_so_their_number_stays_small(void **state)
{
    struct fixture *f = *state;
    size_t n_before = f->alloc.n_calls;

    for (int i = 0; i < 10000; i++) {
        assert_non_null(bow__arena_alloc(&f->arena, 64));
    }
    assert_true(f->alloc.n_calls - n_before < 25);
    assert_true(f->arena.used < 10000 * 64 + 66000);
}

static void test_arena_cap_is_reached_but_not_passed(void **state)
{
    struct fixture *f = *state;
    size_t n_given = 0;

    restart(f, NULL, 0, 10000);
    while (bow__arena_alloc_bytes(&f->arena, 100) != NULL) {
        n_given += 100;
        assert_false(f->arena.failed);
    }
    assert_true(f->arena.failed);
    assert_true(n_given >= 9500); /* all but chunk headers and their ends */
    assert_true(f->arena.used <= 10000);
    assert_int_equal(bow_context_bytes(f->context), f->arena.used);
}

static void test_arena_failed_stays_set_until_reset(void **state)
{
    struct fixture *f = *state;

    assert_null(bow__arena_alloc(&f->arena, CAP));
    assert_true(f->arena.failed);
    assert_non_null(bow__arena_alloc(&f->arena, 8));
    assert_true(f->arena.failed);
    bow__arena_reset(&f->arena);
    assert_false(f->arena.failed);
}

static void test_arena_impossible_sizes_fail(void **state)
{
    struct fixture *f = *state;

    restart(f, NULL, 0, SIZE_MAX);
    assert_null(bow__arena_alloc(&f->arena, SIZE_MAX));
    assert_true(f->arena.failed);
    bow__arena_reset(&f->arena);
    assert_null(bow__arena_dup(&f->arena, "x", SIZE_MAX));
    assert_true(f->arena.failed);
}

static void test_arena_dup_copies_and_terminates(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(bow__arena_dup(&f->arena, "bowline", 4), "bowl");
    assert_string_equal(bow__arena_dup(&f->arena, NULL, 0), "");
}

static void test_arena_printf_fits_or_moves_on(void **state)
{
    struct fixture *f = *state;
    char first[16];

    restart(f, first, sizeof(first), CAP);
    char *text = format(&f->arena, "Hello, %s", "World!!!"); /* 15 and the NUL: fits exactly */
    assert_string_equal(text, "Hello, World!!!");
    assert_ptr_equal(text, first);
    assert_int_equal(bow_context_bytes(f->context), 0);
    bow__arena_reset(&f->arena);
    text = format(&f->arena, "Hello, %s", "World!!!!");
    assert_string_equal(text, "Hello, World!!!!");
    assert_int_not_equal(bow_context_bytes(f->context), 0);
    char *second = format(&f->arena, "%0*d", 20000, 7);
    assert_int_equal(strlen(second), 20000);
    assert_int_equal(second[19999], '7');
    assert_string_equal(text, "Hello, World!!!!");
    assert_string_equal(format(&f->arena, "%s", ""), "");
}

static void test_arena_printf_beyond_the_cap_fails(void **state)
{
    struct fixture *f = *state;

    assert_null(format(&f->arena, "%0*d", (int)CAP, 7));
    assert_true(f->arena.failed);
}

static void test_arena_adopted_block_lives_until_reset(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 1000);
    struct bow__block *other = bow__block_new(f->context, 10);

    memset(block->data, 1, 1000);
    assert_int_equal(bow__arena_adopt(&f->arena, block), 0);
    assert_int_equal(bow__arena_adopt(&f->arena, bow__block_ref(other)), 0);
    assert_true(f->arena.used >= 1010);
    assert_int_equal(block->data[999], 1);
    bow__arena_reset(&f->arena);
    assert_int_equal(f->arena.used, 0);
    assert_null(bow__block_unref(other)); /* was shared, still ours */
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_arena_adopt_beyond_the_cap_leaves_the_block(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, CAP);

    assert_int_equal(bow__arena_adopt(&f->arena, block), -ENOMEM);
    assert_true(f->arena.failed);
    assert_null(bow__block_unref(block));
    bow__arena_reset(&f->arena);
    block = bow__block_new(f->context, 8);
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__arena_adopt(&f->arena, block), -ENOMEM);
    assert_true(f->arena.failed);
    assert_null(bow__block_unref(block));
}

static void test_arena_adopted_block_counts_against_the_cap(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, CAP / 2);

    assert_int_equal(bow__arena_adopt(&f->arena, block), 0);
    assert_null(bow__arena_alloc(&f->arena, CAP / 2));
    assert_true(f->arena.failed);
}

static int build_message(struct bow_context *context, void *user)
{
    struct bow__arena arena;
    struct bow__block *block = bow__block_new(context, 5000);

    (void)user;
    if (block == NULL) {
        return -ENOMEM;
    }
    bow__arena_init(&arena, context, NULL, 0, CAP);
    if (bow__arena_adopt(&arena, block) < 0) {
        bow__block_unref(block);
    }
    for (size_t size = 1; size < 10000; size *= 3) {
        (void)bow__arena_alloc(&arena, size);
        (void)bow__arena_dup(&arena, "text", 4);
        (void)format(&arena, "%zu", size);
    }
    int rc = arena.failed ? -ENOMEM : 0;
    bow__arena_fini(&arena);
    return rc;
}

static void test_arena_with_each_allocation_failing_leaks_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, build_message, NULL) > 4);
}

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_arena_untouched_allocates_nothing),
        UNIT(test_arena_alloc_is_aligned_and_disjoint),
        UNIT(test_arena_alloc_of_nothing_is_a_valid_pointer),
        UNIT(test_arena_small_use_stays_in_the_first_memory),
        UNIT(test_arena_large_piece_does_not_waste_the_chunk),
        UNIT(test_arena_chunks_grow_so_their_number_stays_small),
        UNIT(test_arena_cap_is_reached_but_not_passed),
        UNIT(test_arena_failed_stays_set_until_reset),
        UNIT(test_arena_impossible_sizes_fail),
        UNIT(test_arena_dup_copies_and_terminates),
        UNIT(test_arena_printf_fits_or_moves_on),
        UNIT(test_arena_printf_beyond_the_cap_fails),
        UNIT(test_arena_adopted_block_lives_until_reset),
        UNIT(test_arena_adopt_beyond_the_cap_leaves_the_block),
        UNIT(test_arena_adopted_block_counts_against_the_cap),
        UNIT(test_arena_with_each_allocation_failing_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
