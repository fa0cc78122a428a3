/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Credit: nothing is sent without it, it is withheld and given back as the
 * protocol says, and overstepping it breaks the connection.
 */
#include "rpc/native/internal.h"
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define OPEN_1 OPENING "00000007 01 00 000000000001 06 12042f732f6d "
#define MIB ((size_t)1 << 20)

static void test_native_flow_without_credit_waits_for_it(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_call_pattern(&pair, 3 * MIB, 1);
    /* Nobody answers: what is sent is the stream's window and not a byte more. */
    size_t n = 0;
    size_t moved = 0;
    static uint8_t out[2 << 20];
    do {
        moved = side_take(&pair.client, out + n, sizeof(out) - n);
        n += moved;
    } while (moved > 0);
    assert_true(n >= 65536 && n < 65536 + 200);
    assert_int_equal(side_native(&pair.client)->send_credit, MIB - 65536);
    /* One that fits what is left of the connection's credit goes past it. */
    side_call(&pair.client, "/s/m", 7, "small", 5);
    n = side_take(&pair.client, out, sizeof(out));
    assert_int_equal(n, 12 + 1 + 2 + 5);
    pair_fini(&pair);
}

/* 64 KiB with a field's tag and length around them. */
static void test_native_flow_f68_64_kib_take_no_round_trip(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_run(&pair);
    pair_call_pattern(&pair, 65536 + 4, 1);
    while (pair_move(&pair, &pair.client, SIZE_MAX) > 0) {
    }
    assert_int_equal(pair.server.n_messages, 1);
    pair_fini(&pair);
}

static void test_native_flow_unread_withholds_the_streams_credit(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + 40000];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1);
    hex_decode("00009c40 03 08 000000000001", frame, sizeof(frame));
    side_assert_output(&pair.server,
                       "b04f5701 0000000c 00 00 000000000000 08808010 1080a004 38a09c01");
    side_feed(&pair.server, frame, sizeof(frame));
    assert_int_equal(pair.server.n_messages, 1);
    /* Not consumed: nothing is returned. */
    side_assert_output(&pair.server, "");
    struct bow__session *server = pair.server.session;
    server->ops->consumed(server, 1, 10000);
    side_assert_output(&pair.server, "");
    server->ops->consumed(server, 1, 30000);
    side_assert_output(&pair.server, "00000004 06 00 000000000001 00009c40");
    /* More than there was is no more. */
    server->ops->consumed(server, 1, 30000);
    server->ops->consumed(server, 3, 30000);
    side_assert_output(&pair.server, "");
    pair_fini(&pair);
}

static void note_large(struct side *side, uint64_t key, struct bow__message *message)
{
    static const struct bow_status ok = BOW_STATUS_OK_INIT;

    if (message->bytes.len > MIB) {
        *(bool *)side->user = true;
    } else {
        assert_int_equal(side->session->ops->finish(side->session, key, &ok), 0);
    }
}

/* The most bytes that were on the way at once, over a path this long, of a large message and a
 * small one now and then beside it. */
static size_t most_on_the_way(uint64_t round_trip_ns, uint64_t small_each_ns)
{
    struct pair pair;
    bool is_done = false;
    uint64_t small_ns = 0;
    size_t most = 0;
    size_t moved;

    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = note_large;
    pair.server.user = &is_done;
    pair_call_pattern(&pair, 3 * MIB, 1);
    while (!is_done) {
        size_t n = 0;
        if (pair.now_ns - small_ns >= small_each_ns) {
            side_call(&pair.client, "/s/m", 7, "small", 5);
            small_ns = pair.now_ns;
        }
        while ((moved = pair_move(&pair, &pair.client, SIZE_MAX)) > 0) {
            n += moved;
        }
        pair.now_ns += round_trip_ns / 2;
        while (pair_move(&pair, &pair.server, SIZE_MAX) > 0) {
        }
        pair.now_ns += round_trip_ns / 2;
        most = n > most ? n : most;
    }
    pair_fini(&pair);
    return most;
}

