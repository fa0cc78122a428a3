/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counted blocks and the pool of equal ones.
 */

#include "base/block.h"
#include "base/poison.h"
#include "base/pool.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_context_end(f->context, &f->alloc);
    return 0;
}

static void fail_next(struct fixture *f)
{
    f->alloc.fail_at = f->alloc.n_calls + 1;
}

static void test_block_new_is_aligned_and_holds_its_cap(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 100);

    assert_int_equal(block->cap, 100);
    assert_int_equal((uintptr_t)block->data % 16, 0);
    memset(block->data, 1, 100);
    assert_null(bow__block_unref(block));
    assert_null(bow__block_unref(NULL));
    block = bow__block_new(f->context, 0);
    assert_non_null(block);
    assert_null(bow__block_unref(block));
}

static void test_block_lives_until_the_last_reference(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 1);

    assert_ptr_equal(bow__block_ref(block), block);
    assert_null(bow__block_unref(block));
    assert_int_not_equal(bow_context_bytes(f->context), 0);
    assert_null(bow__block_unref(block));
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_block_new_of_an_impossible_size_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_null(bow__block_new(f->context, SIZE_MAX));
    assert_null(bow__block_new(f->context, SIZE_MAX - sizeof(struct bow__block) + 1));
    fail_next(f);
    assert_null(bow__block_new(f->context, 8));
}

static void test_block_grow_keeps_the_content(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 8);

    memcpy(block->data, "bowline", 8);
    assert_int_equal(bow__block_grow(&block, 4096), 0);
    assert_int_equal(block->cap, 4096);
    assert_string_equal((char *)block->data, "bowline");
    memset(block->data, 1, 4096);
    assert_int_equal(bow__block_grow(&block, 16), 0); /* never smaller */
    assert_int_equal(block->cap, 4096);
    assert_null(bow__block_unref(block));
}

static void test_block_shrink_gives_memory_back(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 4096);

    memcpy(block->data, "bowline", 8);
    bow__block_shrink(&block, 8);
    assert_int_equal(block->cap, 8);
    assert_true(bow_context_bytes(f->context) < 4096);
    assert_string_equal((char *)block->data, "bowline");
    bow__block_shrink(&block, 16); /* never larger */
    assert_int_equal(block->cap, 8);
    fail_next(f);
    bow__block_shrink(&block, 1);
    assert_int_equal(block->cap, 8);
    assert_null(bow__block_unref(block));
}

static void test_block_grow_that_fails_leaves_the_block(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = bow__block_new(f->context, 8);
    struct bow__block *same = block;

    fail_next(f);
    assert_int_equal(bow__block_grow(&block, 4096), -ENOMEM);
    assert_int_equal(bow__block_grow(&block, SIZE_MAX), -ENOMEM);
    assert_ptr_equal(block, same);
    assert_int_equal(block->cap, 8);
    assert_null(bow__block_unref(block));
}

#define N_THREADS 4
#define N_ROUNDS 10000

struct share {
    struct bow__block *block;
    size_t at;
};

static void *share_and_drop(void *user)
{
    struct share *share = user;
    struct bow__block *block = share->block;

    for (int i = 0; i < N_ROUNDS; i++) {
        bow__block_ref(block);
        bow__block_unref(block);
    }
    block->data[share->at] = 1; /* must happen before the free, whichever thread does it */
    return bow__block_unref(block);
}

