/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What all connections of a loop have in flight: who is refused when, and that it passes.
 */

#include "rpc/core/in_flight.h"
#include "rpc/core/message/receive_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct counted {
    struct bow__in_flight in_flight; /* first */
    struct bow__in_flight_share parts[2];
    uint64_t n_refused;
    int n_turns;
};

static void on_turn(struct bow__in_flight *in_flight)
{
    ((struct counted *)(void *)in_flight)->n_turns++;
}

/* Short from 600 on, until 500; the even part of two is 300. */
static void begin(struct counted *t)
{
    *t = (struct counted){.in_flight = {.max_bytes = 800, .server_max_bytes = 1600}};
    t->in_flight.n_refused = &t->n_refused;
    t->in_flight.on_turn = on_turn;
    bow__in_flight_share_init(&t->parts[0], &t->in_flight);
    bow__in_flight_share_init(&t->parts[1], &t->in_flight);
}

static void end(struct counted *t)
{
    bow__in_flight_share_fini(&t->parts[0]);
    bow__in_flight_share_fini(&t->parts[1]);
    assert_int_equal(t->in_flight.n_bytes, 0);
    assert_int_equal(t->in_flight.n_shares, 0);
    assert_false(t->in_flight.is_short);
}

static void test_flight_of_a_client_has_room(void **state)
{
    (void)state;
    assert_true(bow__in_flight_take_message(NULL, SIZE_MAX));
    bow__in_flight_give_message(NULL, SIZE_MAX);
    assert_false(bow__in_flight_withholds(NULL));
}

static void test_flight_is_short_from_three_quarters_until_an_eighth_less(void **state)
{
    struct counted t;

    (void)state;
    begin(&t);
    assert_true(bow__in_flight_take_message(&t.parts[0], 600));
    assert_false(t.in_flight.is_short);
    assert_true(bow__in_flight_take_message(&t.parts[1], 1));
    assert_true(t.in_flight.is_short);
    assert_int_equal(t.n_turns, 1);
    bow__in_flight_give_message(&t.parts[0], 100);
    assert_true(t.in_flight.is_short);
    bow__in_flight_give_message(&t.parts[0], 1);
    assert_false(t.in_flight.is_short);
    assert_int_equal(t.n_turns, 2);
    end(&t);
}

static void test_flight_that_is_short_holds_back_who_crowds(void **state)
{
    struct counted t;

    (void)state;
    begin(&t);
    assert_true(bow__in_flight_take_message(&t.parts[0], 601));
    assert_true(bow__in_flight_withholds(&t.parts[0]));
    assert_true(bow__in_flight_refuses_call(&t.parts[0]));
    assert_false(bow__in_flight_withholds(&t.parts[1]));
    assert_false(bow__in_flight_refuses_call(&t.parts[1]));
    /* Seven eighths are for all, the last is for those that have little and want little. */
    assert_true(bow__in_flight_take_message(&t.parts[0], 99));
    assert_false(bow__in_flight_take_message(&t.parts[0], 1));
    assert_int_equal(t.n_refused, 1);
    assert_false(bow__in_flight_take_message(&t.parts[1], 13));
    for (int i = 0; i < 8; i++) {
        assert_true(bow__in_flight_take_message(&t.parts[1], 12));
    }
    assert_false(bow__in_flight_refuses_call(&t.parts[1]));
    assert_true(bow__in_flight_take_message(&t.parts[1], 4));
    assert_false(bow__in_flight_take_message(&t.parts[1], 1));
    assert_true(bow__in_flight_refuses_call(&t.parts[1]));
    assert_int_equal(t.n_refused, 3);
    end(&t);
}

/* They wait for messages, so to withhold those would be to wait for ever. */
static void test_flight_of_calls_alone_withholds_nothing(void **state)
{
    struct counted t;

    (void)state;
    begin(&t);
    bow__in_flight_take_call(&t.parts[0], 700);
    assert_false(bow__in_flight_withholds(&t.parts[0]));
    assert_true(bow__in_flight_refuses_call(&t.parts[0]));
    bow__in_flight_give_call(&t.parts[0], 700);
    assert_false(bow__in_flight_refuses_call(&t.parts[0]));
    end(&t);
}