static void test_native_flow_runs_ahead_by_what_the_path_holds(void **state)
{
    (void)state;
    /* On a short path small messages queue behind no more than the window. */
    assert_true(most_on_the_way(50000, 50000) < BOW__NATIVE_STREAM_WINDOW + 2048);
    /* On a long one a large message is not held to a window a round trip. */
    assert_true(most_on_the_way(20000000, 20000000) > MIB / 2);
}

static void test_native_flow_f68_large_alone_has_what_comes_in_a_millisecond(void **state)
{
    (void)state;
    /* No small message is late by more than that. */
    size_t most = most_on_the_way(50000, BOW_NEVER);
    assert_true(most > (size_t)256 << 10);
    assert_true(most < BOW__NATIVE_QUIET_AHEAD_BYTES + 2048);
}

static void test_native_flow_f68_large_alone_on_a_slow_path_has_less(void **state)
{
    struct pair pair;
    uint32_t most = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = pair_call_pattern(&pair, 3 * MIB, 1);
    while (pair.server.n_messages == 0) {
        pair_move(&pair, &pair.client, 10000);
        pair_move(&pair, &pair.server, SIZE_MAX);
        const struct bow__native_stream *stream =
            bow__native_stream_peek(side_native(&pair.server), key);
        most = stream != NULL && stream->receive_credit > most ? stream->receive_credit : most;
        pair.now_ns += 100000;
    }
    /* 100,000 bytes come in a millisecond. */
    assert_true(most > BOW__NATIVE_STREAM_WINDOW && most < 110000);
    pair_fini(&pair);
}

static void test_native_flow_of_an_ended_side_returns_no_stream_credit(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + 40000];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1);
    side_assert_output(&pair.server,
                       "b04f5701 0000000c 00 00 000000000000 08808010 1080a004 38a09c01");
    hex_decode("00009c40 03 09 000000000001", frame, sizeof(frame));
    side_feed(&pair.server, frame, sizeof(frame));
    pair.server.session->ops->consumed(pair.server.session, 1, 40000);
    side_assert_output(&pair.server, "");
    pair_fini(&pair);
}

static void test_native_flow_late_returns_connection_credit(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + 65536];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1 "00000004 05 00 000000000001 00000001");
    assert_int_equal(pair.server.n_resets, 1);
    assert_int_equal(pair.server.code, BOW_CANCELLED);
    side_assert_output(&pair.server,
                       "b04f5701 0000000c 00 00 000000000000 08808010 1080a004 38a09c01");
    hex_decode("00010000 03 0a 000000000001 00000000", frame, sizeof(frame));
    /* The announced length spends no credit: 8 × 65,532 bytes are below half of the window. */
    for (int i = 0; i < 8; i++) {
        side_feed(&pair.server, frame, sizeof(frame));
    }
    side_assert_output(&pair.server, "");
    side_feed(&pair.server, frame, sizeof(frame));
    side_assert_output(&pair.server, "00000004 06 00 000000000000 0008ffdc");
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(side_native(&pair.server)->receive_credit, MIB);
    pair_fini(&pair);
}

static void test_native_flow_settings_raise_the_windows_of_open_calls(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 0, "12345", 5);
    /* Stream window 131072, connection window 2097152. */
    side_feed_hex(&pair.client, "b04f5701 00000009 00 00 000000000000 10808008 1880808001");
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.client.n_readies, 1);
    const struct bow__native *client = side_native(&pair.client);
    assert_int_equal(client->send_credit, 2 * MIB - 64);
    const struct bow__native_stream *stream = bow__native_stream_peek(client, 1);
    assert_int_equal(stream->send_credit, 131072 - 64);
    pair_fini(&pair);
}

/* Sixteen streams' windows are all of the connection's credit: the seventeenth waits, and no empty
 * frame is cut for it. */
static void test_native_flow_without_connection_credit_waits_for_it(void **state)
{
    struct pair pair;
    static uint8_t out[2 << 20];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (int i = 0; i < 17; i++) {
        pair_call_pattern(&pair, 100000, 1);
    }
    size_t n = side_take(&pair.client, out, sizeof(out));
    assert_int_equal(side_native(&pair.client)->send_credit, 0);
    assert_true(n > MIB && n < MIB + 5000);
    side_call(&pair.client, "/s/m", 7, "x", 1);
    assert_int_equal(side_take(&pair.client, out, sizeof(out)), 12 + 1 + 2);
    side_feed_hex(&pair.client, OPENING "00000004 06 00 000000000000 00000001");
    n = side_take(&pair.client, out, sizeof(out));
    assert_int_equal(side_native(&pair.client)->send_credit, 0);
    assert_true(n > 12 && n < 20);
    pair_fini(&pair);
}

