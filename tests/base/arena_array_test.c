/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arrays that grow in an arena: which ones it knows. */

#include "base/arena_array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    static struct bow__arena arena;

    bow__arena_init(&arena, NULL, NULL, 0, SIZE_MAX);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    bow__arena_fini(*state);
    return 0;
}

static void test_arena_array_room_is_the_next_power_of_two(void **state)
{
    static const size_t rooms[][2] = {
        {0, 0}, {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {8, 8}, {9, 16}, {1u << 30, 1u << 30}};

    (void)state;
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        assert_int_equal(bow__arena_array_room(rooms[i][0]), rooms[i][1]);
    }
}

static void test_arena_array_moves_only_when_it_is_full(void **state)
{
    struct bow__arena *arena = *state;
    uint64_t *array = NULL;
    size_t n_moves = 0;

    for (uint64_t n = 0; n < 1000; n++) {
        uint64_t *extended = bow__arena_array_extend(arena, array, n, sizeof(*array));
        assert_non_null(extended);
        n_moves += extended != array;
        array = extended;
        array[n] = n;
    }
    assert_int_equal(n_moves, 11); /* at 0, 1, 2, 4, .. 512 */
    for (uint64_t n = 0; n < 1000; n++) {
        assert_int_equal(array[n], n);
    }
}

static void test_arena_array_of_somebody_else_is_copied_once(void **state)
{
    struct bow__arena *arena = *state;
    uint64_t theirs[3] = {1, 2, 3};
    uint64_t *array = bow__arena_array_extend(arena, theirs, 3, sizeof(*array));

    assert_non_null(array);
    assert_ptr_not_equal(array, theirs);
    assert_memory_equal(array, theirs, sizeof(theirs));
    assert_ptr_equal(array, bow__arena_array_extend(arena, array, 3, sizeof(*array)));
}

/* The memory of what a program takes from the arena is no array of ours either. */
static void test_arena_array_of_the_programs_in_the_arena_is_copied(void **state)
{
    struct bow__arena *arena = *state;
    uint64_t *theirs = bow__arena_alloc(arena, 3 * sizeof(*theirs));

    memset(theirs, 0, 3 * sizeof(*theirs));
    assert_ptr_not_equal(theirs, bow__arena_array_extend(arena, theirs, 3, sizeof(*theirs)));
}

static void test_arena_array_that_lost_elements_is_known(void **state)
{
    struct bow__arena *arena = *state;
    char *array = NULL;

    for (size_t n = 0; n < 7; n++) {
        array = bow__arena_array_extend(arena, array, n, 1);
    }
    assert_ptr_equal(array, bow__arena_array_extend(arena, array, 3, 1));
}

static void test_arena_array_of_many_are_all_known(void **state)
{
    struct bow__arena *arena = *state;
    enum { N_ARRAYS = 5000 };
    static char *arrays[N_ARRAYS];

    for (size_t n = 0; n < 3; n++) {
        for (size_t i = 0; i < N_ARRAYS; i++) {
            arrays[i] = bow__arena_array_extend(arena, n > 0 ? arrays[i] : NULL, n, 1);
            assert_non_null(arrays[i]);
        }
    }
    for (size_t i = 0; i < N_ARRAYS; i++) {
        assert_ptr_equal(arrays[i], bow__arena_array_extend(arena, arrays[i], 3, 1));
    }
}

static void test_arena_array_is_forgotten_with_a_reset(void **state)
{
    static _Alignas(16) uint8_t first[4096];
    struct bow__arena arena;
    char *array = NULL;

    (void)state;
    bow__arena_init(&arena, NULL, first, sizeof(first), SIZE_MAX);
    for (size_t n = 0; n < 3; n++) {
        array = bow__arena_array_extend(&arena, array, n, 1);
    }
    bow__arena_reset(&arena);
    assert_ptr_not_equal(array, bow__arena_array_extend(&arena, array, 3, 0));
    bow__arena_fini(&arena);
}

static void test_arena_array_without_memory_is_noted(void **state)
{
    struct bow__arena *arena = *state;

    assert_null(bow__arena_array_extend(arena, NULL, SIZE_MAX / 4, 16));
    assert_true(bow__arena_has_failed(arena));
    bow__arena_reset(arena);
    arena->max_bytes = 0;
    assert_null(bow__arena_array_extend(arena, NULL, 0, 1));
    assert_true(bow__arena_has_failed(arena));
    arena->max_bytes = SIZE_MAX;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_arena_array_room_is_the_next_power_of_two),
        TEST(test_arena_array_moves_only_when_it_is_full),
        TEST(test_arena_array_of_somebody_else_is_copied_once),
        TEST(test_arena_array_of_the_programs_in_the_arena_is_copied),
        TEST(test_arena_array_that_lost_elements_is_known),
        TEST(test_arena_array_of_many_are_all_known),
        TEST(test_arena_array_is_forgotten_with_a_reset),
        TEST(test_arena_array_without_memory_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
