/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's streams with callbacks: messages both ways, half-close, and what is refused.
 */

#include "stream_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void send_many(struct bow_stream *stream, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(streams_send(stream, first + i), 0);
    }
}

/* Messages */

static void test_stream_messages_go_both_ways_in_order(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    send_many(s->stream, 1, 3);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 3);
    assert_int_equal(s->peer.n_half_closes, 0);
    stream_peer_send(&s->peer, 10);
    stream_peer_send(&s->peer, 11);
    streams_wait(s, &s->n_messages, 2);
    send_many(s->stream, 4, 1);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 4);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    assert_null(s->result.reply);
    assert_int_equal(s->n_disordered + s->peer.n_disordered, 0);
}

static void send_three_here(struct streams *s)
{
    send_many(s->stream, 1, 3);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
}

static void test_stream_sends_from_its_loop(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    streams_on_loop(s, send_three_here);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 3);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void open_and_send_here(struct streams *s)
{
    streams_open(s, &streams_both, NULL);
    send_three_here(s);
}

static void test_stream_opened_on_its_loop_keeps_what_is_sent_at_once(void **state)
{
    struct streams *s = *state;

    streams_on_loop(s, open_and_send_here);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 3);
    assert_int_equal(s->peer.n_disordered, 0);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_stream_messages_before_the_connection_wait(void **state)
{
    struct streams *s = *state;

    streams_open(s, &streams_both, NULL);
    send_many(s->stream, 1, 20);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 20);
    assert_int_equal(s->peer.n_disordered, 0);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_stream_f27_empty_messages_arrive(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    send_many(s->stream, 0, 1); /* all fields as they are by default */
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_send_bytes(&s->peer, "", 0);
    streams_wait(s, &s->n_messages, 1);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(s->n_messages, 1);
}

static void test_stream_large_messages_arrive_whole(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    assert_int_equal(streams_send_sized(s->stream, 1, 1 << 20), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_int_equal(s->peer.last_number, 1);
    stream_peer_send_sized(&s->peer, 2, 1 << 20);
    streams_wait_serving(s, &s->n_messages, 1);
    assert_int_equal(s->last_number, 2);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_stream_of_the_server_begins_with_the_request(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_pour);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 1);
    assert_int_equal(streams_send(s->stream, 1), -EINVAL);
    assert_int_equal(bow_stream_half_close(s->stream), -EPIPE);
    for (uint64_t i = 1; i <= 5; i++) {
        stream_peer_send(&s->peer, i);
    }
    stream_peer_finish(&s->peer, BOW_NOT_FOUND, "no more");
    streams_expect_closed(s, BOW_NOT_FOUND, "no more");
    assert_int_equal(s->n_messages, 5);
    assert_int_equal(s->n_disordered, 0);
}

static void test_stream_of_the_client_ends_with_the_reply(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    send_many(s->stream, 1, 2);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 2);
    stream_peer_reply(&s->peer, 42);
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(((const Calls__Reply *)s->result.reply)->number, 42);
}

static void test_stream_without_a_message_is_half_closed(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 0);
    stream_peer_reply(&s->peer, 1);
    streams_expect_closed(s, BOW_OK, NULL);
}

/* What may not be sent */

static void test_stream_send_says_what_is_wrong(void **state)
{
    struct streams *s = *state;
    Calls__Reply other = CALLS__REPLY__INIT;

    streams_begin(s, &streams_both);
    bow_stream_ref(s->stream);
    assert_int_equal(bow_stream_send(s->stream, &other.base), -EINVAL);
    assert_int_equal(bow_stream_send(s->stream, NULL), -EINVAL);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    assert_int_equal(bow_stream_half_close(s->stream), -EPIPE);
    assert_int_equal(streams_send(s->stream, 1), -EPIPE);
    assert_false(bow_stream_is_writable(s->stream));
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(streams_send(s->stream, 1), -ECANCELED);
    assert_int_equal(bow_stream_half_close(s->stream), -ECANCELED);
    bow_stream_cancel(s->stream);
    bow_stream_unref(s->stream);
    assert_int_equal(s->peer.n_messages, 0);
}

static void test_stream_open_says_what_is_wrong(void **state)
{
    struct streams *s = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    Calls__Reply other = CALLS__REPLY__INIT;
    struct bow_stream *stream = NULL;
    struct bow_method unary = streams_both;

    unary.flags = 0;
    assert_int_equal(
        bow_client_open(s->t->client, &unary, &request.base, NULL, &streams_events, s, &stream),
        -EINVAL);
    assert_int_equal(bow_client_open(s->t->client, calls__echo__say__method(), &request.base, NULL,
                                     &streams_events, s, &stream),
                     -EINVAL);
    assert_int_equal(bow_client_open(s->t->client, &streams_both, &request.base, NULL,
                                     &streams_events, s, &stream),
                     -EINVAL);
    assert_int_equal(
        bow_client_open(s->t->client, &streams_pour, NULL, NULL, &streams_events, s, &stream),
        -EINVAL);
    assert_int_equal(bow_client_open(s->t->client, &streams_pour, &other.base, NULL,
                                     &streams_events, s, &stream),
                     -EINVAL);
    assert_null(stream);
    assert_int_equal(s->n_closed, 0);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(test_stream_messages_go_both_ways_in_order),
        STREAM_TEST(test_stream_sends_from_its_loop),
        STREAM_TEST(test_stream_opened_on_its_loop_keeps_what_is_sent_at_once),
        STREAM_TEST(test_stream_messages_before_the_connection_wait),
        STREAM_TEST(test_stream_f27_empty_messages_arrive),
        STREAM_TEST(test_stream_large_messages_arrive_whole),
        STREAM_TEST(test_stream_of_the_server_begins_with_the_request),
        STREAM_TEST(test_stream_of_the_client_ends_with_the_reply),
        STREAM_TEST(test_stream_without_a_message_is_half_closed),
        STREAM_TEST(test_stream_send_says_what_is_wrong),
        STREAM_TEST(test_stream_open_says_what_is_wrong),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
