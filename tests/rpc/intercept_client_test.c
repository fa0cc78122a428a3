/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's interceptors, over calls of each kind: their order, refusing, holding, what they see
 * and add, and that each sees one end.
 */

#include "intercept_spy.h"
#include "stream_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct spies *spies;

static struct bow_slice text(const char *value)
{
    return (struct bow_slice){(const uint8_t *)value, strlen(value)};
}

/* The fixture's client is replaced by one that two spies watch. */
static void watch(struct streams *s, const char *target)
{
    struct bow_client_options options;

    bow_client_free(s->t->client);
    spies = spies_new(s->t);
    calls_client_options(s->t, &options);
    options.target = target;
    options.interceptors = spies->pointers;
    options.n_interceptors = 2;
    options.max_queued_calls = 2;
    s->t->client = calls_new_client(s->t, &options);
}

static int setup(void **state)
{
    streams_setup(state);
    struct streams *s = *state;
    watch(s, s->t->target);
    return 0;
}

/* The same without anybody to call. */
static int setup_alone(void **state)
{
    streams_setup(state);
    watch(*state,
          calls_is_grpc() ? "grpc:unix-abstract:bowline-nobody" : "unix-abstract:bowline-nobody");
    return 0;
}

static int teardown(void **state)
{
    struct streams *s = *state;

    bow_client_free(s->t->client);
    s->t->client = NULL;
    int rc = streams_teardown(state);
    spies_free(spies, 1); /* a client that was freed on its loop has gone with that */
    return rc;
}

static int start(struct streams *s, const struct bow_call_options *options, uint64_t *ret_id)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = 5;
    return calls__echo__say__start(s->t->client, &request, options, calls_on_done, s->t, ret_id);
}

static void expect_done(struct streams *s, enum bow_code code, const char *words)
{
    calls_wait(s->t, &s->t->n_done, 1);
    if (s->t->result.status.code != code || strstr(s->t->result.status.message, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(s->t->result.status.code), s->t->result.status.message);
    }
}

/* What they see */

static void test_intercept_unary_call_passes_in_order(void **state)
{
    struct streams *s = *state;

    assert_int_equal(start(s, NULL, NULL), 0);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_respond(&s->peer, "first", "i");
    stream_peer_reply(&s->peer, 300);
    expect_done(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a>2 b>2 b<3 a<3 b-OK a-OK ");
    assert_string_equal(spies->spies[0].initial, "first=i");
    assert_int_equal(spies->spies[0].end.bytes_sent, 2);
    assert_int_equal(spies->spies[0].end.bytes_received, 3);
}

static void test_intercept_server_stream_passes_in_order(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_pour);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_send(&s->peer, 1);
    stream_peer_send(&s->peer, 2);
    stream_peer_finish(&s->peer, BOW_ABORTED, "enough");
    streams_expect_closed(s, BOW_ABORTED, "enough");
    spies_expect_log(spies, "a+ b+ a>0 b>0 b<2 a<2 b<2 a<2 b-ABORTED a-ABORTED ");
    assert_string_equal(spies->spies[0].text, "enough");
}

static void test_intercept_client_stream_passes_in_order(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_gather);
    assert_int_equal(streams_send(s->stream, 1), 0);
    assert_int_equal(streams_send_sized(s->stream, 2, 200), 0);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 2);
    stream_peer_reply(&s->peer, 3);
    streams_expect_closed(s, BOW_OK, NULL);
    spies_expect_log(spies, "a+ b+ a>2 b>2 a>205 b>205 b<2 a<2 b-OK a-OK ");
}

static void send_next(struct streams *s, struct bow_stream *stream)
{
    s->rc = streams_send(stream, 9);
}

static void test_intercept_both_streams_pass_in_order(void **state)
{
    struct streams *s = *state;

    s->in_message = send_next; /* on the loop, in place */
    streams_begin(s, &streams_both);
    stream_peer_send(&s->peer, 1);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    spies_expect_log(spies, "a+ b+ b<2 a<2 a>2 b>2 b-OK a-OK ");
}

