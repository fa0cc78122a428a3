/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Heartbeats, and the limits a second, under a clock that the test moves.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define PING "00000008 07 00 000000000000 0000000000000000 "
#define SECOND UINT64_C(1000000000)

static void open_with_heartbeat(struct pair *pair, bool unattended)
{
    struct bow__session_options client = pair_options(pair, false);
    struct bow__session_options server = pair_options(pair, true);

    client.unattended = unattended;
    client.heartbeat_ns = 20 * SECOND;
    server.heartbeat_ns = 10 * SECOND;
    assert_int_equal(side_open(&pair->client, &client), 0);
    assert_int_equal(side_open(&pair->server, &server), 0);
    pair_run(pair);
}

static uint64_t next_time(const struct side *side)
{
    return side->session->ops->next_time(side->session);
}

static int on_time(struct side *side)
{
    return side->session->ops->on_time(side->session, side->pair->now_ns);
}

static void test_native_heartbeat_asks_after_silence(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    uint64_t begin = pair.now_ns;
    assert_true(next_time(&pair.server) == begin + 10 * SECOND);
    /* Too early does nothing. */
    pair.now_ns += 10 * SECOND - 1;
    assert_int_equal(on_time(&pair.server), 0);
    side_assert_output(&pair.server, "");
    pair.now_ns += 1;
    assert_int_equal(on_time(&pair.server), 0);
    assert_int_equal(pair.server.session->heartbeats_sent, 1);
    assert_true(next_time(&pair.server) == pair.now_ns + 5 * SECOND);
    pair.now_ns += 5 * SECOND - 1;
    pair_run(&pair);
    /* The answer came in time, just. */
    assert_int_equal(on_time(&pair.server), 0);
    assert_true(next_time(&pair.server) == pair.now_ns + 10 * SECOND);
    /* The client was asked, which is a sign of life. */
    assert_true(next_time(&pair.client) == pair.now_ns + 20 * SECOND);
    pair_fini(&pair);
}

static void test_native_heartbeat_unanswered_breaks(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    pair.now_ns += 5 * SECOND - 1;
    assert_int_equal(on_time(&pair.server), 0);
    pair.now_ns += 1;
    pair.server.rc = on_time(&pair.server);
    assert_int_equal(pair.server.rc, -ETIMEDOUT);
    assert_int_equal(pair.server.session->heartbeats_lost, 1);
    assert_true(next_time(&pair.server) == BOW_NEVER);
    side_assert_broken(&pair.server, BOW_UNAVAILABLE,
                       "heartbeat: no byte from the peer within 5000 ms of a PING "
                       "(heartbeat_timeout_ns)");
    pair_fini(&pair);
}

/* A path so slow that the PING waits behind bytes of ours: they are on their way. */
static void test_native_heartbeat_counts_from_when_the_ping_has_left(void **state)
{
    struct pair pair;
    struct iovec piece;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    const struct bow__session_ops *ops = pair.server.session->ops;
    /* Answers to the client's PINGs wait to be sent. */
    side_feed_hex(&pair.server, PING PING PING);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    assert_int_equal(pair.server.session->heartbeats_sent, 1);
    for (int i = 0; i < 3; i++) {
        pair.now_ns += 4 * SECOND;
        assert_int_equal(ops->drain(pair.server.session, &piece, 1), 1);
        ops->sent(pair.server.session, 20);
        assert_true(next_time(&pair.server) == 0);
        assert_int_equal(on_time(&pair.server), 0);
        assert_true(next_time(&pair.server) == pair.now_ns + 5 * SECOND);
    }
    /* Now it leaves, and what leaves behind it is no excuse. */
    assert_int_equal(ops->drain(pair.server.session, &piece, 1), 1);
    ops->sent(pair.server.session, 20);
    pair.now_ns += 5 * SECOND;
    assert_int_equal(on_time(&pair.server), -ETIMEDOUT);
    pair.server.rc = -ETIMEDOUT;
    pair_fini(&pair);
}

static void test_native_heartbeat_any_byte_is_life(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    pair.now_ns += SECOND;
    side_feed_hex(&pair.server, "00");
    assert_true(next_time(&pair.server) == pair.now_ns + 10 * SECOND);
    pair_fini(&pair);
}