/* Frames that the credit of a stream which is being topped up has room for. */
#define LARGE_FRAME_BYTES 16384u
#define LARGE_FRAMES ((size_t)252)
#define LARGE_BYTES (LARGE_FRAMES * LARGE_FRAME_BYTES - 4)

/* A whole message of `n_frames` frames of 65,532 and more bytes. */
static void feed_large(struct side *side, unsigned stream, size_t n_frames)
{
    static uint8_t frame[12 + LARGE_FRAME_BYTES];
    char hex[64];

    snprintf(hex, sizeof(hex), "00000007 01 00 0000000000%02x 06 12042f732f6d ", stream);
    side_feed_hex(side, hex);
    snprintf(hex, sizeof(hex), "00004000 03 0a 0000000000%02x 003f0000", stream);
    hex_decode(hex, frame, sizeof(frame));
    side_feed(side, frame, sizeof(frame));
    for (size_t i = 1; i < n_frames && side->rc == 0; i++) {
        snprintf(hex, sizeof(hex), "00004000 03 %s 0000000000%02x", i + 1 < n_frames ? "02" : "00",
                 stream);
        hex_decode(hex, frame, sizeof(frame));
        side_feed(side, frame, sizeof(frame));
    }
}

#define SMALL_BYTES ((size_t)65529)

/* A request whose message fills the frame. */
static void feed_small(struct side *side, unsigned stream)
{
    static uint8_t frame[12 + 65536];
    char hex[64];

    snprintf(hex, sizeof(hex), "00010000 01 08 0000000000%02x 06 12042f732f6d ", stream);
    hex_decode(hex, frame, sizeof(frame));
    side_feed(side, frame, sizeof(frame));
}

/* The host reads nothing, until the connection gives no more credit and all it gave is spent.
 * Returns the next stream. */
static unsigned fill_connection(struct pair *pair)
{
    unsigned stream = 33;

    assert_int_equal(pair_open(pair), 0);
    side_feed_hex(&pair->server, OPENING);
    for (unsigned i = 0; i < 16; i++) {
        feed_large(&pair->server, 2 * i + 1, LARGE_FRAMES);
    }
    assert_int_equal(pair->server.n_messages, 16);
    assert_int_equal(side_native(&pair->server)->n_buffered, 16 * LARGE_BYTES);
    while (side_native(&pair->server)->n_buffered < BOW_LIMIT_BYTES_IN_FLIGHT ||
           side_native(&pair->server)->receive_credit >= SMALL_BYTES) {
        feed_small(&pair->server, stream);
        assert_int_equal(pair->server.rc, 0);
        stream += 2;
    }
    assert_true(side_native(&pair->server)->n_buffered <
                BOW_LIMIT_BYTES_IN_FLIGHT + MIB + SMALL_BYTES);
    return stream;
}

static void test_native_flow_held_too_long_withholds_the_connections_credit(void **state)
{
    struct pair pair;
    static uint8_t out[1 << 20];

    (void)state;
    pair_init(&pair);
    fill_connection(&pair);
    side_take(&pair.server, out, sizeof(out));
    pair.server.session->ops->consumed(pair.server.session, 1, LARGE_BYTES);
    assert_int_equal(side_native(&pair.server)->receive_credit, MIB);
    /* For the connection and for the stream. */
    assert_int_equal(side_take(&pair.server, out, sizeof(out)), 2 * 16);
    pair_fini(&pair);
}

static void test_native_flow_beyond_the_connections_credit_breaks(void **state)
{
    struct pair pair;
    char text[128];

    (void)state;
    pair_init(&pair);
    unsigned stream = fill_connection(&pair);
    snprintf(text, sizeof(text),
             "REQUEST frame, stream %u: spends 65529 bytes of credit, the connection has %u",
             stream, side_native(&pair.server)->receive_credit);
    feed_small(&pair.server, stream);
    side_assert_broken(&pair.server, BOW_INTERNAL, text);
    pair_fini(&pair);
}

