/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The budget of attempts after the first: what a sick server gets of a client, and when one that is
 * well again is tried again.
 */

#include "rpc/client/retry/budget.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const struct bow__retry_rates rates = {
    .max_milli = BOW_LIMIT_RETRY_TOKENS * 1000,
    .ratio_milli = BOW_LIMIT_RETRY_PERCENT * 10,
};

struct load {
    struct bow__retry_budget budget;
    uint64_t n_calls;
    uint64_t n_ok;
    uint64_t n_attempts;
    uint64_t now_ns;
};

static void begin(struct load *load, const struct bow__retry_rates *its)
{
    *load = (struct load){0};
    bow__retry_budget_init(&load->budget, its, 0);
}

/* One call, of at most three attempts, of which the first `n_fail` fail. */
static void call(struct load *load, int n_fail)
{
    bool goes_on = true;

    load->n_calls++;
    for (int i = 0; goes_on; i++) {
        load->n_attempts++;
        if (i >= n_fail) {
            load->n_ok++;
            return;
        }
        bow__retry_budget_settle(&load->budget, load->n_calls, load->n_ok, load->now_ns);
        bow__retry_budget_fail(&load->budget);
        goes_on = i < 2 && bow__retry_budget_take(&load->budget);
    }
}

static void test_budget_full_lets_a_call_be_tried_again(void **state)
{
    struct load load;

    (void)state;
    begin(&load, &rates);
    call(&load, 2);
    assert_int_equal(load.n_ok, 1);
    assert_int_equal(load.n_attempts, 3);
}

static void test_budget_of_a_sick_server_is_soon_spent(void **state)
{
    struct load load;

    (void)state;
    begin(&load, &rates);
    for (int i = 0; i < 1000; i++) {
        call(&load, 3);
    }
    assert_true(load.n_attempts - load.n_calls <= BOW_LIMIT_RETRY_BURST);
    assert_true(load.n_attempts > load.n_calls);
}

/* Whatever part of the calls fails, and however long it goes on. */
static void test_budget_is_a_share_of_the_calls(void **state)
{
    (void)state;
    for (int every = 1; every <= 40; every++) {
        struct load load;
        begin(&load, &(struct bow__retry_rates){.max_milli = 1000000, .ratio_milli = 100000});
        for (int i = 0; i < 2000; i++) {
            call(&load, i % every == 0 ? 3 : 0);
            assert_true((load.n_attempts - load.n_calls) * 100 <=
                        load.n_calls * BOW_LIMIT_RETRY_SHARE_PERCENT + BOW_LIMIT_RETRY_BURST * 100);
        }
    }
}

static void test_budget_is_earned_by_successes(void **state)
{
    struct load load;

    (void)state;
    begin(&load, &rates);
    for (int i = 0; i < 20; i++) {
        call(&load, 3);
    }
    uint64_t n_before = load.n_attempts;
    call(&load, 1);
    assert_int_equal(load.n_attempts, n_before + 1); /* spent: no other attempt */
    for (int i = 0; i < 70; i++) {                   /* 7 tokens */
        call(&load, 0);
    }
    n_before = load.n_ok;
    call(&load, 1);
    assert_int_equal(load.n_ok, n_before + 1);
}

static void test_budget_comes_back_with_time(void **state)
{
    struct load load;
    const struct bow__retry_rates slow = {
        .max_milli = 10000, .ratio_milli = 0, .per_minute = BOW_LIMIT_RETRY_PER_MINUTE};

    (void)state;
    begin(&load, &slow);
    for (int i = 0; i < 100; i++) {
        call(&load, 3);
    }
    for (int i = 0; i < 69; i++) { /* in steps, of which none is a token */
        load.now_ns += SECOND;
        bow__retry_budget_settle(&load.budget, load.n_calls, load.n_ok, load.now_ns);
    }
    uint64_t n_before = load.n_ok;
    call(&load, 1); /* 6.9 tokens, of which its failure takes one */
    assert_int_equal(load.n_ok, n_before + 1);
    call(&load, 1);
    assert_int_equal(load.n_ok, n_before + 1);
}

static void test_budget_of_other_rates_keeps_its_level(void **state)
{
    struct load load;
    struct bow__retry_rates larger = rates;

    (void)state;
    begin(&load, &rates);
    bow__retry_budget_fail(&load.budget);
    larger.max_milli *= 10;
    bow__retry_budget_change(&load.budget, &larger);
    assert_int_equal(load.budget.tokens_milli, 9 * BOW_LIMIT_RETRY_TOKENS * 1000);
}

/* However long nobody looked. */
static void test_budget_does_not_overflow(void **state)
{
    struct bow__retry_budget budget;

    (void)state;
    bow__retry_budget_init(&budget, &rates, 0);
    bow__retry_budget_fail(&budget);
    bow__retry_budget_settle(&budget, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    assert_int_equal(budget.tokens_milli, rates.max_milli);
    assert_int_equal(budget.share_milli, BOW_LIMIT_RETRY_BURST * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_full_lets_a_call_be_tried_again),
        cmocka_unit_test(test_budget_of_a_sick_server_is_soon_spent),
        cmocka_unit_test(test_budget_is_a_share_of_the_calls),
        cmocka_unit_test(test_budget_is_earned_by_successes),
        cmocka_unit_test(test_budget_comes_back_with_time),
        cmocka_unit_test(test_budget_of_other_rates_keeps_its_level),
        cmocka_unit_test(test_budget_does_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