static void test_native_heartbeat_stands_still_while_paused(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    struct bow__session *server = pair.server.session;
    server->ops->set_reading(server, false, pair.now_ns);
    assert_true(next_time(&pair.server) == BOW_NEVER);
    pair.now_ns += 100 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    side_assert_output(&pair.server, "");
    server->ops->set_reading(server, true, pair.now_ns);
    assert_true(next_time(&pair.server) == pair.now_ns + 10 * SECOND);
    /* The wait for an answer begins anew as well. */
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    server->ops->set_reading(server, false, pair.now_ns);
    pair.now_ns += 100 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    server->ops->set_reading(server, true, pair.now_ns);
    assert_true(next_time(&pair.server) == pair.now_ns + 5 * SECOND);
    assert_int_equal(on_time(&pair.server), 0);
    pair_fini(&pair);
}

static void test_native_heartbeat_honours_the_peers_interval(void **state)
{
    struct pair pair;
    struct bow__session_options options;

    (void)state;
    pair_init(&pair);
    options = pair_options(&pair, false);
    options.heartbeat_ns = SECOND;
    assert_int_equal(side_open(&pair.client, &options), 0);
    /* min_ping_interval_us 60,000,000 */
    side_feed_hex(&pair.client, "b04f5701 00000005 00 00 000000000000 38808ece1c");
    assert_int_equal(pair.client.rc, 0);
    pair.now_ns += SECOND;
    uint64_t first = pair.now_ns;
    assert_int_equal(on_time(&pair.client), 0);
    side_feed_hex(&pair.client, PING);
    assert_true(next_time(&pair.client) == first + 60 * SECOND);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.client), 0);
    assert_int_equal(pair.client.session->heartbeats_sent, 1);
    pair_fini(&pair);
}

/* One that is gone is noticed, whatever it had asked for. */
static void expect_bounded_interval(const char *settings)
{
    struct pair pair;

    pair_init(&pair);
    struct bow__session_options options = pair_options(&pair, false);
    options.heartbeat_ns = SECOND;
    options.heartbeat_timeout_ns = 5 * SECOND;
    assert_int_equal(side_open(&pair.client, &options), 0);
    side_feed_hex(&pair.client, settings);
    assert_int_equal(pair.client.rc, 0);
    pair.now_ns += SECOND;
    assert_int_equal(on_time(&pair.client), 0);
    side_feed_hex(&pair.client, PING);
    assert_true(next_time(&pair.client) == pair.now_ns + BOW_LIMIT_PING_INTERVAL_NS);
    pair.now_ns += BOW_LIMIT_PING_INTERVAL_NS;
    assert_int_equal(on_time(&pair.client), 0);
    assert_int_equal(pair.client.session->heartbeats_sent, 2);
    pair.now_ns += 5 * SECOND;
    assert_int_equal(on_time(&pair.client), -ETIMEDOUT);
    assert_int_equal(pair.client.session->heartbeats_lost, 1);
    pair_fini(&pair);
}

static void test_native_f66_ping_interval_that_a_peer_asks_for_is_bounded(void **state)
{
    (void)state;
    /* min_ping_interval_us: the limit and 1, an hour, 2^63, all that fits */
    expect_bounded_interval("b04f5701 00000005 00 00 000000000000 38818ece1c");
    expect_bounded_interval("b04f5701 00000006 00 00 000000000000 3880f4d2b50d");
    expect_bounded_interval("b04f5701 0000000b 00 00 000000000000 3880808080808080808001");
    expect_bounded_interval("b04f5701 0000000b 00 00 000000000000 38ffffffffffffffffff01");
}

static void test_native_heartbeat_leaves_unattended_clients_alone(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, true);
    assert_true(next_time(&pair.server) == BOW_NEVER);
    assert_true(next_time(&pair.client) == BOW_NEVER);
    pair.now_ns += 1000 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    side_assert_output(&pair.server, "");
    side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_run(&pair);
    assert_true(next_time(&pair.server) == pair.now_ns + 10 * SECOND);
    /* A PING that the client sent is answered before it is alone again. */
    pair.now_ns += 100 * SECOND;
    assert_int_equal(on_time(&pair.client), 0);
    assert_int_equal(pair.client.session->heartbeats_sent, 1);
    pair.client.session->ops->cancel(pair.client.session, 1, BOW_CANCELLED);
    pair_run(&pair);
    assert_true(next_time(&pair.client) == BOW_NEVER);
    pair_fini(&pair);
}

