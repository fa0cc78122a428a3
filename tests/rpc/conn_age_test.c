/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a connection that nobody ends is to end, on times that the test makes up.
 */

#include "rpc/connection/age.h"
#include "tests/support/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__age age;
};

static struct fixture fixture;

static int set_up(void **state)
{
    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    bow__age_init(&fixture.age);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    test_context_end(f->context, &f->alloc);
    return 0;
}

static void test_age_without_limits_wants_nothing(void **state)
{
    struct fixture *f = *state;

    assert_true(f->age.next_ns == BOW_NEVER);
    bow__age_start(&f->age, f->context, S, BOW_NEVER, BOW_NEVER, BOW_NEVER);
    assert_true(f->age.next_ns == BOW_NEVER);
    assert_int_equal(bow__age_look(&f->age, 1000 * S, 0), BOW__AGE_NOTHING);
}

static void test_age_idle_counts_from_the_last_call(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 100 * S, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_true(f->age.next_ns == 110 * S);
    bow__age_called(&f->age, 107 * S);
    assert_int_equal(bow__age_look(&f->age, 110 * S, 0), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 117 * S);
    assert_int_equal(bow__age_look(&f->age, 117 * S, 0), BOW__AGE_IDLE);
}

static void test_age_with_a_call_is_not_idle(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 100 * S, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_int_equal(bow__age_look(&f->age, 110 * S, 1), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 120 * S);
    bow__age_called(&f->age, 119 * S);
    assert_int_equal(bow__age_look(&f->age, 120 * S, 0), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 129 * S);
}

static void test_age_idle_that_is_kept_is_told_once_in_a_while(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_int_equal(bow__age_look(&f->age, 10 * S, 0), BOW__AGE_IDLE);
    assert_true(f->age.next_ns == 20 * S);
    assert_int_equal(bow__age_look(&f->age, 11 * S, 0), BOW__AGE_NOTHING);
}

static void test_age_f66_idle_is_bounded_from_its_last_call_on(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 100 * S, BOW_NEVER, BOW_NEVER, BOW_NEVER);
    bow__age_called(&f->age, 105 * S);
    bow__age_bound_idle(&f->age, 10 * S);
    assert_true(f->age.next_ns == 115 * S);
    bow__age_bound_idle(&f->age, 20 * S); /* the shorter one holds */
    assert_true(f->age.next_ns == 115 * S);
    assert_int_equal(bow__age_look(&f->age, 115 * S, 0), BOW__AGE_IDLE);
}

static void test_age_is_spread_over_a_fifth(void **state)
{
    struct fixture *f = *state;
    uint64_t least = BOW_NEVER;
    uint64_t most = 0;

    for (int i = 0; i < 300; i++) {
        bow__age_init(&f->age);
        bow__age_start(&f->age, f->context, 100 * S, BOW_NEVER, 100 * S, BOW_NEVER);
        least = f->age.next_ns < least ? f->age.next_ns : least;
        most = f->age.next_ns > most ? f->age.next_ns : most;
    }
    assert_in_range(least, 190 * S, 194 * S);
    assert_in_range(most, 206 * S, 210 * S);
}

static void test_age_old_is_told_once_and_spares_its_calls(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, BOW_NEVER, 100 * S, BOW_NEVER);
    assert_int_equal(bow__age_look(&f->age, 110 * S, 3), BOW__AGE_OLD);
    bow__age_leave(&f->age, 110 * S);
    assert_true(f->age.next_ns == 111 * S);
    assert_int_equal(bow__age_look(&f->age, 111 * S, 3), BOW__AGE_LAST_WORD);
    for (uint64_t s = 112; s < 1000; s++) {
        assert_int_equal(bow__age_look(&f->age, s * S, 3), BOW__AGE_NOTHING);
    }
    assert_int_equal(bow__age_look(&f->age, 1000 * S, 0), BOW__AGE_CUT);
}

static void test_age_grace_cuts_calls_off(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, BOW_NEVER, 100 * S, 5 * S);
    assert_int_equal(bow__age_look(&f->age, 110 * S, 3), BOW__AGE_OLD);
    bow__age_leave(&f->age, 110 * S);
    assert_int_equal(bow__age_look(&f->age, 111 * S, 3), BOW__AGE_LAST_WORD);
    assert_int_equal(bow__age_look(&f->age, 114 * S, 3), BOW__AGE_NOTHING);
    assert_int_equal(bow__age_look(&f->age, 115 * S, 3), BOW__AGE_CUT);
}

static void test_age_of_one_that_leaves_anyhow_is_no_matter(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, 10 * S, 10 * S, BOW_NEVER);
    bow__age_leave(&f->age, S);
    bow__age_leave(&f->age, 2 * S);
    assert_true(f->age.next_ns == 2 * S);
    assert_int_equal(bow__age_look(&f->age, 60 * S, 0), BOW__AGE_LAST_WORD);
    assert_int_equal(bow__age_look(&f->age, 61 * S, 0), BOW__AGE_CUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_age_without_limits_wants_nothing),
        TEST(test_age_idle_counts_from_the_last_call),
        TEST(test_age_with_a_call_is_not_idle),
        TEST(test_age_idle_that_is_kept_is_told_once_in_a_while),
        TEST(test_age_f66_idle_is_bounded_from_its_last_call_on),
        TEST(test_age_is_spread_over_a_fifth),
        TEST(test_age_old_is_told_once_and_spares_its_calls),
        TEST(test_age_grace_cuts_calls_off),
        TEST(test_age_of_one_that_leaves_anyhow_is_no_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
