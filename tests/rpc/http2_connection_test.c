/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Heartbeats, windows and going away, by a clock that the test moves. */
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    pair_end(&t->pair);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

/* The same pair with heartbeats after 20 s, lost after 10 s more. */
static void begin_with_heartbeats(struct fixture *t, bool client_too, bool unattended)
{
    struct pair *pair = &t->pair;

    pair_end(pair);
    pair_init(pair, t->context);
    struct bow__session_options options = pair_options(pair, &pair->server, true);
    options.heartbeat_ns = client_too ? BOW_NEVER : 20 * SECOND;
    options.heartbeat_timeout_ns = 10 * SECOND;
    assert_int_equal(side_begin(&pair->server, &options), 0);
    options = pair_options(pair, &pair->client, false);
    options.heartbeat_ns = client_too ? 20 * SECOND : BOW_NEVER;
    options.heartbeat_timeout_ns = 10 * SECOND;
    options.unattended = unattended;
    assert_int_equal(side_begin(&pair->client, &options), 0);
    pair_run(pair, SIZE_MAX);
}

static uint64_t next_time(const struct side *side)
{
    return side->session->ops->next_time(side->session);
}

static int on_time(struct side *side)
{
    return side->session->ops->on_time(side->session, side->pair->now_ns);
}

static void test_silence_is_answered_by_a_ping(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;

    begin_with_heartbeats(t, false, false);
    assert_int_equal(next_time(server), PAIR_START_NS + 20 * SECOND);
    t->pair.now_ns += 20 * SECOND - 1;
    assert_int_equal(on_time(server), 0);
    assert_int_equal(server->session->heartbeats_sent, 0);
    t->pair.now_ns += 1;
    assert_int_equal(on_time(server), 0);
    assert_int_equal(server->session->heartbeats_sent, 1);
    assert_int_equal(next_time(server), t->pair.now_ns + 10 * SECOND);
    pair_run(&t->pair, SIZE_MAX);
    assert_int_equal(next_time(server), t->pair.now_ns + 20 * SECOND);
    assert_int_equal(server->session->heartbeats_lost, 0);
}

static void test_silence_after_the_ping_loses_the_connection(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;
    static struct bytes out;

    begin_with_heartbeats(t, false, false);
    t->pair.now_ns += 20 * SECOND;
    assert_int_equal(on_time(server), 0);
    out.len = side_drain(server, out.data, sizeof(out.data));
    t->pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(server), -ETIMEDOUT);
    assert_int_equal(server->session->heartbeats_lost, 1);
    assert_int_equal(server->session->failure_code, BOW_UNAVAILABLE);
    assert_string_equal(server->session->failure.bytes,
                        "heartbeat lost: no byte from the peer for 10000 ms after a PING "
                        "(heartbeat_timeout_ns)");
}

/* Of short calls to a dead peer, each ends before the answer to the PING is due. */
static void test_ping_is_awaited_when_its_call_has_ended(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    static struct bytes out;
    uint64_t key = 0;

    begin_with_heartbeats(t, true, false);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    t->pair.now_ns += 20 * SECOND;
    assert_int_equal(on_time(client), 0);
    assert_int_equal(client->session->heartbeats_sent, 1);
    client->session->ops->cancel(client->session, key, BOW_DEADLINE_EXCEEDED);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    client->session->ops->cancel(client->session, key, BOW_DEADLINE_EXCEEDED);
    out.len = side_drain(client, out.data, sizeof(out.data));
    t->pair.now_ns += 10 * SECOND;
    assert_true(next_time(client) <= t->pair.now_ns);
    assert_int_equal(on_time(client), -ETIMEDOUT);
}

static void test_any_byte_is_life(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;

    begin_with_heartbeats(t, false, false);
    t->pair.now_ns += 20 * SECOND;
    assert_int_equal(on_time(server), 0);
    t->pair.now_ns += 9 * SECOND;
    assert_int_equal(side_feed(server, "\0", 1, 1), 0);
    assert_int_equal(next_time(server), t->pair.now_ns + 20 * SECOND);
}