static void test_intercept_blocking_stream_passes_in_order(void **state)
{
    struct streams *s = *state;
    const ProtobufCMessage *message = NULL;
    struct bow_result result = BOW_RESULT_INIT;

    streams_open_blocking(s, &streams_pour, NULL);
    streams_accept(s);
    stream_peer_send(&s->peer, 1);
    assert_int_equal(bow_stream_receive(s->stream, BOW_NEVER, &message), 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
    assert_int_equal(bow_stream_finish(s->stream, &result), 0);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
    spies_expect_log(spies, "a+ b+ a>0 b>0 b<2 a<2 b-OK a-OK ");
}

static void ask(struct spy *spy, struct bow_interception *at)
{
    struct bow_metadata metadata = bow_interception_metadata(at);

    assert_string_equal(bow_interception_method(at)->path, "/calls.Echo/Say");
    assert_string_equal(bow_interception_protocol(at), calls_is_grpc() ? "grpc" : "native");
    assert_string_equal(bow_interception_peer(at), spy->all->t->address);
    assert_null(bow_interception_call(at));
    assert_false(bow_interception_is_secure(at));
    assert_int_equal(metadata.n, 1);
    assert_string_equal(metadata.entries[0].key, "given");
    uint64_t left = bow_interception_deadline(at) - bow_loop_now(bow_interception_loop(at));
    assert_true(left > 4000 * MS && left <= 5000 * MS);
    assert_int_equal(bow_interception_add_request(at, spy->name, text("added")), 0);
    assert_int_equal(bow_interception_add_request(at, "NO", text("x")), -EINVAL);
    assert_int_equal(bow_interception_add_initial(at, "x", text("x")), -EINVAL);
    assert_int_equal(bow_interception_add_trailing(at, "x", text("x")), -EINVAL);
}

static void ask_again(struct spy *spy, struct bow_interception *at)
{
    assert_int_equal(bow_interception_metadata(at).n, 2);
    assert_int_equal(bow_interception_add_request(at, spy->name, text("too")), 0);
}

static void test_intercept_adds_to_the_request(void **state)
{
    const struct bow_metadata_entry entries[] = {{"given", {(const uint8_t *)"g", 1}}};
    const struct bow_metadata metadata = {entries, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct streams *s = *state;

    spies->spies[0].in_start = ask;
    spies->spies[1].in_start = ask_again;
    options.metadata = &metadata;
    options.timeout_ns = 5000 * MS;
    assert_int_equal(start(s, &options, NULL), 0);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_string_equal(s->peer.metadata, "given=g;a=added;b=too;");
    stream_peer_reply(&s->peer, 1);
    expect_done(s, BOW_OK, "");
}

/* Refusing */

static void test_intercept_refused_call_sends_nothing(void **state)
{
    struct streams *s = *state;

    spies->spies[1].in_start = spy_refuse;
    assert_int_equal(start(s, NULL, NULL), 0);
    expect_done(s, BOW_PERMISSION_DENIED, "b says no");
    spies_expect_log(spies, "a+ b+ b-PERMISSION_DENIED a-PERMISSION_DENIED ");
    assert_true(spies->spies[0].end.refused);
    assert_int_equal(bow_client_get_state(s->t->client), BOW_CLIENT_IDLE);
}

static void test_intercept_refused_stream_sends_nothing(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_refuse;
    streams_open(s, &streams_both, NULL);
    streams_expect_closed(s, BOW_PERMISSION_DENIED, "a says no");
    spies_expect_log(spies, "a+ a-PERMISSION_DENIED ");
    assert_int_equal(bow_client_get_state(s->t->client), BOW_CLIENT_IDLE);
}

static void test_intercept_refused_reply_is_not_delivered(void **state)
{
    struct streams *s = *state;

    spies->spies[1].in_message = spy_refuse_message;
    assert_int_equal(start(s, NULL, NULL), 0);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_reply(&s->peer, 1);
    expect_done(s, BOW_INVALID_ARGUMENT, "b takes no message");
    assert_null(s->t->result.reply);
    spies_expect_log(spies, "a+ b+ a>2 b>2 b<2 b-INVALID_ARGUMENT a-INVALID_ARGUMENT ");
}

static void test_intercept_refused_message_ends_the_stream(void **state)
{
    struct streams *s = *state;

    spies->spies[1].in_message = spy_refuse_message;
    streams_begin(s, &streams_both);
    stream_peer_send(&s->peer, 1);
    streams_expect_closed(s, BOW_INVALID_ARGUMENT, "b takes no message");
    assert_int_equal(s->n_messages, 0);
    stream_peer_wait(&s->peer, &s->peer.n_resets, 1);
}

static void test_intercept_refused_message_ends_the_blocking_stream(void **state)
{
    struct streams *s = *state;
    struct bow_result result = BOW_RESULT_INIT;
    const ProtobufCMessage *message = NULL;

    spies->spies[1].in_message = spy_refuse_message;
    streams_open_blocking(s, &streams_pour, NULL);
    streams_accept(s);
    stream_peer_send(&s->peer, 1);
    assert_int_equal(bow_stream_receive(s->stream, BOW_NEVER, &message), 0);
    assert_int_equal(bow_stream_finish(s->stream, &result), 0);
    assert_int_equal(result.status.code, BOW_INVALID_ARGUMENT);
    bow_result_fini(&result);
}

/* Holding */

static void test_hold_call_goes_on_when_it_is_let(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    assert_int_equal(start(s, NULL, NULL), 0);
    spies_wait_starts(spies, 0, 1);
    spies_expect_log(spies, "a+ ");
    assert_int_equal(bow_client_get_state(s->t->client), BOW_CLIENT_IDLE);
    spies_on_loop(spies, 0, spy_proceed);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    stream_peer_reply(&s->peer, 3);
    expect_done(s, BOW_OK, "");
    spies_expect_log(spies, "a+ b+ a>2 b>2 b<2 a<2 b-OK a-OK ");
}

static void test_hold_messages_of_a_stream_wait(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    streams_open(s, &streams_gather, NULL);
    assert_int_equal(streams_send(s->stream, 1), 0);
    assert_int_equal(streams_send_sized(s->stream, 2, 70000), 0);
    assert_int_equal(streams_send(s->stream, 3), -EAGAIN);
    spies_wait_starts(spies, 0, 1);
    spies_on_loop(spies, 0, spy_proceed);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 2);
    assert_int_equal(s->peer.n_disordered, 0);
    streams_wait_serving(s, &s->n_writable, 1);
    stream_peer_reply(&s->peer, 3);
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_hold_refused_call_sends_nothing(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    assert_int_equal(start(s, NULL, NULL), 0);
    spies_wait_starts(spies, 0, 1);
    spies_on_loop(spies, 0, spy_refuse_held);
    expect_done(s, BOW_UNAUTHENTICATED, "a thought better of it");
    spies_expect_log(spies, "a+ a-UNAUTHENTICATED ");
}

static void test_hold_cancelled_call_ends_once(void **state)
{
    struct streams *s = *state;
    uint64_t id = 0;

    spies->spies[0].in_start = spy_hold;
    assert_int_equal(start(s, NULL, &id), 0);
    spies_wait_starts(spies, 0, 1);
    bow_client_cancel(s->t->client, id);
    expect_done(s, BOW_CANCELLED, "");
    spies_expect_log(spies, "a+ a-CANCELLED ");
}

static void test_hold_expired_call_says_who_held_it(void **state)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    options.timeout_ns = 20 * MS;
    assert_int_equal(start(s, &options, NULL), 0);
    expect_done(s, BOW_DEADLINE_EXCEEDED, "held by an interceptor");
    spies_expect_log(spies, "a+ a-DEADLINE_EXCEEDED ");
}

static void test_hold_calls_end_with_their_client(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    assert_int_equal(start(s, NULL, NULL), 0);
    spies_wait_starts(spies, 0, 1);
    bow_client_free(s->t->client);
    s->t->client = NULL;
    expect_done(s, BOW_CANCELLED, "closed");
    spies_expect_log(spies, "a+ a-CANCELLED ");
}

static void proceed_and_end(struct spy *spy)
{
    spy->rc = bow_interception_proceed(spy->at);
    bow_client_free(spy->all->t->client);
    spy->all->t->client = NULL;
}

static void test_hold_call_that_ends_as_it_goes_on_ends_once(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    assert_int_equal(start(s, NULL, NULL), 0);
    spies_wait_starts(spies, 0, 1);
    spies_on_loop(spies, 0, proceed_and_end);
    calls_wait(s->t, &s->t->n_done, 1);
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_ends, 1);
}