/* Small messages. */

static uint64_t begin_stream(struct pair *pair)
{
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                     .time_left_ns = BOW_NEVER};
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    pair_run(pair);
    return key;
}

/* Messages of a byte cost whom they wait for more than that, so that fewer of them may wait. */
static void test_native_flow_small_messages_unread_are_few(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin_stream(&pair);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(side_say(&pair.client, key, 0, "x", 1), 0);
        pair_run(&pair);
    }
    assert_int_equal(pair.server.n_messages, BOW__NATIVE_STREAM_WINDOW / 64);
    assert_int_equal(side_native(&pair.server)->n_buffered, BOW__NATIVE_STREAM_WINDOW);
    struct bow__session *client = pair.client.session;
    assert_int_equal(client->ops->queued(client, key),
                     (2000 - BOW__NATIVE_STREAM_WINDOW / 64) * BOW__FRAME_MESSAGE_COST);
    /* Read some of them, and all: no credit is lost, none is gained. */
    struct bow__session *server = pair.server.session;
    server->ops->consumed(server, key, 512);
    assert_int_equal(side_native(&pair.server)->n_buffered,
                     BOW__NATIVE_STREAM_WINDOW - 512 * BOW__FRAME_MESSAGE_COST);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, BOW__NATIVE_STREAM_WINDOW / 64 + 512);
    for (int i = 0; i < 10; i++) {
        server->ops->consumed(server, key, 2000);
        pair_run(&pair);
    }
    assert_int_equal(pair.server.n_messages, 2000);
    assert_int_equal(side_native(&pair.server)->n_buffered, 0);
    pair_fini(&pair);
}

/* Nor may more of those that have none; whoever reads them gets as many as there are. */
static void test_native_flow_messages_without_bytes_are_held_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin_stream(&pair);
    struct bow__session *server = pair.server.session;
    for (size_t i = 0; i < 30000; i++) {
        assert_int_equal(side_say(&pair.client, key, 0, "", 0), 0);
    }
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, BOW__NATIVE_STREAM_WINDOW / 64);
    assert_int_equal(side_native(&pair.server)->n_buffered, BOW__NATIVE_STREAM_WINDOW);
    for (size_t i = 0; i < 30000; i++) {
        server->ops->consumed(server, key, bow__consumed_bytes(0));
        pair_run(&pair);
        assert_true(pair.server.n_messages - i <= BOW__NATIVE_STREAM_WINDOW / 64 + 1);
    }
    assert_int_equal(pair.server.n_messages, 30000);
    assert_int_equal(side_native(&pair.server)->n_buffered, 0);
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

/* With less credit than a message costs, in place or from the queue, it waits. */
static void test_native_flow_small_message_waits_for_what_it_costs(void **state)
{
    struct pair pair;
    static uint8_t bytes[BOW__NATIVE_STREAM_WINDOW - 63];
    size_t cap = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin_stream(&pair);
    struct bow__session *client = pair.client.session;
    /* The last frame of a message may spend what is left, the first may not. */
    for (int i = 0; i < 4; i++) {
        size_t n = BOW__NATIVE_STREAM_WINDOW / 4 - (i < 3 ? 0 : 63);
        assert_int_equal(side_say(&pair.client, key, 0, bytes, n), 0);
        pair_run(&pair);
    }
    assert_null(client->ops->reserve(client, key, 0, &cap));
    assert_int_equal(side_say(&pair.client, key, 0, "x", 1), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 4);
    assert_int_equal(client->ops->queued(client, key), BOW__FRAME_MESSAGE_COST);
    side_feed_hex(&pair.client, "00000004 06 00 000000000001 00000001");
    side_assert_output(&pair.client, "00000001 03 08 000000000001 78");
    pair_fini(&pair);
}

