/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls with any number of messages each way: how they begin and how a side ends, what
 * waits and who is told that it may go on.
 */
#include "rpc/http2/state.h"
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define TEXT_BYTES ((size_t)64 << 10)

static const struct bow_status ok = BOW_STATUS_OK_INIT;

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes bytes;
    char text[TEXT_BYTES];
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    pair_run(&t->pair, SIZE_MAX);
    side_expect(&t->pair.client, "ready\n");
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

/* A call that has begun without a message; its key at the client, and at the server 2 × that - 1.
 */
static uint64_t begin(struct pair *pair)
{
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    return key;
}

static int half_close(struct pair *pair, uint64_t key)
{
    return pair->client.session->ops->half_close(pair->client.session, key);
}

static int finish(struct pair *pair, uint64_t key, enum bow_code code, const char *message)
{
    struct bow_status status = ok;

    status.code = code;
    status.message = message;
    return pair->server.session->ops->finish(pair->server.session, key, &status);
}

static int respond(struct pair *pair, uint64_t key, const struct bow_metadata *metadata)
{
    return pair->server.session->ops->respond(pair->server.session, key, metadata,
                                              BOW__ENCODING_IDENTITY);
}

static size_t queued(struct side *side, uint64_t key)
{
    return side->session->ops->queued(side->session, key);
}

static uint64_t take_writable(struct side *side, void **ret_stream)
{
    uint64_t key = 0;

    *ret_stream = side->session->ops->take_writable(side->session, &key);
    return key;
}

/* What the side sends now, as text; the other side gets it too. */
static const char *sends(struct fixture *t, struct side *from, struct side *to)
{
    t->bytes.len = side_drain(from, t->bytes.data, sizeof(t->bytes.data));
    bytes_print(&t->bytes, t->text, TEXT_BYTES);
    side_feed(to, t->bytes.data, t->bytes.len, SIZE_MAX);
    return t->text;
}

/* Beginning and half-close. */

static void test_stream_begins_without_data(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;

    uint64_t key = begin(pair);
    const char *sent = sends(t, &pair->client, &pair->server);
    assert_non_null(strstr(sent, "HEADERS 1 :method=POST"));
    assert_null(strstr(sent, "DATA"));
    side_expect(&pair->server, "open 1 /a.B/C\n");
    assert_int_equal(side_send(&pair->client, key, 0, "one"), 0);
    assert_int_equal(side_send(&pair->client, key, 0, ""), 0);
    assert_int_equal(side_send(&pair->client, key, 0, "three"), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "message 1 3 one\nmessage 1 0\nmessage 1 5 three\n");
    assert_int_equal(half_close(pair, key), 0);
    assert_int_equal(half_close(pair, key), -ENOENT);
    assert_int_equal(side_send(&pair->client, key, 0, "late"), -ENOENT);
    assert_string_equal(sends(t, &pair->client, &pair->server), "DATA 1 end 0\n");
    side_expect(&pair->server, "half_close 1\n");
    assert_int_equal(finish(pair, 1, BOW_OK, ""), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 OK\n");
    assert_int_equal(half_close(pair, key), -ENOENT);
}

static void test_half_close_goes_with_the_message_that_waits(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;

    uint64_t key = begin(pair);
    assert_int_equal(side_send(&pair->client, key, 0, "last"), 0);
    assert_int_equal(half_close(pair, key), 0);
    assert_non_null(strstr(sends(t, &pair->client, &pair->server), "DATA 1 end 9\n"));
    side_expect(&pair->server, "open 1 /a.B/C\nmessage 1 4 last end\n");
}

static void test_half_close_before_the_request_left_arrives(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;

    uint64_t key = begin(pair);
    assert_int_equal(half_close(pair, key), 0);
    pair_run(pair, 1);
    side_expect(&pair->server, "open 1 /a.B/C\nhalf_close 1\n");
    assert_int_equal(finish(pair, 1, BOW_OK, ""), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 OK\n");
}

/* The answer. */

static void test_answer_has_one_header_and_one_end(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;

    begin(pair);
    pair_run(pair, SIZE_MAX);
    side_clear(&pair->server);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(side_send(&pair->server, 1, 0, "some"), 0);
        const char *sent = sends(t, &pair->server, &pair->client);
        assert_true((strstr(sent, "HEADERS 1 :status=200") != NULL) == (i == 0));
        assert_non_null(strstr(sent, "DATA 1 9\n"));
    }
    side_expect(&pair->client, "message 1 4 some\nmessage 1 4 some\n");
    assert_int_equal(finish(pair, 1, BOW_NOT_FOUND, "gone"), 0);
    assert_int_equal(side_send(&pair->server, 1, 0, "late"), -ENOENT);
    /* The client has not ended its side, so it is told that nobody listens. */
    assert_string_equal(sends(t, &pair->server, &pair->client),
                        "HEADERS 1 end grpc-status=5 grpc-message=gone\nRST_STREAM 1 0\n");
    side_expect(&pair->client, "status 1 NOT_FOUND gone\n");
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "");
}

