/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory through the context: what is counted, what is refused, what stays as it was.
 */

#include "base/alloc.h"
#include "tests/support/alloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CEILING ((size_t)1000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
};

static void make(struct fixture *fixture, size_t max_bytes)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    test_alloc_init(&fixture->alloc);
    options.allocator = &fixture->alloc.allocator;
    options.max_bytes = max_bytes;
    assert_int_equal(bow_context_new(&options, &fixture->context), 0);
}

static void fail_next(struct fixture *fixture)
{
    fixture->alloc.fail_at = fixture->alloc.n_calls + 1;
}

static void test_alloc_and_free_are_counted(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, 0);
    void *a = bow__alloc(f.context, 10);
    void *b = bow__alloc(f.context, 32);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(bow_context_bytes(f.context), 42);
    bow__free(f.context, a, 10);
    assert_int_equal(bow_context_bytes(f.context), 32);
    bow__free(f.context, b, 32);
    bow__free(f.context, NULL, 7);
    test_context_end(f.context, &f.alloc);
}

static void test_alloc_refused_by_the_allocator_is_not_counted(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, 0);
    fail_next(&f);
    assert_null(bow__alloc(f.context, 10));
    assert_int_equal(bow_context_bytes(f.context), 0);
    test_context_end(f.context, &f.alloc);
}

static void test_alloc_up_to_the_ceiling_is_given_and_beyond_refused(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, CEILING);
    assert_int_equal(bow_context_max_bytes(f.context), CEILING);
    void *all = bow__alloc(f.context, CEILING);
    assert_non_null(all);
    size_t n_calls = f.alloc.n_calls;
    assert_null(bow__alloc(f.context, 1));
    assert_int_equal(f.alloc.n_calls, n_calls); /* refused before the allocator is asked */
    bow__free(f.context, all, CEILING);
    assert_null(bow__alloc(f.context, CEILING + 1));
    assert_null(bow__alloc(f.context, SIZE_MAX));
    all = bow__alloc(f.context, CEILING);
    assert_non_null(all);
    bow__free(f.context, all, CEILING);
    test_context_end(f.context, &f.alloc);
}

static void test_alloc_zero_gives_zeroed_memory(void **state)
{
    struct fixture f;
    static const uint8_t zeros[64];

    (void)state;
    make(&f, 0);
    void *memory = bow__alloc_zero(f.context, sizeof(zeros));
    assert_memory_equal(memory, zeros, sizeof(zeros));
    bow__free(f.context, memory, sizeof(zeros));
    memory = bow__alloc_array(f.context, 8, 8);
    assert_memory_equal(memory, zeros, sizeof(zeros));
    bow__free(f.context, memory, sizeof(zeros));
    fail_next(&f);
    assert_null(bow__alloc_zero(f.context, 8));
    test_context_end(f.context, &f.alloc);
}

static void test_alloc_array_of_an_overflowing_product_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, 0);
    size_t n_calls = f.alloc.n_calls;
    assert_null(bow__alloc_array(f.context, SIZE_MAX / 8 + 1, 8));
    assert_null(bow__alloc_array(f.context, SIZE_MAX, SIZE_MAX));
    assert_int_equal(f.alloc.n_calls, n_calls);
    test_context_end(f.context, &f.alloc);
}

static void test_resize_keeps_content_and_counts_the_difference(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, 0);
    char *text = bow__resize(f.context, NULL, 0, 8);
    assert_non_null(text);
    memcpy(text, "bowline", 8);
    text = bow__resize(f.context, text, 8, 100);
    assert_string_equal(text, "bowline");
    assert_int_equal(bow_context_bytes(f.context), 100);
    text = bow__resize(f.context, text, 100, 4);
    assert_memory_equal(text, "bowl", 4);
    assert_int_equal(bow_context_bytes(f.context), 4);
    bow__free(f.context, text, 4);
    test_context_end(f.context, &f.alloc);
}

static void test_resize_that_fails_leaves_memory_and_count(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, CEILING);
    char *text = bow__alloc(f.context, 8);
    memcpy(text, "bowline", 8);
    fail_next(&f);
    assert_null(bow__resize(f.context, text, 8, 100));
    fail_next(&f);
    assert_null(bow__resize(f.context, text, 8, 4));
    assert_null(bow__resize(f.context, text, 8, CEILING + 1));
    assert_int_equal(bow_context_bytes(f.context), 8);
    assert_string_equal(text, "bowline");
    bow__free(f.context, text, 8);
    test_context_end(f.context, &f.alloc);
}

static void test_dup_copies_and_terminates(void **state)
{
    struct fixture f;

    (void)state;
    make(&f, 0);
    char *copy = bow__dup(f.context, "bowline", 4);
    assert_string_equal(copy, "bowl");
    bow__free(f.context, copy, 5);
    copy = bow__dup(f.context, NULL, 0);
    assert_string_equal(copy, "");
    bow__free(f.context, copy, 1);
    assert_null(bow__dup(f.context, "x", SIZE_MAX));
    fail_next(&f);
    assert_null(bow__dup(f.context, "bowline", 4));
    test_context_end(f.context, &f.alloc);
}

#define N_THREADS 4
#define N_ROUNDS 2000
#define PIECE (CEILING / 5)

static void *allocate_in_turns(void *user)
{
    struct bow_context *context = user;
    size_t n_given = 0;

    /* A thread that has the processor for long may find all of it with those that wait. */
    for (int i = 0; i < N_ROUNDS || n_given == 0; i++) {
        void *a = bow__alloc(context, PIECE);
        void *b = bow__alloc(context, PIECE);
        n_given += a != NULL || b != NULL;
        if (bow_context_bytes(context) > CEILING) {
            return NULL;
        }
        bow__free(context, a, PIECE);
        bow__free(context, b, PIECE);
    }
    return context;
}

static void test_ceiling_under_threads_holds(void **state)
{
    struct fixture f;
    pthread_t threads[N_THREADS];

    (void)state;
    make(&f, CEILING);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_in_turns, f.context), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, f.context);
    }
    test_context_end(f.context, &f.alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_and_free_are_counted),
        cmocka_unit_test(test_alloc_refused_by_the_allocator_is_not_counted),
        cmocka_unit_test(test_alloc_up_to_the_ceiling_is_given_and_beyond_refused),
        cmocka_unit_test(test_alloc_zero_gives_zeroed_memory),
        cmocka_unit_test(test_alloc_array_of_an_overflowing_product_is_refused),
        cmocka_unit_test(test_resize_keeps_content_and_counts_the_difference),
        cmocka_unit_test(test_resize_that_fails_leaves_memory_and_count),
        cmocka_unit_test(test_dup_copies_and_terminates),
        cmocka_unit_test(test_ceiling_under_threads_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