static void test_count_stands_still_while_nothing_is_read(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;

    begin_with_heartbeats(t, false, false);
    t->pair.now_ns += 15 * SECOND;
    server->session->ops->set_reading(server->session, false, t->pair.now_ns);
    assert_int_equal(next_time(server), BOW_NEVER);
    t->pair.now_ns += 100 * SECOND;
    server->session->ops->set_reading(server->session, true, t->pair.now_ns);
    assert_int_equal(next_time(server), t->pair.now_ns + 5 * SECOND);
    t->pair.now_ns += 5 * SECOND;
    assert_int_equal(on_time(server), 0);
    server->session->ops->set_reading(server->session, false, t->pair.now_ns);
    t->pair.now_ns += 100 * SECOND;
    assert_int_equal(on_time(server), 0);
    server->session->ops->set_reading(server->session, true, t->pair.now_ns);
    assert_int_equal(next_time(server), t->pair.now_ns + 10 * SECOND);
}

static void test_unattended_client_is_pinged_only_during_calls(void **state)
{
    struct fixture *t = *state;
    uint64_t key = 0;

    begin_with_heartbeats(t, false, true);
    assert_int_equal(next_time(&t->pair.server), BOW_NEVER);
    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(&t->pair, SIZE_MAX);
    assert_int_equal(next_time(&t->pair.server), t->pair.now_ns + 20 * SECOND);
}

/* gRPC's servers count the third PING without an answer between as abuse. */
static void test_client_pings_as_grpc_servers_allow(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    uint64_t key = 0;

    begin_with_heartbeats(t, true, false);
    /* A server that is not ours does not say that PINGs are welcome. */
    static struct bytes in;
    in.len = 0;
    bytes_frame(&in, 4, 0, 0, "\xf0\xb1\0\0\0\0", 6);
    assert_int_equal(side_feed(client, in.data, in.len, SIZE_MAX), 0);
    (void)side_drain(client, in.data, sizeof(in.data)); /* its acknowledgement */
    assert_int_equal(next_time(client), BOW_NEVER);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(&t->pair, SIZE_MAX);
    for (size_t i = 1; i <= 2; i++) {
        t->pair.now_ns += 20 * SECOND;
        assert_int_equal(next_time(client), t->pair.now_ns);
        pair_run(&t->pair, SIZE_MAX);
        assert_int_equal(client->session->heartbeats_sent, i);
    }
    assert_int_equal(next_time(client), t->pair.now_ns + 300 * SECOND);
    /* An answer, and it may again. */
    assert_int_equal(side_send(&t->pair.server, 1, 0, "y"), 0);
    pair_run(&t->pair, SIZE_MAX);
    assert_int_equal(next_time(client), t->pair.now_ns + 20 * SECOND);
}

/* Else a call on a connection that died would wait for five minutes. */
static void test_client_pings_a_server_of_ours_as_often_as_it_wants(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    uint64_t key = 0;

    begin_with_heartbeats(t, true, false);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(&t->pair, SIZE_MAX);
    for (size_t i = 1; i <= 10; i++) {
        t->pair.now_ns += 20 * SECOND;
        assert_int_equal(next_time(client), t->pair.now_ns);
        pair_run(&t->pair, SIZE_MAX);
        assert_int_equal(client->session->heartbeats_sent, i);
    }
}

/* On a slow path the PING waits behind bytes of ours, which are on their way. */
static void test_ping_counts_from_when_it_has_left(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    const struct bow__session_ops *ops = client->session->ops;
    struct iovec piece;
    uint64_t key = 0;

    begin_with_heartbeats(t, true, false);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    assert_int_equal(ops->drain(client->session, &piece, 1), 1);
    t->pair.now_ns += 20 * SECOND;
    assert_int_equal(on_time(client), 0);
    assert_int_equal(client->session->heartbeats_sent, 1);
    for (size_t n_left = piece.iov_len; n_left > 0; n_left -= n_left > 40 ? 40 : n_left) {
        t->pair.now_ns += 9 * SECOND;
        ops->sent(client->session, n_left > 40 ? 40 : n_left);
        assert_int_equal(next_time(client), 0);
        assert_int_equal(on_time(client), 0);
        assert_int_equal(next_time(client), t->pair.now_ns + 10 * SECOND);
    }
    /* Now it leaves. */
    assert_int_equal(ops->drain(client->session, &piece, 1), 1);
    ops->sent(client->session, piece.iov_len);
    t->pair.now_ns += 10 * SECOND;
    assert_int_equal(on_time(client), -ETIMEDOUT);
}