/* Of short calls to a dead peer, each ends before the answer to the PING is due. */
static void test_native_heartbeat_is_awaited_when_its_call_has_ended(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, true);
    struct bow__session *client = pair.client.session;
    uint64_t key = side_call(&pair.client, "/s/m", 0, "x", 1);
    pair.now_ns += 20 * SECOND;
    assert_int_equal(on_time(&pair.client), 0);
    assert_int_equal(client->heartbeats_sent, 1);
    for (int i = 0; i < 4; i++) {
        client->ops->cancel(client, key, BOW_DEADLINE_EXCEEDED);
        assert_true(next_time(&pair.client) == pair.now_ns + (uint64_t)(5 - i) * SECOND);
        pair.now_ns += SECOND;
        key = side_call(&pair.client, "/s/m", 0, "x", 1);
    }
    client->ops->cancel(client, key, BOW_DEADLINE_EXCEEDED);
    pair.now_ns += SECOND;
    pair.client.rc = on_time(&pair.client);
    assert_int_equal(pair.client.rc, -ETIMEDOUT);
    assert_int_equal(client->heartbeats_lost, 1);
    pair_fini(&pair);
}

static void test_native_heartbeat_gives_back_what_a_burst_needed(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_heartbeat(&pair, false);
    pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    pair_run(&pair);
    size_t before = bow_context_bytes(pair.context);
    for (int i = 0; i < 90; i++) {
        side_call(&pair.client, "/s/m", 0, "x", 1);
    }
    pair_run(&pair);
    for (uint64_t key = 1; key < 180; key += 2) {
        assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "", 0), 0);
    }
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 90);
    assert_true(bow_context_bytes(pair.context) > before);
    pair.now_ns += 30 * SECOND;
    assert_int_equal(on_time(&pair.server), 0);
    assert_int_equal(on_time(&pair.client), 0);
    pair_run(&pair);
    assert_true(bow_context_bytes(pair.context) <= before);
    pair_fini(&pair);
}

/* Limits a second. */

static void feed_many(struct side *side, const char *hex, size_t n)
{
    uint8_t frame[64];
    size_t len = hex_decode(hex, frame, sizeof(frame));

    for (size_t i = 0; i < n; i++) {
        side_feed(side, frame, len);
    }
}

/* `limit` frames a second are fine, second after second; one more is not. */
static void assert_rate(const char *begin, const char *frame, size_t limit, const char *text)
{
    static uint8_t out[1 << 20];
    struct pair pair;

    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, begin);
    for (int second = 0; second < 3; second++) {
        feed_many(&pair.server, frame, limit);
        assert_int_equal(pair.server.rc, 0);
        side_take(&pair.server, out, sizeof(out));
        pair.now_ns += SECOND;
    }
    feed_many(&pair.server, frame, limit);
    pair.now_ns += SECOND - 1;
    assert_int_equal(pair.server.rc, 0);
    feed_many(&pair.server, frame, 1);
    assert_int_equal(pair.server.rc, -EPROTO);
    side_assert_broken(&pair.server, BOW_RESOURCE_EXHAUSTED, text);
    pair_fini(&pair);
}

static void test_native_rate_of_pings_is_limited(void **state)
{
    (void)state;
    assert_rate(OPENING, PING, BOW_LIMIT_PINGS_PER_SECOND,
                "PING frame: more than BOW_LIMIT_PINGS_PER_SECOND (100)");
}

static void test_native_rate_of_unknown_frames_is_limited(void **state)
{
    (void)state;
    assert_rate(OPENING, "00000001 c8 ff 000000000000 00", BOW_LIMIT_EMPTY_FRAMES_PER_SECOND,
                "frame of type 200: more than BOW_LIMIT_EMPTY_FRAMES_PER_SECOND (10000)");
}

static void test_native_rate_of_empty_frames_is_limited(void **state)
{
    (void)state;
    assert_rate(OPENING "00000007 01 00 000000000001 06 12042f732f6d "
                        "00000005 03 0a 000000000001 00000009 aa",
                "00000000 03 02 000000000001", BOW_LIMIT_EMPTY_FRAMES_PER_SECOND,
                "MESSAGE frame, stream 1: more than BOW_LIMIT_EMPTY_FRAMES_PER_SECOND (10000)");
}

