/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that are put straight into their blocks: where the session wants the next bytes,
 * and when it wants none there.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000004 00 00 000000000000 38a09c01 "
#define OPEN_1 OPENING "00000007 01 00 000000000001 06 12042f732f6d "
/* A message of 60,000 bytes, all of them in its first frame. */
#define N_BYTES ((size_t)60000)
#define BEGIN "0000ea64 03 0a 000000000001 0000ea60 "

static uint8_t *room_of(struct side *side, size_t *ret_len, size_t *ret_behind)
{
    return side->session->ops->room(side->session, ret_len, ret_behind);
}

static void assert_no_room(struct side *side)
{
    size_t len = 0;
    size_t n_behind = 0;

    assert_null(room_of(side, &len, &n_behind));
}

/* Fill the room with the pattern, from `at` on, with `max` bytes at most; how many there were. */
static size_t fill_pattern(struct side *side, size_t at, size_t max)
{
    size_t len = 0;
    size_t n_behind = 0;

    uint8_t *room = room_of(side, &len, &n_behind);
    assert_non_null(room);
    memset(room, 0xee, len + n_behind);
    len = len < max ? len : max;
    for (size_t i = 0; i < len; i++) {
        room[i] = (uint8_t)((at + i) * 7 + 5);
    }
    assert_int_equal(side->session->ops->received(side->session, len, side->pair->now_ns), 0);
    return len;
}

static void open_server(struct pair *pair, const char *hex)
{
    pair_init(pair);
    pair->no_rooms = true;
    assert_int_equal(pair_open(pair), 0);
    side_feed_hex(&pair->server, hex);
    assert_int_equal(pair->server.rc, 0);
}

/* `cut` bytes into the room, then the rest, as far as there is room for it. */
static void assert_whole(size_t cut)
{
    struct pair pair;
    uint8_t rest[N_BYTES];

    open_server(&pair, OPEN_1 BEGIN);
    size_t n = fill_pattern(&pair.server, 0, cut);
    assert_int_equal(n, cut);
    assert_int_equal(side_native(&pair.server)->n_buffered, n);
    assert_int_equal(side_native(&pair.server)->n_missing, N_BYTES - n);
    if (N_BYTES - n >= (size_t)32 << 10) {
        n += fill_pattern(&pair.server, n, N_BYTES);
    } else {
        /* A little is cheaper to copy than to ask for. */
        assert_no_room(&pair.server);
    }
    for (size_t i = n; i < N_BYTES; i++) {
        rest[i] = (uint8_t)(i * 7 + 5);
    }
    side_feed(&pair.server, rest + n, N_BYTES - n);
    side_feed_hex(&pair.server, "00000000 03 01 000000000001");
    assert_int_equal(pair.server.n_messages, 1);
    assert_int_equal(pair.server.message_len, N_BYTES);
    assert_true(pair.server.message_had_block);
    assert_pattern(pair.server.message, N_BYTES, 5);
    pair_fini(&pair);
}

static void test_native_room_f68_takes_a_message_cut_anywhere(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= N_BYTES; cut += 1 + cut / 3) {
        assert_whole(cut);
    }
    assert_whole(N_BYTES - 1);
    assert_whole(N_BYTES);
}

static void test_native_room_f68_is_used_for_large_messages_both_ways(void **state)
{
    (void)state;
    for (int no_rooms = 0; no_rooms < 2; no_rooms++) {
        for (size_t step = 0; step <= 20000; step += 10000) {
            struct pair pair;
            pair_init(&pair);
            pair.no_rooms = no_rooms == 1;
            pair.step = step;
            assert_int_equal(pair_open(&pair), 0);
            pair_call_pattern(&pair, 1000000, 3);
            pair_run(&pair);
            assert_int_equal(pair.server.message_len, 1000000);
            assert_pattern(pair.server.message, 1000000, 3);
            assert_int_equal(pair.server.n_rooms > 0, !no_rooms && step > 0);
            struct bow__block *block = pattern_block(pair.context, 1000000, 4);
            struct bow__session *server = pair.server.session;
            assert_int_equal(server->ops->send(server, 1, BOW__SEND_END, block, 0, 1000000), 0);
            pair_run(&pair);
            assert_int_equal(pair.client.message_len, 1000000);
            assert_pattern(pair.client.message, 1000000, 4);
            assert_int_equal(pair.client.code, BOW_OK);
            assert_int_equal(pair.client.n_rooms > 0, !no_rooms && step > 0);
            pair_fini(&pair);
        }
    }
}

