/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages of every size, both ways: in place, in blocks, split, in turns; what
 * they cost; and those that are refused.
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

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define OPEN_1 OPENING "00000007 01 00 000000000001 06 12042f732f6d "
#define MIB ((size_t)1 << 20)

/* The server answers with what it got, its own way. */
static void echo(struct side *side, uint64_t key, struct bow__message *message)
{
    size_t len = message->bytes.len;

    if (message->block != NULL && len > BOW__IN_PLACE_BYTES) {
        struct bow__block *block = message->block;
        size_t offset = (size_t)(message->bytes.data - block->data);
        message->block = NULL;
        side->session->ops->consumed(side->session, key, len);
        assert_int_equal(
            side->session->ops->send(side->session, key, BOW__SEND_END, block, offset, len), 0);
        return;
    }
    assert_int_equal(side_say(side, key, BOW__SEND_END, message->bytes.data, len), 0);
}

static void assert_echo(size_t len, size_t step, uint64_t random)
{
    struct pair pair;

    pair_init(&pair);
    pair.step = step;
    pair.random = random;
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = echo;
    pair_call_pattern(&pair, len, 3);
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_int_equal(pair.client.n_messages, 1);
    assert_int_equal(pair.client.message_len, len);
    assert_pattern(pair.client.message, len, 3);
    assert_int_equal(side_native(&pair.client)->n_buffered, 0);
    assert_int_equal(side_native(&pair.server)->n_buffered, 0);
    assert_int_equal(side_native(&pair.server)->n_missing, 0);
    pair_fini(&pair);
}

static void test_native_message_of_any_size_echoes(void **state)
{
    static const size_t sizes[] = {0,     1,     127,   128,   16383, 16384,
                                   16385, 32768, 65535, 65536, 65537, 1000000};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_echo(sizes[i], 0, 0);
        assert_echo(sizes[i], 5000, i + 1);
    }
    assert_echo(70000, 1, 0);
    assert_echo(3 * MIB, 0, 0);
    assert_echo(4 * MIB, 60000, 9);
}

static void test_native_message_f27_that_is_empty_is_no_missing_message(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = echo;
    side_call(&pair.client, "/s/m", 0, "", 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 1);
    assert_int_equal(pair.client.n_messages, 1);
    assert_int_equal(pair.client.message_len, 0);
    assert_int_equal(pair.client.code, BOW_OK);
    pair_fini(&pair);
}

static void test_native_message_compressed_says_so(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (int large = 0; large < 2; large++) {
        struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                         .time_left_ns = BOW_NEVER};
        size_t len = large ? 100000 : 10;
        struct bow__block *block = pattern_block(pair.context, len, 1);
        uint64_t key = 0;
        struct bow__session *client = pair.client.session;
        assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
        assert_int_equal(
            client->ops->send(client, key, BOW__SEND_END | BOW__SEND_COMPRESSED, block, 0, len), 0);
        pair_run(&pair);
        assert_int_equal(pair.server.message_len, len);
        assert_true(pair.server.message_compressed);
        uint64_t server_key = pair.server.key;
        assert_int_equal(
            side_say(&pair.server, server_key, BOW__SEND_END | BOW__SEND_COMPRESSED, "zz", 2), 0);
        pair_run(&pair);
        assert_true(pair.client.message_compressed);
    }
    pair_fini(&pair);
}

/* Several messages on a stream each way, for methods that stream. */