/* All slots are taken by calls that were given up, and the peer is dead: nobody would notice. */
static void test_calls_that_wait_for_a_slot_have_the_peer_asked(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    uint64_t keys[1100];
    int n = 0;

    begin_with_heartbeats(t, true, false);
    while (n < 1100 && side_call(client, "/a.B/C", "x", BOW_NEVER, &keys[n]) == 0) {
        n++;
    }
    assert_in_range(n, 1, 1099);
    for (int i = 0; i < n; i++) {
        client->session->ops->cancel(client->session, keys[i], BOW_CANCELLED);
    }
    assert_int_equal(client->session->n_streams, 0);
    assert_int_equal(next_time(client), t->pair.now_ns + 20 * SECOND);
}

static void goaway(struct side *side)
{
    struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "restarting"};

    side->session->ops->goaway(side->session, &reason);
    side->session->ops->goaway(side->session, &reason);
}

static bool is_done(const struct side *side)
{
    return side->session->ops->is_done(side->session);
}

/* A call that crosses the first GOAWAY is served; only then the server leaves. */
static void test_server_leaves_without_losing_a_call(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    static uint8_t bytes[4096];
    static uint8_t crossing[4096];
    uint64_t key = 0;

    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    goaway(&pair->server);
    assert_false(is_done(&pair->server));
    size_t n = side_drain(&pair->server, bytes, sizeof(bytes));
    assert_int_equal(side_call(&pair->client, "/a.B/D", "x", BOW_NEVER, &key), 0);
    size_t n_crossing = side_drain(&pair->client, crossing, sizeof(crossing));
    assert_int_equal(side_feed(&pair->client, bytes, n, SIZE_MAX), 0);
    assert_int_equal(side_feed(&pair->server, crossing, n_crossing, SIZE_MAX), 0);
    pair_run(pair, SIZE_MAX);
    assert_false(is_done(&pair->server));
    side_expect(&pair->server,
                "open 1 /a.B/C\nmessage 1 1 x end\nopen 3 /a.B/D\nmessage 3 1 x end\n");
    for (uint64_t id = 1; id <= 3; id += 2) {
        assert_int_equal(side_send(&pair->server, id, BOW__SEND_END, "y"), 0);
    }
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "ready\ngoaway the peer is going away: NO_ERROR\n"
                               "message 1 1 y\nstatus 1 OK\nmessage 2 1 y\nstatus 2 OK\n");
    assert_true(is_done(&pair->server));
    assert_true(is_done(&pair->client));
}

static void test_idle_server_waits_for_the_clients_answer(void **state)
{
    struct fixture *t = *state;
    static uint8_t bytes[4096];
    static struct bytes answer;
    static struct bytes last;
    char text[256];

    pair_run(&t->pair, SIZE_MAX);
    goaway(&t->pair.server);
    size_t n = side_drain(&t->pair.server, bytes, sizeof(bytes));
    assert_false(is_done(&t->pair.server));
    assert_int_equal(side_feed(&t->pair.client, bytes, n, SIZE_MAX), 0);
    /* nghttp2 does not answer for a client without calls, but that may go. */
    assert_true(is_done(&t->pair.client));
    bytes_frame(&answer, 6, 1, 0, "bowdrain", 8);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(side_feed(&t->pair.server, answer.data, answer.len, SIZE_MAX), 0);
        last.len = side_drain(&t->pair.server, last.data, sizeof(last.data));
        bytes_print(&last, text, sizeof(text));
        assert_string_equal(text, i == 0 ? "PING 0\n" : "GOAWAY 0 0 0 restarting\n");
    }
    assert_int_equal(side_feed(&t->pair.client, last.data, last.len, SIZE_MAX), 0);
    pair_run(&t->pair, SIZE_MAX);
    assert_true(is_done(&t->pair.server));
}

