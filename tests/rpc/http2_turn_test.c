/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes that are dense with what is cheap to send: a feed takes as much of them as a turn of the
 * loop has room for, and the next ones the rest, of which nothing is lost.
 */

#include "http2_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CALLS 700u
#define N_FRAMES 6000u
#define HEADER_BYTES 9u
/* Of a block that nghttp2 has in one go. */
#define BLOCK_BYTES ((size_t)1 << 10)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes bytes;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    test_alloc_init(&fixture->alloc);
    fixture->context = test_context_new(&fixture->alloc);
    assert_int_equal(pair_begin(&fixture->pair, fixture->context), 0);
    fixture->pair.server.is_muted = true;
    fixture->pair.client.is_muted = true;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    pair_end(&fixture->pair);
    test_context_end(fixture->context, &fixture->alloc);
    free(fixture);
    return 0;
}

/* One feed a turn, until all is taken. Returns the most that a turn brought to `counter`. */
static uint32_t feed_all(struct side *side, const struct bytes *bytes, const uint32_t *counter,
                         size_t *ret_most_bytes)
{
    size_t at = 0;
    uint32_t most = 0;

    *ret_most_bytes = 0;
    while (at < bytes->len) {
        uint32_t before = *counter;
        ssize_t used = side->session->ops->feed(side->session, bytes->data + at, bytes->len - at,
                                                side->pair->now_ns);
        assert_true(used > 0);
        at += (size_t)used;
        assert_true(at == bytes->len || bow__work_is_enough(&side->session->work));
        (void)bow__work_next_turn(&side->session->work);
        most = *counter - before > most ? *counter - before : most;
        *ret_most_bytes = (size_t)used > *ret_most_bytes ? (size_t)used : *ret_most_bytes;
    }
    return most;
}

static void answer(struct side *side, enum side_event event, uint64_t key)
{
    if (event == SIDE_MESSAGE) {
        assert_int_equal(side_send(side, key, BOW__SEND_END, "reply"), 0);
        side->n_open--;
        side->n_ended++;
    }
}

static void put_calls(struct bytes *bytes)
{
    for (uint32_t i = 0; i < N_CALLS; i++) {
        bytes_request(bytes, 4, 2 * i + 1, NULL);
        bytes_frame(bytes, 0, 1, 2 * i + 1, "\0\0\0\0\1x", 6);
    }
}

static void test_http2_turn_calls_are_as_many_as_a_turn_has_room_for(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    size_t most_bytes = 0;

    server->hook = answer;
    bytes_preface(&fixture->bytes);
    put_calls(&fixture->bytes);
    uint32_t most = feed_all(server, &fixture->bytes, &server->n_ended, &most_bytes);
    assert_in_range(most, 64, BOW_LIMIT_CALLS_PER_TURN); /* what is usual is not cut */
    assert_int_equal(server->n_ended, N_CALLS);
    assert_int_equal(server->n_messages, N_CALLS);
}

static void test_http2_turn_frames_have_a_number(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    size_t most_bytes = 0;

    bytes_preface(&fixture->bytes);
    assert_int_equal(side_feed(server, fixture->bytes.data, fixture->bytes.len, SIZE_MAX), 0);
    fixture->bytes.len = 0;
    for (unsigned i = 0; i < N_FRAMES; i++) {
        bytes_frame(&fixture->bytes, 8, 0, 0, "\0\0\0\1", 4);
    }
    (void)feed_all(server, &fixture->bytes, &server->n_messages, &most_bytes);
    assert_int_equal(most_bytes, (size_t)BOW_LIMIT_FRAMES_PER_TURN * (HEADER_BYTES + 4));
}

#define N_ENTRIES 100u

static void test_http2_turn_metadata_has_a_number_of_entries(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    const char *more[N_ENTRIES + 1] = {0};
    const uint32_t n_calls = 50;
    size_t most_bytes = 0;

    server->hook = answer;
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        more[i] = "k: v";
    }
    bytes_preface(&fixture->bytes);
    for (uint32_t i = 0; i < n_calls; i++) {
        bytes_request(&fixture->bytes, 4, 2 * i + 1, more);
        bytes_frame(&fixture->bytes, 0, 1, 2 * i + 1, "\0\0\0\0\1x", 6);
    }
    uint32_t most = feed_all(server, &fixture->bytes, &server->n_ended, &most_bytes);
    /* Those of the last piece are found when it is too late. */
    assert_in_range(most, 1, (BOW_LIMIT_FIELDS_PER_TURN / N_ENTRIES) + 2);
    assert_int_equal(server->n_ended, n_calls);
}

/* A byte a field, and few enough that the connection goes on. */
static void test_http2_turn_ends_inside_a_block(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    struct bytes *bytes = &fixture->bytes;
    uint8_t fields[3500];
    size_t most_bytes = 0;

    server->hook = answer;
    memset(fields, 0x90, sizeof(fields)); /* accept-encoding, from the static table */
    bytes_preface(bytes);
    bytes_request(bytes, 0, 1, NULL);
    bytes_frame(bytes, 9, 4, 1, fields, sizeof(fields));
    bytes_frame(bytes, 0, 1, 1, "\0\0\0\0\1x", 6);
    bytes_request(bytes, 4, 3, NULL);
    bytes_frame(bytes, 0, 1, 3, "\0\0\0\0\1x", 6);
    (void)feed_all(server, bytes, &server->n_ended, &most_bytes);
    assert_in_range(most_bytes, BLOCK_BYTES, 2 * BOW_LIMIT_FIELDS_PER_TURN + 2 * BLOCK_BYTES);
    assert_true(most_bytes < sizeof(fields));
    assert_int_equal(server->n_messages, 1); /* the first one's header was too large */
}

/* The client's side of it. */
static void test_http2_turn_answers_are_as_many_as_a_turn_has_room_for(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    struct side *client = &fixture->pair.client;
    size_t most_bytes = 0;
    uint64_t key = 0;

    server->hook = answer;
    pair_run(&fixture->pair, SIZE_MAX);
    for (unsigned i = 0; i < N_CALLS; i++) {
        assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    }
    fixture->bytes.len = side_drain(client, fixture->bytes.data, sizeof(fixture->bytes.data));
    assert_int_equal(side_feed(server, fixture->bytes.data, fixture->bytes.len, SIZE_MAX), 0);
    assert_int_equal(server->n_messages, N_CALLS);
    fixture->bytes.len = side_drain(server, fixture->bytes.data, sizeof(fixture->bytes.data));
    uint32_t most = feed_all(client, &fixture->bytes, &client->n_ended, &most_bytes);
    assert_in_range(most, 64, BOW_LIMIT_CALLS_PER_TURN);
    assert_int_equal(client->n_ended, N_CALLS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_http2_turn_calls_are_as_many_as_a_turn_has_room_for),
        TEST(test_http2_turn_frames_have_a_number),
        TEST(test_http2_turn_metadata_has_a_number_of_entries),
        TEST(test_http2_turn_ends_inside_a_block),
        TEST(test_http2_turn_answers_are_as_many_as_a_turn_has_room_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
