/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Results of calls: what they keep of a status is their own. */

#include "rpc/client/call/result.h"
#include "tests/support/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_result_kept_status_refers_to_nothing_of_the_given_one(void **state)
{
    struct test_alloc alloc;
    char message[] = "no";
    uint8_t details[] = {1, 2};
    struct bow_status status = {.code = BOW_NOT_FOUND, .message = message};

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow_result_memory *memory = bow__result_memory_new(context);
    assert_non_null(memory);
    status.details = (struct bow_slice){details, sizeof(details)};
    struct bow_status kept = bow__result_keep_status(memory, &status);
    memset(message, 'x', 2);
    memset(details, 9, 2);
    assert_int_equal(kept.code, BOW_NOT_FOUND);
    assert_string_equal(kept.message, "no");
    assert_int_equal(kept.details.len, 2);
    assert_memory_equal(kept.details.data, "\1\2", 2);
    bow__result_memory_free(memory);
    test_context_end(context, &alloc);
}

static void test_result_kept_status_without_texts_refers_to_nothing_either(void **state)
{
    struct test_alloc alloc;
    char message[2] = "";
    uint8_t details[] = {1};
    struct bow_status status = {.code = BOW_OK, .message = message};

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow_result_memory *memory = bow__result_memory_new(context);
    assert_non_null(memory);
    status.details = (struct bow_slice){details, 0};
    struct bow_status kept = bow__result_keep_status(memory, &status);
    message[0] = 'x';
    assert_string_equal(kept.message, "");
    assert_null(kept.details.data);
    assert_int_equal(kept.details.len, 0);
    bow__result_memory_free(memory);
    test_context_end(context, &alloc);
}

static void test_result_arena_is_its_memory(void **state)
{
    struct test_alloc alloc;
    struct bow_result result = BOW_RESULT_INIT;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_null(bow_result_arena(&result));
    result.memory = bow__result_memory_new(context);
    struct bow_arena *arena = bow_result_arena(&result);
    assert_non_null(bow_arena_alloc(arena, 10000));
    assert_true(bow_arena_used(arena) > 0);
    bow_result_fini(&result);
    test_context_end(context, &alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_kept_status_refers_to_nothing_of_the_given_one),
        cmocka_unit_test(test_result_kept_status_without_texts_refers_to_nothing_either),
        cmocka_unit_test(test_result_arena_is_its_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