/* The client reads nothing; what it sends after the last word is told to be not processed. */
static void test_server_leaves_a_client_that_does_not_answer(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow__session *server = pair->server.session;
    static uint8_t bytes[4096];
    uint64_t key = 0;

    pair_run(pair, SIZE_MAX);
    server->ops->leave(server);
    assert_false(is_done(&pair->server));
    goaway(&pair->server);
    server->ops->leave(server);
    server->ops->leave(server);
    size_t n = side_drain(&pair->server, bytes, sizeof(bytes));
    assert_true(is_done(&pair->server));
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    static uint8_t crossing[4096];
    size_t n_crossing = side_drain(&pair->client, crossing, sizeof(crossing));
    assert_int_equal(side_feed(&pair->server, crossing, n_crossing, SIZE_MAX), 0);
    assert_int_equal(side_feed(&pair->client, bytes, n, SIZE_MAX), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "");
    assert_true(side_has(&pair->client, "status 1 UNAVAILABLE"));
    assert_true(side_has(&pair->client, "not_processed"));
}

static void test_client_leaves_after_its_calls(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    uint64_t key = 0;

    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    goaway(&pair->client);
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), -EPIPE);
    pair_run(pair, SIZE_MAX);
    assert_false(is_done(&pair->client));
    assert_int_equal(side_send(&pair->server, 1, BOW__SEND_END, "y"), 0);
    pair_run(pair, SIZE_MAX);
    assert_true(is_done(&pair->client));
    assert_true(is_done(&pair->server));
    side_expect(&pair->client, "ready\nmessage 1 1 y\nstatus 1 OK\n");
}

static void test_call_that_waits_for_a_leaving_server_is_not_processed(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    static uint8_t bytes[4096];
    uint64_t key = 0;

    pair_run(pair, SIZE_MAX);
    goaway(&pair->server);
    size_t n = side_drain(&pair->server, bytes, sizeof(bytes));
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    assert_int_equal(side_feed(&pair->client, bytes, n, SIZE_MAX), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client,
                "ready\nstatus 1 UNAVAILABLE the peer is going away: NO_ERROR not_processed\n"
                "goaway the peer is going away: NO_ERROR\n");
    side_expect(&pair->server, "");
}

/* The window opens for the message in the making, and not for what lies unread. */
static void test_unread_messages_hold_the_sender_back(void **state)
{
    enum { PIECE = 8192 }; /* so that messages come in pieces */
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    pair->server.keeps = true;
    pair_run(pair, PIECE);
    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    /* Larger than the window, alone: it passes. */
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 1 << 20), 0);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(side_send_block(&pair->client, key, 0, 0, 100000), 0);
    }
    pair_run(pair, PIECE);
    assert_in_range(pair->server.n_messages, 2, 4);
    uint32_t n_before = pair->server.n_messages;
    pair_run(pair, PIECE);
    assert_int_equal(pair->server.n_messages, n_before);
    pair->server.session->ops->consumed(pair->server.session, 1, pair->server.n_bytes);
    pair_run(pair, PIECE);
    assert_true(pair->server.n_messages > n_before);
    pair->server.keeps = false;
    pair->server.session->ops->consumed(pair->server.session, 1, pair->server.n_bytes);
    pair_run(pair, PIECE);
    assert_int_equal(pair->server.n_messages, 21);
    client->ops->cancel(client, key, BOW_CANCELLED);
    pair_run(pair, PIECE);
}

