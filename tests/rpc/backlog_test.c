/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What waits to be sent to the connections of a loop: when one of them is to begin no further call,
 * and when one is given up.
 */

#include "rpc/server/dispatch/backlog.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

struct counted {
    struct bow__backlog backlog; /* first */
    struct bow__backlog_share parts[2];
    int n_turns;
    uint64_t now_ns;
};

static void on_turn(struct bow__backlog *backlog)
{
    ((struct counted *)(void *)backlog)->n_turns++;
}

static void begin(struct counted *t, size_t max_bytes)
{
    *t = (struct counted){.now_ns = 1};
    bow__backlog_init(&t->backlog, max_bytes, on_turn);
    bow__backlog_share_init(&t->parts[0], &t->backlog);
    bow__backlog_share_init(&t->parts[1], &t->backlog);
}

static void end(struct counted *t)
{
    bow__backlog_share_fini(&t->parts[0]);
    bow__backlog_share_fini(&t->parts[1]);
    assert_int_equal(t->backlog.n_bytes, 0);
    assert_int_equal(t->backlog.n_shares, 0);
    assert_false(t->backlog.is_short);
}

static void count(struct counted *t, int i, size_t n_bytes)
{
    bow__backlog_count(&t->parts[i], n_bytes, 0, t->now_ns);
}

static void test_backlog_f38_of_a_connection_is_full_at_its_limit(void **state)
{
    struct counted t;

    (void)state;
    begin(&t, SIZE_MAX);
    count(&t, 0, BOW_LIMIT_QUEUED_REPLY_BYTES - 1);
    assert_false(bow__backlog_is_full(&t.parts[0]));
    count(&t, 0, BOW_LIMIT_QUEUED_REPLY_BYTES);
    assert_true(bow__backlog_is_full(&t.parts[0]));
    assert_false(bow__backlog_is_full(&t.parts[1]));
    end(&t);
}

/* Of those that handlers have as much is expected as of those before them. */
static void test_backlog_f38_counts_what_calls_in_progress_may_add(void **state)
{
    struct counted t;

    (void)state;
    begin(&t, SIZE_MAX);
    bow__backlog_note_reply(&t.parts[0], MIB);
    count(&t, 0, 24 * MIB);
    t.parts[0].n_calls = 40;
    assert_false(bow__backlog_is_full(&t.parts[0]));
    t.parts[0].n_calls = 41;
    assert_true(bow__backlog_is_full(&t.parts[0]));
    /* Smaller ones let more through. */
    for (int i = 0; i < 32; i++) {
        bow__backlog_note_reply(&t.parts[0], 100);
    }
    assert_false(bow__backlog_is_full(&t.parts[0]));
    /* A call waits for what its peer can take, not for others. */
    bow__backlog_note_reply(&t.parts[0], 1000 * MIB);
    count(&t, 0, BOW_LIMIT_QUEUED_REPLY_BYTES / 8 - 1);
    assert_false(bow__backlog_is_full(&t.parts[0]));
    count(&t, 0, BOW_LIMIT_QUEUED_REPLY_BYTES / 8);
    assert_true(bow__backlog_is_full(&t.parts[0]));
    t.parts[0].n_calls = 0;
    assert_false(bow__backlog_is_full(&t.parts[0]));
    end(&t);
}

/* Short above 600 until 500; the even part of two is 300. */
static void test_backlog_f42_of_a_loop_is_short_from_three_quarters_on(void **state)
{
    struct counted t;

    (void)state;
    begin(&t, 800);
    count(&t, 0, 600);
    assert_false(t.backlog.is_short);
    assert_false(bow__backlog_is_full(&t.parts[0]));
    count(&t, 1, 1);
    assert_true(t.backlog.is_short);
    assert_int_equal(t.n_turns, 1);
    assert_true(bow__backlog_is_full(&t.parts[0]));
    assert_false(bow__backlog_is_full(&t.parts[1]));
    count(&t, 0, 501);
    assert_true(t.backlog.is_short);
    count(&t, 0, 499);
    assert_false(t.backlog.is_short);
    assert_int_equal(t.n_turns, 2);
    assert_false(bow__backlog_is_full(&t.parts[0]));
    end(&t);
}

static void test_backlog_f42_at_its_end_lets_none_through_that_waits(void **state)
{
    struct counted t;

    (void)state;
    begin(&t, 800);
    count(&t, 0, 799);
    assert_false(bow__backlog_is_full(&t.parts[1]));
    count(&t, 1, 1);
    assert_true(bow__backlog_is_full(&t.parts[1]));
    count(&t, 1, 0);
    count(&t, 0, 800);
    assert_false(bow__backlog_is_full(&t.parts[1]));
    end(&t);
}

static void test_backlog_f42_is_stuck_when_nothing_is_taken(void **state)
{
    struct counted t;

    (void)state;
    begin(&t, 800);
    count(&t, 0, 500);
    count(&t, 1, 200);
    assert_true(t.backlog.is_short);
    t.now_ns += BOW_LIMIT_UNTAKEN_NS - 1;
    count(&t, 0, 510);
    assert_false(bow__backlog_is_stuck(&t.parts[0], t.now_ns));
    t.now_ns++;
    assert_true(bow__backlog_is_stuck(&t.parts[0], t.now_ns));
    /* Not one that has little, whatever its peer does. */
    assert_false(bow__backlog_is_stuck(&t.parts[1], t.now_ns));
    /* It takes a little: what waits is not less, for more has come. */
    bow__backlog_count(&t.parts[0], 510, 1, t.now_ns);
    assert_false(bow__backlog_is_stuck(&t.parts[0], t.now_ns));
    t.now_ns += BOW_LIMIT_UNTAKEN_NS;
    assert_true(bow__backlog_is_stuck(&t.parts[0], t.now_ns));
    bow__backlog_count(&t.parts[0], 509, 1, t.now_ns);
    assert_false(bow__backlog_is_stuck(&t.parts[0], t.now_ns));
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backlog_f38_of_a_connection_is_full_at_its_limit),
        cmocka_unit_test(test_backlog_f38_counts_what_calls_in_progress_may_add),
        cmocka_unit_test(test_backlog_f42_of_a_loop_is_short_from_three_quarters_on),
        cmocka_unit_test(test_backlog_f42_at_its_end_lets_none_through_that_waits),
        cmocka_unit_test(test_backlog_f42_is_stuck_when_nothing_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
