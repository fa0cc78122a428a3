/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names of the status codes.
 */

#include <bowline/status.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_code_name_is_grpcs(void **state)
{
    (void)state;
    assert_string_equal(bow_code_name(BOW_OK), "OK");
    assert_string_equal(bow_code_name(BOW_CANCELLED), "CANCELLED");
    assert_string_equal(bow_code_name(BOW_DEADLINE_EXCEEDED), "DEADLINE_EXCEEDED");
    assert_string_equal(bow_code_name(BOW_UNAUTHENTICATED), "UNAUTHENTICATED");
}

static void test_code_name_of_every_code_is_known_and_of_others_not(void **state)
{
    (void)state;
    for (int code = 0; code <= 16; code++) {
        assert_string_not_equal(bow_code_name((enum bow_code)code), "UNKNOWN_CODE");
    }
    assert_string_equal(bow_code_name((enum bow_code)17), "UNKNOWN_CODE");
    assert_string_equal(bow_code_name((enum bow_code) - 1), "UNKNOWN_CODE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_name_is_grpcs),
        cmocka_unit_test(test_code_name_of_every_code_is_known_and_of_others_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
