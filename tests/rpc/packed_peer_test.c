/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compressed messages of a client that the test plays: what they must not do, and what a client
 * that takes no encoding gets.
 */

#include "rpc/core/compression/encodings.h"
#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LARGE ((size_t)100000)
#define LIMIT ((size_t)200000)

static enum bow__encoding one_of_ours(void)
{
    bool has_zstd = (bow__encodings_built() & 1u << BOW__ENCODING_ZSTD) != 0;
    bool has_gzip = (bow__encodings_built() & 1u << BOW__ENCODING_GZIP) != 0;

    return has_zstd && !(has_gzip && calls_is_grpc()) ? BOW__ENCODING_ZSTD : BOW__ENCODING_GZIP;
}

static void start(struct serving *s)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_message_bytes = LIMIT;
    options.compression = BOW_COMPRESSION_AUTO;
    serve_start(s, &options);
    serve_connect(s);
    s->peer.encoding = one_of_ours();
}

/* A Calls__Request of that many zero bytes, compressed. */
static struct bow__block *packed_request(struct serving *s, uint64_t number, size_t n_payload,
                                         size_t *ret_len)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow__coders coders;
    struct bow__block *block = NULL;
    static uint8_t payload[2 * LIMIT];
    static uint8_t bytes[2 * LIMIT + 64];

    request.number = number;
    request.payload = (ProtobufCBinaryData){n_payload, payload};
    size_t len = calls__request__pack(&request, bytes);
    bow__coders_init(&coders, s->peer_context);
    assert_int_equal(
        bow__deflate(&coders, one_of_ours(), 0, (struct bow_slice){bytes, len}, &block, ret_len),
        0);
    bow__coders_trim(&coders);
    return block;
}

static void send_packed(struct serving *s, uint32_t flags, uint64_t number, size_t n_payload)
{
    size_t len = 0;
    struct bow__block *block = packed_request(s, number, n_payload, &len);

    session_peer_send(&s->peer, flags | BOW__SEND_COMPRESSED, block->data, len);
    bow__block_unref(block);
}

/* The connection lives: the next call gets its answer. */
static void expect_served(struct serving *s)
{
    s->peer.n_ends = 0;
    session_peer_open(&s->peer, "/calls.Kinds/Nothing", BOW_NEVER);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_UNIMPLEMENTED, "unknown method");
}

static void finish(struct serving *s, struct bow_call *call)
{
    s->rc = bow_call_finish(call);
}

static void test_packed_peer_stream_mixes_both(void **state)
{
    struct serving *s = *state;

    start(s);
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 20; i += 2) {
        send_packed(s, 0, i, LARGE);
        serve_peer_send(s, 0, i + 1);
    }
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 20);
    assert_int_equal(s->n_disordered, 0);
}

static void test_packed_peer_bomb_ends_its_stream(void **state)
{
    struct serving *s = *state;

    start(s);
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    send_packed(s, 0, 1, 2 * LIMIT - 64);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED,
                        "it inflates to more than max_message_bytes (200000)");
    serve_expect_closed(s, BOW_RESOURCE_EXHAUSTED, "max_message_bytes (200000)");
    assert_int_equal(s->n_messages, 0);
    CALLS_WAIT_METRIC(s->t, undecodable_messages, 1);
    expect_served(s);
}

static void test_packed_peer_garbage_ends_its_stream(void **state)
{
    struct serving *s = *state;

    start(s);
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    session_peer_send(&s->peer, BOW__SEND_COMPRESSED, "neither is it", 13);
    serve_expect_status(s, BOW_INTERNAL, "it is no valid");
    CALLS_WAIT_METRIC(s->t, undecodable_messages, 1);
    expect_served(s);
}

static void test_packed_peer_garbage_for_a_unary_method_is_refused(void **state)
{
    struct serving *s = *state;

    start(s);
    session_peer_open(&s->peer, SERVE_PLAIN, BOW_NEVER);
    session_peer_send(&s->peer, BOW__SEND_COMPRESSED | BOW__SEND_END, "neither is it", 13);
    serve_expect_status(s, BOW_INTERNAL, "it is no valid");
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, undecodable_messages, 1);
}

static void test_packed_peer_without_an_encoding_is_refused(void **state)
{
    struct serving *s = *state;

    start(s);
    s->in_half_close = finish;
    s->peer.encoding = BOW__ENCODING_IDENTITY;
    session_peer_open(&s->peer, SERVE_PLAIN, BOW_NEVER);
    session_peer_send(&s->peer, BOW__SEND_COMPRESSED | BOW__SEND_END, "neither is it", 13);
    serve_expect_status(s, calls_is_grpc() ? BOW_INTERNAL : BOW_UNIMPLEMENTED,
                        "is marked compressed");
    assert_int_equal(s->n_entered, 0);
    expect_served(s);
}

static void enter_later(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void listen_now(struct serving *s)
{
    serve_listen(s, s->call);
}

/* As they came, so that many that wait are no bomb. */
static void test_packed_peer_messages_wait_compressed(void **state)
{
    struct serving *s = *state;

    start(s);
    s->enter = enter_later;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    size_t before = bow_context_bytes(s->t->context);
    for (uint64_t i = 1; i <= 50; i++) {
        send_packed(s, 0, i, LARGE);
    }
    session_peer_half_close(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_started, 1);
    while (bow_context_bytes(s->t->context) == before) {
        (void)session_peer_serve(&s->peer, 1);
    }
    serve_on_loop(s, listen_now);
    assert_true(bow_context_bytes(s->t->context) < before + 20 * LARGE);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 50);
    assert_int_equal(s->n_disordered, 0);
}

static void pour(struct serving *s, struct bow_call *call)
{
    s->rc = serve_send_sized(call, 1, LARGE);
    serve_listen(s, call);
    assert_int_equal(bow_call_compress(call, true), 0);
    assert_int_equal(bow_call_finish(call), 0);
}

/* It said nothing of encodings. */
static void test_packed_peer_that_takes_none_gets_none(void **state)
{
    struct serving *s = *state;

    start(s);
    s->enter = pour;
    session_peer_open(&s->peer, SERVE_POUR, BOW_NEVER);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 1);
    assert_int_equal(s->peer.n_compressed, 0);
    assert_int_equal(s->peer.last_number, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_packed_peer_stream_mixes_both),
        TEST(test_packed_peer_bomb_ends_its_stream),
        TEST(test_packed_peer_garbage_ends_its_stream),
        TEST(test_packed_peer_garbage_for_a_unary_method_is_refused),
        TEST(test_packed_peer_without_an_encoding_is_refused),
        TEST(test_packed_peer_messages_wait_compressed),
        TEST(test_packed_peer_that_takes_none_gets_none),
    };

    calls_choose(argc, argv);
    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