static void test_status_follows_the_messages_that_wait(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;

    begin(pair);
    pair_run(pair, SIZE_MAX);
    pair->client.is_muted = true;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(side_send_block(&pair->server, 1, 0, 0, 200 * KIB), 0);
    }
    assert_int_equal(finish(pair, 1, BOW_ABORTED, "then"), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_messages, 4);
    assert_int_equal(pair->client.n_ended, 1);
}

/* A client that reads nothing more gets a status that nobody need wait for. */
static void test_deadline_overtakes_the_messages_that_wait(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;

    begin(pair);
    pair_run(pair, SIZE_MAX);
    pair->client.keeps = true;
    pair->client.is_muted = true;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(side_send_block(&pair->server, 1, 0, 0, 200 * KIB), 0);
    }
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_messages, 1);
    pair->client.is_muted = false;
    assert_int_equal(finish(pair, 1, BOW_DEADLINE_EXCEEDED, "over"), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 DEADLINE_EXCEEDED over\n");
    assert_int_equal(pair->server.session->n_streams, 0);
    assert_int_equal(queued(&pair->server, 1), 0);
}

/* The trailers need no window, so a used-up one does not hold them up. */
static void test_status_needs_no_window(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;

    begin(pair);
    pair_run(pair, SIZE_MAX);
    pair->client.keeps = true;
    pair->client.is_muted = true;
    assert_int_equal(side_send_block(&pair->server, 1, 0, 0, 128 * KIB - 5), 0);
    assert_int_equal(side_send_block(&pair->server, 1, 0, 0, 128 * KIB - 5), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(queued(&pair->server, 1), 0);
    assert_int_equal(pair->client.n_messages, 2);
    pair->client.is_muted = false;
    assert_int_equal(finish(pair, 1, BOW_OK, ""), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 OK\n");
}

static void test_answer_to_a_call_with_an_open_side_is_final(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;

    uint64_t key = begin(pair);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(finish(pair, 1, BOW_UNIMPLEMENTED, "no such method"), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 UNIMPLEMENTED no such method\n");
    assert_int_equal(side_send(&pair->client, key, 0, "late"), -ENOENT);
    assert_int_equal(half_close(pair, key), -ENOENT);
    assert_int_equal(client->ops->begin(client, key), -ENOENT);
    assert_int_equal(respond(pair, 1, &(struct bow_metadata)BOW_METADATA_INIT), -ENOENT);
    assert_int_equal(client->n_streams, 0);
}

/* How much waits, and who is told. */

static void test_producer_is_told_once_when_little_waits(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    void *stream = NULL;

    uint64_t key = begin(pair);
    pair_run(pair, SIZE_MAX);
    pair->server.keeps = true;
    pair->server.is_muted = true;
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 256 * KIB - 5), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(queued(&pair->client, key), 0);
    assert_int_equal(take_writable(&pair->client, &stream), key);
    assert_ptr_equal(stream, &pair->client);
    assert_int_equal(take_writable(&pair->client, &stream), 0);
    assert_null(stream);
    /* Below the mark nobody was to stop. */
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 60 * KIB), 0);
    assert_int_equal(queued(&pair->client, key), 60 * KIB + 5);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 40 * KIB), 0);
    assert_int_equal(queued(&pair->client, key), 100 * KIB + 10);
    assert_int_equal(take_writable(&pair->client, &stream), 0);
    pair->server.session->ops->consumed(pair->server.session, 1, 256 * KIB);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(take_writable(&pair->client, &stream), key);
    assert_int_equal(take_writable(&pair->client, &stream), 0);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 40 * KIB), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(queued(&pair->client, key), 0);
    assert_int_equal(take_writable(&pair->client, &stream), 0);
}

static void test_producer_is_not_told_after_its_end(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    void *stream = NULL;

    pair->server.is_muted = true;
    uint64_t ended = begin(pair);
    uint64_t cancelled = begin(pair);
    assert_int_equal(side_send_block(&pair->client, ended, 0, 0, 100 * KIB), 0);
    assert_int_equal(half_close(pair, ended), 0);
    assert_int_equal(side_send_block(&pair->client, cancelled, 0, 0, 100 * KIB), 0);
    client->ops->cancel(client, cancelled, BOW_CANCELLED);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(take_writable(&pair->client, &stream), 0);
    assert_int_equal(side_send_block(&pair->server, 1, BOW__SEND_END, 0, 100 * KIB), 0);
    assert_int_equal(queued(&pair->server, 1), 0);
    pair->client.is_muted = true;
    pair_run(pair, SIZE_MAX);
    assert_int_equal(take_writable(&pair->server, &stream), 0);
    assert_int_equal(pair->client.n_ended, 1);
}

/* How much is written at once: what a small message queues behind. */

#define LARGE_BYTES (200 * KIB)

