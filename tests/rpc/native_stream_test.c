/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls with any number of messages each way: how they begin and how a side ends,
 * their order, what waits and who is told that it may go on.
 */
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* A call that has begun without a message. */
static uint64_t begin(struct pair *pair)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .path_key = 7};
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    return key;
}

static int send_pattern(struct side *side, uint64_t key, uint32_t flags, size_t len, uint8_t seed)
{
    struct bow__block *block = pattern_block(side->pair->context, len, seed);
    int rc = side->session->ops->send(side->session, key, flags, block, 0, len);

    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

static size_t queued(const struct side *side, uint64_t key)
{
    return side->session->ops->queued(side->session, key);
}

static uint64_t take_writable(struct side *side, void **ret_stream)
{
    uint64_t key = 0;

    *ret_stream = side->session->ops->take_writable(side->session, &key);
    return key;
}

static void read_all(struct side *side, uint64_t key, struct bow__message *message)
{
    side->session->ops->consumed(side->session, key, message->bytes.len);
}

/* The beginning and the client's end. */

static void test_native_stream_begins_without_a_message(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    uint64_t key = begin(&pair);
    pair_run(&pair);
    assert_int_equal(pair.server.n_opens, 1);
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(pair.server.n_half_closes, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(side_say(&pair.client, key, 0, "abc", i), 0);
        pair_run(&pair);
        assert_int_equal(pair.server.n_messages, i + 1);
        assert_int_equal(pair.server.message_len, i);
        assert_false(pair.server.message_end);
    }
    assert_int_equal(client->ops->half_close(client, key), 0);
    assert_int_equal(client->ops->half_close(client, key), -ENOENT);
    assert_int_equal(send_pattern(&pair.client, key, 0, 1, 0), -ENOENT);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 3);
    assert_int_equal(pair.server.n_half_closes, 1);
    assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "end", 3), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_int_equal(pair.client.message_len, 3);
    assert_int_equal(client->ops->half_close(client, key), -ENOENT);
    pair_fini(&pair);
}

static void test_native_stream_without_any_message_ends(void **state)
{
    struct pair pair;
    struct bow_status ok = BOW_STATUS_OK_INIT;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    assert_int_equal(pair.client.session->ops->half_close(pair.client.session, key), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_half_closes, 1);
    assert_int_equal(pair.server.session->ops->finish(pair.server.session, key, &ok), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_messages, 0);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_OK);
    pair_fini(&pair);
}

static void test_native_stream_half_close_goes_with_the_message_that_waits(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    assert_int_equal(send_pattern(&pair.client, key, 0, 100 * KIB, 1), 0);
    assert_int_equal(send_pattern(&pair.client, key, 0, 90 * KIB, 2), 0);
    pair.server.on_message = read_all;
    assert_true(pair_move(&pair, &pair.client, SIZE_MAX) > 0);
    assert_int_equal(pair.client.session->ops->half_close(pair.client.session, key), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 2);
    assert_int_equal(pair.server.message_len, 90 * KIB);
    assert_pattern(pair.server.message, 90 * KIB, 2);
    assert_true(pair.server.message_end);
    assert_int_equal(pair.server.n_half_closes, 0);
    pair_fini(&pair);
}

static void test_native_stream_half_close_without_memory_did_nothing(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    pair_run(&pair);
    while (pair.pool.n_idle > 0) {
        bow__pool_trim(&pair.pool);
    }
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    assert_int_equal(pair.client.session->ops->half_close(pair.client.session, key), -ENOMEM);
    assert_int_equal(pair.client.session->ops->half_close(pair.client.session, key), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.server.n_half_closes, 1);
    pair_fini(&pair);
}

/* Order. */

static void test_native_stream_small_message_waits_behind_a_large_one(void **state)
{
    struct pair pair;
    size_t cap = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    uint64_t key = begin(&pair);
    assert_int_equal(send_pattern(&pair.client, key, 0, 300 * KIB, 1), 0);
    assert_null(client->ops->reserve(client, key, 0, &cap));
    assert_int_equal(side_say(&pair.client, key, 0, "small", 5), 0);
    assert_int_equal(queued(&pair.client, key), 300 * KIB + BOW__FRAME_MESSAGE_COST);
    /* One of another stream does not. */
    uint64_t other = begin(&pair);
    assert_non_null(client->ops->reserve(client, other, 0, &cap));
    pair.server.on_message = read_all;
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 2);
    assert_memory_equal(pair.server.message, "small", 5);
    assert_int_equal(queued(&pair.client, key), 0);
    assert_non_null(client->ops->reserve(client, key, 0, &cap));
    pair_fini(&pair);
}

