/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A server that leaves: which calls it takes, and which ones their client may send again. What one
 * side calls not processed the other one never runs. */
#include "tests/rpc/http2_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum frame_type {
    PING = 6,
    GOAWAY = 7,
};

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
    pair_run(&t->pair, SIZE_MAX);
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

static void goaway(struct side *side)
{
    struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "restarting"};

    side->session->ops->goaway(side->session, &reason);
}

static void take(struct fixture *t, struct side *side)
{
    t->bytes.len = side_drain(side, t->bytes.data, sizeof(t->bytes.data));
}

static void give(struct fixture *t, struct side *side)
{
    assert_int_equal(side_feed(side, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
}

/* Where the first frame of the type stands among those drained, counted from 0; or -1. */
static int place_of(const struct bytes *bytes, enum frame_type type)
{
    size_t at = 0;

    for (int i = 0; at + 9 <= bytes->len; i++) {
        const uint8_t *frame = bytes->data + at;
        if (frame[3] == type) {
            return i;
        }
        at += 9 + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
    }
    return -1;
}

/* Its ACK says that the client has read the GOAWAY, which it could not if the PING came first. */
static void test_drain_ping_follows_the_goaway(void **state)
{
    struct fixture *t = *state;

    goaway(&t->pair.server);
    take(t, &t->pair.server);
    assert_true(place_of(&t->bytes, GOAWAY) >= 0);
    assert_true(place_of(&t->bytes, PING) > place_of(&t->bytes, GOAWAY));
    give(t, &t->pair.client);
}

/* One of those with which a server that leaves asks what is on its way. */
static void put_answer(struct fixture *t)
{
    static const uint8_t ping[8] = {'b', 'o', 'w', 'd', 'r', 'a', 'i', 'n'};

    t->bytes.len = 0;
    bytes_frame(&t->bytes, PING, 1, 0, ping, sizeof(ping));
}

static void begin_to_leave(struct fixture *t)
{
    goaway(&t->pair.server);
    take(t, &t->pair.server);
}

/* What the server says next. */
static void expect_said(struct fixture *t, bool is_asking, bool has_left)
{
    take(t, &t->pair.server);
    assert_int_equal(place_of(&t->bytes, PING) >= 0, is_asking);
    assert_int_equal(place_of(&t->bytes, GOAWAY) >= 0, has_left);
}

/* gRPC's C library answers before it sends the calls that it has begun. */
static void test_drain_f21_requests_behind_answers_are_run(void **state)
{
    struct fixture *t = *state;

    begin_to_leave(t);
    for (uint32_t i = 0; i < 3; i++) {
        put_answer(t);
        bytes_request(&t->bytes, 4, 2 * i + 1, NULL);
        give(t, &t->pair.server);
        expect_said(t, true, false);
    }
    assert_int_equal(t->pair.server.n_open, 3);
    put_answer(t);
    give(t, &t->pair.server);
    expect_said(t, true, false);
    put_answer(t);
    give(t, &t->pair.server);
    expect_said(t, false, true);
    assert_int_equal(t->pair.server.n_open, 3);
}

/* Both in one batch: nghttp2 itself learns of the last id when that has been sent. */
static void test_drain_request_behind_the_last_answer_is_not_run(void **state)
{
    struct fixture *t = *state;

    begin_to_leave(t);
    put_answer(t);
    give(t, &t->pair.server);
    expect_said(t, true, false);
    put_answer(t);
    bytes_request(&t->bytes, 4, 1, NULL);
    give(t, &t->pair.server);
    side_expect(&t->pair.server, "refused /a.B/C draining\n");
    assert_int_equal(t->pair.server.n_open, 0);
    expect_said(t, false, true);
}

/* Some proxies do, until they are told an id of theirs. */
static void test_drain_of_who_calls_on_comes_to_an_end(void **state)
{
    struct fixture *t = *state;
    uint32_t n = 0;

    begin_to_leave(t);
    do {
        put_answer(t);
        bytes_request(&t->bytes, 4, 2 * n + 1, NULL);
        give(t, &t->pair.server);
        take(t, &t->pair.server);
        assert_true(++n < 100);
    } while (place_of(&t->bytes, GOAWAY) < 0);
    assert_int_equal(t->pair.server.n_open, n - 1);
}

static void call_with_much_metadata(struct fixture *t, int n)
{
    static char texts[8][12000];
    struct bow_metadata_entry entry = {"k", {(const uint8_t *)texts[n], sizeof(texts[n])}};
    struct side *client = &t->pair.client;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/a.B/C", 6},
        .time_left_ns = BOW_NEVER,
        .metadata = {&entry, 1},
    };
    uint64_t key = 0;

    /* Bytes that HPACK makes no shorter. */
    memset(texts[n], '~', sizeof(texts[n]));
    assert_int_equal(client->session->ops->open(client->session, &head, client, &key), 0);
    assert_int_equal(client->session->ops->begin(client->session, key), 0);
    client->n_open++;
}

/* A request that is among the bytes to be sent is one that the server may run. */
static void test_drain_request_on_its_way_is_not_tried_again(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct iovec pieces[64];

    for (int i = 0; i < 8; i++) {
        call_with_much_metadata(t, i);
    }
    goaway(&pair->server);
    take(t, &pair->server);
    /* As many as are made ahead of the socket, which takes none just now. */
    assert_true(pair->client.session->ops->drain(pair->client.session, pieces, 64) > 0);
    give(t, &pair->client);
    pair->server.is_muted = true;
    pair_run(pair, SIZE_MAX);
    assert_true(pair->server.n_open > 0 && pair->client.n_ended > 0);
    assert_int_equal(pair->server.n_open + pair->client.n_ended, 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_drain_ping_follows_the_goaway),
        TEST(test_drain_f21_requests_behind_answers_are_run),
        TEST(test_drain_request_behind_the_last_answer_is_not_run),
        TEST(test_drain_of_who_calls_on_comes_to_an_end),
        TEST(test_drain_request_on_its_way_is_not_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