static void test_native_message_many_each_way_keep_their_order(void **state)
{
    struct pair pair;
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                     .time_left_ns = BOW_NEVER};
    static uint8_t large[200000];
    uint64_t key = 0;
    struct bow_status status = {.code = BOW_ABORTED, .message = "enough"};

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    struct bow__session *server = pair.server.session;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(side_say(&pair.client, key, 0, "abcdef", (size_t)i + 1), 0);
        pair_run(&pair);
        assert_int_equal(pair.server.n_messages, i + 1);
        assert_int_equal(pair.server.message_len, i + 1);
        assert_false(pair.server.message_end);
        assert_int_equal(side_say(&pair.server, key, 0, large, (size_t)i * 50000), 0);
        pair_run(&pair);
        assert_int_equal(pair.client.n_messages, i + 1);
        assert_int_equal(pair.client.message_len, i * 50000);
        client->ops->consumed(client, key, bow__consumed_bytes(pair.client.message_len));
        server->ops->consumed(server, key, bow__consumed_bytes(pair.server.message_len));
    }
    assert_int_equal(side_say(&pair.server, key, 0, large, sizeof(large)), 0);
    assert_int_equal(side_say(&pair.server, key, 0, "last", 4), 0);
    assert_int_equal(server->ops->finish(server, key, &status), 0);
    assert_int_equal(server->ops->finish(server, key, &status), -ENOENT);
    pair_run(&pair);
    assert_int_equal(pair.client.n_messages, 7);
    assert_memory_equal(pair.client.message, "last", 4);
    assert_int_equal(pair.client.code, BOW_ABORTED);
    assert_string_equal(pair.client.text, "enough");
    assert_int_equal(server->ops->finish(server, key, &status), -ENOENT);
    pair_fini(&pair);
}

static void test_native_message_half_close_alone_is_told(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1 "00000002 03 08 000000000001 6869");
    assert_int_equal(pair.server.n_messages, 1);
    assert_false(pair.server.message_end);
    side_feed_hex(&pair.server, "00000000 03 01 000000000001");
    assert_int_equal(pair.server.n_half_closes, 1);
    side_feed_hex(&pair.server, "00000007 01 01 000000000003 06 12042f732f6d");
    assert_int_equal(pair.server.n_half_closes, 2);
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

/* Turns. */

struct turns {
    size_t n_small;        /* answered */
    size_t n_before_large; /* of them before the large one */
    uint64_t large;
};

static void count_end(struct side *side, uint64_t key)
{
    struct turns *turns = side->user;

    assert_int_equal(side->code, BOW_OK);
    if (key == turns->large) {
        turns->n_before_large = turns->n_small;
        return;
    }
    turns->n_small++;
}

/* 3 MiB each way; a small call begun in each round trip is answered in the next. */
static void test_native_message_large_does_not_starve_small_ones(void **state)
{
    struct pair pair;
    struct turns turns = {0};
    size_t n_begun = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = echo;
    pair.client.on_end = count_end;
    pair.client.user = &turns;
    turns.large = pair_call_pattern(&pair, 3 * MIB, 5);
    size_t moved = 1;
    while (moved > 0) {
        if (pair.client.session->n_streams == 1 && turns.n_before_large == 0) {
            side_call(&pair.client, "/s/m", 7, "small", 5);
            n_begun++;
        }
        size_t up = pair_move(&pair, &pair.client, SIZE_MAX);
        size_t down = pair_move(&pair, &pair.server, SIZE_MAX);
        /* A drain gives little at a time, so what is small never waits behind much. */
        assert_true(up < 100000 && down < 100000);
        moved = up + down;
    }
    assert_int_equal(pair.client.n_statuses, n_begun + 1);
    assert_true(turns.n_before_large > 40);
    pair_fini(&pair);
}

static void test_native_message_streams_take_turns(void **state)
{
    struct pair pair;
    struct iovec pieces[16];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 7, "small", 5);
    pair_run(&pair);
    for (uint8_t i = 0; i < 3; i++) {
        pair_call_pattern(&pair, 50000, i);
    }
    int n = pair.client.session->ops->drain(pair.client.session, pieces, 16);
    /* Opening and requests are one piece with the first header; then a frame of each in turn. */
    static const uint8_t streams[] = {3, 5, 7, 3};
    assert_int_equal(n, 8);
    for (int i = 0; i < 4; i++) {
        const uint8_t *end = (const uint8_t *)pieces[2 * i].iov_base + pieces[2 * i].iov_len;
        assert_int_equal(i < 3 ? end[-5] : end[-1], streams[i]);
        assert_int_equal(pieces[2 * i + 1].iov_len, 16384);
    }
    pair_fini(&pair);
}

/* What is refused. */

