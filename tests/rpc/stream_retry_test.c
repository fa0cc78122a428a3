/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streams that are tried again by a policy: all that was sent is sent again, until something of an
 * answer has been seen or too much was sent.
 */

#include "stream_fixture.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void begin_by_config(struct streams *s, const char *service_config)
{
    struct bow_client_options options;

    calls_free_client(s->t);
    calls_client_options(s->t, &options);
    options.service_config = service_config;
    s->t->client = calls_new_client(s->t, &options);
    streams_begin(s, &streams_both);
}

static void begin(struct streams *s, const struct bow_method *method)
{
    struct bow_retry_policy policy = BOW_RETRY_POLICY_INIT;
    const struct bow_retry_policy *policies[] = {&policy};
    struct bow_retry_options retry = BOW_RETRY_OPTIONS_INIT;
    struct bow_client_options options;

    policy.backoff_min_ns = MS;
    retry.policies = policies;
    retry.n_policies = 1;
    calls_free_client(s->t);
    calls_client_options(s->t, &options);
    options.retry = &retry;
    s->t->client = calls_new_client(s->t, &options);
    streams_begin(s, method);
}

static void send_from(struct streams *s, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i <= last; i++) {
        assert_int_equal(streams_send(s->stream, i), 0);
    }
}

/* The server turns the attempt down, and the next begins. */
static void turn_down(struct streams *s)
{
    int n = s->peer.n_opens;

    memset(s->peer.next_of, 0, sizeof(s->peer.next_of));
    s->peer.n_messages = 0;
    stream_peer_finish(&s->peer, BOW_UNAVAILABLE, "not now");
    stream_peer_wait(&s->peer, &s->peer.n_opens, n + 1);
}

static void test_stream_retry_sends_again_what_was_sent(void **state)
{
    struct streams *s = *state;

    begin(s, &streams_both);
    send_from(s, 1, 3);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 3);
    turn_down(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 3);
    assert_int_equal(s->peer.last_number, 3);
    send_from(s, 4, 5); /* behind what came again */
    turn_down(s);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 5);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.last_number, 5);
    assert_int_equal(s->peer.n_disordered, 0);
    stream_peer_send(&s->peer, 9);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 1);
    assert_int_equal(s->n_closed, 1);
}

static void test_stream_retry_ends_with_the_first_message(void **state)
{
    struct streams *s = *state;

    begin(s, &streams_both);
    send_from(s, 1, 1);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_send(&s->peer, 9);
    streams_wait_serving(s, &s->n_messages, 1);
    stream_peer_finish(&s->peer, BOW_UNAVAILABLE, "not now");
    streams_expect_closed(s, BOW_UNAVAILABLE, "not now");
    assert_int_equal(s->peer.n_opens, 1);
}

static void test_stream_retry_ends_with_initial_metadata(void **state)
{
    struct streams *s = *state;

    begin(s, &streams_both);
    stream_peer_respond(&s->peer, "key", "value");
    streams_wait_serving(s, &s->n_headers, 1);
    stream_peer_finish(&s->peer, BOW_UNAVAILABLE, "not now");
    streams_expect_closed(s, BOW_UNAVAILABLE, "not now");
    assert_int_equal(s->peer.n_opens, 1);
}

/* What is kept for another attempt has a limit. */
static void test_stream_retry_ends_with_too_much(void **state)
{
    struct streams *s = *state;
    const size_t half = BOW_LIMIT_RETRY_REQUEST_BYTES / 2;

    begin(s, &streams_both);
    assert_int_equal(streams_send_sized(s->stream, 1, half), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    turn_down(s); /* so far all is kept */
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_int_equal(streams_send_sized(s->stream, 2, half), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 2);
    stream_peer_finish(&s->peer, BOW_UNAVAILABLE, "not now");
    streams_expect_closed(s, BOW_UNAVAILABLE, "not now");
    assert_int_equal(s->peer.n_opens, 2);
}

static void test_stream_retry_of_one_request(void **state)
{
    struct streams *s = *state;

    begin(s, &streams_pour);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    turn_down(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_send(&s->peer, 9);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 1);
}

/* Between two attempts: what is sent meanwhile goes with the next, and a cancel ends it. */
static void test_stream_retry_that_is_cancelled_ends_once(void **state)
{
    struct streams *s = *state;

    begin(s, &streams_both);
    send_from(s, 1, 2);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 2);
    turn_down(s);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
    assert_int_equal(s->n_closed, 1);
    assert_int_equal(s->n_after_closed, 0);
}

/* What else a service config says of streams */

static void test_stream_config_bounds_what_is_sent(void **state)
{
    struct streams *s = *state;

    begin_by_config(s, "{\"methodConfig\":[{\"name\":[{}],\"maxRequestMessageBytes\":2}]}");
    assert_int_equal(streams_send(s->stream, 1), 0);
    assert_int_equal(streams_send(s->stream, 128), 0); /* three bytes */
    streams_expect_closed(s, BOW_RESOURCE_EXHAUSTED, "maxRequestMessageBytes");
}

static void test_stream_config_bounds_what_comes(void **state)
{
    struct streams *s = *state;

    begin_by_config(s, "{\"methodConfig\":[{\"name\":[{}],\"maxResponseMessageBytes\":2}]}");
    stream_peer_send(&s->peer, 1);
    streams_wait_serving(s, &s->n_messages, 1);
    stream_peer_send(&s->peer, 128);
    streams_expect_closed(s, BOW_RESOURCE_EXHAUSTED, "maxResponseMessageBytes");
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(test_stream_retry_sends_again_what_was_sent),
        STREAM_TEST(test_stream_retry_ends_with_the_first_message),
        STREAM_TEST(test_stream_retry_ends_with_initial_metadata),
        STREAM_TEST(test_stream_retry_ends_with_too_much),
        STREAM_TEST(test_stream_retry_of_one_request),
        STREAM_TEST(test_stream_retry_that_is_cancelled_ends_once),
        STREAM_TEST(test_stream_config_bounds_what_is_sent),
        STREAM_TEST(test_stream_config_bounds_what_comes),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
