/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A tracer on both sides of calls: which spans there are, whose children they are, what is sampled,
 * and what travels with the calls.
 */

#include "session_peer.h"
#include "span_sink.h"
#include "tests/support/sanitized.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define SAMPLED "00-" TRACE "-" SPAN "-01"
#define UNSAMPLED "00-" TRACE "-" SPAN "-00"

static struct calls *calls;
static struct span_sink *sink;
static struct {
    char text[1024]; /* trace context of the last request that a server saw: "key=value;" */
    struct bow_span_context span;
    bool has_span;
    bool refuses;
} seen;

/* Behind the server's tracer. */
static void look(struct bow_interception *at, void *user)
{
    struct bow_metadata metadata = bow_interception_metadata(at);
    const struct bow_span_context *span = bow_span_at(at);
    size_t len = 0;

    (void)user;
    pthread_mutex_lock(&calls->lock);
    seen.text[0] = '\0';
    for (size_t i = 0; i < metadata.n; i++) {
        const struct bow_metadata_entry *entry = &metadata.entries[i];
        if (strncmp(entry->key, "trace", 5) == 0) {
            len += (size_t)snprintf(seen.text + len, sizeof(seen.text) - len, "%s=%s;", entry->key,
                                    (const char *)entry->value.data);
        }
    }
    seen.has_span = span != NULL;
    if (span != NULL) {
        seen.span = *span;
    }
    bool refuses = seen.refuses;
    pthread_mutex_unlock(&calls->lock);
    if (refuses) {
        (void)bow_interception_refuse(at, BOW_PERMISSION_DENIED, "not you");
    }
}

static int setup(void **state)
{
    calls_setup_bare(state);
    calls = *state;
    sink = span_sink_new(calls);
    memset(&seen, 0, sizeof(seen));
    return 0;
}

static void trace_client(const struct bow_tracer_options *options)
{
    struct bow_client_options client_options;
    struct bow_interceptor interceptor;
    const struct bow_interceptor *interceptors[] = {&interceptor};

    struct bow_tracer *tracer = span_sink_trace(sink, options);
    bow_tracer_intercept(tracer, &interceptor);
    bow_tracer_unref(tracer);
    calls_client_options(calls, &client_options);
    client_options.interceptors = interceptors;
    client_options.n_interceptors = 1;
    calls->client = calls_new_client(calls, &client_options);
}

/* A server and a client, each with a tracer of its own. */
static void begin(const struct bow_tracer_options *server, const struct bow_tracer_options *client)
{
    struct bow_interceptor looks = BOW_INTERCEPTOR_INIT;
    struct bow_server_options options;
    struct bow_interceptor interceptor;

    calls_server_options(calls, &options);
    calls->server = calls_make_server(calls, &options);
    struct bow_tracer *tracer = span_sink_trace(sink, server);
    bow_tracer_intercept(tracer, &interceptor);
    bow_tracer_unref(tracer);
    assert_int_equal(bow_server_intercept(calls->server, &interceptor), 0);
    looks.name = "look";
    looks.on_start = look;
    assert_int_equal(bow_server_intercept(calls->server, &looks), 0);
    assert_int_equal(calls_open_server(calls, calls->server), 0);
    trace_client(client);
}

static void begin_alike(const struct bow_tracer_options *options)
{
    begin(options, options);
}

static void end_all(int n_tracers)
{
    calls_free_client(calls);
    if (calls->server != NULL) {
        calls_kill_server(calls);
    }
    span_sink_free(sink, n_tracers);
    sink = NULL;
}

static int teardown(void **state)
{
    if (sink != NULL) {
        end_all(2);
    }
    return calls_teardown(state);
}

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

/* A call of Say with that context; NULL: none. */
static void say_with(const char *traceparent, const char *tracestate, enum bow_code code)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_metadata_entry entries[2];
    struct bow_metadata metadata = {entries, 0};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    char text[] = "abc";

    if (traceparent != NULL) {
        entries[metadata.n++] = (struct bow_metadata_entry){"traceparent", slice_of(traceparent)};
    }
    if (tracestate != NULL) {
        entries[metadata.n++] = (struct bow_metadata_entry){"tracestate", slice_of(tracestate)};
    }
    options.metadata = &metadata;
    request.text = text;
    request.code = code;
    (void)calls__echo__say__call(calls->client, &request, &options, &result);
    assert_int_equal(result.status.code, seen.refuses ? BOW_PERMISSION_DENIED : code);
    bow_result_fini(&result);
}