static void test_native_flow_in_place_ends_where_the_peer_does_not_read(void **state)
{
    struct pair pair;
    static uint8_t reply[16384];
    size_t cap = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    /* A client that promises a window of 2^31 - 1 and reads nothing. */
    side_feed_hex(&pair.server, "b04f5701 00000006 00 00 000000000000 18ffffffff07");
    struct bow__session *server = pair.server.session;
    for (unsigned i = 0; i < 100; i++) {
        char hex[64];
        snprintf(hex, sizeof(hex), "00000007 01 01 0000000000%02x 06 12042f732f6d ", 2 * i + 1);
        side_feed_hex(&pair.server, hex);
        assert_int_equal(side_say(&pair.server, 2 * i + 1, BOW__SEND_END, reply, sizeof(reply)), 0);
    }
    assert_true(side_native(&pair.server)->out.n_bytes < MIB + 20000);
    assert_true(side_native(&pair.server)->out.n_bytes > MIB);
    assert_null(server->ops->reserve(server, 199, BOW__SEND_END, &cap));
    assert_false(server->ops->is_clogged(server));
    /* The rest waits on its streams. */
    assert_true(server->n_streams > 30);
    static uint8_t out[2 << 20];
    assert_true(side_take(&pair.server, out, sizeof(out)) > 100 * 16384);
    assert_int_equal(server->n_streams, 0);
    pair_fini(&pair);
}

static void test_native_flow_messages_wait_while_much_output_does(void **state)
{
    static uint8_t message[1000];
    static uint8_t out[1 << 20];
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, "b04f5701 00000006 00 00 000000000000 10ffffffff07");
    side_feed_hex(&pair.server, "00000007 01 01 000000000001 06 12042f732f6d ");
    struct bow__session *server = pair.server.session;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(side_say(&pair.server, 1, 0, message, sizeof(message)), 0);
    }
    /* There is credit for all of it; but its producer shall see that the socket does not take it.
     */
    assert_in_range(side_native(&pair.server)->out.n_bytes, BOW__NATIVE_AHEAD_BYTES,
                    BOW__NATIVE_AHEAD_BYTES + 1100);
    assert_in_range(server->ops->queued(server, 1), 200 * sizeof(message), 300 * sizeof(message));
    assert_true(side_take(&pair.server, out, sizeof(out)) > 300 * sizeof(message));
    pair_fini(&pair);
}

/* Room that was asked for and not used is given back, also when there is none for the next. */
static void test_native_flow_room_that_is_not_used_is_forgotten(void **state)
{
    static uint8_t message[1000];
    static uint8_t out[1 << 20];
    struct pair pair;
    size_t cap = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, "b04f5701 00000006 00 00 000000000000 10ffffffff07");
    side_feed_hex(&pair.server, "00000007 01 01 000000000001 06 12042f732f6d ");
    side_feed_hex(&pair.server, "00000007 01 01 000000000003 06 12042f732f6d ");
    side_feed_hex(&pair.server, "00000007 01 01 000000000005 06 12042f732f6d ");
    struct bow__session *server = pair.server.session;
    while (side_native(&pair.server)->out.n_bytes < BOW__NATIVE_AHEAD_BYTES) {
        assert_int_equal(side_say(&pair.server, 1, 0, message, sizeof(message)), 0);
    }
    assert_non_null(server->ops->reserve(server, 3, BOW__SEND_END, &cap));
    assert_null(server->ops->reserve(server, 5, 0, &cap));
    assert_true(side_take(&pair.server, out, sizeof(out)) > BOW__NATIVE_AHEAD_BYTES);
    pair_fini(&pair);
}

static void on_turn(struct bow__in_flight *in_flight)
{
    (void)in_flight;
}

static void send_small(struct pair *pair, int n)
{
    static const uint8_t message[16000];

    for (int i = 0; i < n; i++) {
        side_call(&pair->client, "/s/m", 7, message, sizeof(message));
    }
    pair_run(pair);
}