static void test_flight_counts_what_handlers_keep_until_they_let_go(void **state)
{
    struct counted t;

    (void)state;
    begin(&t);
    bow__in_flight_keep(&t.in_flight, 500);
    assert_false(bow__in_flight_let_go(&t.in_flight, 100));
    bow__in_flight_keep(&t.in_flight, 300);
    assert_true(t.in_flight.is_short);
    assert_false(bow__in_flight_take_message(&t.parts[0], 101));
    /* From now on the loop has to be told, on which nothing else may happen. */
    assert_true(bow__in_flight_let_go(&t.in_flight, 700));
    assert_true(t.in_flight.is_short);
    bow__in_flight_look(&t.in_flight);
    assert_false(t.in_flight.is_short);
    assert_false(bow__in_flight_let_go(&t.in_flight, 0));
    end(&t);
}

static void test_flight_of_a_connection_goes_with_it(void **state)
{
    struct counted t;

    (void)state;
    begin(&t);
    assert_true(bow__in_flight_take_message(&t.parts[0], 700));
    bow__in_flight_share_fini(&t.parts[0]);
    assert_false(t.in_flight.is_short);
    assert_int_equal(t.in_flight.n_bytes, 0);
    bow__in_flight_give_message(&t.parts[0], 700);
    assert_int_equal(t.in_flight.n_bytes, 0);
    bow__in_flight_share_fini(&t.parts[1]);
}

static void test_flight_says_limit_and_value(void **state)
{
    struct bow__text text;
    struct counted t;

    (void)state;
    begin(&t);
    bow__in_flight_keep(&t.in_flight, 7);
    bow__text_clear(&text);
    bow__in_flight_describe(&t.in_flight, &text);
    assert_string_equal(text.bytes,
                        "7 bytes of messages and calls are in flight in a loop of the server; "
                        "max_bytes_in_flight (1600), of which 800 are this loop's");
    (void)bow__in_flight_let_go(&t.in_flight, 7);
    end(&t);
}

/* Messages that wait to be read are counted as what they take: copies, and blocks of their own. */
static void expect_weight(size_t len, bool has_block)
{
    static const uint8_t bytes[1000];
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow__receive_queue queue = {{NULL, NULL}, NULL, 0};
    struct bow__message message = {.bytes = {bytes, len}};
    struct counted t;

    begin(&t);
    t.in_flight.max_bytes = SIZE_MAX / 2;
    queue.share = &t.parts[0];
    assert_int_equal(bow_context_new(&options, &context), 0);
    size_t before = bow_context_bytes(context);
    for (int i = 0; i < 100; i++) {
        if (has_block) {
            message.block = bow__block_new(context, 2 * len);
            message.bytes.data = message.block->data;
        }
        assert_int_equal(bow__receive_queue_push(&queue, context, &message), 0);
    }
    size_t n_taken = bow_context_bytes(context) - before;
    assert_in_range(t.in_flight.n_bytes, n_taken - n_taken / 10, n_taken + n_taken / 10);
    assert_true(bow__receive_queue_pop(&queue, &message));
    bow__block_unref(message.block);
    bow__receive_queue_clear(&queue);
    assert_int_equal(t.in_flight.n_bytes, 0);
    end(&t);
    bow_context_unref(context);
}

static void test_flight_f44_of_messages_that_wait_is_what_they_take(void **state)
{
    (void)state;
    expect_weight(0, false);
    expect_weight(8, false);
    expect_weight(1000, false);
    expect_weight(8, true);
    expect_weight(1000, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flight_of_a_client_has_room),
        cmocka_unit_test(test_flight_is_short_from_three_quarters_until_an_eighth_less),
        cmocka_unit_test(test_flight_that_is_short_holds_back_who_crowds),
        cmocka_unit_test(test_flight_of_calls_alone_withholds_nothing),
        cmocka_unit_test(test_flight_counts_what_handlers_keep_until_they_let_go),
        cmocka_unit_test(test_flight_of_a_connection_goes_with_it),
        cmocka_unit_test(test_flight_says_limit_and_value),
        cmocka_unit_test(test_flight_f44_of_messages_that_wait_is_what_they_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