/* Small messages that waited leave in few pieces. */
static void test_native_stream_small_messages_leave_together(void **state)
{
    struct pair pair;
    struct iovec pieces[16];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    pair_run(&pair);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(send_pattern(&pair.client, key, 0, 20, (uint8_t)i), 0);
    }
    struct bow__session *client = pair.client.session;
    assert_in_range(client->ops->drain(client, pieces, 16), 1, 2);
    assert_int_equal(queued(&pair.client, key), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 500);
    assert_pattern(pair.server.message, 20, (uint8_t)499);
    pair_fini(&pair);
}

/* Both sides of several streams say messages of all sizes; each comes whole, once, in order. */

#define N_STREAMS 5
#define N_MESSAGES 60u

struct talk {
    uint64_t keys[N_STREAMS];
    uint32_t n_said[N_STREAMS];
    uint32_t n_heard[N_STREAMS];
};

static const size_t talk_sizes[] = {4, 5, 900, 5, 16 * KIB, 4, 40 * KIB, 100 * KIB};
#define N_TALK_SIZES (sizeof(talk_sizes) / sizeof(talk_sizes[0]))

static size_t talk_size(size_t stream, uint32_t i)
{
    return talk_sizes[(i * 7 + stream) % N_TALK_SIZES];
}

static size_t talk_stream(const struct talk *talk, uint64_t key)
{
    size_t at = 0;

    while (at < N_STREAMS && talk->keys[at] != key) {
        at++;
    }
    assert_true(at < N_STREAMS);
    return at;
}

static void talk_hear(struct side *side, uint64_t key, struct bow__message *message)
{
    struct talk *talk = side->user;
    size_t stream = talk_stream(talk, key);
    uint32_t i = talk->n_heard[stream]++;

    assert_int_equal(message->bytes.len, talk_size(stream, i));
    assert_memory_equal(message->bytes.data, &i, sizeof(i));
    assert_pattern(message->bytes.data + sizeof(i), message->bytes.len - sizeof(i), (uint8_t)i);
    side->session->ops->consumed(side->session, key, message->bytes.len);
}

static void talk_say(struct side *side, size_t stream)
{
    static uint8_t bytes[100 * 1024];
    struct talk *talk = side->user;
    uint32_t i = talk->n_said[stream]++;
    size_t len = talk_size(stream, i);

    memcpy(bytes, &i, sizeof(i));
    for (size_t at = sizeof(i); at < len; at++) {
        bytes[at] = (uint8_t)((at - sizeof(i)) * 7 + (uint8_t)i);
    }
    assert_int_equal(side_say(side, talk->keys[stream], 0, bytes, len), 0);
}

static void converse(size_t step, uint64_t random)
{
    struct pair pair;
    struct talk client = {{0}, {0}, {0}};

    pair_init(&pair);
    pair.step = step;
    pair.random = random;
    assert_int_equal(pair_open(&pair), 0);
    for (size_t i = 0; i < N_STREAMS; i++) {
        client.keys[i] = begin(&pair);
    }
    struct talk server = client;
    pair.client.user = &client;
    pair.server.user = &server;
    pair.client.on_message = talk_hear;
    pair.server.on_message = talk_hear;
    pair_run(&pair);
    for (size_t i = 0; i < N_MESSAGES; i++) {
        for (size_t stream = 0; stream < N_STREAMS; stream++) {
            talk_say(&pair.client, stream);
            talk_say(&pair.server, stream);
        }
        pair_move(&pair, &pair.client, SIZE_MAX);
        pair_move(&pair, &pair.server, SIZE_MAX);
    }
    pair_run(&pair);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.server.rc, 0);
    for (size_t stream = 0; stream < N_STREAMS; stream++) {
        assert_int_equal(client.n_heard[stream], N_MESSAGES);
        assert_int_equal(server.n_heard[stream], N_MESSAGES);
        assert_int_equal(queued(&pair.client, client.keys[stream]), 0);
    }
    pair_fini(&pair);
}

static void test_native_stream_messages_of_both_sides_keep_their_order(void **state)
{
    (void)state;
    converse(0, 0);
    converse(700, 0);
    converse(30000, 1);
    converse(5000, 2);
}

/* Waiting, and going on. */

/* The other side's window is spent, by whole messages that nobody reads. */
static void fill_window(struct side *side, uint64_t key)
{
    for (int i = 0; i < 4; i++) {
        assert_int_equal(send_pattern(side, key, 0, BOW__NATIVE_STREAM_WINDOW / 4, 1), 0);
        pair_run(side->pair);
    }
    assert_int_equal(queued(side, key), 0);
}

