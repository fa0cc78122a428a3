/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that a server's interceptor holds, and decides on later: what becomes of messages
 * meanwhile, and of calls that end while they are held.
 */

#include "intercept_spy.h"
#include "serve_fixture.h"

#include <bowline/channel.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The first of two holds each call, unless a test says otherwise. */
static struct spies *spies;

static void watch_two(struct serving *s)
{
    spies->spies[0].in_start = spy_hold;
    /* More than a call has at hand: memory of its own, which a sanitizer sees go. */
    spies->interceptors[1].state_bytes = BOW_INTERCEPTOR_STATE_BYTES;
    spies_watch_server(spies, s->t->server, 2);
}

static int setup(void **state)
{
    struct bow_server_options options;

    serve_setup_bare(state);
    struct serving *s = *state;
    spies = spies_new(s->t);
    s->before_start = watch_two;
    calls_server_options(s->t, &options);
    serve_start(s, &options);
    serve_connect(s);
    return 0;
}

static void end_peer(struct serving *s)
{
    if (s->has_peer) {
        session_peer_end(&s->peer);
        s->has_peer = false;
    }
}

static int teardown(void **state)
{
    struct serving *s = *state;

    end_peer(s);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    spies_free(spies, 1);
    return serve_teardown(state);
}

/* Begin a call that is held, with so many messages behind it. */
static void begin_held(struct serving *s, const char *path, uint64_t time_left_ns, uint64_t n)
{
    session_peer_begin_stream(&s->peer, path, time_left_ns, NULL);
    for (uint64_t i = 1; i <= n; i++) {
        serve_peer_send(s, 0, i);
    }
    session_peer_flush(&s->peer);
    spies_wait_starts(spies, 0, 1);
}

/* Whatever the loop has to do for what has come, it has done. */
static void nothing(struct spy *spy)
{
    (void)spy;
}

static void reply(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 300);
}

static void expect_not_entered(struct serving *s)
{
    assert_int_equal(serve_count(s, &s->n_entered), 0);
    spies_expect_log(spies, "a+ ");
}

/* Going on */

static void test_hold_unary_call_goes_on_with_its_request(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    begin_held(s, SERVE_PLAIN, BOW_NEVER, 0);
    serve_peer_send(s, BOW__SEND_END, 7);
    session_peer_flush(&s->peer);
    spies_on_loop(spies, 0, nothing);
    expect_not_entered(s);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->request_number, 7);
    assert_int_equal(spies->spies[0].rc, 0);
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>3 a>3 b-OK a-OK ");
}

static void test_hold_unary_call_goes_on_before_its_request(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    begin_held(s, SERVE_PLAIN, BOW_NEVER, 0);
    spies_on_loop(spies, 0, spy_proceed);
    spies_wait_starts(spies, 1, 1);
    serve_peer_send(s, BOW__SEND_END, 7);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->request_number, 7);
}

static void test_hold_end_of_requests_is_kept(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    begin_held(s, SERVE_PLAIN, BOW_NEVER, 1);
    session_peer_half_close(&s->peer);
    session_peer_flush(&s->peer);
    spies_on_loop(spies, 0, nothing);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->request_number, 1);
}

static void test_hold_without_a_request_is_an_error_afterwards(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_PLAIN, BOW_NEVER, 0);
    session_peer_half_close(&s->peer);
    session_peer_flush(&s->peer);
    spies_on_loop(spies, 0, nothing);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_INTERNAL, "none came");
    assert_int_equal(s->n_entered, 0);
}

static void test_hold_two_requests_are_an_error_afterwards(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_PLAIN, BOW_NEVER, 3);
    spies_on_loop(spies, 0, nothing);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_INTERNAL, "a second one came");
    assert_int_equal(s->n_entered, 0);
}

static void test_hold_stream_goes_on_with_its_messages(void **state)
{
    struct serving *s = *state;

    s->in_half_close = reply;
    begin_held(s, SERVE_GATHER, BOW_NEVER, 3);
    serve_peer_send(s, BOW__SEND_END, 4);
    session_peer_flush(&s->peer);
    spies_on_loop(spies, 0, nothing);
    expect_not_entered(s);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 4);
    assert_int_equal(s->n_disordered, 0);
    assert_int_equal(s->n_half_closes, 1);
}

static void fail_at_once(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)bow_call_fail(call, BOW_ABORTED, "at once");
}

static void test_hold_messages_of_a_call_that_ends_at_its_entry_are_dropped(void **state)
{
    struct serving *s = *state;

    s->enter = fail_at_once;
    begin_held(s, SERVE_BOTH, BOW_NEVER, 3);
    spies_on_loop(spies, 0, nothing);
    spies_on_loop(spies, 0, spy_proceed);
    serve_expect_status(s, BOW_ABORTED, "at once");
    assert_int_equal(s->n_messages, 0);
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ b-ABORTED a-ABORTED ");
}

static void hold_and_proceed(struct spy *spy, struct bow_interception *at)
{
    assert_int_equal(bow_interception_hold(at), 0);
    assert_int_equal(bow_interception_hold(at), -EINVAL);
    spy->rc = bow_interception_proceed(at);
}

static void test_hold_and_proceed_at_once_is_nothing(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    spies->spies[0].in_start = hold_and_proceed;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(spies->spies[0].rc, 0);
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>3 a>3 b-OK a-OK ");
}