static void test_native_room_f68_costs_what_has_arrived_and_not_what_is_claimed(void **state)
{
    struct pair pair;
    size_t len = 0;
    size_t n_behind = 0;

    (void)state;
    /* 4 MiB, and 60,000 in the first frame. */
    open_server(&pair, OPEN_1 "0000ea64 03 0a 000000000001 00400000");
    size_t n_bytes = bow_context_bytes(pair.context);
    assert_non_null(room_of(&pair.server, &len, &n_behind));
    assert_in_range(bow_context_bytes(pair.context) - n_bytes, 1, 80 << 10);
    assert_in_range(len, 32 << 10, 64 << 10);
    pair_fini(&pair);
}

static void test_native_room_f68_there_is_none_without_a_message_under_way(void **state)
{
    struct pair pair;

    (void)state;
    open_server(&pair, "");
    assert_no_room(&pair.server);
    side_feed_hex(&pair.server, OPEN_1);
    assert_no_room(&pair.server);
    side_feed_hex(&pair.server, "00000001 03 02 000000000001 aa");
    assert_no_room(&pair.server);
    /* Bytes of a frame that is skipped. */
    side_feed_hex(&pair.server, "00020000 80 00 000000000000");
    assert_no_room(&pair.server);
    pair_fini(&pair);
}

/* The stream and its block are gone when the next room is asked for. */
static void test_native_room_f68_is_gone_when_the_call_ends_in_the_middle(void **state)
{
    static const struct bow_status late = {.code = BOW_DEADLINE_EXCEEDED, .message = "late"};
    struct pair pair;
    static uint8_t rest[N_BYTES];

    (void)state;
    open_server(&pair, OPEN_1 BEGIN);
    size_t n = fill_pattern(&pair.server, 0, 20000);
    struct bow__session *server = pair.server.session;
    assert_int_equal(server->ops->finish(server, 1, &late), 0);
    assert_no_room(&pair.server);
    side_feed(&pair.server, rest, sizeof(rest) - n);
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(side_native(&pair.server)->n_buffered, 0);
    assert_int_equal(side_native(&pair.server)->n_missing, 0);
    /* What follows is read as what it is. */
    side_feed_hex(&pair.server, "00000007 01 01 000000000003 06 12042f732f6d");
    assert_int_equal(pair.server.n_opens, 2);
    pair_fini(&pair);
}

static void test_native_room_f68_is_for_what_was_announced_alone(void **state)
{
    struct pair pair;
    static uint8_t bytes[N_BYTES];

    (void)state;
    /* 40,000 are announced, the frame has 60,000. */
    open_server(&pair, OPEN_1 "0000ea64 03 0a 000000000001 00009c40");
    assert_no_room(&pair.server);
    side_feed(&pair.server, bytes, sizeof(bytes));
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(side_native(&pair.server)->n_buffered, N_BYTES);
    pair_fini(&pair);
}

static void test_native_room_f68_without_memory_the_call_is_refused(void **state)
{
    struct pair pair;
    static uint8_t bytes[50000];

    (void)state;
    open_server(&pair, OPEN_1 BEGIN);
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    assert_no_room(&pair.server);
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    side_feed(&pair.server, bytes, sizeof(bytes));
    assert_int_equal(pair.server.n_resets, 1);
    assert_int_equal(pair.server.code, BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(pair.server.rc, 0);
    assert_no_room(&pair.server);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_room_f68_takes_a_message_cut_anywhere),
        cmocka_unit_test(test_native_room_f68_is_used_for_large_messages_both_ways),
        cmocka_unit_test(test_native_room_f68_costs_what_has_arrived_and_not_what_is_claimed),
        cmocka_unit_test(test_native_room_f68_there_is_none_without_a_message_under_way),
        cmocka_unit_test(test_native_room_f68_is_gone_when_the_call_ends_in_the_middle),
        cmocka_unit_test(test_native_room_f68_is_for_what_was_announced_alone),
        cmocka_unit_test(test_native_room_f68_without_memory_the_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
