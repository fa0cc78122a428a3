/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Windows that grow: over a long path, for a reader that is fast, up to their
 * limits; and for nobody else. The path is as long as the test says: what one side sends
 * arrives half a round trip later.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MESSAGE_BYTES (16 * KIB)
#define LONG_PATH_NS UINT64_C(20000000)
#define SHORT_PATH_NS UINT64_C(50000)
#define SECOND UINT64_C(1000000000)

struct flow {
    size_t n_sent;
    size_t n_arrived;
    size_t n_read;   /* given back */
    size_t may_read; /* of what arrives; what is above stays unread */
};

static void on_message(struct side *side, uint64_t key, struct bow__message *message)
{
    struct flow *flow = side->user;
    size_t n = message->bytes.len;

    flow->n_arrived += n;
    if (flow->n_read + n <= flow->may_read) {
        flow->n_read += n;
        side->session->ops->consumed(side->session, key, n);
    }
}

static uint64_t begin(struct pair *pair)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .path_key = 7};
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    pair_run(pair);
    return key;
}

static void open_pair(struct pair *pair, struct flow *flow)
{
    pair_init(pair);
    assert_int_equal(pair_open(pair), 0);
    pair->server.user = flow;
    pair->server.on_message = on_message;
    pair_run(pair);
}

static uint32_t window_of(struct pair *pair, uint64_t key)
{
    const struct bow__native_stream *stream =
        bow__native_stream_peek(side_native(&pair->server), key);

    assert_non_null(stream);
    return stream->window.size;
}

/* The client says as much as there is credit for, and no more than `most`. */
static size_t say_all(struct pair *pair, uint64_t key, size_t most)
{
    static uint8_t message[MESSAGE_BYTES];
    struct bow__session *client = pair->client.session;
    size_t n = 0;
    size_t moved = 0;

    do {
        while (n < most && client->ops->queued(client, key) == 0) {
            assert_int_equal(side_say(&pair->client, key, 0, message, sizeof(message)), 0);
            n += sizeof(message);
        }
        moved = pair_move(pair, &pair->client, SIZE_MAX);
    } while (moved > 0);
    return n;
}

/* One round trip: there, and the credit back. Returns how much arrived. */
static size_t travel(struct pair *pair, uint64_t key, uint64_t round_trip_ns, size_t most)
{
    struct flow *flow = pair->server.user;
    size_t before = flow->n_arrived;

    flow->n_sent += say_all(pair, key, most);
    pair->now_ns += round_trip_ns / 2;
    while (pair_move(pair, &pair->server, SIZE_MAX) > 0) {
    }
    pair->now_ns += round_trip_ns / 2;
    assert_int_equal(pair->client.rc, 0);
    assert_int_equal(pair->server.rc, 0);
    return flow->n_arrived - before;
}

static void test_native_window_grows_for_a_fast_reader_far_away(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;
    size_t n = 0;

    (void)state;
    open_pair(&pair, &flow);
    uint64_t key = begin(&pair);
    n = travel(&pair, key, LONG_PATH_NS, SIZE_MAX);
    assert_in_range(n, 48 * KIB, 80 * KIB);
    for (int i = 0; i < 16; i++) {
        travel(&pair, key, LONG_PATH_NS, SIZE_MAX);
    }
    assert_int_equal(window_of(&pair, key), BOW_LIMIT_STREAM_WINDOW_BYTES);
    assert_true(side_native(&pair.server)->window.size <= BOW_LIMIT_CONNECTION_WINDOW_BYTES);
    /* Half a gigabyte a second and not 3 MB, which 64 KiB a round trip would be. */
    n = flow.n_arrived;
    for (int i = 0; i < 8; i++) {
        assert_true(travel(&pair, key, LONG_PATH_NS, SIZE_MAX) <= BOW_LIMIT_STREAM_WINDOW_BYTES);
    }
    assert_true(flow.n_arrived - n > 8 * 9 * MIB);
    /* The path was asked for, and no heartbeat was. */
    assert_int_equal(pair.server.session->rtt_ns, LONG_PATH_NS);
    assert_int_equal(pair.server.session->heartbeats_sent, 0);
    assert_int_equal(side_native(&pair.server)->n_pings, 1);
    pair_fini(&pair);
}