static void say(void)
{
    say_with(NULL, NULL, BOW_OK);
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    static const uint8_t zeros[16];

    return memcmp(bytes, zeros, n) == 0;
}

/* What a span says */

static void test_tracer_call_has_a_span_on_each_side(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    say();
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    const struct kept_span *server = span_sink_find(sink, BOW_SPAN_SERVER);
    expect_child(&server->span, &client->span);
    assert_true(is_zero(client->span.parent_id, 8));
    assert_false(is_zero(client->span.context.trace_id, 16));
    assert_int_equal(client->span.context.flags, BOW_SPAN_SAMPLED | BOW_SPAN_RANDOM);
    assert_int_equal(server->span.context.flags, BOW_SPAN_SAMPLED | BOW_SPAN_RANDOM);
    assert_string_equal(client->path, "/calls.Echo/Say");
    assert_string_equal(server->path, "/calls.Echo/Say");
    assert_string_equal(server->protocol, calls_is_grpc() ? "grpc" : "native");
    assert_string_equal(client->peer, calls->address);
    assert_int_equal(client->span.code, BOW_OK);
    assert_int_equal(client->span.messages_sent, 1);
    assert_int_equal(client->span.bytes_sent, 5);
    assert_int_equal(server->span.bytes_received, 5);
    assert_int_equal(client->span.n_events, 0);
    assert_true(client->span.start_unix_ns <= client->span.end_unix_ns);
    assert_true(server->span.start_unix_ns <= server->span.end_unix_ns);
    assert_true(server->span.start_unix_ns > UINT64_C(1700000000000000000));
}

static uint64_t clock_of_test(void *user)
{
    return *(const uint64_t *)user;
}

static void test_tracer_times_are_of_the_given_clock(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    uint64_t now_ns = UINT64_C(1772366400123456789);

    (void)state;
    options.unix_ns = clock_of_test;
    options.clock_user = &now_ns;
    begin_alike(&options);
    say();
    span_sink_wait(sink, 2);
    for (int i = 0; i < 2; i++) {
        const struct bow_span *span = &sink->spans[i].span;
        assert_true(span->end_unix_ns <= now_ns);
        assert_true(span->start_unix_ns > now_ns - 60000 * MS);
    }
}

static void test_tracer_span_says_how_the_call_failed(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    say_with(NULL, NULL, BOW_NOT_FOUND);
    span_sink_wait(sink, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sink->spans[i].span.code, BOW_NOT_FOUND);
        assert_string_equal(sink->spans[i].message, "asked to fail: abc");
    }
}

static void test_tracer_sees_what_others_refuse(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    seen.refuses = true;
    begin_alike(&options);
    say();
    span_sink_wait(sink, 2);
    const struct kept_span *server = span_sink_find(sink, BOW_SPAN_SERVER);
    assert_true(server->span.refused);
    assert_int_equal(server->span.code, BOW_PERMISSION_DENIED);
}

static void start_hold(const struct bow_call_options *options, uint64_t *ret_id)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__hold__start(calls->client, &request, options, calls_on_done, calls, ret_id),
        0);
}

static void expect_both(enum bow_code code)
{
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    const struct kept_span *server = span_sink_find(sink, BOW_SPAN_SERVER);
    expect_child(&server->span, &client->span);
    assert_int_equal(client->span.code, code);
    assert_int_equal(server->span.code, code);
}

static void test_tracer_cancelled_call_has_both_spans(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    uint64_t id = 0;

    (void)state;
    begin_alike(&options);
    start_hold(NULL, &id);
    struct bow_call *held = calls_take_held(calls);
    bow_client_cancel(calls->client, id);
    calls_wait(calls, &calls->n_cancelled, 1);
    expect_both(BOW_CANCELLED);
    assert_int_equal(calls_reply(held, 1), -ECANCELED);
}

