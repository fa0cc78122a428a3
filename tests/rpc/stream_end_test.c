/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a client's streams end: by either side, by the connection, in the middle of a callback; and
 * which of them are tried again.
 */

#include "stream_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

/* The end */

static void test_stream_cancel_ends_it_once_and_tells_the_peer(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    bow_stream_ref(s->stream);
    bow_stream_cancel(s->stream);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
    stream_peer_wait(&s->peer, &s->peer.n_resets, 1);
    bow_stream_cancel(s->stream);
    bow_stream_unref(s->stream);
}

static void test_stream_cancel_before_the_connection_ends_it(void **state)
{
    struct streams *s = *state;

    streams_open(s, &streams_both, NULL);
    assert_int_equal(streams_send(s->stream, 1), 0);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
}

static void cancel_here(struct streams *s, struct bow_stream *stream)
{
    bow_stream_cancel(stream);
    s->rc = s->n_closed;
}

static void test_stream_cancel_in_a_callback_is_not_told_from_inside(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    s->in_message = cancel_here;
    stream_peer_send(&s->peer, 1);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
    assert_int_equal(s->rc, 0);
    assert_int_equal(s->n_messages, 1);
}

static void free_client_here(struct streams *s, struct bow_stream *stream)
{
    (void)stream;
    bow_client_free(s->t->client);
    s->t->client = NULL;
    s->rc = s->n_closed;
}

static void test_stream_client_freed_in_a_callback_ends_it(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    s->in_message = free_client_here;
    stream_peer_send(&s->peer, 1);
    streams_expect_closed(s, BOW_CANCELLED, "client was closed");
    assert_int_equal(s->rc, 0);
}

static void try_all(struct streams *s, struct bow_stream *stream)
{
    s->rc = streams_send(stream, 1);
    assert_int_equal(bow_stream_half_close(stream), -ECANCELED);
    bow_stream_pause(stream);
    bow_stream_resume(stream);
    bow_stream_cancel(stream);
}

static void test_stream_in_its_last_event_is_ended(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    s->in_closed = try_all;
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(s->rc, -ECANCELED);
}

static void test_stream_outlives_its_client(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    bow_stream_ref(s->stream);
    bow_client_free(s->t->client);
    s->t->client = NULL;
    streams_expect_closed(s, BOW_CANCELLED, "client was closed");
    assert_int_equal(streams_send(s->stream, 1), -ECANCELED);
    bow_stream_cancel(s->stream);
    bow_stream_unref(s->stream);
}

static void test_stream_deadline_ends_it(void **state)
{
    struct streams *s = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = 400 * MS;
    streams_open(s, &streams_both, &options);
    streams_accept(s);
    stream_peer_send(&s->peer, 1);
    streams_expect_closed(s, BOW_DEADLINE_EXCEEDED, "deadline of 400 ms passed");
    stream_peer_wait(&s->peer, &s->peer.n_resets, 1);
}

static void test_stream_lost_connection_ends_it_after_its_messages(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    assert_int_equal(streams_send(s->stream, 1), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_send(&s->peer, 1);
    stream_peer_send(&s->peer, 2);
    /* Not closed: for bytes that nobody has read then, the kernel resets the connection, and what
     * the client has not read yet is gone. */
    assert_int_equal(shutdown(s->peer.fd, SHUT_WR), 0);
    streams_expect_closed(s, BOW_UNAVAILABLE, "lost");
    assert_int_equal(s->n_messages, 2);
}

static void test_stream_ended_early_by_the_server_sends_no_more(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    bow_stream_ref(s->stream);
    stream_peer_reply(&s->peer, 9);
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(((const Calls__Reply *)s->result.reply)->number, 9);
    assert_int_equal(streams_send(s->stream, 1), -ECANCELED);
    bow_stream_unref(s->stream);
}

/* A server that breaks the rules */

static void test_stream_undecodable_message_is_internal(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    stream_peer_send(&s->peer, 1);
    stream_peer_send_bytes(&s->peer, "\x12\x01\xFF", 3);
    streams_expect_closed(s, BOW_INTERNAL, "calls.Reply.text");
    stream_peer_wait(&s->peer, &s->peer.n_resets, 1);
    assert_int_equal(s->n_messages, 1);
}

static void test_stream_second_reply_is_internal(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    stream_peer_send(&s->peer, 1);
    stream_peer_send(&s->peer, 2);
    streams_expect_closed(s, BOW_INTERNAL, "a second one came");
}

static void test_stream_ok_without_the_reply_is_internal(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_INTERNAL, "sent no reply");
}

/* Trying again */

static void refuse(struct streams *s)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = BOW_UNAVAILABLE;
    status.message = "not now";
    status.not_processed = true;
    stream_peer_finish_status(&s->peer, &status);
}

/* HTTP/2 refuses without a text. */
static const char *refusal(void)
{
    return calls_is_grpc() ? "REFUSED_STREAM" : "not now";
}

static void test_stream_not_processed_is_tried_again_while_nothing_was_sent(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    refuse(s);
    stream_peer_wait(&s->peer, &s->peer.n_opens, 2);
    assert_int_equal(streams_send(s->stream, 1), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    refuse(s);
    streams_expect_closed(s, BOW_UNAVAILABLE, refusal());
    assert_int_equal(s->peer.n_opens, 2);
}

static void test_stream_not_processed_request_is_sent_again(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_pour);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    refuse(s);
    s->peer.n_messages = 0;
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_int_equal(s->peer.n_opens, 2);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_stream_that_sent_is_not_tried_again(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    assert_int_equal(streams_send(s->stream, 1), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    refuse(s);
    streams_expect_closed(s, BOW_UNAVAILABLE, refusal());
    assert_int_equal(s->peer.n_opens, 1);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(test_stream_cancel_ends_it_once_and_tells_the_peer),
        STREAM_TEST(test_stream_cancel_before_the_connection_ends_it),
        STREAM_TEST(test_stream_cancel_in_a_callback_is_not_told_from_inside),
        STREAM_TEST(test_stream_client_freed_in_a_callback_ends_it),
        STREAM_TEST(test_stream_in_its_last_event_is_ended),
        STREAM_TEST(test_stream_outlives_its_client),
        STREAM_TEST(test_stream_deadline_ends_it),
        STREAM_TEST(test_stream_lost_connection_ends_it_after_its_messages),
        STREAM_TEST(test_stream_ended_early_by_the_server_sends_no_more),
        STREAM_TEST(test_stream_undecodable_message_is_internal),
        STREAM_TEST(test_stream_second_reply_is_internal),
        STREAM_TEST(test_stream_ok_without_the_reply_is_internal),
        STREAM_TEST(test_stream_not_processed_is_tried_again_while_nothing_was_sent),
        STREAM_TEST(test_stream_not_processed_request_is_sent_again),
        STREAM_TEST(test_stream_that_sent_is_not_tried_again),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
