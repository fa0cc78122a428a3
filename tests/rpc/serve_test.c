/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streaming calls at the server: the three kinds, their events and their order, and how
 * they end.
 */

#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The three kinds */

static void echo(struct serving *s, struct bow_call *call)
{
    s->n_sent++;
    assert_int_equal(serve_send(call, s->n_sent), 0);
}

static void finish(struct serving *s, struct bow_call *call)
{
    s->rc = bow_call_finish(call);
}

static void test_serve_both_sends_what_it_receives(void **state)
{
    struct serving *s = *state;

    s->in_message = echo;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 100; i++) {
        serve_peer_send(s, 0, i);
    }
    session_peer_wait(&s->peer, &s->peer.n_messages, 100);
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 100);
    assert_int_equal(s->n_disordered, 0);
    assert_int_equal(s->n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 100);
    assert_int_equal(s->peer.last_number, 100);
    assert_int_equal(s->peer.n_disordered, 0);
    assert_int_equal(s->rc, 0);
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
}

static void sum_up(struct serving *s, struct bow_call *call)
{
    assert_int_equal(serve_send(call, 1), -EINVAL);
    assert_int_equal(bow_call_finish(call), -EINVAL);
    assert_false(bow_call_is_writable(call));
    s->rc = serve_reply(call, (uint64_t)s->n_messages);
}

static void test_serve_gather_replies_once(void **state)
{
    struct serving *s = *state;

    s->in_half_close = sum_up;
    serve_begin(s, SERVE_GATHER);
    for (uint64_t i = 1; i <= 10; i++) {
        serve_peer_send(s, i == 10 ? BOW__SEND_END : 0, i);
    }
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->rc, 0);
    assert_int_equal(s->peer.n_messages, 1);
    assert_int_equal(s->peer.last_number, 10);
}

static void pour(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    for (uint64_t i = 1; i <= 9; i++) {
        assert_int_equal(serve_send(call, i), 0);
    }
    s->rc = serve_reply(call, 10);
}

static void test_serve_pour_sends_many_for_one(void **state)
{
    struct serving *s = *state;

    s->enter = pour;
    session_peer_begin_stream(&s->peer, SERVE_POUR, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 77);
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->request_number, 77);
    assert_int_equal(s->peer.n_messages, 10);
    assert_int_equal(s->peer.n_disordered, 0);
    assert_int_equal(s->n_half_closes, 0);
    assert_int_equal(s->rc, 0);
}

static void test_serve_pour_without_a_message_is_not_run(void **state)
{
    struct serving *s = *state;

    session_peer_begin_stream(&s->peer, SERVE_POUR, BOW_NEVER, NULL);
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_INTERNAL, "none came");
    assert_int_equal(s->n_entered, 0);
}

static void test_serve_pour_with_a_second_message_is_not_run(void **state)
{
    struct serving *s = *state;

    session_peer_begin_stream(&s->peer, SERVE_POUR, BOW_NEVER, NULL);
    serve_peer_send(s, 0, 1);
    serve_peer_send(s, 0, 2);
    serve_expect_status(s, BOW_INTERNAL, "a second one came");
    assert_int_equal(s->n_entered, 0);
}

static void test_serve_pour_given_up_before_its_message_is_not_run(void **state)
{
    struct serving *s = *state;

    session_peer_begin_stream(&s->peer, SERVE_POUR, BOW_NEVER, NULL);
    session_peer_cancel(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
    assert_int_equal(s->n_entered, 0);
}

/* What functions say that are not for a kind of call, or come twice */

static void misuse_plain(struct serving *s, struct bow_call *call)
{
    (void)s;
    assert_int_equal(bow_call_listen(call, s, s), -EINVAL);
    assert_int_equal(serve_send(call, 1), -EINVAL);
    assert_int_equal(bow_call_finish(call), -EINVAL);
    assert_false(bow_call_is_writable(call));
    assert_ptr_equal(bow_call_ref(call), call);
    bow_call_unref(call);
    bow_call_pause(call);
    bow_call_resume(call);
    s->rc = serve_reply(call, 5);
}

static void test_serve_plain_is_no_stream(void **state)
{
    struct serving *s = *state;

    s->enter = misuse_plain;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->rc, 0);
    assert_int_equal(s->peer.last_number, 5);
}