static void start_here(struct spy *spy)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = true;
    spy->rc = calls__echo__say__start(spy->all->t->client, &request, &options, calls_on_done,
                                      spy->all->t, NULL);
}

static void test_hold_calls_are_bounded(void **state)
{
    struct streams *s = *state;

    spies->spies[0].in_start = spy_hold;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(start(s, NULL, NULL), 0);
    }
    spies_wait_starts(spies, 0, 2);
    spies_on_loop(spies, 0, start_here);
    assert_int_equal(spies->spies[0].rc, -EAGAIN);
    assert_int_equal(start(s, NULL, NULL), 0);
    expect_done(s, BOW_RESOURCE_EXHAUSTED, "held by interceptors already (max_queued_calls)");
}

/* A start that fails after on_start: the queue is full, for nobody is there. */
static void test_intercept_call_that_cannot_be_started_ends_once(void **state)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct streams *s = *state;

    options.wait_for_ready = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(start(s, &options, NULL), 0);
    }
    spies_wait_starts(spies, 1, 2);
    spies_on_loop(spies, 0, start_here);
    assert_int_equal(spies->spies[0].rc, -EAGAIN);
    spies_wait_ends(spies, 0, 1);
    assert_int_equal(spies->spies[0].n_starts, 3);
    assert_int_equal(spies->spies[0].code, BOW_RESOURCE_EXHAUSTED);
    bow_client_free(s->t->client);
    s->t->client = NULL;
    assert_int_equal(spies->spies[0].n_ends, 3);
}

