/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's interceptors, over calls of each kind: their order, refusing, holding, what they
 * see and add, and that each sees one end.
 */

#include "intercept_spy.h"
#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bow_slice text(const char *value)
{
    return (struct bow_slice){(const uint8_t *)value, strlen(value)};
}

/* The fixture's state is the struct serving; who watches it is here, one test at a time. */
static struct spies *spies;

static void watch_two(struct serving *s)
{
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

static int teardown(void **state)
{
    struct serving *s = *state;

    if (s->has_peer) {
        session_peer_end(&s->peer);
        s->has_peer = false;
    }
    bow_server_free(s->t->server);
    s->t->server = NULL;
    spies_free(spies, 1);
    return serve_teardown(state);
}

/* What they see */

static void reply(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 300);
}

static void test_intercept_unary_call_passes_in_order(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>3 a>3 b-OK a-OK ");
}

static void test_intercept_client_stream_passes_in_order(void **state)
{
    struct serving *s = *state;

    s->in_half_close = reply;
    serve_begin(s, SERVE_GATHER);
    serve_peer_send(s, 0, 1);
    serve_peer_send(s, BOW__SEND_END, 2);
    serve_expect_status(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a<2 b<2 a<2 b<2 b>3 a>3 b-OK a-OK ");
}

static void send_two(struct serving *s, struct bow_call *call)
{
    (void)s;
    assert_int_equal(serve_send(call, 1), 0);
    assert_int_equal(serve_send_sized(call, 2, 200), 0);
    assert_int_equal(bow_call_finish(call), 0);
}

static void test_intercept_server_stream_passes_in_order(void **state)
{
    struct serving *s = *state;

    s->enter = send_two;
    serve_begin(s, SERVE_POUR);
    serve_expect_status(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>2 a>2 b>205 a>205 b-OK a-OK ");
}

static void answer_each(struct serving *s, struct bow_call *call)
{
    (void)s;
    assert_int_equal(serve_send(call, 5), 0);
}

static void finish(struct serving *s, struct bow_call *call)
{
    s->rc = bow_call_finish(call);
}

static void test_intercept_both_streams_pass_in_order(void **state)
{
    struct serving *s = *state;

    s->in_message = answer_each;
    s->in_half_close = finish;
    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    serve_peer_send(s, BOW__SEND_END, 2);
    serve_expect_status(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>2 a>2 a<2 b<2 b>2 a>2 b-OK a-OK ");
    assert_int_equal(spies->spies[0].end.messages_received, 2);
    assert_int_equal(spies->spies[0].end.messages_sent, 2);
    assert_int_equal(spies->spies[0].end.bytes_received, 4);
    assert_int_equal(spies->spies[0].end.bytes_sent, 4);
    assert_false(spies->spies[0].end.refused);
}

static void send_payload(struct serving *s, struct bow_call *call)
{
    const Calls__Reply message = CALLS__REPLY__INIT;
    struct bow_payload *small = NULL;

    (void)s;
    assert_int_equal(bow_payload_new(s->t->context, &message.base, &small), 0);
    assert_int_equal(bow_call_send_payload(call, small), 0);
    bow_payload_unref(small);
    assert_int_equal(bow_call_fail(call, BOW_ABORTED, "enough"), 0);
}

static void test_intercept_sees_payloads_and_errors(void **state)
{
    struct serving *s = *state;

    s->enter = send_payload;
    serve_begin(s, SERVE_POUR);
    serve_expect_status(s, BOW_ABORTED, "enough");
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>0 a>0 b-ABORTED a-ABORTED ");
    assert_string_equal(spies->spies[0].text, "enough");
}

static void ask(struct spy *spy, struct bow_interception *at)
{
    struct bow_metadata metadata = bow_interception_metadata(at);
    const struct bow_slice *who = bow_metadata_find(&metadata, "who");

    assert_string_equal(bow_interception_method(at)->path, SERVE_PLAIN);
    assert_string_equal(bow_interception_protocol(at), calls_is_grpc() ? "grpc" : "native");
    assert_string_equal(bow_interception_peer(at), bow_call_peer(bow_interception_call(at)));
    assert_false(bow_interception_is_secure(at));
    uint64_t left = bow_interception_deadline(at) - bow_loop_now(bow_interception_loop(at));
    assert_true(left > 4000 * MS && left <= 5000 * MS);
    assert_non_null(who);
    assert_string_equal((const char *)who->data, "anna");
    spy->rc = 1;
}

static void test_intercept_is_told_what_the_call_is(void **state)
{
    const struct bow_metadata_entry entries[] = {{"who", {(const uint8_t *)"anna", 4}}};
    const struct bow_metadata metadata = {entries, 1};
    struct serving *s = *state;

    s->enter = reply;
    spies->spies[1].in_start = ask;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, 5000 * MS, &metadata);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_OK, "");
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[1].rc, 1);
    assert_true(spies->spies[0].end.deadline_left_ns > 4000 * MS);
    assert_true(spies->spies[0].end.deadline_left_ns <= 5000 * MS);
    assert_true(spies->spies[0].end.elapsed_ns < 5000 * MS);
}

/* Refusing */

