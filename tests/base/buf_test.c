/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bufs: from borrowed to counted and back to none.
 */

#include "tests/support/alloc.h"

#include <bowline/buf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_buf_l63_shared_from_borrowed_is_a_copy(void **state)
{
    struct test_alloc alloc;
    char bytes[] = "bowline";
    struct bow_buf borrowed = bow_buf_borrow(bytes, 7);
    struct bow_buf shared;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(bow_buf_share(context, &borrowed, &shared), 0);
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(shared.len, 7);
    assert_memory_equal(shared.data, "bowline", 7);
    bow_buf_unref(&shared);
    assert_null(shared.data);
    assert_int_equal(shared.len, 0);
    assert_null(shared.block);
    bow_buf_unref(&shared);
    test_context_end(context, &alloc);
}

static void test_buf_l63_shared_from_counted_is_a_reference(void **state)
{
    struct test_alloc alloc;
    struct bow_buf borrowed = bow_buf_borrow("bowline", 7);
    struct bow_buf first;
    struct bow_buf second;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(bow_buf_share(context, &borrowed, &first), 0);
    first.data += 3; /* a handler took the front */
    first.len -= 3;
    size_t n_calls = alloc.n_calls;
    assert_int_equal(bow_buf_share(context, &first, &second), 0);
    assert_int_equal(alloc.n_calls, n_calls);
    bow_buf_unref(&first);
    assert_int_equal(second.len, 4);
    assert_memory_equal(second.data, "line", 4);
    bow_buf_unref(&second);
    test_context_end(context, &alloc);
}

static void test_buf_shared_from_nothing_is_empty(void **state)
{
    struct test_alloc alloc;
    struct bow_buf borrowed = bow_buf_borrow(NULL, 0);
    struct bow_buf shared;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(bow_buf_share(context, &borrowed, &shared), 0);
    assert_int_equal(shared.len, 0);
    bow_buf_unref(&shared);
    test_context_end(context, &alloc);
}

static void test_buf_share_without_memory_leaves_the_output(void **state)
{
    struct test_alloc alloc;
    struct bow_buf borrowed = bow_buf_borrow("bowline", 7);
    struct bow_buf shared = bow_buf_borrow("same", 4);

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    alloc.fail_at = alloc.n_calls + 1;
    assert_int_equal(bow_buf_share(context, &borrowed, &shared), -ENOMEM);
    assert_memory_equal(shared.data, "same", 4);
    test_context_end(context, &alloc);
}

static void test_buf_unref_of_borrowed_leaves_it(void **state)
{
    struct bow_buf borrowed = bow_buf_borrow("bowline", 7);

    (void)state;
    bow_buf_unref(&borrowed);
    assert_int_equal(borrowed.len, 7);
    assert_memory_equal(borrowed.data, "bowline", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_l63_shared_from_borrowed_is_a_copy),
        cmocka_unit_test(test_buf_l63_shared_from_counted_is_a_reference),
        cmocka_unit_test(test_buf_shared_from_nothing_is_empty),
        cmocka_unit_test(test_buf_share_without_memory_leaves_the_output),
        cmocka_unit_test(test_buf_unref_of_borrowed_leaves_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
