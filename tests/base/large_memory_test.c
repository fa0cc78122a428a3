/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The default allocator: contents survive each way to resize, and large blocks go back to the
 * system, or to the next who needs one.
 */

#include "base/alloc.h"
#include "base/block.h"
#include "base/large.h"

#include <bowline/limits.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define SECOND UINT64_C(1000000000)

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
    assert_int_equal(bow__spare_bytes(*state), 0);
    uint8_t *first = bow__alloc(*state, MIB);
    assert_non_null(first);
    fill(first, 0, MIB);
    bow__free(*state, first, MIB);
    assert_int_equal(bow__spare_bytes(*state), MIB);

    uint8_t *second = bow__alloc(*state, MIB - 5);
    assert_ptr_equal(second, first);
    assert_int_equal(bow__spare_bytes(*state), 0);
    bow__free(*state, second, MIB - 5);
    bow__trim(*state, 10 * SECOND);
    assert_int_equal(bow__spare_bytes(*state), MIB); /* it was wanted a moment ago */
    bow__trim(*state, 11 * SECOND - 1);
    assert_int_equal(bow__spare_bytes(*state), MIB); /* another loop's second has not passed */
    bow__trim(*state, 11 * SECOND);
    assert_int_equal(bow__spare_bytes(*state), 0);
    assert_false(is_mapped(first));
}

/* What is left of a burst, while others come and go. */
static void test_large_f68_unwanted_spares_go_though_others_are_wanted(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    void *unwanted = bow__alloc(*state, MIB);
    assert_non_null(unwanted);
    bow__free(*state, unwanted, MIB);
    for (unsigned i = 1; i <= BOW__LARGE_TRIMS + 1; i++) {
        assert_true(is_mapped(unwanted));
        void *wanted = bow__alloc(*state, 64 * KIB);
        assert_non_null(wanted);
        bow__free(*state, wanted, 64 * KIB);
        bow__trim(*state, (10 + i) * SECOND);
    }
    assert_false(is_mapped(unwanted));
    assert_int_equal(bow__spare_bytes(*state), 64 * KIB);
}

static void test_large_f68_spares_are_bounded_and_the_oldest_goes(void **state)
{
    enum { N = BOW_LIMIT_SPARE_BYTES / MIB + 2 };
    void *blocks[N];

    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    for (size_t i = 0; i < N; i++) {
        blocks[i] = bow__alloc(*state, MIB);
        assert_non_null(blocks[i]);
    }
    for (size_t i = 0; i < N; i++) {
        bow__free(*state, blocks[i], MIB);
    }
    assert_int_equal(bow__spare_bytes(*state), BOW_LIMIT_SPARE_BYTES);
    assert_false(is_mapped(blocks[0]));
    assert_false(is_mapped(blocks[1]));
    assert_true(is_mapped(blocks[2]));

    /* Another class finds room. */
    void *small = bow__alloc(*state, 64 * KIB);
    assert_non_null(small);
    bow__free(*state, small, 64 * KIB);
    assert_true(is_mapped(small));
    assert_false(is_mapped(blocks[2]));
    assert_true(bow__spare_bytes(*state) <= BOW_LIMIT_SPARE_BYTES);
}

static void test_large_f68_expected_blocks_wait_whatever_their_size(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    for (unsigned i = 0; i < 2; i++) {
        void *huge = bow__alloc(*state, 100 * MIB);
        assert_non_null(huge);
        bow__free(*state, huge, 100 * MIB);
        assert_int_equal(is_mapped(huge), i);
        bow__expect_large(*state, 100 * MIB);
    }
}

static void test_large_f68_spare_of_up_to_twice_the_size_is_taken(void **state)
{
    size_t size = 0;

    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    void *memory = bow__alloc(*state, MIB);
    assert_non_null(memory);
    bow__free(*state, memory, MIB);
    assert_null(bow__alloc_spare(*state, 400 * KIB, &size));
    assert_null(bow__alloc_spare(*state, MIB + 1, &size));
    assert_null(bow__alloc_spare(*state, SIZE_MAX, &size));
    assert_ptr_equal(bow__alloc_spare(*state, 600 * KIB, &size), memory);
    assert_int_equal(size, MIB);
    assert_int_equal(bow_context_bytes(*state), MIB); /* all of it counts */
    assert_null(bow__alloc_spare(*state, 600 * KIB, &size));
    bow__free(*state, memory, size);
}

static void test_large_f68_growth_takes_a_spare_or_its_pages_along(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    uint8_t *spare = bow__alloc(*state, MIB);
    uint8_t *memory = bow__alloc(*state, 64 * KIB);
    assert_non_null(spare);
    assert_non_null(memory);
    fill(memory, 0, 64 * KIB);
    bow__free(*state, spare, MIB);
    memory = bow__resize(*state, memory, 64 * KIB, MIB);
    assert_ptr_equal(memory, spare);
    assert_true(holds(memory, 64 * KIB));
    assert_int_equal(bow__spare_bytes(*state), 64 * KIB);

    /* What shrinks leaves the whole. */
    memory = bow__resize(*state, memory, MIB, 64 * KIB);
    assert_non_null(memory);
    assert_true(holds(memory, 64 * KIB));
    assert_int_equal(bow__spare_bytes(*state), MIB);
    bow__free(*state, memory, 64 * KIB);
}