static void expect_refused(struct serving *s, const char *path)
{
    spies->spies[1].in_start = spy_refuse;
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    serve_peer_send(s, 0, 1);
    serve_expect_status(s, BOW_PERMISSION_DENIED, "b says no");
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ b-PERMISSION_DENIED a-PERMISSION_DENIED ");
    assert_true(spies->spies[0].end.refused);
    assert_int_equal(s->n_entered, 0);
}

static void test_intercept_refused_unary_call_runs_no_handler(void **state)
{
    expect_refused(*state, SERVE_PLAIN);
}

static void test_intercept_refused_client_stream_runs_no_handler(void **state)
{
    expect_refused(*state, SERVE_GATHER);
}

static void test_intercept_refused_server_stream_runs_no_handler(void **state)
{
    expect_refused(*state, SERVE_POUR);
}

static void test_intercept_refused_both_streams_run_no_handler(void **state)
{
    expect_refused(*state, SERVE_BOTH);
}

static void test_intercept_refused_by_the_first_is_not_shown_to_the_second(void **state)
{
    struct serving *s = *state;

    spies->spies[0].in_start = spy_refuse;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_expect_status(s, BOW_PERMISSION_DENIED, "a says no");
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ a-PERMISSION_DENIED ");
}

static void refuse_whole(struct spy *spy, struct bow_interception *at)
{
    const struct bow_metadata_entry entries[] = {{"why", {(const uint8_t *)"rules", 5}}};
    struct bow_status status = BOW_STATUS_OK_INIT;

    (void)spy;
    assert_int_equal(bow_interception_add_initial(at, "first", text("i")), 0);
    assert_int_equal(bow_interception_add_trailing(at, "last", text("t")), 0);
    status.code = BOW_RESOURCE_EXHAUSTED;
    status.message = "quota";
    status.details = text("details");
    status.metadata = (struct bow_metadata){entries, 1};
    assert_int_equal(bow_interception_refuse_status(at, &status), 0);
}

static void test_intercept_refusal_carries_a_whole_status(void **state)
{
    struct serving *s = *state;

    spies->spies[1].in_start = refuse_whole;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "quota");
    assert_string_equal(s->peer.details, "details");
    assert_string_equal(s->peer.trailing, "last=t;why=rules;");
    assert_string_equal(s->peer.initial, "first=i;");
}

static void refuse_ok(struct spy *spy, struct bow_interception *at)
{
    spy->rc = bow_interception_refuse(at, BOW_OK, "fine");
}

static void test_intercept_refusal_with_ok_is_an_error(void **state)
{
    struct serving *s = *state;

    spies->spies[0].in_start = refuse_ok;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_expect_status(s, BOW_INTERNAL, "code OK");
}

static void test_intercept_refused_request_runs_no_handler(void **state)
{
    struct serving *s = *state;

    spies->spies[0].in_message = spy_refuse_message;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_INVALID_ARGUMENT, "a takes no message");
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ a<2 b-INVALID_ARGUMENT a-INVALID_ARGUMENT ");
    assert_int_equal(s->n_entered, 0);
}

static void test_intercept_refused_message_ends_the_stream(void **state)
{
    struct serving *s = *state;

    spies->spies[0].in_message = spy_refuse_message;
    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    serve_expect_status(s, BOW_INVALID_ARGUMENT, "a takes no message");
    serve_expect_closed(s, BOW_INVALID_ARGUMENT, "a takes no message");
    assert_int_equal(s->n_messages, 0);
    spies_expect_log(spies, "a+ b+ a<2 b-INVALID_ARGUMENT a-INVALID_ARGUMENT ");
}

/* Adding */

static void add(struct spy *spy, struct bow_interception *at)
{
    assert_int_equal(bow_interception_add_initial(at, spy->name, text("first")), 0);
    assert_int_equal(bow_interception_add_trailing(at, spy->name, text("last")), 0);
    assert_int_equal(bow_interception_add_request(at, "x", text("y")), -EINVAL);
    assert_int_equal(bow_interception_add_initial(at, "NO", text("y")), -EINVAL);
}

static void test_intercept_adds_metadata(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    spies->spies[0].in_start = add;
    spies->spies[1].in_start = add;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    assert_string_equal(s->peer.initial, "a=first;b=first;");
    assert_string_equal(s->peer.trailing, "a=last;b=last;");
    assert_string_equal(spies->spies[0].trailing, "a=last");
}

static void add_late(struct spy *spy, struct bow_interception *at,
                     const struct bow_intercepted_message *message)
{
    (void)spy;
    (void)message;
    assert_int_equal(bow_interception_add_initial(at, "late", text("x")), -EINVAL);
    assert_int_equal(bow_interception_add_trailing(at, "late", text("x")), -EINVAL);
    assert_int_equal(bow_interception_hold(at), -EINVAL);
    assert_int_equal(bow_interception_proceed(at), -EINVAL);
    if (message->sent) {
        assert_int_equal(bow_interception_refuse(at, BOW_ABORTED, "late"), -EINVAL);
    }
}

