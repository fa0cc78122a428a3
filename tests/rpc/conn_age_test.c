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

static enum bow__age_event look_at(struct fixture *f, uint64_t now_ns, struct bow__age_load load)
{
    return bow__age_look(&f->age, now_ns, &load);
}

static enum bow__age_event look(struct fixture *f, uint64_t now_ns, uint32_t n_calls)
{
    return look_at(f, now_ns, (struct bow__age_load){.n_calls = n_calls});
}

static void test_age_without_limits_wants_nothing(void **state)
{
    struct fixture *f = *state;

    assert_true(f->age.next_ns == BOW_NEVER);
    bow__age_start(&f->age, f->context, S, BOW_NEVER, BOW_NEVER, BOW_NEVER);
    assert_true(f->age.next_ns == BOW_NEVER);
    assert_int_equal(look(f, 1000 * S, 0), BOW__AGE_NOTHING);
}

static void test_age_idle_counts_from_the_last_call(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 100 * S, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_true(f->age.next_ns == 110 * S);
    bow__age_called(&f->age, 107 * S);
    assert_int_equal(look(f, 110 * S, 0), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 117 * S);
    assert_int_equal(look(f, 117 * S, 0), BOW__AGE_IDLE);
}

static void test_age_with_a_call_is_not_idle(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 100 * S, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_int_equal(look(f, 110 * S, 1), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 120 * S);
    bow__age_called(&f->age, 119 * S);
    assert_int_equal(look(f, 120 * S, 0), BOW__AGE_NOTHING);
    assert_true(f->age.next_ns == 129 * S);
}

static void test_age_idle_that_is_kept_is_told_once_in_a_while(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, 10 * S, BOW_NEVER, BOW_NEVER);
    assert_int_equal(look(f, 10 * S, 0), BOW__AGE_IDLE);
    assert_true(f->age.next_ns == 20 * S);
    assert_int_equal(look(f, 11 * S, 0), BOW__AGE_NOTHING);
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
    assert_int_equal(look(f, 115 * S, 0), BOW__AGE_IDLE);
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
    assert_int_equal(look(f, 110 * S, 3), BOW__AGE_OLD);
    bow__age_leave(&f->age, 110 * S, 60 * S);
    for (uint64_t s = 111; s < 120; s++) {
        assert_true(f->age.next_ns == s * S);
        assert_int_equal(look(f, s * S, 3), BOW__AGE_NOTHING);
    }
    assert_int_equal(look(f, 120 * S, 3), BOW__AGE_LAST_WORD);
    for (uint64_t s = 121; s < 1000; s++) {
        assert_int_equal(look(f, s * S, 3), BOW__AGE_NOTHING);
    }
    assert_int_equal(look(f, 1000 * S, 0), BOW__AGE_OVER);
}

static void test_age_grace_cuts_calls_off(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, BOW_NEVER, 100 * S, 5 * S);
    assert_int_equal(look(f, 110 * S, 3), BOW__AGE_OLD);
    bow__age_leave(&f->age, 110 * S, 60 * S);
    assert_int_equal(look(f, 111 * S, 3), BOW__AGE_NOTHING);
    assert_int_equal(look(f, 114 * S, 3), BOW__AGE_NOTHING);
    assert_int_equal(look(f, 115 * S, 3), BOW__AGE_CUT);
}

static void test_age_of_one_that_leaves_anyhow_is_no_matter(void **state)
{
    struct fixture *f = *state;

    bow__age_start(&f->age, f->context, 0, 10 * S, 10 * S, BOW_NEVER);
    bow__age_leave(&f->age, S, 60 * S);
    bow__age_leave(&f->age, 2 * S, 60 * S);
    assert_true(f->age.next_ns == 2 * S);
    assert_int_equal(look(f, 60 * S, 0), BOW__AGE_LAST_WORD);
    assert_int_equal(look(f, 61 * S, 0), BOW__AGE_OVER);
}

static void leave(struct fixture *f, uint64_t grace_ns)
{
    bow__age_start(&f->age, f->context, 0, BOW_NEVER, 100 * S, grace_ns);
    assert_int_equal(look(f, 110 * S, 3), BOW__AGE_OLD);
    bow__age_leave(&f->age, 110 * S, 5 * S);
    bow__age_called(&f->age, 110 * S);
    assert_int_equal(look_at(f, 111 * S, (struct bow__age_load){.is_unattended = true}),
                     BOW__AGE_LAST_WORD);
}

static void test_age_f36_replies_that_move_keep_it(void **state)
{
    struct fixture *f = *state;

    leave(f, BOW_NEVER);
    /* A byte in four seconds is slow, and yet not nothing. */
    for (uint64_t s = 112; s < 1000; s++) {
        struct bow__age_load load = {.n_bytes = 1000 - s / 4};
        assert_int_equal(look_at(f, s * S, load), BOW__AGE_NOTHING);
    }
    assert_int_equal(look(f, 1000 * S, 0), BOW__AGE_OVER);
}

static void test_age_f36_replies_that_stand_still_end_it(void **state)
{
    struct fixture *f = *state;
    struct bow__age_load load = {.n_bytes = 1000};

    leave(f, BOW_NEVER);
    assert_int_equal(look_at(f, 112 * S, load), BOW__AGE_NOTHING);
    load.n_bytes = 999;
    assert_int_equal(look_at(f, 113 * S, load), BOW__AGE_NOTHING);
    for (uint64_t s = 114; s < 118; s++) {
        assert_int_equal(look_at(f, s * S, load), BOW__AGE_NOTHING);
    }
    assert_int_equal(look_at(f, 118 * S, load), BOW__AGE_STALLED);
}