static void misuse_both(struct serving *s, struct bow_call *call)
{
    Calls__Request wrong = CALLS__REQUEST__INIT;

    serve_listen(s, call);
    assert_int_equal(bow_call_listen(call, s, s), -EALREADY);
    assert_int_equal(bow_call_send(call, &wrong.base), -EINVAL);
    assert_int_equal(bow_call_send(call, NULL), -EINVAL);
    assert_int_equal(serve_send(call, 1), 0);
    assert_int_equal(bow_call_finish(call), 0);
    assert_int_equal(serve_send(call, 2), -ECANCELED);
    assert_int_equal(bow_call_finish(call), -ECANCELED);
    assert_int_equal(serve_reply(call, 3), -ECANCELED);
    assert_int_equal(bow_call_fail(call, BOW_ABORTED, "late"), -ECANCELED);
    assert_false(bow_call_is_writable(call));
}

static void test_serve_both_after_its_end_says_so(void **state)
{
    struct serving *s = *state;

    s->enter = misuse_both;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 1);
}

static void reply_wrongly(struct serving *s, struct bow_call *call)
{
    Calls__Request wrong = CALLS__REQUEST__INIT;

    s->rc = bow_call_reply(call, &wrong.base);
}

static void test_serve_reply_of_another_type_is_internal(void **state)
{
    struct serving *s = *state;

    s->in_half_close = reply_wrongly;
    serve_begin(s, SERVE_GATHER);
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_INTERNAL, "calls.Reply");
    serve_expect_closed(s, BOW_INTERNAL, "calls.Reply");
    assert_int_equal(s->rc, -EINVAL);
}

/* Order */

static void nap(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    bow_call_pause(call);
    assert_int_equal(s->n_messages + s->n_half_closes + s->n_closed, 0);
    (void)bow_call_finish(call);
    assert_int_equal(s->n_messages + s->n_half_closes + s->n_closed, 0);
}

static void test_serve_no_event_comes_from_inside_a_function(void **state)
{
    struct serving *s = *state;

    s->enter = nap;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
}

static void stop(struct serving *s, struct bow_call *call)
{
    (void)s;
    bow_call_pause(call);
}

static void resume(struct serving *s)
{
    int before = serve_count(s, &s->n_messages);

    bow_call_resume(s->call);
    assert_int_equal(serve_count(s, &s->n_messages), before);
}

static void look(struct serving *s)
{
    (void)s;
}

static void test_serve_pause_stops_at_once_and_resume_goes_on(void **state)
{
    struct serving *s = *state;

    s->in_message = stop;
    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    serve_peer_send(s, 0, 2);
    serve_peer_send(s, BOW__SEND_END, 3);
    for (int i = 1; i <= 3; i++) {
        serve_wait(s, &s->n_messages, i);
        serve_on_loop(s, look);
        assert_int_equal(s->n_messages, i);
        assert_int_equal(s->n_half_closes, 0);
        serve_on_loop(s, resume);
    }
    serve_wait(s, &s->n_half_closes, 1);
    assert_int_equal(s->n_disordered, 0);
}

static void let_wait(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void listen_late(struct serving *s)
{
    serve_listen(s, s->call);
    assert_int_equal(s->n_messages, 0);
}

static void test_serve_messages_wait_for_who_listens(void **state)
{
    struct serving *s = *state;

    s->enter = let_wait;
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 5; i++) {
        serve_peer_send(s, 0, i);
    }
    session_peer_half_close(&s->peer);
    serve_on_loop(s, look);
    serve_on_loop(s, listen_late);
    serve_wait(s, &s->n_half_closes, 1);
    assert_int_equal(s->n_messages, 5);
    assert_int_equal(s->n_disordered, 0);
}

/* Nobody listens, so no credit comes back: the window and one message, no more. */
static void test_serve_messages_that_wait_are_bounded_by_the_window(void **state)
{
    struct serving *s = *state;
    const struct bow__session_ops *ops = s->peer.session->ops;

    s->enter = let_wait;
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 64; i++) {
        serve_peer_send_sized(s, 0, i, 16 << 10);
    }
    while (session_peer_serve(&s->peer, 50)) {
    }
    size_t held_back = ops->queued(s->peer.session, s->peer.key);
    assert_true(held_back > 0);
    assert_true(bow_context_bytes(s->t->context) < ((size_t)3 << 20));
    serve_on_loop(s, listen_late);
    serve_wait_serving(s, &s->n_messages, 64);
    assert_int_equal(s->n_disordered, 0);
}

/* The end */

static void fail_at_once(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    s->rc = bow_call_fail(call, BOW_NOT_FOUND, "no %s here", "such thing");
}