/* More of the server's room than its even part is this connection's. */
static void test_native_flow_short_server_withholds_the_connections_credit(void **state)
{
    uint64_t n_refused = 0;
    struct bow__in_flight in_flight = {
        .max_bytes = 16 * MIB, .n_refused = &n_refused, .on_turn = on_turn};
    struct bow__in_flight_share part;
    struct pair pair;

    (void)state;
    bow__in_flight_share_init(&part, &in_flight);
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *server = pair.server.session;
    server->in_flight = &part;
    assert_true(bow__in_flight_take_message(&part, 13 * MIB));
    send_small(&pair, 33);
    assert_int_equal(side_native(&pair.server)->receive_credit, MIB - 33 * 16000);
    assert_false(server->ops->refill(server));
    /* When it is no longer short, what was withheld is given. */
    bow__in_flight_give_message(&part, 13 * MIB);
    assert_true(server->ops->refill(server));
    assert_int_equal(side_native(&pair.server)->receive_credit, MIB);
    pair_run(&pair);
    /* A message that has begun gets to its end. */
    assert_true(bow__in_flight_take_message(&part, 13 * MIB));
    send_small(&pair, 33);
    assert_int_equal(side_native(&pair.server)->receive_credit, MIB - 33 * 16000);
    size_t n_messages = pair.server.n_messages;
    pair_call_pattern(&pair, 800000, 1);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, n_messages + 1);
    assert_int_equal(part.n_messages, 13 * MIB);
    /* One for which there is no room does not begin. */
    pair_call_pattern(&pair, MIB + 1, 1);
    pair_run(&pair);
    assert_int_equal(n_refused, 1);
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(pair.client.text, "no room for a message of 1048577 bytes"));
    pair_fini(&pair);
    bow__in_flight_share_fini(&part);
}

static void test_native_flow_f67_who_finds_no_room_is_told_when_to_come_again(void **state)
{
    uint64_t n_refused = 0;
    struct bow__in_flight in_flight = {
        .max_bytes = MIB, .n_refused = &n_refused, .on_turn = on_turn};
    struct bow__in_flight_share part;
    struct bow__session_options options;
    struct pair pair;

    (void)state;
    bow__in_flight_share_init(&part, &in_flight);
    pair_init(&pair);
    options = pair_options(&pair, false);
    assert_int_equal(side_open(&pair.client, &options), 0);
    options = pair_options(&pair, true);
    options.in_flight = &part;
    options.retry_after_ns = 1500000000;
    assert_int_equal(side_open(&pair.server, &options), 0);
    pair_call_pattern(&pair, MIB + 1, 1);
    pair_run(&pair);
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(pair.client.retry_after_ns, 1500000000);
    pair_fini(&pair);
    bow__in_flight_share_fini(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_flow_without_credit_waits_for_it),
        cmocka_unit_test(test_native_flow_f68_64_kib_take_no_round_trip),
        cmocka_unit_test(test_native_flow_unread_withholds_the_streams_credit),
        cmocka_unit_test(test_native_flow_runs_ahead_by_what_the_path_holds),
        cmocka_unit_test(test_native_flow_f68_large_alone_has_what_comes_in_a_millisecond),
        cmocka_unit_test(test_native_flow_f68_large_alone_on_a_slow_path_has_less),
        cmocka_unit_test(test_native_flow_of_an_ended_side_returns_no_stream_credit),
        cmocka_unit_test(test_native_flow_late_returns_connection_credit),
        cmocka_unit_test(test_native_flow_settings_raise_the_windows_of_open_calls),
        cmocka_unit_test(test_native_flow_without_connection_credit_waits_for_it),
        cmocka_unit_test(test_native_flow_held_too_long_withholds_the_connections_credit),
        cmocka_unit_test(test_native_flow_beyond_the_connections_credit_breaks),
        cmocka_unit_test(test_native_flow_small_messages_unread_are_few),
        cmocka_unit_test(test_native_flow_messages_without_bytes_are_held_back),
        cmocka_unit_test(test_native_flow_small_message_waits_for_what_it_costs),
        cmocka_unit_test(test_native_flow_in_place_ends_where_the_peer_does_not_read),
        cmocka_unit_test(test_native_flow_messages_wait_while_much_output_does),
        cmocka_unit_test(test_native_flow_room_that_is_not_used_is_forgotten),
        cmocka_unit_test(test_native_flow_short_server_withholds_the_connections_credit),
        cmocka_unit_test(test_native_flow_f67_who_finds_no_room_is_told_when_to_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