static void test_native_window_of_answers_grows_as_well(void **state)
{
    static uint8_t message[MESSAGE_BYTES];
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;
    size_t before = 0;

    (void)state;
    open_pair(&pair, &flow);
    pair.client.user = &flow;
    pair.client.on_message = on_message;
    uint64_t key = begin(&pair);
    struct bow__session *server = pair.server.session;
    for (int i = 0; i < 16; i++) {
        before = flow.n_arrived;
        do {
            while (server->ops->queued(server, key) == 0) {
                assert_int_equal(side_say(&pair.server, key, 0, message, sizeof(message)), 0);
            }
        } while (pair_move(&pair, &pair.server, SIZE_MAX) > 0);
        pair.now_ns += LONG_PATH_NS / 2;
        while (pair_move(&pair, &pair.client, SIZE_MAX) > 0) {
        }
        pair.now_ns += LONG_PATH_NS / 2;
    }
    assert_true(flow.n_arrived - before > 10 * MIB);
    pair_fini(&pair);
}

static void test_native_window_stays_on_a_short_path(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;

    (void)state;
    open_pair(&pair, &flow);
    uint64_t key = begin(&pair);
    for (int i = 0; i < 100; i++) {
        travel(&pair, key, SHORT_PATH_NS, SIZE_MAX);
    }
    assert_int_equal(window_of(&pair, key), BOW__NATIVE_STREAM_WINDOW);
    assert_int_equal(side_native(&pair.server)->window.size, MIB);
    pair_fini(&pair);
}

static void test_native_window_stays_for_a_slow_sender(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;

    (void)state;
    open_pair(&pair, &flow);
    uint64_t key = begin(&pair);
    for (int i = 0; i < 200; i++) {
        travel(&pair, key, LONG_PATH_NS, MESSAGE_BYTES);
    }
    assert_int_equal(window_of(&pair, key), BOW__NATIVE_STREAM_WINDOW);
    pair_fini(&pair);
}

static void test_native_window_stays_for_a_slow_reader(void **state)
{
    struct flow flow = {0};
    struct pair pair;

    (void)state;
    open_pair(&pair, &flow);
    uint64_t key = begin(&pair);
    for (int i = 0; i < 200; i++) {
        /* A message in each round trip. */
        travel(&pair, key, LONG_PATH_NS, SIZE_MAX);
        pair.server.session->ops->consumed(pair.server.session, key, MESSAGE_BYTES);
    }
    assert_int_equal(window_of(&pair, key), BOW__NATIVE_STREAM_WINDOW);
    assert_true(flow.n_arrived > 100 * MESSAGE_BYTES);
    pair_fini(&pair);
}

/* All that streams have grown by is bounded, and comes back with their end. */
static void test_native_window_of_all_streams_is_bounded(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct bow_status enough = {.code = BOW_ABORTED, .message = ""};
    struct pair pair;
    uint64_t keys[4];

    (void)state;
    open_pair(&pair, &flow);
    const struct bow__native *server = side_native(&pair.server);
    for (size_t i = 0; i < 4; i++) {
        keys[i] = begin(&pair);
        for (int round = 0; round < 16; round++) {
            travel(&pair, keys[i], LONG_PATH_NS, SIZE_MAX);
        }
        assert_true(server->n_grown <= BOW_LIMIT_GROWN_WINDOWS_BYTES);
    }
    assert_int_equal(window_of(&pair, keys[1]), BOW_LIMIT_STREAM_WINDOW_BYTES);
    assert_int_equal(window_of(&pair, keys[3]), BOW__NATIVE_STREAM_WINDOW);
    pair.server.session->ops->finish(pair.server.session, keys[0], &enough);
    pair_run(&pair);
    for (int round = 0; round < 16; round++) {
        travel(&pair, keys[3], LONG_PATH_NS, SIZE_MAX);
    }
    assert_int_equal(window_of(&pair, keys[3]), BOW_LIMIT_STREAM_WINDOW_BYTES);
    pair_fini(&pair);
}

/* A peer that made everything grow and is read no more holds as much as any other. */

#define N_UNREAD 600u