static void test_serve_fail_tells_both_sides(void **state)
{
    struct serving *s = *state;

    s->enter = fail_at_once;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_NOT_FOUND, "no such thing here");
    serve_expect_closed(s, BOW_NOT_FOUND, "no such thing here");
    assert_int_equal(s->rc, 0);
}

static void fail_with_details(struct serving *s, struct bow_call *call)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    serve_listen(s, call);
    status.code = BOW_ABORTED;
    status.message = "in detail";
    status.details = (struct bow_slice){(const uint8_t *)"detail", 6};
    s->rc = bow_call_fail_status(call, &status);
}

static void test_serve_fail_status_brings_details(void **state)
{
    struct serving *s = *state;

    s->enter = fail_with_details;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_ABORTED, "in detail");
    assert_string_equal(s->peer.details, "detail");
    serve_expect_closed(s, BOW_ABORTED, "in detail");
}

static void end_unheard(struct serving *s, struct bow_call *call)
{
    s->rc = bow_call_finish(call);
}

static void test_serve_handler_that_never_listens_is_let_go(void **state)
{
    struct serving *s = *state;

    s->enter = end_unheard;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_closed, 0);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
}

static void keep(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    bow_call_ref(call);
}

static void test_serve_reference_keeps_an_ended_call(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    serve_begin(s, SERVE_BOTH);
    session_peer_cancel(&s->peer);
    serve_expect_closed(s, BOW_CANCELLED, "");
    assert_int_equal(serve_send(s->call, 1), -ECANCELED);
    assert_int_equal(bow_call_finish(s->call), -ECANCELED);
    assert_false(bow_call_is_writable(s->call));
    assert_true(bow_call_is_cancelled(s->call));
    assert_string_equal(bow_call_path(s->call), SERVE_BOTH);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 1);
    bow_call_unref(s->call);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
}

static void test_serve_reference_outlives_the_server(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    serve_begin(s, SERVE_BOTH);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    assert_int_equal(s->n_closed, 1); /* before the server was gone */
    assert_int_equal(s->code, BOW_UNAVAILABLE);
    assert_int_equal(serve_send(s->call, 1), -ECANCELED);
    bow_call_unref(s->call);
}

/* On a loop of the server's, which is told so until the server has stopped. */
static void join_from_inside(struct serving *s, struct bow_call *call)
{
    (void)call;
    s->rc = bow_server_join(s->t->server);
}

/* On a loop that goes on: nothing else would wait for the event. */
static void test_serve_stops_after_the_last_event(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.loop = s->t->loop;
    serve_start(s, &options);
    serve_connect(s);
    s->in_closed = join_from_inside;
    serve_begin(s, SERVE_BOTH);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    assert_int_equal(serve_count(s, &s->n_closed), 1);
    assert_int_equal(s->rc, -EDEADLK);
}

/* Who has had the GOAWAY is all that the server still waits for; its connection goes first, and the
 * event comes later in the same turn. */
static void test_serve_f29_stops_after_the_last_event_of_a_lost_connection(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.grace_ns = BOW_NEVER;
    serve_start(s, &options);
    serve_connect(s);
    s->in_closed = join_from_inside;
    serve_begin(s, SERVE_BOTH);
    bow_server_stop(s->t->server);
    session_peer_wait(&s->peer, &s->peer.n_goaways, 1);
    session_peer_end(&s->peer);
    s->has_peer = false;
    serve_expect_closed(s, BOW_UNAVAILABLE, "");
    assert_int_equal(s->rc, -EDEADLK);
    assert_int_equal(bow_server_join(s->t->server), 0);
}

static void test_serve_cancelled_by_the_client_is_closed_so(void **state)
{
    struct serving *s = *state;

    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    session_peer_cancel(&s->peer);
    serve_expect_closed(s, BOW_CANCELLED, "");
    assert_int_equal(s->n_half_closes, 0);
}

static void test_serve_lost_connection_closes_as_unavailable(void **state)
{
    struct serving *s = *state;

    serve_begin(s, SERVE_BOTH);
    session_peer_end(&s->peer);
    s->has_peer = false;
    serve_expect_closed(s, BOW_UNAVAILABLE, "");
}

static void test_serve_paused_is_closed_all_the_same(void **state)
{
    struct serving *s = *state;

    s->in_message = stop;
    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    serve_wait(s, &s->n_messages, 1);
    serve_peer_send(s, 0, 2);
    session_peer_cancel(&s->peer);
    serve_expect_closed(s, BOW_CANCELLED, "");
    assert_int_equal(s->n_messages, 1);
}

/* Deadlines */