static void test_native_rate_of_late_frames_is_limited(void **state)
{
    (void)state;
    assert_rate(OPENING "00000007 01 00 000000000001 06 12042f732f6d "
                        "00000004 05 00 000000000001 00000001",
                "00000001 03 08 000000000001 aa", BOW_LIMIT_LATE_FRAMES_PER_SECOND,
                "MESSAGE frame, stream 1: more than BOW_LIMIT_LATE_FRAMES_PER_SECOND (10000)");
}

/* Its CANCEL was its last word, so there is no excuse for any of them. */
static void test_native_late_frames_after_a_cancel_count_from_the_first(void **state)
{
    const char *frame = "00000001 03 08 000000000001 aa";
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING "00000007 01 00 000000000001 06 12042f732f6d "
                                        "00000004 05 00 000000000001 00000001");
    feed_many(&pair.server, frame, BOW_LIMIT_LATE_FRAMES_PER_SECOND);
    assert_int_equal(pair.server.rc, 0);
    feed_many(&pair.server, frame, 1);
    assert_int_equal(pair.server.rc, -EPROTO);
    pair_fini(&pair);
}

static void test_native_rate_of_cancels_is_limited(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (size_t i = 0; i < 1000; i++) {
        uint64_t key = side_call(&pair.client, "/s/m", 5, "x", 1);
        pair.client.session->ops->cancel(pair.client.session, key, BOW_DEADLINE_EXCEEDED);
        if (i % 50 == 0) {
            pair_run(&pair);
        }
    }
    pair_run(&pair);
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.server.n_resets, 1000);
    assert_int_equal(pair.server.code, BOW_DEADLINE_EXCEEDED);
    assert_string_equal(pair.server.text, "the client gave the call up (DEADLINE_EXCEEDED)");
    uint64_t key = side_call(&pair.client, "/s/m", 5, "x", 1);
    pair.client.session->ops->cancel(pair.client.session, key, BOW_CANCELLED);
    pair_run(&pair);
    assert_int_equal(pair.server.rc, -EPROTO);
    assert_int_equal(pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.server.session->failure.bytes,
                        "CANCEL frame, stream 2001: more than BOW_LIMIT_CANCELS_PER_SECOND (1000)");
    /* The client heard why. */
    assert_int_equal(pair.client.n_goaways, 1);
    assert_int_equal(pair.client.goaway_code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.client.goaway_text, pair.server.session->failure.bytes);
    pair_fini(&pair);
}

/* A peer that asks and never reads. */
static void test_native_rate_of_a_peer_that_does_not_read_clogs(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *server = pair.server.session;
    side_feed_hex(&pair.server, OPENING);
    for (int second = 0; second < 1000 && !server->ops->is_clogged(server); second++) {
        feed_many(&pair.server, PING, BOW_LIMIT_PINGS_PER_SECOND);
        pair.now_ns += SECOND;
    }
    assert_true(server->ops->is_clogged(server));
    static uint8_t out[2 << 20];
    side_take(&pair.server, out, sizeof(out));
    assert_false(server->ops->is_clogged(server));
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_heartbeat_asks_after_silence),
        cmocka_unit_test(test_native_heartbeat_unanswered_breaks),
        cmocka_unit_test(test_native_heartbeat_counts_from_when_the_ping_has_left),
        cmocka_unit_test(test_native_heartbeat_any_byte_is_life),
        cmocka_unit_test(test_native_heartbeat_stands_still_while_paused),
        cmocka_unit_test(test_native_heartbeat_honours_the_peers_interval),
        cmocka_unit_test(test_native_f66_ping_interval_that_a_peer_asks_for_is_bounded),
        cmocka_unit_test(test_native_heartbeat_leaves_unattended_clients_alone),
        cmocka_unit_test(test_native_heartbeat_is_awaited_when_its_call_has_ended),
        cmocka_unit_test(test_native_heartbeat_gives_back_what_a_burst_needed),
        cmocka_unit_test(test_native_rate_of_pings_is_limited),
        cmocka_unit_test(test_native_rate_of_unknown_frames_is_limited),
        cmocka_unit_test(test_native_rate_of_empty_frames_is_limited),
        cmocka_unit_test(test_native_rate_of_late_frames_is_limited),
        cmocka_unit_test(test_native_late_frames_after_a_cancel_count_from_the_first),
        cmocka_unit_test(test_native_rate_of_cancels_is_limited),
        cmocka_unit_test(test_native_rate_of_a_peer_that_does_not_read_clogs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