static void test_tracer_late_call_has_both_spans(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;

    (void)state;
    call_options.timeout_ns = 300 * MS;
    begin_alike(&options);
    start_hold(&call_options, NULL);
    struct bow_call *held = calls_take_held(calls);
    calls_wait(calls, &calls->n_done, 1);
    calls_wait(calls, &calls->n_cancelled, 1);
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    const struct kept_span *server = span_sink_find(sink, BOW_SPAN_SERVER);
    expect_child(&server->span, &client->span);
    assert_int_equal(client->span.code, BOW_DEADLINE_EXCEEDED);
    assert_int_equal(server->span.code, calls->why); /* or the client's word of it came first */
    assert_int_equal(calls_reply(held, 1), -ECANCELED);
}

/* Whose child */

static void test_tracer_goes_on_with_the_context_that_is_there(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_span_context given;
    char expected[256];
    char traceparent[BOW_TRACEPARENT_BYTES];

    (void)state;
    begin_alike(&options);
    say_with(SAMPLED, "b=2 , a=1", BOW_OK);
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    assert_int_equal(bow_span_context_read(slice_of(SAMPLED), &given), 0);
    assert_memory_equal(client->span.context.trace_id, given.trace_id, 16);
    assert_memory_equal(client->span.parent_id, given.span_id, 8);
    assert_int_equal(client->span.context.flags, BOW_SPAN_SAMPLED);
    assert_string_equal(client->tracestate, "b=2,a=1");
    expect_child(&span_sink_find(sink, BOW_SPAN_SERVER)->span, &client->span);
    assert_string_equal(span_sink_find(sink, BOW_SPAN_SERVER)->tracestate, "b=2,a=1");
    bow_span_context_write(&client->span.context, traceparent);
    (void)snprintf(expected, sizeof(expected), "traceparent=%s;tracestate=b=2,a=1;", traceparent);
    assert_string_equal(seen.text, expected);
}

/* Nor is the state of it. */
static void test_tracer_bad_context_is_none(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    say_with("00-" TRACE "-0000000000000000-01", "a=1", BOW_OK);
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    assert_true(is_zero(client->span.parent_id, 8));
    assert_string_equal(client->tracestate, "");
    assert_null(strstr(seen.text, TRACE));
    assert_null(strstr(seen.text, "tracestate"));
    expect_child(&span_sink_find(sink, BOW_SPAN_SERVER)->span, &client->span);
}

static void test_tracer_bad_state_is_left_out(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    say_with(SAMPLED, "A=1", BOW_OK);
    span_sink_wait(sink, 2);
    assert_non_null(strstr(seen.text, TRACE));
    assert_null(strstr(seen.text, "tracestate"));
}

/* The handler's thread is another one, and has answered before the child passes its client. */
static void test_tracer_call_made_for_a_call_is_its_child(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    (void)state;
    begin_alike(&options);
    start_hold(NULL, NULL);
    struct bow_call *held = calls_take_held(calls);
    struct bow_span_context own = *bow_span_of(held);
    call_options.parent = held;
    assert_int_equal(
        calls__echo__say__start(calls->client, &request, &call_options, calls_on_done, calls, NULL),
        0);
    span_sink_wait(sink, 2); /* of the child */
    struct kept_span child = *span_sink_find(sink, BOW_SPAN_CLIENT);
    expect_child(&span_sink_find(sink, BOW_SPAN_SERVER)->span, &child.span);
    assert_memory_equal(child.span.context.trace_id, own.trace_id, 16);
    assert_memory_equal(child.span.parent_id, own.span_id, 8);
    span_sink_clear(sink);
    assert_int_equal(calls_reply(held, 1), 0);
    span_sink_wait(sink, 2);
    const struct kept_span *parent = span_sink_find(sink, BOW_SPAN_SERVER);
    expect_child(&child.span, &parent->span);
    assert_memory_equal(&parent->span.context, &own, sizeof(own));
}

/* Sampling */

static void test_tracer_unsampled_parent_has_no_spans(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    say_with(UNSAMPLED, NULL, BOW_OK);
    assert_non_null(strstr(seen.text, "traceparent=00-" TRACE "-"));
    assert_non_null(strstr(seen.text, "-00;"));
    assert_true(seen.has_span); /* for logs */
    assert_int_equal(seen.span.flags, 0);
    say_with(SAMPLED, NULL, BOW_OK);
    span_sink_wait(sink, 2);
}