static void test_serve_deadline_closes_the_call(void **state)
{
    struct serving *s = *state;

    session_peer_begin_stream(&s->peer, SERVE_BOTH, 20 * MS, NULL);
    serve_wait(s, &s->n_entered, 1);
    serve_expect_closed(s, BOW_DEADLINE_EXCEEDED, "in the handler of");
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "");
}

static void hold_past_the_deadline(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    calls_hold_loop(40 * MS);
    s->rc = bow_call_finish(call);
}

static void test_serve_finish_after_the_deadline_is_too_late(void **state)
{
    struct serving *s = *state;

    s->enter = hold_past_the_deadline;
    session_peer_begin_stream(&s->peer, SERVE_BOTH, 20 * MS, NULL);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "");
    serve_expect_closed(s, BOW_DEADLINE_EXCEEDED, "");
    assert_int_equal(s->rc, -ECANCELED);
}

static void see_no_deadline(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    assert_true(bow_call_deadline(call) == BOW_NEVER);
    calls_hold_loop(5 * MS);
    s->rc = bow_call_finish(call);
}

static void test_serve_without_a_deadline_has_none(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_deadline_ns = MS;
    serve_start(s, &options);
    serve_connect(s);
    s->enter = see_no_deadline;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->rc, 0);
}

static void test_serve_expired_on_arrival_is_not_run(void **state)
{
    struct serving *s = *state;

    if (calls_is_grpc()) {
        skip(); /* a time-out is positive there */
    }
    session_peer_begin_stream(&s->peer, SERVE_BOTH, 0, NULL);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "");
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 1);
}

/* Drain */

static void test_serve_drain_waits_for_streams(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.grace_ns = 20000 * MS;
    serve_start(s, &options);
    serve_connect(s);
    s->in_message = echo;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    bow_server_stop(s->t->server);
    serve_on_loop(s, look);
    for (uint64_t i = 1; i <= 3; i++) {
        serve_peer_send(s, 0, i);
    }
    session_peer_wait(&s->peer, &s->peer.n_messages, 3);
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(bow_server_join(s->t->server), 0);
    assert_int_equal(s->n_closed, 1);
}

/* The peer's PING answer goes before its message: who has that one has said its last GOAWAY. */
static void test_serve_f29_drain_that_is_over_waits_for_streams(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.grace_ns = BOW_NEVER;
    serve_start(s, &options);
    serve_connect(s);
    s->in_message = echo;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    bow_server_stop(s->t->server);
    session_peer_wait(&s->peer, &s->peer.n_goaways, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        serve_peer_send(s, 0, i);
        session_peer_wait(&s->peer, &s->peer.n_messages, (int)i);
    }
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(bow_server_join(s->t->server), 0);
    assert_int_equal(s->n_closed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_serve_both_sends_what_it_receives),
        TEST(test_serve_gather_replies_once),
        TEST(test_serve_pour_sends_many_for_one),
        TEST(test_serve_pour_without_a_message_is_not_run),
        TEST(test_serve_pour_with_a_second_message_is_not_run),
        TEST(test_serve_pour_given_up_before_its_message_is_not_run),
        TEST(test_serve_plain_is_no_stream),
        TEST(test_serve_both_after_its_end_says_so),
        TEST(test_serve_reply_of_another_type_is_internal),
        TEST(test_serve_no_event_comes_from_inside_a_function),
        TEST(test_serve_pause_stops_at_once_and_resume_goes_on),
        TEST(test_serve_messages_wait_for_who_listens),
        TEST(test_serve_messages_that_wait_are_bounded_by_the_window),
        TEST(test_serve_fail_tells_both_sides),
        TEST(test_serve_fail_status_brings_details),
        TEST(test_serve_handler_that_never_listens_is_let_go),
        TEST(test_serve_reference_keeps_an_ended_call),
        TEST(test_serve_reference_outlives_the_server),
        BARE(test_serve_stops_after_the_last_event),
        BARE(test_serve_f29_stops_after_the_last_event_of_a_lost_connection),
        TEST(test_serve_cancelled_by_the_client_is_closed_so),
        TEST(test_serve_lost_connection_closes_as_unavailable),
        TEST(test_serve_paused_is_closed_all_the_same),
        TEST(test_serve_deadline_closes_the_call),
        TEST(test_serve_finish_after_the_deadline_is_too_late),
        BARE(test_serve_without_a_deadline_has_none),
        TEST(test_serve_expired_on_arrival_is_not_run),
        BARE(test_serve_drain_waits_for_streams),
        BARE(test_serve_f29_drain_that_is_over_waits_for_streams),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