static void test_native_message_f30_that_claims_4_gib_allocates_nothing(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1);
    size_t n_bytes = bow_context_bytes(pair.context);
    side_feed_hex(&pair.server, "00000005 03 0a 000000000001 ffffffff aa");
    assert_int_equal(bow_context_bytes(pair.context), n_bytes);
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.server.n_resets, 1);
    assert_int_equal(pair.server.code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.server.text, "request announces 4294967295 bytes, above the server's "
                                          "max_message_bytes (4194304)");
    /* The client learns the same. */
    uint8_t out[256];
    size_t n = side_take(&pair.server, out, sizeof(out));
    size_t len = strlen(pair.server.text);
    assert_true(n > len && memcmp(out + n - len, pair.server.text, len) == 0);
    /* The connection goes on. */
    side_feed_hex(&pair.server, "00000001 03 02 000000000001 bb "
                                "00000007 01 01 000000000003 06 12042f732f6d");
    assert_int_equal(pair.server.n_opens, 2);
    pair_fini(&pair);
}

static void test_native_message_costs_what_has_arrived_and_not_what_it_claims(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1);
    size_t n_bytes = bow_context_bytes(pair.context);
    side_feed_hex(&pair.server, "00000005 03 0a 000000000001 00400000 aa"); /* 4 MiB, the limit */
    assert_int_equal(pair.server.n_resets, 0);
    assert_in_range(bow_context_bytes(pair.context) - n_bytes, 1, 80 << 10);
    pair_fini(&pair);
}

static void test_native_message_that_outgrows_its_claim_is_refused(void **state)
{
    struct pair pair;
    struct bow__session_options options;

    (void)state;
    pair_init(&pair);
    options = pair_options(&pair, true);
    options.max_message_bytes = 10;
    assert_int_equal(side_open(&pair.server, &options), 0);
    side_feed_hex(&pair.server, OPEN_1 "00000008 03 0a 000000000001 00000005 aabbccdd"
                                       "00000006 03 02 000000000001 aabbccddeeff");
    assert_int_equal(pair.server.n_resets, 0);
    side_feed_hex(&pair.server, "00000001 03 00 000000000001 00");
    assert_int_equal(pair.server.n_resets, 1);
    assert_string_equal(pair.server.text,
                        "request goes on to 11 bytes, above the server's max_message_bytes (10)");
    assert_int_equal(side_native(&pair.server)->n_buffered, 0);
    assert_int_equal(side_native(&pair.server)->n_missing, 0);
    /* One that is whole is measured as well. */
    side_feed_hex(&pair.server, "00000012 01 09 000000000003 06 12042f732f6d "
                                "0102030405060708090a0b");
    assert_int_equal(pair.server.n_resets, 2);
    assert_string_equal(pair.server.text,
                        "request announces 11 bytes, above the server's max_message_bytes (10)");
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

static void test_native_message_too_large_for_the_client_ends_the_call(void **state)
{
    struct pair pair;
    struct bow__session_options options;

    (void)state;
    for (int large = 0; large < 2; large++) {
        pair_init(&pair);
        options = pair_options(&pair, false);
        options.max_message_bytes = 1000;
        assert_int_equal(side_open(&pair.client, &options), 0);
        options = pair_options(&pair, true);
        assert_int_equal(side_open(&pair.server, &options), 0);
        side_call(&pair.client, "/s/m", 0, "hi", 2);
        pair_run(&pair);
        size_t len = large ? 100000 : 1001;
        struct bow__block *block = pattern_block(pair.context, len, 0);
        struct bow__session *server = pair.server.session;
        assert_int_equal(server->ops->send(server, 1, BOW__SEND_END, block, 0, len), 0);
        pair_run(&pair);
        assert_int_equal(pair.client.n_messages, 0);
        assert_int_equal(pair.client.n_statuses, 1);
        assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
        assert_string_equal(
            pair.client.text,
            large ? "reply announces 100000 bytes, above the client's max_message_bytes (1000)"
                  : "reply announces 1001 bytes, above the client's max_message_bytes (1000)");
        /* The server's reply was on its way: it has said its last and hears nothing. */
        assert_int_equal(pair.server.n_resets, 0);
        assert_int_equal(server->n_streams, 0);
        assert_int_equal(pair.server.rc, 0);
        pair_fini(&pair);
    }
}

static void test_native_message_beyond_the_bytes_in_flight_is_refused(void **state)
{
    struct pair pair;
    char hex[128];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING);
    for (int i = 0; i < 17; i++) {
        assert_int_equal(pair.server.n_resets, 0);
        snprintf(hex, sizeof(hex),
                 "00000007 01 00 0000000000%02x 06 12042f732f6d "
                 "00000004 03 0a 0000000000%02x 00400000",
                 2 * i + 1, 2 * i + 1);
        side_feed_hex(&pair.server, hex);
    }
    assert_int_equal(pair.server.n_resets, 1);
    assert_string_equal(pair.server.text, "message of 4194304 bytes, with 67108864 of others held "
                                          "on this connection, is above BOW_LIMIT_BYTES_IN_FLIGHT "
                                          "(67108864)");
    pair_fini(&pair);
}