/* Its handler may be the one that waits, and the socket has a time-out of its own. */
static void test_age_f36_calls_and_full_sockets_do_not_stand_still(void **state)
{
    struct fixture *f = *state;
    struct bow__age_load called = {.n_calls = 1, .n_bytes = 1000};
    struct bow__age_load blocked = {.is_blocked = true};

    leave(f, BOW_NEVER);
    for (uint64_t s = 112; s < 200; s++) {
        assert_int_equal(look_at(f, s * S, s % 100 < 50 ? called : blocked), BOW__AGE_NOTHING);
    }
}

static void test_age_f36_grace_ends_what_moves(void **state)
{
    struct fixture *f = *state;
    struct bow__age_load load = {.n_bytes = 1000};

    leave(f, 3 * S);
    assert_int_equal(look_at(f, 112 * S, load), BOW__AGE_NOTHING);
    load.n_bytes = 999;
    assert_int_equal(look_at(f, 113 * S, load), BOW__AGE_CUT);
}

static enum bow__age_event word_after(struct fixture *f, struct bow__age_load load)
{
    enum bow__age_event event = BOW__AGE_NOTHING;

    for (uint64_t ms = 0; ms < 2000 && event == BOW__AGE_NOTHING; ms += 100) {
        event = look_at(f, 200 * S + ms * S / 1000, load);
    }
    return event;
}

/* A client's library refuses by itself what it has not sent when it reads a GOAWAY, and tries that
 * again but once: so one that takes longer to send than its connections live would never be heard.
 */
static void test_age_f37_old_one_waits_for_its_first_call(void **state)
{
    struct fixture *f = *state;
    uint64_t ms = 1200;

    bow__age_start(&f->age, f->context, 0, BOW_NEVER, S, BOW_NEVER);
    for (; ms < 5000; ms += 100) {
        assert_int_equal(look(f, ms * S / 1000, 0), BOW__AGE_NOTHING);
        assert_true(f->age.next_ns <= (ms + 100) * S / 1000);
    }
    bow__age_called(&f->age, ms * S / 1000);
    assert_int_equal(look(f, (ms + 100) * S / 1000, 1), BOW__AGE_OLD);

    bow__age_init(&f->age);
    bow__age_start(&f->age, f->context, 0, BOW_NEVER, S, BOW_NEVER);
    assert_int_equal(look(f, 2 * S, 0), BOW__AGE_NOTHING);
    assert_int_equal(look(f, 11 * S, 0), BOW__AGE_NOTHING);
    assert_int_equal(look(f, 12 * S, 0), BOW__AGE_OLD);
}

/* For those that stop there is somebody who waits; a call or two may still be on their way. */
static void test_age_f37_last_word_waits_for_busy_peers(void **state)
{
    struct fixture *f = *state;
    const struct bow__age_load none = {.n_calls = 0};
    const struct bow__age_load one = {.n_calls = 1};

    for (int calls = 0; calls < 3; calls++) {
        bow__age_init(&f->age);
        bow__age_start(&f->age, f->context, 0, BOW_NEVER, BOW_NEVER, BOW_NEVER);
        if (calls == 1) {
            bow__age_called(&f->age, 100 * S);
        }
        bow__age_leave(&f->age, 200 * S, 60 * S);
        bool is_quiet = calls == 1;
        assert_int_equal(word_after(f, calls == 2 ? one : none),
                         is_quiet ? BOW__AGE_LAST_WORD : BOW__AGE_NOTHING);
        if (!is_quiet) {
            assert_int_equal(look_at(f, 210 * S, none), BOW__AGE_LAST_WORD);
        }
    }
    bow__age_init(&f->age);
    bow__age_start(&f->age, f->context, 0, BOW_NEVER, BOW_NEVER, BOW_NEVER);
    bow__age_leave(&f->age, 200 * S, 60 * S);
    bow__age_called(&f->age, 200 * S + S / 2);
    assert_int_equal(look_at(f, 201 * S, none), BOW__AGE_NOTHING);
    assert_int_equal(look_at(f, 202 * S, none), BOW__AGE_LAST_WORD);
}

/* Nobody waits for the end of an old one, unless it is its client that does not listen. */
static void test_age_f37_last_word_of_an_old_one_waits(void **state)
{
    struct fixture *f = *state;

    for (int is_unattended = 0; is_unattended < 2; is_unattended++) {
        const struct bow__age_load load = {.is_unattended = is_unattended == 1};
        bow__age_init(&f->age);
        bow__age_start(&f->age, f->context, 0, BOW_NEVER, 100 * S, BOW_NEVER);
        bow__age_called(&f->age, 50 * S);
        assert_int_equal(look(f, 200 * S, 0), BOW__AGE_OLD);
        bow__age_leave(&f->age, 200 * S, 60 * S);
        assert_int_equal(look_at(f, 201 * S, load),
                         is_unattended ? BOW__AGE_LAST_WORD : BOW__AGE_NOTHING);
        if (is_unattended == 0) {
            assert_int_equal(look_at(f, 209 * S, load), BOW__AGE_NOTHING);
            assert_int_equal(look_at(f, 210 * S, load), BOW__AGE_LAST_WORD);
        }
    }
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
        TEST(test_age_f37_old_one_waits_for_its_first_call),
        TEST(test_age_f37_last_word_waits_for_busy_peers),
        TEST(test_age_f37_last_word_of_an_old_one_waits),
        TEST(test_age_f36_replies_that_move_keep_it),
        TEST(test_age_f36_replies_that_stand_still_end_it),
        TEST(test_age_f36_calls_and_full_sockets_do_not_stand_still),
        TEST(test_age_f36_grace_ends_what_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
