/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What malloc keeps of freed blocks goes back to the system: after a burst, and before a ceiling
 * would be passed by the process.
 */

#include "base/alloc.h"
#include "base/large.h"
#include "base/trim.h"

#include <bowline/limits.h>
#include <bowline/system.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define SECOND UINT64_C(1000000000)
#define BLOCK_BYTES ((size_t)200)
#define BURST_BYTES (40 * MIB)
#define N_BLOCKS (BURST_BYTES / BLOCK_BYTES)
#define START_NS (100 * SECOND)

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

/* A sanitizer's malloc keeps what it wants to. */
static bool is_glibc_malloc(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return false;
#else
    return true;
#endif
}

static size_t resident(void)
{
    unsigned long total = 0;
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", &total, &pages), 2);
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

struct burst {
    struct bow_context *context;
    void **blocks; /* not counted */
    void *last;    /* stays at the top of the heap */
};

static struct burst begin(size_t max_bytes, bool keep_freed)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct burst burst = {.blocks = malloc(N_BLOCKS * sizeof(*burst.blocks))};

    options.max_bytes = max_bytes;
    options.keep_freed = keep_freed;
    assert_non_null(burst.blocks);
    memset(burst.blocks, 0, N_BLOCKS * sizeof(*burst.blocks));
    assert_int_equal(bow_context_new(&options, &burst.context), 0);
    return burst;
}

static void take(struct burst *burst)
{
    for (size_t i = 0; i < N_BLOCKS; i++) {
        burst->blocks[i] = bow__alloc(burst->context, BLOCK_BYTES);
        assert_non_null(burst->blocks[i]);
        memset(burst->blocks[i], 'x', BLOCK_BYTES);
    }
    burst->last = bow__alloc(burst->context, BLOCK_BYTES);
    assert_non_null(burst->last);
}

static void give(struct burst *burst)
{
    for (size_t i = 0; i < N_BLOCKS; i++) {
        bow__free(burst->context, burst->blocks[i], BLOCK_BYTES);
    }
}

static void end(struct burst *burst)
{
    bow__free(burst->context, burst->last, BLOCK_BYTES);
    assert_int_equal(bow_context_bytes(burst->context), 0);
    bow_context_unref(burst->context);
    free(burst->blocks);
}

static void test_trim_f43_a_burst_is_given_back_when_half_a_second_did_not_want_it(void **state)
{
    struct burst burst = begin(0, false);
    (void)state;

    size_t before = resident();
    take(&burst);
    bow__trim(burst.context, START_NS);
    give(&burst);
    assert_true(bow__may_trim(burst.context));
    bow__trim(burst.context, START_NS + BOW__TRIM_QUIET_NS - 1); /* another loop's */
    assert_true(bow__may_trim(burst.context));
    bow__trim(burst.context, START_NS + BOW__TRIM_QUIET_NS);
    bow__trim(burst.context, START_NS + 2 * BOW__TRIM_QUIET_NS);
    assert_false(bow__may_trim(burst.context));
    if (is_glibc_malloc()) {
        assert_in_range(resident(), 0, before + BOW_LIMIT_KEPT_BYTES);
    }
    end(&burst);
}

static void test_trim_f43_what_is_wanted_again_and_again_is_kept(void **state)
{
    struct burst burst = begin(0, false);
    (void)state;

    size_t before = resident();
    for (uint64_t i = 0; i < 4; i++) {
        take(&burst);
        give(&burst);
        bow__trim(burst.context, START_NS + i * BOW__TRIM_QUIET_NS);
        assert_true(bow__may_trim(burst.context));
        if (is_glibc_malloc()) {
            assert_true(resident() > before + BURST_BYTES / 2);
        }
        bow__free(burst.context, i < 3 ? burst.last : NULL, BLOCK_BYTES);
    }
    end(&burst);
}

