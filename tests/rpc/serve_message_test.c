/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages of a server's streams that are out of the ordinary: without bytes, not to be decoded,
 * and not taken while other calls go on.
 */
#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The three kinds */

/* A message of defaults has no bytes, and is a message. */
static void finish(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)bow_call_finish(call);
}

static void echo_empty(struct serving *s, struct bow_call *call)
{
    Calls__Reply empty = CALLS__REPLY__INIT;

    (void)s;
    assert_int_equal(bow_call_send(call, &empty.base), 0);
}

static void test_serve_f27_empty_messages_are_messages(void **state)
{
    struct serving *s = *state;

    s->in_message = echo_empty;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    for (int i = 0; i < 3; i++) {
        session_peer_send(&s->peer, i == 2 ? BOW__SEND_END : 0, "", 0);
    }
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 3);
    assert_int_equal(s->n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 3);
}

static void answer_plain(struct serving *s, struct bow_call *call)
{
    if (strcmp(bow_call_path(call), SERVE_PLAIN) == 0) {
        assert_int_equal(serve_reply(call, ++s->n_sent), 0);
    }
}

/* A stream that nobody reads, with as much waiting as its window lets in. */
static void test_serve_f16_stalled_stream_holds_up_no_other_call(void **state)
{
    struct serving *s = *state;

    s->enter = answer_plain;
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 16; i++) {
        serve_peer_send_sized(s, 0, i, 16 << 10);
    }
    for (int i = 1; i <= 1000; i++) {
        session_peer_open(&s->peer, SERVE_PLAIN, BOW_NEVER);
        serve_peer_send(s, BOW__SEND_END, 1);
        session_peer_wait(&s->peer, &s->peer.n_ends, i);
        assert_int_equal(s->peer.code, BOW_OK);
    }
    assert_int_equal(s->peer.n_messages, 1000);
}

static void test_serve_undecodable_message_ends_the_call(void **state)
{
    struct serving *s = *state;

    serve_begin(s, SERVE_BOTH);
    session_peer_send(&s->peer, 0, "\x12\x02\xFF\xFE", 4);
    serve_expect_status(s, BOW_INTERNAL, "calls.Request.text");
    serve_expect_closed(s, BOW_INTERNAL, "calls.Request.text");
    CALLS_WAIT_METRIC(s->t, undecodable_messages, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_serve_f27_empty_messages_are_messages),
        TEST(test_serve_f16_stalled_stream_holds_up_no_other_call),
        TEST(test_serve_undecodable_message_ends_the_call),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