/* F16: one stream that nobody reads, many others that go on. */
static void test_f16_unread_stream_does_not_block_its_neighbours(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    pair->server.keeps = true;
    pair->client.is_muted = true;
    pair->server.is_muted = true;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(side_send_block(&pair->client, key, 0, 0, 100000), 0);
    }
    pair_run(pair, SIZE_MAX);
    pair->server.keeps = false;
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "hello", BOW_NEVER, &key), 0);
        pair_run(pair, SIZE_MAX);
        assert_int_equal(side_send(&pair->server, 3 + 2 * i, BOW__SEND_END, "reply"), 0);
        pair_run(pair, SIZE_MAX);
    }
    assert_int_equal(pair->client.n_ended, 100);
}

static void test_room_is_given_only_within_the_peers_credit(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t keys[8];
    size_t cap = 0;

    /* Before the server's SETTINGS both windows are 65535. */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(client->ops->open(client, &head, NULL, &keys[i]), 0);
        assert_non_null(client->ops->reserve(client, keys[i], 0, &cap));
        assert_int_equal(cap, BOW__IN_PLACE_BYTES);
        memset(client->ops->reserve(client, keys[i], 0, &cap), 0, cap);
        assert_int_equal(client->ops->commit(client, keys[i], 0, cap), 0);
    }
    /* What is queued on a stream comes off its own window, too. */
    assert_non_null(client->ops->reserve(client, keys[2], 0, &cap));
    assert_int_equal(cap, 65535 - 3 * (BOW__IN_PLACE_BYTES + 5) - 5);
    assert_int_equal(client->ops->open(client, &head, NULL, &keys[3]), 0);
    assert_non_null(client->ops->reserve(client, keys[3], 0, &cap));
    assert_int_equal(cap, 65535 - 3 * (BOW__IN_PLACE_BYTES + 5) - 5);
    memset(client->ops->reserve(client, keys[3], 0, &cap), 0, cap);
    assert_int_equal(client->ops->commit(client, keys[3], 0, cap), 0);
    assert_int_equal(client->ops->open(client, &head, NULL, &keys[4]), 0);
    assert_null(client->ops->reserve(client, keys[4], 0, &cap));
    client->ops->abandon(client, keys[4]);
    pair->server.is_muted = true;
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.n_messages, 4);
}

/* F15: output waits in the queues of the streams, not in the outbuf. */
static void test_drain_yields_a_bounded_amount(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct iovec pieces[1024];
    uint64_t key = 0;

    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_send_block(&pair->server, 1, BOW__SEND_END, 0, 1 << 20), 0);
    struct bow__session *server = pair->server.session;
    size_t n = 0;
    for (size_t round = 0; round < 3; round++) {
        int count = server->ops->drain(server, pieces, 1024);
        n = 0;
        for (int i = 0; i < count; i++) {
            n += pieces[i].iov_len;
        }
    }
    assert_in_range(n, 64 << 10, 96 << 10);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_bytes, 1 << 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_silence_is_answered_by_a_ping),
        TEST(test_silence_after_the_ping_loses_the_connection),
        TEST(test_ping_is_awaited_when_its_call_has_ended),
        TEST(test_any_byte_is_life),
        TEST(test_count_stands_still_while_nothing_is_read),
        TEST(test_unattended_client_is_pinged_only_during_calls),
        TEST(test_client_pings_as_grpc_servers_allow),
        TEST(test_client_pings_a_server_of_ours_as_often_as_it_wants),
        TEST(test_ping_counts_from_when_it_has_left),
        TEST(test_calls_that_wait_for_a_slot_have_the_peer_asked),
        TEST(test_server_leaves_without_losing_a_call),
        TEST(test_idle_server_waits_for_the_clients_answer),
        TEST(test_server_leaves_a_client_that_does_not_answer),
        TEST(test_client_leaves_after_its_calls),
        TEST(test_call_that_waits_for_a_leaving_server_is_not_processed),
        TEST(test_unread_messages_hold_the_sender_back),
        TEST(test_f16_unread_stream_does_not_block_its_neighbours),
        TEST(test_room_is_given_only_within_the_peers_credit),
        TEST(test_drain_yields_a_bounded_amount),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
