/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arithmetic of times: saturating at both ends.
 */

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_clock_f06_add_saturates_at_never(void **state)
{
    (void)state;
    assert_int_equal(bow__time_add(5, 7), 12);
    assert_true(bow__time_add(5, BOW_NEVER) == BOW_NEVER);
    assert_true(bow__time_add(BOW_NEVER, 0) == BOW_NEVER);
    assert_true(bow__time_add(BOW_NEVER - 5, 5) == BOW_NEVER);
    assert_true(bow__time_add(BOW_NEVER - 5, 6) == BOW_NEVER);
    assert_true(bow__time_add(BOW_NEVER - 5, 4) == BOW_NEVER - 1);
}

static void test_clock_f06_left_is_zero_when_passed(void **state)
{
    (void)state;
    assert_int_equal(bow__time_left(10, 4), 6);
    assert_int_equal(bow__time_left(10, 10), 0);
    assert_int_equal(bow__time_left(10, 11), 0);
    assert_true(bow__time_left(BOW_NEVER, 11) == BOW_NEVER);
}

static void test_clock_min_is_the_earlier(void **state)
{
    (void)state;
    assert_int_equal(bow__time_min(3, BOW_NEVER), 3);
    assert_int_equal(bow__time_min(4, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_f06_add_saturates_at_never),
        cmocka_unit_test(test_clock_f06_left_is_zero_when_passed),
        cmocka_unit_test(test_clock_min_is_the_earlier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
