/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What messages cost beyond their bytes, counted: the budget of a turn, the rate, the limit. */

#include "rpc/core/work.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)

static const struct bow__work fresh = {.now_ns = 100 * SECOND};

static void test_work_f34_messages_that_do_not_expand_are_free(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        bow__work_add(&work, 32, 900, false);
        bow__work_add(&work, 256 * KIB, 512 * KIB, false);
    }
    assert_false(bow__work_is_enough(&work));
    assert_true(bow__work_next_turn(&work) == work.now_ns);
}

static void test_work_f34_a_turn_has_a_budget(void **state)
{
    struct bow__work work = fresh;
    int n = 0;

    (void)state;
    for (; !bow__work_is_enough(&work); n++) {
        bow__work_add(&work, 151, 256 * KIB, false);
    }
    assert_in_range(n, 4, 5);
    assert_true(bow__work_next_turn(&work) == work.now_ns); /* others first, no more than that */
    assert_false(bow__work_is_enough(&work));
}

static void test_work_f34_what_expands_for_ever_waits(void **state)
{
    struct bow__work work = fresh;
    uint64_t n_bytes = 0;

    (void)state;
    /* As fast as it may, for ten seconds. */
    while (work.now_ns < fresh.now_ns + 10 * SECOND) {
        while (!bow__work_is_enough(&work)) {
            bow__work_add(&work, 151, 4 * MIB, false);
            n_bytes += 4 * MIB;
        }
        work.now_ns = bow__work_next_turn(&work);
    }
    /* A second's worth at first, then as the rate is. */
    assert_in_range(n_bytes, 10 * BOW_LIMIT_EXPANDED_BYTES_PER_SECOND,
                    (uint64_t)12 * BOW_LIMIT_EXPANDED_BYTES_PER_SECOND);
}

static void test_work_f34_what_is_made_in_vain_waits_longer(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    bow__work_add(&work, 151, 36 * MIB, true);
    uint64_t next = bow__work_next_turn(&work);
    assert_in_range(next - work.now_ns, 1200 * MS, 1300 * MS);
    work.now_ns = next + SECOND;
    assert_true(bow__work_next_turn(&work) == work.now_ns);
}

/* Memory may be short for reasons of ours. */
static void test_work_f34_memory_is_asked_for_in_vain_by_what_expands(void **state)
{
    size_t wire = 100;
    size_t most = BOW_LIMIT_EXPANSION * wire + BOW__WORK_FREE_BYTES;

    (void)state;
    assert_false(bow__work_is_in_vain(wire, 100 * most, 0));
    assert_true(bow__work_is_in_vain(wire, 0, -EBADMSG));
    assert_true(bow__work_is_in_vain(wire, 0, -EMSGSIZE));
    assert_false(bow__work_is_in_vain(wire, most, -ENOMEM));
    assert_true(bow__work_is_in_vain(wire, most + 1, -ENOMEM));
    assert_false(bow__work_is_in_vain(wire, most + 1, -EACCES));
}

static void test_work_f34_what_is_made_in_vain_has_a_limit(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_false(bow__work_is_hostile(&work));
        work.now_ns = bow__work_next_turn(&work);
        bow__work_add(&work, 151, 36 * MIB, true);
    }
    assert_true(bow__work_is_hostile(&work));
    assert_true(bow__work_is_enough(&work));
}

static void test_work_f34_what_is_made_in_vain_is_forgiven(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    for (int i = 0; i < 100; i++) {
        bow__work_add(&work, 151, 36 * MIB, true);
        assert_false(bow__work_is_hostile(&work));
        bow__work_add(&work, 36 * MIB / BOW_LIMIT_EXPANSION, 36 * MIB, true); /* that is free */
        assert_false(bow__work_is_hostile(&work));
        work.now_ns += 36 * MIB / BOW_LIMIT_VAIN_BYTES_PER_SECOND * SECOND;
    }
}

static void test_work_f34_undecodable_messages_have_a_limit(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    for (uint32_t i = 0; i < BOW_LIMIT_UNDECODABLE_PER_SECOND; i++) {
        bow__work_add(&work, 10, 0, true);
    }
    assert_false(bow__work_is_hostile(&work));
    assert_false(bow__work_is_enough(&work));
    work.now_ns += SECOND;
    bow__work_add(&work, 10, 0, true);
    assert_false(bow__work_is_hostile(&work));
    for (uint32_t i = 0; i < BOW_LIMIT_UNDECODABLE_PER_SECOND; i++) {
        bow__work_add(&work, 10, 0, true);
    }
    assert_true(bow__work_is_hostile(&work));
    assert_true(bow__work_is_enough(&work));
}

static void test_work_f34_a_turn_that_was_not_enough_is_forgotten(void **state)
{
    struct bow__work work = fresh;

    (void)state;
    for (int i = 0; i < 10; i++) {
        bow__work_spend(&work, BOW__WORK_TURN_BYTES - BOW__WORK_CALL_BYTES);
        assert_false(bow__work_is_enough(&work));
        bow__work_end_turn(&work);
    }
    bow__work_spend(&work, BOW__WORK_TURN_BYTES);
    bow__work_end_turn(&work);
    assert_true(bow__work_is_enough(&work)); /* it waits for the next */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_f34_messages_that_do_not_expand_are_free),
        cmocka_unit_test(test_work_f34_a_turn_has_a_budget),
        cmocka_unit_test(test_work_f34_what_expands_for_ever_waits),
        cmocka_unit_test(test_work_f34_what_is_made_in_vain_waits_longer),
        cmocka_unit_test(test_work_f34_memory_is_asked_for_in_vain_by_what_expands),
        cmocka_unit_test(test_work_f34_what_is_made_in_vain_has_a_limit),
        cmocka_unit_test(test_work_f34_what_is_made_in_vain_is_forgiven),
        cmocka_unit_test(test_work_f34_undecodable_messages_have_a_limit),
        cmocka_unit_test(test_work_f34_a_turn_that_was_not_enough_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
