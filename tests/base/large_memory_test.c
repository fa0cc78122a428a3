/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The default allocator: contents survive each way to resize, and large blocks go back to the
 * system, or to the next who needs one.
 */

#include "base/alloc.h"
#include "base/large.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

/* Then all blocks are malloc's, and only their contents can be looked at. */
static bool is_malloc_only(void)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    return true;
#else
    return false;
#endif
}

static bool is_mapped(void *memory)
{
    unsigned char page = 0;
    uintptr_t start = (uintptr_t)memory & ~(uintptr_t)4095;

    return mincore((void *)start, 1, &page) == 0 || errno != ENOMEM;
}

static void fill(uint8_t *memory, size_t from, size_t size)
{
    for (size_t i = from; i < size; i++) {
        memory[i] = (uint8_t)(i * 31 + i / 4096);
    }
}

static bool holds(const uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (memory[i] != (uint8_t)(i * 31 + i / 4096)) {
            return false;
        }
    }
    return true;
}

static int make(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;

    assert_int_equal(bow_context_new(&options, &context), 0);
    *state = context;
    return 0;
}

static int end(void **state)
{
    struct bow_context *context = *state;

    assert_int_equal(bow_context_bytes(context), 0);
    bow_context_unref(context);
    return 0;
}

static void test_large_contents_survive_every_resize(void **state)
{
    static const size_t sizes[] = {
        1,         32 * KIB, 32 * KIB + 1, 64 * KIB,    64 * KIB + 1,
        100 * KIB, 2 * MIB,  2 * MIB + 1,  5 * MIB + 7, 40 * KIB,
    };
    enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

    for (size_t from = 0; from < N_SIZES; from++) {
        for (size_t to = 0; to < N_SIZES; to++) {
            size_t kept = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
            uint8_t *memory = bow__alloc(*state, sizes[from]);
            assert_non_null(memory);
            fill(memory, 0, sizes[from]);
            memory = bow__resize(*state, memory, sizes[from], sizes[to]);
            assert_non_null(memory);
            assert_true(holds(memory, kept));
            fill(memory, kept, sizes[to]);
            assert_true(holds(memory, sizes[to]));
            bow__free(*state, memory, sizes[to]);
        }
    }
}

static void test_large_block_is_given_to_the_next_and_trimmed(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    assert_false(bow__has_spares(*state));
    uint8_t *first = bow__alloc(*state, MIB);
    assert_non_null(first);
    fill(first, 0, MIB);
    bow__free(*state, first, MIB);
    assert_true(bow__has_spares(*state));

    uint8_t *second = bow__alloc(*state, MIB - 5);
    assert_ptr_equal(second, first);
    assert_false(bow__has_spares(*state));
    bow__free(*state, second, MIB - 5);
    bow__trim(*state);
    assert_true(bow__has_spares(*state)); /* it was wanted a moment ago */
    bow__trim(*state);
    assert_false(bow__has_spares(*state));
    assert_false(is_mapped(first));
}

static void test_large_only_a_few_wait(void **state)
{
    enum { N = 3 * BOW__LARGE_SPARES };
    void *blocks[N];
    size_t n_mapped = 0;

    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    for (size_t i = 0; i < N; i++) {
        blocks[i] = bow__alloc(*state, 100 * KIB);
        assert_non_null(blocks[i]);
    }
    for (size_t i = 0; i < N; i++) {
        bow__free(*state, blocks[i], 100 * KIB);
    }
    for (size_t i = 0; i < N; i++) {
        n_mapped += is_mapped(blocks[i]);
    }
    assert_int_equal(n_mapped, BOW__LARGE_SPARES);
    void *huge = bow__alloc(*state, 3 * MIB);
    assert_non_null(huge);
    bow__free(*state, huge, 3 * MIB);
    assert_false(is_mapped(huge));
}

static void test_large_end_of_the_context_leaves_none(void **state)
{
    struct bow_context *context;
    void *memory;

    (void)state;
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    assert_int_equal(bow_context_new(NULL, &context), 0);
    memory = bow__alloc(context, 200 * KIB);
    assert_non_null(memory);
    bow__free(context, memory, 200 * KIB);
    assert_true(is_mapped(memory));
    bow_context_unref(context);
    assert_false(is_mapped(memory));
}

static void test_large_impossible_size_is_refused(void **state)
{
    void *memory;

    if (is_malloc_only()) {
        print_message("AddressSanitizer's malloc() ends the process for such a size\n");
        skip();
    }
    memory = bow__alloc(*state, 64 * KIB);
    assert_non_null(memory);
    assert_null(bow__alloc(*state, SIZE_MAX / 2));
    assert_null(bow__resize(*state, memory, 64 * KIB, SIZE_MAX / 2));
    bow__free(*state, memory, 64 * KIB);
}

static void *take_and_give(void *user)
{
    uint8_t mark = 1;

    for (size_t i = 0; i < 2000; i++, mark++) {
        size_t size = (33 + i * 7 % 300) * KIB;
        uint8_t *memory = bow__alloc(user, size);
        assert_non_null(memory);
        memory[0] = mark;
        memory[size - 1] = mark;
        if (i % 100 == 0) {
            bow__trim(user);
        }
        assert_int_equal(memory[0], mark);
        assert_int_equal(memory[size - 1], mark);
        bow__free(user, memory, size);
    }
    return NULL;
}

static void test_large_no_two_threads_have_the_same(void **state)
{
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, *state), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_contents_survive_every_resize, make, end),
        cmocka_unit_test_setup_teardown(test_large_block_is_given_to_the_next_and_trimmed, make,
                                        end),
        cmocka_unit_test_setup_teardown(test_large_only_a_few_wait, make, end),
        cmocka_unit_test(test_large_end_of_the_context_leaves_none),
        cmocka_unit_test_setup_teardown(test_large_impossible_size_is_refused, make, end),
        cmocka_unit_test_setup_teardown(test_large_no_two_threads_have_the_same, make, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