static void test_native_stream_tells_when_a_producer_may_go_on(void **state)
{
    struct pair pair;
    void *stream = NULL;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    pair_run(&pair);
    /* What goes out at once never waits; nobody is told of anything. */
    fill_window(&pair.client, key);
    assert_int_equal(take_writable(&pair.client, &stream), 0);
    assert_null(stream);
    assert_int_equal(send_pattern(&pair.client, key, 0, 60 * KIB, 2), 0);
    assert_int_equal(send_pattern(&pair.client, key, 0, 20 * KIB, 3), 0);
    pair_run(&pair);
    assert_int_equal(queued(&pair.client, key), 80 * KIB);
    assert_int_equal(take_writable(&pair.client, &stream), 0);
    /* 40 KiB may go: still above the lower mark. */
    pair.server.session->ops->consumed(pair.server.session, key, 40 * KIB);
    pair_run(&pair);
    assert_int_equal(queued(&pair.client, key), 40 * KIB);
    assert_int_equal(take_writable(&pair.client, &stream), 0);
    pair.server.session->ops->consumed(pair.server.session, key, 20 * KIB);
    pair_run(&pair);
    assert_true(queued(&pair.client, key) <= BOW__STREAM_LOW_BYTES);
    assert_true(take_writable(&pair.client, &stream) == key);
    assert_ptr_equal(stream, &pair.client);
    assert_int_equal(take_writable(&pair.client, &stream), 0);
    pair_fini(&pair);
}

/* Credit for a large message comes unasked, but not while another lies unread before it. */
static void test_native_stream_unread_holds_a_large_message_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair);
    assert_int_equal(send_pattern(&pair.client, key, 0, 16 * KIB, 1), 0);
    assert_int_equal(send_pattern(&pair.client, key, 0, MIB, 2), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 1);
    assert_int_equal(queued(&pair.client, key), MIB + 16 * KIB - BOW__NATIVE_STREAM_WINDOW);
    pair.server.session->ops->consumed(pair.server.session, key, 16 * KIB);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 2);
    assert_pattern(pair.server.message, MIB, 2);
    pair_fini(&pair);
}

/* The server's side of a call with `len` bytes waiting on it. */
static uint64_t wait_with(struct pair *pair, size_t len)
{
    uint64_t key = begin(pair);

    pair_run(pair);
    fill_window(&pair->server, key);
    assert_int_equal(send_pattern(&pair->server, key, 0, len, 2), 0);
    pair_run(pair);
    return key;
}

static void test_native_stream_filled_again_is_not_writable(void **state)
{
    struct pair pair;
    void *stream = NULL;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = wait_with(&pair, 64 * KIB);
    assert_int_equal(queued(&pair.server, key), 64 * KIB);
    pair.client.session->ops->consumed(pair.client.session, key, 40 * KIB);
    pair_run(&pair);
    assert_int_equal(queued(&pair.server, key), 24 * KIB);
    assert_int_equal(send_pattern(&pair.server, key, 0, 20 * KIB, 3), 0);
    assert_int_equal(take_writable(&pair.server, &stream), 0);
    pair.client.session->ops->consumed(pair.client.session, key, 24 * KIB);
    pair_run(&pair);
    assert_true(take_writable(&pair.server, &stream) == key);
    assert_ptr_equal(stream, (void *)(uintptr_t)(key + 1000));
    pair_fini(&pair);
}

/* A stream that has ended for the host is the host's no more. */
static void test_native_stream_ended_is_never_writable(void **state)
{
    struct pair pair;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    void *stream = NULL;

    (void)state;
    for (int late = 0; late < 2; late++) {
        pair_init(&pair);
        assert_int_equal(pair_open(&pair), 0);
        struct bow__session *server = pair.server.session;
        uint64_t key = wait_with(&pair, 64 * KIB);
        if (!late) {
            assert_int_equal(server->ops->finish(server, key, &ok), 0);
            assert_int_equal(queued(&pair.server, key), 0);
        }
        pair.client.session->ops->consumed(pair.client.session, key, 40 * KIB);
        pair_run(&pair);
        if (late) {
            assert_int_equal(server->ops->finish(server, key, &ok), 0);
        }
        assert_int_equal(take_writable(&pair.server, &stream), 0);
        pair.client.session->ops->consumed(pair.client.session, key, 24 * KIB);
        pair_run(&pair);
        assert_int_equal(take_writable(&pair.server, &stream), 0);
        assert_int_equal(pair.client.code, BOW_OK);
        pair_fini(&pair);
    }
}

/* The server's end. */