static void test_tracer_ratio_is_of_the_trace_id(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_tracer_options all = span_sink_options(sink);

    (void)state;
    options.sampling = BOW_SAMPLING_RATIO;
    options.ratio = 0.5;
    all.sampling = BOW_SAMPLING_NEVER;
    begin(&options, &all);
    say_with("00-ffffffffffffffffff7fffffffffffff-" SPAN "-01", NULL, BOW_OK);
    say_with("00-ffffffffffffffffff80000000000000-" SPAN "-00", NULL, BOW_OK);
    say_with("00-0000000000000000007fffffffffffff-" SPAN "-01", NULL, BOW_OK);
    say_with("00-00000000000000000080000000000000-" SPAN "-00", NULL, BOW_OK);
    span_sink_wait(sink, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sink->spans[i].span.context.trace_id[9], 0x80);
    }
}

static void test_tracer_ratio_decides_of_a_trace_that_begins(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_tracer_options server = span_sink_options(sink);

    (void)state;
    options.ratio = 0.5;
    begin(&server, &options);
    for (int i = 0; i < 64; i++) {
        say();
    }
    calls_kill_server(calls);
    pthread_mutex_lock(&calls->lock);
    int n = sink->n;
    pthread_mutex_unlock(&calls->lock);
    assert_int_equal(n % 2, 0); /* the server's go with the client's */
    assert_in_range(n, 2, 126); /* all but once in 2^63 runs */
    for (int i = 0; i < n; i++) {
        assert_true(sink->spans[i].span.context.trace_id[9] >= 0x80);
    }
}

static void test_tracer_ratio_of_nothing_is_nothing(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_tracer_options server = span_sink_options(sink);

    (void)state;
    options.ratio = 0;
    begin(&server, &options);
    say_with("00-ffffffffffffffffffffffffffffffff-" SPAN "-01", NULL, BOW_OK); /* the parent's */
    say();
    assert_non_null(strstr(seen.text, "-02;")); /* the server's tracer is told */
    span_sink_wait(sink, 2);
}

static void test_tracer_always_and_never(void **state)
{
    struct bow_tracer_options always = span_sink_options(sink);
    struct bow_tracer_options never = span_sink_options(sink);

    (void)state;
    always.sampling = BOW_SAMPLING_ALWAYS;
    never.sampling = BOW_SAMPLING_NEVER;
    begin(&never, &always);
    say_with(UNSAMPLED, NULL, BOW_OK);
    span_sink_wait(sink, 1);
    assert_int_equal(sink->spans[0].span.kind, BOW_SPAN_CLIENT);
    assert_non_null(strstr(seen.text, "-01;"));
    assert_int_equal(seen.span.flags, 0);
}

/* In 20 calls, when as many were made before as builds keep that look for misuse. */
static size_t count_allocations(void)
{
    for (int i = 0; i < 100; i++) {
        say();
    }
    size_t n_before = calls->alloc.n_calls;
    for (int i = 0; i < 20; i++) {
        say();
    }
    return calls->alloc.n_calls - n_before;
}

/* What a call takes without a tracer it takes with one, and over gRPC a piece for having metadata,
 * of which there are more under a sanitizer. A few times a histogram may grow meanwhile. */
static void expect_no_allocation(enum bow_sampling sampling, int n_spans)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_server_options server_options;
    struct bow_client_options client_options;

    calls_server_options(calls, &server_options);
    calls->server = calls_start_server(calls, &server_options);
    calls_client_options(calls, &client_options);
    calls->client = calls_new_client(calls, &client_options);
    size_t n_plain = count_allocations();
    calls_free_client(calls);
    calls_kill_server(calls);
    calls_name_address(calls->address, sizeof(calls->address));
    options.sampling = sampling;
    begin_alike(&options);
    size_t n_traced = count_allocations();
    if (!TEST_IS_SANITIZED || !calls_is_grpc()) {
        assert_in_range(n_traced, 0, n_plain + (calls_is_grpc() ? 30 : 10));
    }
    span_sink_wait(sink, n_spans);
}