static void test_block_shared_by_threads_is_freed_once(void **state)
{
    struct fixture *f = *state;
    struct share shares[N_THREADS];
    pthread_t threads[N_THREADS];

    struct bow__block *common = bow__block_new(f->context, N_THREADS);
    for (size_t i = 0; i < N_THREADS; i++) {
        shares[i] = (struct share){bow__block_ref(common), i};
    }
    bow__block_unref(common);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, share_and_drop, &shares[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_pool_gives_the_block_used_last(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 4);
    struct bow__block *a = bow__pool_get(&pool);
    struct bow__block *b = bow__pool_get(&pool);
    assert_int_equal(a->cap, BOW__CHUNK_BYTES);
    bow__pool_put(&pool, a);
    bow__pool_put(&pool, b);
    assert_int_equal(pool.n_idle, 2);
    assert_ptr_equal(bow__pool_get(&pool), b);
    assert_ptr_equal(bow__pool_get(&pool), a);
    assert_int_equal(pool.n_idle, 0);
    bow__pool_put(&pool, a);
    bow__pool_put(&pool, b);
    bow__pool_fini(&pool);
    bow__pool_fini(&pool);
}

static void test_pool_keeps_at_most_max_idle(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;
    struct bow__block *blocks[5];

    bow__pool_init(&pool, f->context, 3);
    for (int i = 0; i < 5; i++) {
        blocks[i] = bow__pool_get(&pool);
    }
    for (int i = 0; i < 5; i++) {
        bow__pool_put(&pool, blocks[i]);
    }
    assert_int_equal(pool.n_idle, 3);
    assert_int_equal(f->alloc.n_blocks, 3 + 1);
    bow__pool_fini(&pool);
}

/* What is freed goes back to the context at once where the one who touches it is to be found. */
static void test_pool_gives_a_small_block_again_for_one_of_its_class(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 4);
    void *first = bow__pool_alloc(&pool, BOW__POOL_CLASS_BYTES + 1);
    void *other = bow__pool_alloc(&pool, 1);
    size_t n_blocks = f->alloc.n_blocks;
    bow__pool_free(&pool, first, BOW__POOL_CLASS_BYTES + 1);
    assert_int_equal(bow__pool_is_empty(&pool), BOW__POISONS);
    assert_int_equal(f->alloc.n_blocks, BOW__POISONS ? n_blocks - 1 : n_blocks);
    void *again = bow__pool_alloc(&pool, 2 * BOW__POOL_CLASS_BYTES);
    assert_int_equal(f->alloc.n_blocks, n_blocks);
    if (!BOW__POISONS) {
        assert_ptr_equal(again, first);
    }
    memset(again, 0xff, 2 * BOW__POOL_CLASS_BYTES);
    bow__pool_free(&pool, other, 1);
    bow__pool_free(&pool, again, 2 * BOW__POOL_CLASS_BYTES);
    bow__pool_fini(&pool);
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_pool_keeps_no_more_small_bytes_than_its_limit(void **state)
{
    enum { N = 4 * BOW__POOL_SMALL_BYTES / 1024 };
    struct fixture *f = *state;
    struct bow__pool pool;
    static void *blocks[N];

    bow__pool_init(&pool, f->context, 4);
    for (size_t i = 0; i < N; i++) {
        blocks[i] = bow__pool_alloc(&pool, 1000);
    }
    for (size_t i = 0; i < N; i++) {
        bow__pool_free(&pool, blocks[i], 1000);
    }
    assert_true(bow_context_bytes(f->context) <= BOW__POOL_SMALL_BYTES);
    assert_int_equal(bow__pool_is_empty(&pool), BOW__POISONS);
    bow__pool_trim(&pool);
    assert_true(bow__pool_is_empty(&pool));
    assert_int_equal(bow_context_bytes(f->context), 0);
    bow__pool_fini(&pool);
}

static void test_pool_does_not_keep_what_is_above_its_classes(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 4);
    size_t n = BOW__POOL_N_CLASSES * BOW__POOL_CLASS_BYTES + 1;
    void *memory = bow__pool_alloc(&pool, n);
    assert_int_equal(bow_context_bytes(f->context), n);
    bow__pool_free(&pool, memory, n);
    assert_true(bow__pool_is_empty(&pool));
    assert_int_equal(bow_context_bytes(f->context), 0);
    bow__pool_fini(&pool);
}

/* From a class to the next, beyond the last one, and back. */
static void test_pool_resize_keeps_the_content(void **state)
{
    static const size_t sizes[] = {8, 64, 65, 900, 1024, 1025, 5000, 3000, 100, 7};
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 4);
    unsigned char *memory = bow__pool_alloc(&pool, sizes[0]);
    memset(memory, 1, sizes[0]);
    for (size_t i = 1; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n_kept = sizes[i - 1] < sizes[i] ? sizes[i - 1] : sizes[i];
        memory = bow__pool_resize(&pool, memory, sizes[i - 1], sizes[i]);
        assert_non_null(memory);
        for (size_t at = 0; at < n_kept; at++) {
            assert_int_equal(memory[at], i);
        }
        memset(memory, (int)i + 1, sizes[i]);
    }
    bow__pool_free(&pool, memory, 7);
    bow__pool_fini(&pool);
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_pool_resize_without_memory_leaves_it(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 4);
    char *memory = bow__pool_alloc(&pool, 6);
    memcpy(memory, "hello", 6);
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_null(bow__pool_resize(&pool, memory, 6, 600));
    assert_string_equal(memory, "hello");
    bow__pool_free(&pool, memory, 6);
    bow__pool_fini(&pool);
}

static void test_pool_trimmed_again_and_again_ends_empty(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;
    struct bow__block *blocks[5];

    bow__pool_init(&pool, f->context, 8);
    for (int i = 0; i < 5; i++) {
        blocks[i] = bow__pool_get(&pool);
    }
    for (int i = 0; i < 5; i++) {
        bow__pool_put(&pool, blocks[i]);
    }
    bow__pool_trim(&pool);
    assert_int_equal(pool.n_idle, 2);
    bow__pool_trim(&pool);
    assert_int_equal(pool.n_idle, 1);
    bow__pool_trim(&pool);
    assert_int_equal(pool.n_idle, 0);
    assert_int_equal(bow_context_bytes(f->context), 0);
    bow__pool_fini(&pool);
}

static void test_pool_without_memory_gives_null(void **state)
{
    struct fixture *f = *state;
    struct bow__pool pool;

    bow__pool_init(&pool, f->context, 1);
    fail_next(f);
    assert_null(bow__pool_get(&pool));
    bow__pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_block_new_is_aligned_and_holds_its_cap, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_block_lives_until_the_last_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(test_block_new_of_an_impossible_size_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_block_grow_keeps_the_content, setup, teardown),
        cmocka_unit_test_setup_teardown(test_block_shrink_gives_memory_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_block_grow_that_fails_leaves_the_block, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_block_shared_by_threads_is_freed_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pool_gives_the_block_used_last, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_keeps_at_most_max_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_trimmed_again_and_again_ends_empty, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pool_without_memory_gives_null, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_gives_a_small_block_again_for_one_of_its_class,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_keeps_no_more_small_bytes_than_its_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pool_does_not_keep_what_is_above_its_classes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pool_resize_keeps_the_content, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_resize_without_memory_leaves_it, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
