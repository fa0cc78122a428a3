/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that are put straight into their blocks: where the session wants the next bytes, and
 * when it wants none there. And frames as large as that is worth.
 */
#include "rpc/http2/state.h"
#include "tests/rpc/http2_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define N_BYTES (200 * KIB)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes bytes;
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

/* A call whose message of `n_message` bytes begins in a frame of `n_frame`, and `n_now` bytes of
 * the message are there; the rest is in t->bytes then. */
static void begin_message(struct fixture *t, size_t n_frame, uint32_t n_message, size_t n_now)
{
    struct side *server = &t->pair.server;
    uint8_t *payload = malloc(n_frame);
    uint8_t prefix[5] = {0, (uint8_t)(n_message >> 24), (uint8_t)(n_message >> 16),
                         (uint8_t)(n_message >> 8), (uint8_t)n_message};

    assert_non_null(payload);
    memcpy(payload, prefix, sizeof(prefix));
    for (size_t i = sizeof(prefix); i < n_frame; i++) {
        payload[i] = (uint8_t)i;
    }
    /* Frames may be large once the server's SETTINGS are acknowledged. */
    side_drain(server, t->bytes.data, sizeof(t->bytes.data));
    bytes_preface(&t->bytes);
    bytes_frame(&t->bytes, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    bytes_request(&t->bytes, NGHTTP2_FLAG_END_HEADERS, 1, NULL);
    bytes_frame(&t->bytes, NGHTTP2_DATA, 0, 1, payload, n_frame);
    free(payload);
    size_t n_left = n_frame - sizeof(prefix) - n_now;
    t->pair.no_rooms = true;
    assert_int_equal(side_feed(server, t->bytes.data, t->bytes.len - n_left, SIZE_MAX), 0);
    memmove(t->bytes.data, t->bytes.data + t->bytes.len - n_left, n_left);
    t->bytes.len = n_left;
}

static void test_http2_room_f68_takes_a_message_cut_anywhere(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;

    begin_message(t, N_BYTES + 5, N_BYTES, 1);
    t->pair.no_rooms = false;
    assert_int_equal(side_feed(server, t->bytes.data, t->bytes.len, 7777), 0);
    assert_true(server->n_rooms > 10);
    assert_int_equal(server->n_messages, 1);
    assert_int_equal(server->n_bytes, N_BYTES);
    assert_no_room(server);
}

static void send_large_both_ways(struct fixture *t, size_t piece)
{
    struct pair *pair = &t->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    pair_run(pair, SIZE_MAX);
    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(side_send_block(&pair->client, key, BOW__SEND_END, 0, 1024 * KIB), 0);
    pair_run(pair, piece);
    assert_int_equal(side_send_block(&pair->server, 1, BOW__SEND_END, 0, 1024 * KIB), 0);
    pair_run(pair, piece);
    assert_int_equal(pair->server.n_bytes, 1024 * KIB);
    assert_int_equal(pair->client.n_bytes, 1024 * KIB);
    assert_int_equal(pair->client.n_ended, 1);
}

static void test_http2_room_f68_is_used_for_large_messages_both_ways(void **state)
{
    struct fixture *t = *state;

    send_large_both_ways(t, 16 * KIB);
    assert_true(t->pair.server.n_rooms > 0);
    assert_true(t->pair.client.n_rooms > 0);
}

static void test_http2_room_f68_may_be_left_unused(void **state)
{
    struct fixture *t = *state;

    t->pair.no_rooms = true;
    send_large_both_ways(t, 16 * KIB);
}

static void test_http2_room_f68_costs_what_has_arrived_and_not_what_is_claimed(void **state)
{
    struct fixture *t = *state;
    size_t len = 0;
    size_t n_behind = 0;

    begin_message(t, 100 * KIB, 4096 * KIB, 1);
    size_t n_bytes = bow_context_bytes(t->context);
    assert_non_null(room_of(&t->pair.server, &len, &n_behind));
    assert_in_range(bow_context_bytes(t->context) - n_bytes, 0, 160 * KIB);
    assert_in_range(len, 1, 100 * KIB);
}

static void test_http2_room_f68_there_is_none_without_a_message_under_way(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;

    assert_no_room(server);
    /* Of a frame that is too small to be worth it. */
    begin_message(t, 40 * KIB, N_BYTES, 1);
    assert_no_room(server);
}

static void test_http2_room_f68_is_gone_when_the_call_ends_in_the_middle(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->pair.server;
    struct bow_status late = {.code = BOW_DEADLINE_EXCEEDED, .message = "late"};
    size_t len = 0;
    size_t n_behind = 0;

    begin_message(t, N_BYTES + 5, N_BYTES, 10);
    assert_non_null(room_of(server, &len, &n_behind));
    assert_in_range(len, 1, N_BYTES - 10);
    assert_int_equal(server->session->ops->finish(server->session, 1, &late), 0);
    server->n_open--;
    assert_no_room(server);
    assert_int_equal(side_feed(server, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
    assert_int_equal(server->n_messages, 0);
    /* What follows is read as what it is. */
    t->bytes.len = 0;
    bytes_request(&t->bytes, NGHTTP2_FLAG_END_HEADERS, 3, NULL);
    assert_int_equal(side_feed(server, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
    assert_true(side_has(server, "open 3 /a.B/C"));
}

/* The largest DATA frame among those with which 200 KiB are sent; they arrive. */
static size_t largest_frame(struct fixture *t, uint64_t key)
{
    struct bytes *bytes = &t->bytes;
    size_t largest = 0;

    assert_int_equal(side_send_block(&t->pair.client, key, 0, 0, N_BYTES), 0);
    bytes->len = side_drain(&t->pair.client, bytes->data, sizeof(bytes->data));
    for (size_t at = 0; at < bytes->len;) {
        const uint8_t *header = bytes->data + at;
        size_t len = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
        largest = header[3] == NGHTTP2_DATA && len > largest ? len : largest;
        at += 9 + len;
    }
    assert_int_equal(side_feed(&t->pair.server, bytes->data, bytes->len, SIZE_MAX), 0);
    pair_run(&t->pair, SIZE_MAX);
    return largest;
}

static void test_http2_frames_f68_are_large_while_no_small_message_is_about(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    uint64_t key = 0;

    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_call(&pair->client, "/a.B/C", "small", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    struct bow__session *client = pair->client.session;
    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    pair->client.n_open++;
    assert_int_equal(largest_frame(t, key), BOW__HTTP2_FRAME_BYTES);
    pair->now_ns += BOW__QUIET_NS;
    client->ops->on_time(client, pair->now_ns);
    assert_int_equal(largest_frame(t, key), BOW__HTTP2_QUIET_FRAME_BYTES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_http2_room_f68_takes_a_message_cut_anywhere),
        TEST(test_http2_room_f68_is_used_for_large_messages_both_ways),
        TEST(test_http2_room_f68_may_be_left_unused),
        TEST(test_http2_room_f68_costs_what_has_arrived_and_not_what_is_claimed),
        TEST(test_http2_room_f68_there_is_none_without_a_message_under_way),
        TEST(test_http2_room_f68_is_gone_when_the_call_ends_in_the_middle),
        TEST(test_http2_frames_f68_are_large_while_no_small_message_is_about),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