static void test_native_stream_status_comes_after_what_waits(void **state)
{
    struct pair pair;
    struct bow_status status = {.code = BOW_NOT_FOUND, .message = "that is all"};

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = wait_with(&pair, 70 * KIB);
    struct bow__session *server = pair.server.session;
    assert_int_equal(server->ops->finish(server, key, &status), 0);
    assert_int_equal(server->ops->finish(server, key, &status), -ENOENT);
    pair_run(&pair);
    assert_int_equal(pair.client.n_messages, 4);
    assert_int_equal(pair.client.n_statuses, 0);
    pair.client.session->ops->consumed(pair.client.session, key, BOW__NATIVE_STREAM_WINDOW);
    pair_run(&pair);
    assert_int_equal(pair.client.n_messages, 5);
    assert_int_equal(pair.client.message_len, 70 * KIB);
    assert_false(pair.client.message_end);
    assert_int_equal(pair.client.code, BOW_NOT_FOUND);
    assert_string_equal(pair.client.text, "that is all");
    pair_fini(&pair);
}

/* A client that gives no credit can't keep a call open beyond its deadline. */
static void test_native_stream_deadline_does_not_wait_behind_messages(void **state)
{
    struct pair pair;
    struct bow_status status = {.code = BOW_DEADLINE_EXCEEDED, .message = "late"};

    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        pair_init(&pair);
        assert_int_equal(pair_open(&pair), 0);
        uint64_t key = wait_with(&pair, 70 * KIB);
        struct bow__session *server = pair.server.session;
        if (begun) {
            pair.client.session->ops->consumed(pair.client.session, key, 30 * KIB);
            pair_run(&pair);
        }
        assert_int_equal(server->ops->finish(server, key, &status), 0);
        assert_int_equal(server->n_streams, 0);
        pair_run(&pair);
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.n_messages, 4);
        assert_int_equal(pair.client.code, BOW_DEADLINE_EXCEEDED);
        pair_fini(&pair);
    }
}

/* What is late. */

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define N_LATE 20000u

/* Messages of a byte that were on their way when the call ended. */
static int feed_late(struct pair *pair, size_t n)
{
    static uint8_t frames[13 * N_LATE];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        len += hex_decode("00000001 03 08 000000000001 aa", frames + len, sizeof(frames) - len);
    }
    side_feed(&pair->server, frames, len);
    return pair->server.rc;
}

static void test_native_stream_ended_early_forgives_what_was_on_its_way(void **state)
{
    struct bow_status status = {.code = BOW_ABORTED, .message = "enough"};
    struct pair pair;

    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        pair_init(&pair);
        struct bow__session_options options = pair_options(&pair, true);
        assert_int_equal(side_open(&pair.server, &options), 0);
        ((struct bow__native *)pair.server.session)->max_calls = refused ? 0 : 1;
        side_feed_hex(&pair.server, OPENING "00000007 01 00 000000000001 06 12042f732f6d ");
        struct bow__session *server = pair.server.session;
        assert_int_equal(pair.server.n_opens, refused ? 0 : 1);
        if (!refused) {
            assert_int_equal(server->ops->finish(server, 1, &status), 0);
        }
        /* As many as the call had credit for, and as many as are no flood. */
        assert_int_equal(feed_late(&pair, BOW__NATIVE_STREAM_WINDOW / 64 + 10000), 0);
        assert_true(feed_late(&pair, 1) < 0);
        assert_int_equal(server->failure_code, BOW_RESOURCE_EXHAUSTED);
        pair_fini(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_stream_begins_without_a_message),
        cmocka_unit_test(test_native_stream_without_any_message_ends),
        cmocka_unit_test(test_native_stream_half_close_goes_with_the_message_that_waits),
        cmocka_unit_test(test_native_stream_half_close_without_memory_did_nothing),
        cmocka_unit_test(test_native_stream_small_message_waits_behind_a_large_one),
        cmocka_unit_test(test_native_stream_small_messages_leave_together),
        cmocka_unit_test(test_native_stream_messages_of_both_sides_keep_their_order),
        cmocka_unit_test(test_native_stream_tells_when_a_producer_may_go_on),
        cmocka_unit_test(test_native_stream_unread_holds_a_large_message_back),
        cmocka_unit_test(test_native_stream_filled_again_is_not_writable),
        cmocka_unit_test(test_native_stream_ended_is_never_writable),
        cmocka_unit_test(test_native_stream_status_comes_after_what_waits),
        cmocka_unit_test(test_native_stream_ended_early_forgives_what_was_on_its_way),
        cmocka_unit_test(test_native_stream_deadline_does_not_wait_behind_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