static void test_trim_f43_middle_blocks_that_waited_are_given_back(void **state)
{
    enum { N = 1024 };
    size_t size = 20 * KIB;
    void *blocks[N + 1]; /* the last stays, at the top of the heap */
    struct burst burst = begin(0, false);
    (void)state;

    size_t before = resident();
    for (unsigned i = 0; i <= N; i++) {
        blocks[i] = bow__alloc(burst.context, size);
        assert_non_null(blocks[i]);
        memset(blocks[i], 'x', size);
    }
    for (unsigned i = 0; i < N; i++) {
        bow__free(burst.context, blocks[i], size);
    }
    for (uint64_t i = 0; i < 5; i++) {
        if (i < 3) { /* the spares stay for a second */
            bow__free(burst.context, bow__alloc(burst.context, size), size);
        }
        bow__trim(burst.context, START_NS + i * BOW__TRIM_QUIET_NS);
    }
    assert_false(bow__may_trim(burst.context));
    if (is_glibc_malloc()) {
        assert_in_range(resident(), 0, before + BOW_LIMIT_KEPT_BYTES);
    }
    bow__free(burst.context, blocks[N], size);
    end(&burst);
}

static void test_trim_f43_is_switched_off_by_option_and_own_allocators(void **state)
{
    struct burst burst = begin(0, true);
    (void)state;

    take(&burst);
    give(&burst);
    assert_false(bow__may_trim(burst.context));
    end(&burst);

    struct bow__large large;
    bow__large_init(&large);
    struct bow_allocator allocator = bow__large_allocator(&large);
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    options.allocator = &allocator;
    burst = begin(0, false);
    bow_context_unref(burst.context);
    assert_int_equal(bow_context_new(&options, &burst.context), 0);
    take(&burst);
    give(&burst);
    assert_false(bow__may_trim(burst.context));
    end(&burst);
    bow__large_fini(&large);
}

/* Freed small blocks do not serve mappings: both together are held against the ceiling. */
static void test_trim_f45_small_blocks_then_large_ones_stay_below_the_ceiling(void **state)
{
    enum { N_LARGE = 38 };
    void *large[N_LARGE];
    struct burst burst = begin(BURST_BYTES + MIB, false);
    (void)state;

    size_t before = resident();
    take(&burst);
    give(&burst);
    for (unsigned i = 0; i < N_LARGE; i++) {
        large[i] = bow__alloc(burst.context, MIB);
        assert_non_null(large[i]);
        memset(large[i], 'x', MIB);
        if (is_glibc_malloc()) {
            assert_in_range(resident(), 0, before + (BURST_BYTES + MIB) * 13 / 10 + 16 * MIB);
        }
    }
    for (unsigned i = 0; i < N_LARGE; i++) {
        bow__free(burst.context, large[i], MIB);
    }
    end(&burst);
}

static uint64_t read_slow_clock(void *user)
{
    uint64_t *now_ns = user;

    return *now_ns += SECOND;
}

static void test_trim_f43_that_takes_long_is_seldom(void **state)
{
    uint64_t now_ns = 0;
    struct bow_system system = {.user = &now_ns, .now_ns = read_slow_clock};
    struct bow__malloc_trim trim;
    (void)state;

    bow__trim_init(&trim, true);
    bow__trim_note(&trim, BURST_BYTES);
    bow__trim_look(&trim, 0, 0, &system, START_NS);
    bow__trim_look(&trim, 0, 0, &system, START_NS + SECOND); /* and took a second */
    assert_int_equal(bow__trim_kept(&trim, 0), 0);
    bow__trim_note(&trim, BURST_BYTES);
    bow__trim_look(&trim, 0, 0, &system, START_NS + 20 * SECOND);
    bow__trim_look(&trim, 0, 0, &system, START_NS + 21 * SECOND);
    assert_int_equal(bow__trim_kept(&trim, 0), BURST_BYTES);
    bow__trim_look(&trim, 0, 0, &system, START_NS + 22 * SECOND);
    assert_int_equal(bow__trim_kept(&trim, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim_f43_a_burst_is_given_back_when_half_a_second_did_not_want_it),
        cmocka_unit_test(test_trim_f43_what_is_wanted_again_and_again_is_kept),
        cmocka_unit_test(test_trim_f43_middle_blocks_that_waited_are_given_back),
        cmocka_unit_test(test_trim_f43_is_switched_off_by_option_and_own_allocators),
        cmocka_unit_test(test_trim_f43_that_takes_long_is_seldom),
        cmocka_unit_test(test_trim_f45_small_blocks_then_large_ones_stay_below_the_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