static void decide_at_the_end(struct spy *spy, struct bow_interception *at)
{
    (void)spy;
    assert_int_equal(bow_interception_hold(at), -EINVAL);
    assert_int_equal(bow_interception_proceed(at), -EINVAL);
    assert_int_equal(bow_interception_refuse(at, BOW_ABORTED, "late"), -EINVAL);
    assert_int_equal(bow_interception_add_trailing(at, "late", text("x")), -EINVAL);
}

static void test_intercept_decides_nothing_once_the_call_goes_on(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    spies->spies[0].in_message = add_late;
    spies->spies[1].in_message = add_late;
    spies->spies[0].in_end = decide_at_the_end;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    assert_string_equal(s->peer.initial, "");
    assert_string_equal(s->peer.trailing, "");
}

/* The end */

static void nothing(struct spy *spy)
{
    (void)spy;
}

static void keep(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void test_intercept_cancelled_call_ends_once(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    serve_begin(s, SERVE_PLAIN);
    session_peer_cancel(&s->peer);
    spies_wait_ends(spies, 0, 1);
    spies_expect_log(spies, "a+ b+ a<2 b<2 b-CANCELLED a-CANCELLED ");
    spies_on_loop(spies, 0, nothing); /* the rest of the cancel has been done */
    assert_int_equal(serve_reply(s->call, 1), -ECANCELED);
    spies_expect_log(spies, "a+ b+ a<2 b<2 b-CANCELLED a-CANCELLED ");
}

static void test_intercept_call_answered_on_another_thread_ends_once(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    serve_begin(s, SERVE_PLAIN);
    assert_int_equal(serve_reply(s->call, 300), 0);
    serve_expect_status(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a<2 b<2 b>3 a>3 b-OK a-OK ");
}

static void test_intercept_call_past_its_deadline_ends_once(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, 400 * MS, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_wait(s, &s->n_entered, 1);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "in the handler");
    spies_wait_ends(spies, 0, 1);
    spies_on_loop(spies, 0, nothing);
    assert_int_equal(spies->spies[0].end.deadline_left_ns, 0);
    assert_true(spies->spies[0].end.elapsed_ns >= 400 * MS);
    assert_int_equal(serve_reply(s->call, 1), -ECANCELED);
    spies_expect_log(spies, "a+ b+ a<2 b<2 b-DEADLINE_EXCEEDED a-DEADLINE_EXCEEDED ");
}

static void test_intercept_stream_of_a_lost_connection_ends_once(void **state)
{
    struct serving *s = *state;

    serve_begin(s, SERVE_BOTH);
    session_peer_end(&s->peer);
    s->has_peer = false;
    serve_wait(s, &s->n_closed, 1);
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_ends, 1);
    assert_int_equal(spies->spies[1].n_ends, 1);
}

/* Registration */

static void test_intercept_registration_is_checked(void **state)
{
    struct serving *s = *state;
    struct bow_interceptor wrong = BOW_INTERCEPTOR_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    wrong.name = "late";
    assert_int_equal(bow_server_intercept(s->t->server, &wrong), -EBUSY);
    options.context = s->t->context;
    assert_int_equal(bow_server_new(&options, &server), 0);
    wrong.name = NULL;
    assert_int_equal(bow_server_intercept(server, &wrong), -EINVAL);
    assert_non_null(strstr(bow_server_error(server), "interceptor 1 has no name"));
    assert_int_equal(bow_server_intercept(server, NULL), -EINVAL);
    wrong.name = "greedy";
    wrong.state_bytes = BOW_INTERCEPTOR_STATE_BYTES + 1;
    assert_int_equal(bow_server_intercept(server, &wrong), -EINVAL);
    wrong.state_bytes = 0;
    wrong.size++;
    assert_int_equal(bow_server_intercept(server, &wrong), -EINVAL);
    bow_server_free(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_intercept_unary_call_passes_in_order),
        TEST(test_intercept_client_stream_passes_in_order),
        TEST(test_intercept_server_stream_passes_in_order),
        TEST(test_intercept_both_streams_pass_in_order),
        TEST(test_intercept_sees_payloads_and_errors),
        TEST(test_intercept_is_told_what_the_call_is),
        TEST(test_intercept_refused_unary_call_runs_no_handler),
        TEST(test_intercept_refused_client_stream_runs_no_handler),
        TEST(test_intercept_refused_server_stream_runs_no_handler),
        TEST(test_intercept_refused_both_streams_run_no_handler),
        TEST(test_intercept_refused_by_the_first_is_not_shown_to_the_second),
        TEST(test_intercept_refusal_carries_a_whole_status),
        TEST(test_intercept_refusal_with_ok_is_an_error),
        TEST(test_intercept_refused_request_runs_no_handler),
        TEST(test_intercept_refused_message_ends_the_stream),
        TEST(test_intercept_adds_metadata),
        TEST(test_intercept_decides_nothing_once_the_call_goes_on),
        TEST(test_intercept_cancelled_call_ends_once),
        TEST(test_intercept_call_answered_on_another_thread_ends_once),
        TEST(test_intercept_call_past_its_deadline_ends_once),
        TEST(test_intercept_stream_of_a_lost_connection_ends_once),
        TEST(test_intercept_registration_is_checked),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