/* A reply whose STATUS holds more than is taken whole: its header waits for the message. */
static void test_native_message_inside_a_large_status_keeps_its_header(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + 5 + 20000];

    (void)state;
    for (size_t step = 0; step <= 1000; step += 1000) {
        pair_init(&pair);
        pair.step = step;
        assert_int_equal(pair_open(&pair), 0);
        side_call(&pair.client, "/s/m", 0, "", 0);
        side_feed_hex(&pair.client, OPENING);
        /* code 9, message "x" */
        hex_decode("00004e26 04 09 000000000001 05 0809120178", frame, sizeof(frame));
        side_feed(&pair.client, frame, sizeof(frame));
        side_feed(&pair.client, "\0", 1);
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.n_messages, 1);
        assert_int_equal(pair.client.message_len, 20000);
        assert_int_equal(pair.client.n_statuses, 1);
        assert_int_equal(pair.client.code, BOW_FAILED_PRECONDITION);
        assert_string_equal(pair.client.text, "x");
        pair_fini(&pair);
    }
}

/* Between messages the session stops for what they cost its loop, and the rest comes again. */

static void find_it_dear(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)key;
    (void)message;
    side->session->work.n_turn += BOW__WORK_TURN_BYTES / 2;
}

static void test_native_message_f34_a_turn_ends_between_messages(void **state)
{
    struct pair pair;
    uint8_t bytes[512];
    size_t at = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = find_it_dear;
    size_t n = hex_decode("b04f5701 00000000 00 00 000000000000 "
                          "00000008 01 08 000000000001 06 12042f732f6d aa "
                          "00000008 01 08 000000000003 06 12042f732f6d bb "
                          "00000008 01 08 000000000005 06 12042f732f6d cc ",
                          bytes, sizeof(bytes));
    struct bow__session *server = pair.server.session;
    at = (size_t)server->ops->feed(server, bytes, n, pair.now_ns);
    assert_int_equal(at, n - 20);
    assert_int_equal(pair.server.n_messages, 2);
    /* The next turn. */
    server->work.n_turn = 0;
    assert_int_equal(server->ops->feed(server, bytes + at, n - at, pair.now_ns), 20);
    assert_int_equal(pair.server.n_messages, 3);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_message_of_any_size_echoes),
        cmocka_unit_test(test_native_message_f27_that_is_empty_is_no_missing_message),
        cmocka_unit_test(test_native_message_compressed_says_so),
        cmocka_unit_test(test_native_message_many_each_way_keep_their_order),
        cmocka_unit_test(test_native_message_half_close_alone_is_told),
        cmocka_unit_test(test_native_message_large_does_not_starve_small_ones),
        cmocka_unit_test(test_native_message_streams_take_turns),
        cmocka_unit_test(test_native_message_f30_that_claims_4_gib_allocates_nothing),
        cmocka_unit_test(test_native_message_costs_what_has_arrived_and_not_what_it_claims),
        cmocka_unit_test(test_native_message_that_outgrows_its_claim_is_refused),
        cmocka_unit_test(test_native_message_too_large_for_the_client_ends_the_call),
        cmocka_unit_test(test_native_message_beyond_the_bytes_in_flight_is_refused),
        cmocka_unit_test(test_native_message_inside_a_large_status_keeps_its_header),
        cmocka_unit_test(test_native_message_f34_a_turn_ends_between_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