static void test_tracer_unsampled_call_allocates_nothing(void **state)
{
    (void)state;
    expect_no_allocation(BOW_SAMPLING_NEVER, 0);
}

static void test_tracer_sampled_call_allocates_nothing(void **state)
{
    (void)state;
    expect_no_allocation(BOW_SAMPLING_ALWAYS, 240);
}

/* Events */

static void test_tracer_messages_are_events_by_option(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    options.message_events = true;
    begin_alike(&options);
    say();
    span_sink_wait(sink, 2);
    const struct kept_span *client = span_sink_find(sink, BOW_SPAN_CLIENT);
    assert_int_equal(client->span.n_events, 2);
    assert_int_equal(client->events[0].kind, BOW_SPAN_MESSAGE_SENT);
    assert_int_equal(client->events[0].number, 1);
    assert_int_equal(client->events[0].bytes, 5);
    assert_int_equal(client->events[1].kind, BOW_SPAN_MESSAGE_RECEIVED);
    assert_true(client->events[0].unix_ns <= client->events[1].unix_ns);
    assert_true(client->span.start_unix_ns <= client->events[0].unix_ns);
    assert_true(client->events[1].unix_ns <= client->span.end_unix_ns);
    const struct kept_span *server = span_sink_find(sink, BOW_SPAN_SERVER);
    assert_int_equal(server->span.n_events, 2);
    assert_int_equal(server->events[0].kind, BOW_SPAN_MESSAGE_RECEIVED);
}

static void test_tracer_events_are_bounded(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    options.message_events = true;
    options.max_events = 1;
    begin_alike(&options);
    say();
    span_sink_wait(sink, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sink->spans[i].span.n_events, 1);
        assert_int_equal(sink->spans[i].span.n_events_dropped, 1);
    }
}

/* A server that drains before it has read what its client sent; the next one answers. */
static void test_tracer_retry_is_an_event(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_status leaving = {.code = BOW_UNAVAILABLE, .message = "restarting"};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct session_peer peers[2];
    int listening = calls_raw_listen(calls);

    (void)state;
    trace_client(&options);
    assert_int_equal(
        calls__echo__say__start(calls->client, &request, NULL, calls_on_done, calls, NULL), 0);
    session_peer_begin(&peers[0], calls->context, accept(listening, NULL, NULL), true,
                       calls_is_grpc());
    peers[0].session->ops->goaway(peers[0].session, &leaving);
    peers[0].session->ops->leave(peers[0].session);
    session_peer_flush(&peers[0]);
    session_peer_begin(&peers[1], calls->context, accept(listening, NULL, NULL), true,
                       calls_is_grpc());
    session_peer_wait(&peers[1], &peers[1].n_messages, 1);
    session_peer_send(&peers[1], BOW__SEND_END, "", 0);
    span_sink_wait(sink, 1);
    assert_int_equal(sink->spans[0].span.code, BOW_OK);
    assert_int_equal(sink->spans[0].span.n_events, 1);
    assert_int_equal(sink->spans[0].events[0].kind, BOW_SPAN_RETRY);
    assert_int_equal(sink->spans[0].events[0].code, BOW_UNAVAILABLE);
    assert_int_equal(sink->spans[0].events[0].number, 1);
    for (int i = 0; i < 2; i++) {
        session_peer_end(&peers[i]);
    }
    close(listening);
    end_all(1);
}

/* Many */

#define MANY 100 /* more than are given away at once */

static int start_many(void *user)
{
    struct calls *t = user;
    Calls__Request request = CALLS__REQUEST__INIT;
    char text[] = "none of these can be started";

    request.text = text;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL),
                         0);
    }
    return 0;
}

/* They end in few turns, and are given away once in each, or when the buffer is full. */
static void test_tracer_spans_of_a_turn_are_given_together(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);
    struct bow_tracer_options never = span_sink_options(sink);

    (void)state;
    never.sampling = BOW_SAMPLING_NEVER;
    begin(&never, &options);
    assert_int_equal(bow_loop_execute(calls->loop, "start many", start_many, calls), 0);
    calls_wait(calls, &calls->n_done, MANY);
    span_sink_wait(sink, MANY);
    assert_true(sink->n_given < MANY);
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(sink->spans[i].span.context.span_id,
                                    sink->spans[j].span.context.span_id, 8);
        }
    }
}