static size_t drained_at_once(struct fixture *t, struct side *side)
{
    struct iovec pieces[64];
    size_t n_bytes = 0;

    int n = side->session->ops->drain(side->session, pieces, 64);
    for (int i = 0; i < n; i++) {
        n_bytes += pieces[i].iov_len;
    }
    pair_run(&t->pair, SIZE_MAX);
    return n_bytes;
}

static void test_stream_f68_large_alone_goes_in_one_piece(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;

    pair->server.is_muted = true;
    uint64_t key = begin(pair);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, LARGE_BYTES), 0);
    assert_true(drained_at_once(t, &pair->client) > LARGE_BYTES);
    /* It waits behind no more than it did before there were large pieces. */
    assert_int_equal(side_send(&pair->client, key, 0, "small"), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, LARGE_BYTES), 0);
    assert_true(drained_at_once(t, &pair->client) < BOW__HTTP2_PUMP_BYTES + 17 * KIB);
    /* The other way, too: one that came is answered, so it is about. */
    assert_int_equal(side_send_block(&pair->server, 1, 0, 0, LARGE_BYTES), 0);
    assert_true(drained_at_once(t, &pair->server) < BOW__HTTP2_PUMP_BYTES + 17 * KIB);
    pair->now_ns += BOW__QUIET_NS;
    pair->client.session->ops->on_time(pair->client.session, pair->now_ns);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, LARGE_BYTES), 0);
    assert_true(drained_at_once(t, &pair->client) > LARGE_BYTES);
}

static void test_stream_f68_less_waits_for_a_socket_that_is_behind(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct iovec piece;

    pair->server.is_muted = true;
    uint64_t key = begin(pair);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, LARGE_BYTES), 0);
    /* The socket took one byte. */
    assert_int_equal(pair->client.session->ops->drain(pair->client.session, &piece, 1), 1);
    uint8_t byte = *(const uint8_t *)piece.iov_base;
    pair->client.session->ops->sent(pair->client.session, 1);
    assert_int_equal(side_feed(&pair->server, &byte, 1, 1), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.n_bytes, LARGE_BYTES);
}

/* Both sides of several streams say messages of all sizes; each comes whole, once, in order. */

#define N_STREAMS 5u
#define N_MESSAGES 40u

static const size_t talk_sizes[] = {66, 5, 900, 65, 16 << 10, 0, 40 << 10, 100 << 10, 70};
#define N_TALK_SIZES (sizeof(talk_sizes) / sizeof(talk_sizes[0]))

static void say(struct side *side, uint64_t key, uint32_t i)
{
    assert_int_equal(side_send_block(side, key, 0, (uint8_t)i, talk_sizes[i % N_TALK_SIZES]), 0);
}

static void test_streams_talk_both_ways_at_once(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    size_t n_bytes = 0;

    for (uint64_t i = 1; i <= N_STREAMS; i++) {
        assert_int_equal(begin(pair), i);
    }
    pair_run(pair, SIZE_MAX);
    for (uint32_t i = 0; i < N_MESSAGES; i++) {
        for (uint64_t key = 1; key <= N_STREAMS; key++) {
            say(&pair->client, key, i + (uint32_t)key);
            say(&pair->server, 2 * key - 1, i + 3 * (uint32_t)key);
            n_bytes += talk_sizes[(i + key) % N_TALK_SIZES];
        }
        if (i % 3 == 0) {
            side_clear(&pair->client);
            side_clear(&pair->server);
            pair_run(pair, 1000 + i);
        }
    }
    pair_run(pair, SIZE_MAX);
    for (uint64_t key = 1; key <= N_STREAMS; key++) {
        assert_int_equal(half_close(pair, key), 0);
        assert_int_equal(finish(pair, 2 * key - 1, BOW_OK, ""), 0);
    }
    side_clear(&pair->client);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_messages, N_STREAMS * N_MESSAGES);
    assert_int_equal(pair->server.n_messages, N_STREAMS * N_MESSAGES);
    assert_int_equal(pair->server.n_bytes, n_bytes);
    assert_int_equal(pair->client.n_ended, N_STREAMS);
    assert_int_equal(pair->client.rc, 0);
    assert_int_equal(pair->server.rc, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stream_begins_without_data),
        TEST(test_half_close_goes_with_the_message_that_waits),
        TEST(test_half_close_before_the_request_left_arrives),
        TEST(test_answer_has_one_header_and_one_end),
        TEST(test_status_follows_the_messages_that_wait),
        TEST(test_deadline_overtakes_the_messages_that_wait),
        TEST(test_status_needs_no_window),
        TEST(test_answer_to_a_call_with_an_open_side_is_final),
        TEST(test_producer_is_told_once_when_little_waits),
        TEST(test_producer_is_not_told_after_its_end),
        TEST(test_stream_f68_large_alone_goes_in_one_piece),
        TEST(test_stream_f68_less_waits_for_a_socket_that_is_behind),
        TEST(test_streams_talk_both_ways_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