/* Options */

static void test_intercept_options_of_a_client_that_is_not_made_release_nothing(void **state)
{
    struct streams *s = *state;
    struct bow_transport_error error = {.text = ""};
    struct bow_client_options options;
    struct bow_client *client = NULL;

    calls_client_options(s->t, &options);
    spies->interceptors[2].name = NULL;
    options.interceptors = spies->pointers;
    options.n_interceptors = 3;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "interceptor 3 has no name"));
    spies->interceptors[2].name = "greedy";
    spies->interceptors[2].state_bytes = BOW_INTERCEPTOR_STATE_BYTES + 1;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "interceptor 3 (\"greedy\") asks for 4097 state_bytes"));
    assert_int_equal(spies->spies[0].n_released, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_intercept_unary_call_passes_in_order),
        TEST(test_intercept_server_stream_passes_in_order),
        TEST(test_intercept_client_stream_passes_in_order),
        TEST(test_intercept_both_streams_pass_in_order),
        TEST(test_intercept_blocking_stream_passes_in_order),
        TEST(test_intercept_adds_to_the_request),
        TEST(test_intercept_refused_call_sends_nothing),
        TEST(test_intercept_refused_stream_sends_nothing),
        TEST(test_intercept_refused_reply_is_not_delivered),
        TEST(test_intercept_refused_message_ends_the_stream),
        TEST(test_intercept_refused_message_ends_the_blocking_stream),
        TEST(test_hold_call_goes_on_when_it_is_let),
        TEST(test_hold_messages_of_a_stream_wait),
        TEST(test_hold_refused_call_sends_nothing),
        TEST(test_hold_cancelled_call_ends_once),
        TEST(test_hold_expired_call_says_who_held_it),
        TEST(test_hold_calls_end_with_their_client),
        TEST(test_hold_call_that_ends_as_it_goes_on_ends_once),
        TEST(test_hold_calls_are_bounded),
        cmocka_unit_test_setup_teardown(test_intercept_call_that_cannot_be_started_ends_once,
                                        setup_alone, teardown),
        TEST(test_intercept_options_of_a_client_that_is_not_made_release_nothing),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