/* Calls that the end of their loop ends. */
static void test_tracer_loop_that_ends_gives_its_spans(void **state)
{
    struct bow_tracer_options options = span_sink_options(sink);

    (void)state;
    begin_alike(&options);
    start_hold(NULL, NULL);
    struct bow_call *held = calls_take_held(calls);
    calls_free_client(calls);
    calls_wait(calls, &calls->n_cancelled, 1);
    calls_kill_server(calls);
    assert_int_equal(calls_reply(held, 1), -ECANCELED);
    span_sink_wait(sink, 2);
    expect_child(&span_sink_find(sink, BOW_SPAN_SERVER)->span,
                 &span_sink_find(sink, BOW_SPAN_CLIENT)->span);
}

/* Making */

static void refuse_options(const struct bow_tracer_options *options)
{
    struct bow_tracer *tracer = NULL;

    assert_int_equal(bow_tracer_new(options, &tracer), -EINVAL);
    assert_null(tracer);
}

static void test_tracer_bad_options_are_refused(void **state)
{
    const struct bow_tracer_options good = span_sink_options(sink);
    struct bow_tracer_options bad = good;
    volatile double zero = 0;

    (void)state;
    bad.context = NULL;
    refuse_options(&bad);
    bad = good;
    bad.spans = NULL;
    refuse_options(&bad);
    bad = good;
    bad.sampling = (enum bow_sampling)4;
    refuse_options(&bad);
    bad = good;
    bad.ratio = 1.5;
    refuse_options(&bad);
    bad.ratio = -0.1;
    refuse_options(&bad);
    bad.ratio = zero / zero;
    refuse_options(&bad);
    bad = good;
    bad.max_events = BOW_TRACER_MAX_EVENTS + 1;
    refuse_options(&bad);
    bad = good;
    bad.size++;
    refuse_options(&bad);
    refuse_options(NULL);
    end_all(0);
}

static void test_tracer_nothing_is_of_no_tracer(void **state)
{
    struct bow_server_options server_options;
    struct bow_client_options client_options;
    Calls__Request request = CALLS__REQUEST__INIT;

    (void)state;
    calls_server_options(calls, &server_options);
    calls->server = calls_start_server(calls, &server_options);
    calls_client_options(calls, &client_options);
    calls->client = calls_new_client(calls, &client_options);
    assert_int_equal(
        calls__echo__hold__start(calls->client, &request, NULL, calls_on_done, calls, NULL), 0);
    struct bow_call *held = calls_take_held(calls);
    assert_null(bow_span_of(held));
    assert_int_equal(calls_reply(held, 1), 0);
    calls_wait(calls, &calls->n_done, 1);
    end_all(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tracer_call_has_a_span_on_each_side),
        TEST(test_tracer_times_are_of_the_given_clock),
        TEST(test_tracer_span_says_how_the_call_failed),
        TEST(test_tracer_sees_what_others_refuse),
        TEST(test_tracer_cancelled_call_has_both_spans),
        TEST(test_tracer_late_call_has_both_spans),
        TEST(test_tracer_goes_on_with_the_context_that_is_there),
        TEST(test_tracer_bad_context_is_none),
        TEST(test_tracer_bad_state_is_left_out),
        TEST(test_tracer_call_made_for_a_call_is_its_child),
        TEST(test_tracer_unsampled_parent_has_no_spans),
        TEST(test_tracer_ratio_is_of_the_trace_id),
        TEST(test_tracer_ratio_decides_of_a_trace_that_begins),
        TEST(test_tracer_ratio_of_nothing_is_nothing),
        TEST(test_tracer_always_and_never),
        TEST(test_tracer_unsampled_call_allocates_nothing),
        TEST(test_tracer_sampled_call_allocates_nothing),
        TEST(test_tracer_messages_are_events_by_option),
        TEST(test_tracer_events_are_bounded),
        TEST(test_tracer_retry_is_an_event),
        TEST(test_tracer_spans_of_a_turn_are_given_together),
        TEST(test_tracer_loop_that_ends_gives_its_spans),
        TEST(test_tracer_bad_options_are_refused),
        TEST(test_tracer_nothing_is_of_no_tracer),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