static void test_hold_by_one_after_the_other(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    spies->spies[1].in_start = spy_hold;
    begin_held(s, SERVE_PLAIN, BOW_NEVER, 0);
    serve_peer_send(s, BOW__SEND_END, 1);
    session_peer_flush(&s->peer);
    spies_on_loop(spies, 0, spy_proceed);
    spies_wait_starts(spies, 1, 1);
    /* The first has had its say, and lets nothing past the second. */
    spies_on_loop(spies, 0, spy_proceed);
    assert_int_equal(spies->spies[0].rc, -EINVAL);
    spies_on_loop(spies, 0, spy_refuse_held);
    assert_int_equal(spies->spies[0].rc, -EINVAL);
    assert_int_equal(serve_count(s, &s->n_entered), 0);
    spies_on_loop(spies, 1, spy_proceed);
    serve_expect_status(s, BOW_OK, "");
}

/* Refusing */

static void test_hold_refused_call_runs_no_handler(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_BOTH, BOW_NEVER, 3);
    spies_on_loop(spies, 0, spy_refuse_held);
    serve_expect_status(s, BOW_UNAUTHENTICATED, "a thought better of it");
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ a-UNAUTHENTICATED ");
    assert_true(spies->spies[0].end.refused);
    assert_int_equal(s->n_entered, 0);
}

static void decide_twice(struct spy *spy)
{
    assert_int_equal(bow_interception_refuse(spy->at, BOW_ABORTED, "first"), 0);
    assert_int_equal(bow_interception_proceed(spy->at), -EINVAL);
    spy->rc = bow_interception_refuse(spy->at, BOW_ABORTED, "second");
}

static void test_hold_is_decided_once(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_PLAIN, BOW_NEVER, 0);
    spies_on_loop(spies, 0, decide_twice);
    serve_expect_status(s, BOW_ABORTED, "first");
    assert_int_equal(spies->spies[0].rc, -EINVAL);
}

/* Ending meanwhile */

static void test_hold_cancelled_call_ends_once(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_BOTH, BOW_NEVER, 3);
    session_peer_cancel(&s->peer);
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ a-CANCELLED ");
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
}

static void test_hold_expired_call_is_answered(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_PLAIN, 30 * MS, 1);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "held by the interceptor \"a\"");
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ a-DEADLINE_EXCEEDED ");
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 1);
}

static void test_hold_call_of_a_lost_connection_ends_once(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_BOTH, BOW_NEVER, 3);
    end_peer(s);
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_ends, 1);
    assert_int_equal(s->n_entered, 0);
}

static void test_hold_call_of_a_server_that_stops_ends_once(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_PLAIN, BOW_NEVER, 1);
    bow_server_stop(s->t->server);
    s->peer.may_be_lost = true;
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_ends, 1);
    assert_int_equal(s->n_entered, 0);
}

/* Decided, and gone before that is done: the connection goes first, in the same turn. */
static void proceed_and_lose(struct spy *spy)
{
    bow_channel_close(bow_call_channel(bow_interception_call(spy->at)), 0);
    spy->rc = bow_interception_proceed(spy->at);
}

static void test_hold_call_that_is_lost_as_it_goes_on_ends_once(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_BOTH, BOW_NEVER, 3);
    s->peer.may_be_lost = true;
    spies_on_loop(spies, 0, proceed_and_lose);
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_ends, 1);
    assert_int_equal(spies->spies[0].rc, 0);
}

/* Memory */

#define PIECE_BYTES ((size_t)8 << 10)
#define MANY_PIECES 128 /* a megabyte: a stream's window is 64 KiB, or 256 */

static void test_hold_withholds_the_credit_of_messages(void **state)
{
    struct serving *s = *state;

    begin_held(s, SERVE_GATHER, BOW_NEVER, 0);
    s->in_half_close = reply;
    size_t before = bow_context_bytes(s->t->context);
    for (int i = 1; i <= MANY_PIECES; i++) {
        serve_peer_send_sized(s, i == MANY_PIECES ? BOW__SEND_END : 0, (uint64_t)i, PIECE_BYTES);
        (void)session_peer_serve(&s->peer, 0);
    }
    for (int i = 0; i < 20; i++) {
        (void)session_peer_serve(&s->peer, 1);
    }
    assert_true(s->peer.session->ops->queued(s->peer.session, s->peer.key) > 512u << 10);
    spies_on_loop(spies, 0, nothing);
    assert_true(bow_context_bytes(s->t->context) - before < 384u << 10);
    spies_on_loop(spies, 0, spy_proceed);
    serve_wait_serving(s, &s->n_messages, MANY_PIECES);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_disordered, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hold_unary_call_goes_on_with_its_request),
        TEST(test_hold_unary_call_goes_on_before_its_request),
        TEST(test_hold_end_of_requests_is_kept),
        TEST(test_hold_without_a_request_is_an_error_afterwards),
        TEST(test_hold_two_requests_are_an_error_afterwards),
        TEST(test_hold_stream_goes_on_with_its_messages),
        TEST(test_hold_messages_of_a_call_that_ends_at_its_entry_are_dropped),
        TEST(test_hold_and_proceed_at_once_is_nothing),
        TEST(test_hold_by_one_after_the_other),
        TEST(test_hold_refused_call_runs_no_handler),
        TEST(test_hold_is_decided_once),
        TEST(test_hold_cancelled_call_ends_once),
        TEST(test_hold_expired_call_is_answered),
        TEST(test_hold_call_of_a_lost_connection_ends_once),
        TEST(test_hold_call_of_a_server_that_stops_ends_once),
        TEST(test_hold_call_that_is_lost_as_it_goes_on_ends_once),
        TEST(test_hold_withholds_the_credit_of_messages),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