static void test_native_window_grown_and_unread_is_held_within_the_limit(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;
    static uint64_t keys[N_UNREAD];

    (void)state;
    pair_init(&pair);
    struct bow__session_options options = pair_options(&pair, true);
    options.max_calls = N_UNREAD;
    assert_int_equal(side_open(&pair.server, &options), 0);
    options = pair_options(&pair, false);
    assert_int_equal(side_open(&pair.client, &options), 0);
    pair.server.user = &flow;
    pair.server.on_message = on_message;
    pair_run(&pair);
    const struct bow__native *server = side_native(&pair.server);
    for (size_t i = 0; i < N_UNREAD; i++) {
        keys[i] = begin(&pair);
        for (int round = 0; i < 2 && round < 20; round++) {
            travel(&pair, keys[i], LONG_PATH_NS, SIZE_MAX);
        }
    }
    assert_true(server->window.size > 16 * MIB);
    flow.may_read = 0;
    for (size_t i = 0; i < N_UNREAD; i++) {
        while (travel(&pair, keys[i], LONG_PATH_NS, SIZE_MAX) > 0) {
        }
    }
    assert_true(server->n_buffered > BOW_LIMIT_BYTES_IN_FLIGHT - 20 * MIB);
    assert_true(server->n_buffered <= BOW_LIMIT_BYTES_IN_FLIGHT + MIB);
    pair_fini(&pair);
}

/* Asking how long the path is. */

static void test_native_window_asks_for_the_path_once_a_second(void **state)
{
    struct flow flow = {.may_read = SIZE_MAX};
    struct pair pair;

    (void)state;
    open_pair(&pair, &flow);
    uint64_t key = begin(&pair);
    uint64_t since = pair.now_ns;
    while (pair.now_ns - since < 3 * SECOND) {
        travel(&pair, key, LONG_PATH_NS, 10 * MESSAGE_BYTES);
    }
    assert_in_range(side_native(&pair.server)->n_pings, 3, 4);
    pair_fini(&pair);
}

static void test_native_window_asks_nothing_that_the_peer_forbids(void **state)
{
    static uint8_t frame[12 + 40000];
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    /* min_ping_interval_us: an hour. One PING may be sent. */
    side_feed_hex(&pair.server, "b04f5701 00000006 00 00 000000000000 3880f4d2b50d"
                                "00000007 01 00 000000000001 06 12042f732f6d");
    assert_int_equal(pair.server.rc, 0);
    for (int i = 0; i < 3; i++) {
        hex_decode("00009c40 03 08 000000000001", frame, sizeof(frame));
        side_feed(&pair.server, frame, sizeof(frame));
        pair.server.session->ops->consumed(pair.server.session, 1, 40000);
        pair.now_ns += 2 * SECOND;
        side_feed_hex(&pair.server, "00000008 07 01 000000000000 0000000000000001");
    }
    assert_int_equal(side_native(&pair.server)->n_pings, 1);
    pair_fini(&pair);
}

static void test_native_window_heartbeat_tells_the_round_trip(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    struct bow__session_options options = pair_options(&pair, true);
    options.heartbeat_ns = 10 * SECOND;
    assert_int_equal(side_open(&pair.server, &options), 0);
    options = pair_options(&pair, false);
    assert_int_equal(side_open(&pair.client, &options), 0);
    pair_run(&pair);
    struct bow__session *server = pair.server.session;
    assert_int_equal(server->rtt_ns, 0);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(server->ops->on_time(server, pair.now_ns), 0);
    /* An answer to something else says nothing. */
    side_feed_hex(&pair.server, "00000008 07 01 000000000000 0000000000000007");
    assert_int_equal(server->rtt_ns, 0);
    pair_move(&pair, &pair.server, SIZE_MAX);
    pair.now_ns += 3000000;
    pair_move(&pair, &pair.client, SIZE_MAX);
    assert_int_equal(server->rtt_ns, 3000000);
    /* Nor does the same one a second time. */
    pair.now_ns += SECOND;
    side_feed_hex(&pair.server, "00000008 07 01 000000000000 0000000000000001");
    assert_int_equal(server->rtt_ns, 3000000);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_window_grows_for_a_fast_reader_far_away),
        cmocka_unit_test(test_native_window_of_answers_grows_as_well),
        cmocka_unit_test(test_native_window_stays_on_a_short_path),
        cmocka_unit_test(test_native_window_stays_for_a_slow_sender),
        cmocka_unit_test(test_native_window_stays_for_a_slow_reader),
        cmocka_unit_test(test_native_window_of_all_streams_is_bounded),
        cmocka_unit_test(test_native_window_grown_and_unread_is_held_within_the_limit),
        cmocka_unit_test(test_native_window_asks_for_the_path_once_a_second),
        cmocka_unit_test(test_native_window_asks_nothing_that_the_peer_forbids),
        cmocka_unit_test(test_native_window_heartbeat_tells_the_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