static void test_large_f68_spares_give_way_below_a_ceiling(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;

    (void)state;
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    options.max_bytes = 4 * MIB;
    assert_int_equal(bow_context_new(&options, &context), 0);
    void *first = bow__alloc(context, 3 * MIB);
    assert_non_null(first);
    bow__free(context, first, 3 * MIB);
    assert_int_equal(bow__spare_bytes(context), 3 * MIB);
    void *second = bow__alloc(context, 2 * MIB);
    assert_non_null(second);
    assert_int_equal(bow__spare_bytes(context), 0);

    /* Nor does what is freed wait above it. */
    void *third = bow__alloc(context, 2 * MIB);
    assert_non_null(third);
    bow__free(context, second, 2 * MIB);
    assert_int_equal(bow__spare_bytes(context), 2 * MIB);
    void *small = bow__alloc(context, 1);
    assert_non_null(small);
    assert_int_equal(bow__spare_bytes(context), 0);
    bow__free(context, small, 1);
    bow__free(context, third, 2 * MIB);
    bow_context_unref(context);
}

/* A message's first bytes: fresh memory is for them, a spare for the whole. */
static void test_large_f68_f30_message_takes_a_spare_or_grows_as_it_arrives(void **state)
{
    struct bow__block *block = NULL;

    for (size_t n = 1; n <= 3 * MIB; n += 100 * KIB) {
        assert_int_equal(bow__block_make_room(*state, &block, n, 3 * MIB), 0);
        assert_true(block->cap >= n);
        assert_true(block->cap <= (n > 32 * KIB ? 2 * n : 64 * KIB));
    }
    assert_int_equal(bow__block_make_room(*state, &block, 3 * MIB, 3 * MIB), 0);
    assert_int_equal(block->cap, 3 * MIB);
    const struct bow__block *first = block;
    block = bow__block_unref(block);
    if (is_malloc_only()) {
        return;
    }
    assert_int_equal(bow__block_make_room(*state, &block, 1, 3 * MIB), 0);
    assert_ptr_equal(block, first);
    assert_true(block->cap >= 3 * MIB);
    assert_null(bow__block_unref(block));
}

/* Blocks of some KiB, which malloc would take from the top of its heap and give back. */
static void test_large_f68_middle_blocks_wait_too(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    void *memory = bow__alloc(*state, 5000);
    assert_non_null(memory);
    bow__free(*state, memory, 5000);
    assert_int_equal(bow__spare_bytes(*state), 6 * KIB);
    assert_ptr_equal(bow__alloc(*state, 6 * KIB), memory);
    bow__free(*state, memory, 6 * KIB);
    memory = bow__alloc(*state, 4 * KIB);
    assert_non_null(memory);
    bow__free(*state, memory, 4 * KIB);
    assert_int_equal(bow__spare_bytes(*state), 6 * KIB);
}

/* Whether the kernel was asked for huge pages for the mapping that has `memory`. */
static bool asks_for_huge_pages(const void *memory)
{
    char line[512];
    bool is_it = false;
    bool asks = false;
    FILE *maps = fopen("/proc/self/smaps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            is_it = from <= (uintptr_t)memory && (uintptr_t)memory < to;
        } else if (is_it && strncmp(line, "VmFlags:", 8) == 0) {
            asks = strstr(line, " hg") != NULL;
        }
    }
    fclose(maps);
    return asks;
}

static void test_large_f68_has_huge_pages_from_where_one_fits(void **state)
{
    if (is_malloc_only()) {
        print_message("under AddressSanitizer all blocks are malloc's\n");
        skip();
    }
    void *small = bow__alloc(*state, 1900 * KIB);
    void *large = bow__alloc(*state, 3 * MIB + 100);
    assert_non_null(small);
    assert_non_null(large);
    assert_int_equal((uintptr_t)large % (2 * MIB), 0);
    fill(large, 0, 3 * MIB + 100);
    assert_true(holds(large, 3 * MIB + 100));
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
        assert_true(asks_for_huge_pages(large));
        assert_false(asks_for_huge_pages(small));
    } else {
        print_message("this kernel has no transparent huge pages: only the border is looked at\n");
    }
    bow__free(*state, large, 3 * MIB + 100);
    bow__free(*state, small, 1900 * KIB);
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
            bow__trim(user, i * SECOND);
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
        cmocka_unit_test_setup_teardown(test_large_f68_unwanted_spares_go_though_others_are_wanted,
                                        make, end),
        cmocka_unit_test_setup_teardown(test_large_f68_spares_are_bounded_and_the_oldest_goes, make,
                                        end),
        cmocka_unit_test_setup_teardown(test_large_f68_expected_blocks_wait_whatever_their_size,
                                        make, end),
        cmocka_unit_test_setup_teardown(test_large_f68_spare_of_up_to_twice_the_size_is_taken, make,
                                        end),
        cmocka_unit_test_setup_teardown(test_large_f68_growth_takes_a_spare_or_its_pages_along,
                                        make, end),
        cmocka_unit_test(test_large_f68_spares_give_way_below_a_ceiling),
        cmocka_unit_test_setup_teardown(
            test_large_f68_f30_message_takes_a_spare_or_grows_as_it_arrives, make, end),
        cmocka_unit_test_setup_teardown(test_large_f68_middle_blocks_wait_too, make, end),
        cmocka_unit_test_setup_teardown(test_large_f68_has_huge_pages_from_where_one_fits, make,
                                        end),
        cmocka_unit_test(test_large_end_of_the_context_leaves_none),
        cmocka_unit_test_setup_teardown(test_large_impossible_size_is_refused, make, end),
        cmocka_unit_test_setup_teardown(test_large_no_two_threads_have_the_same, make, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
