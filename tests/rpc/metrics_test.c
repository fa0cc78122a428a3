/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is counted of each method, on both sides: one thing after the other is made to happen, on
 * virtual time, so that times are exact.
 */

#include "testing/test.h"
#include "timed_fixture.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOLD "/calls.Echo/Hold"
#define SAY "/calls.Echo/Say"
#define STREAM "/calls.Echo/Stream"
#define PIECE_BYTES ((size_t)16 << 10)

struct found {
    const char *path;
    struct bow_method_metrics metrics;
    struct bow_histogram times[BOW_N_TIMES];
};

static void find(const struct bow_method_metrics *metrics, void *user)
{
    struct found *found = user;

    if (strcmp(metrics->path, found->path) == 0) {
        assert_int_equal(found->metrics.started, 0); /* it is visited once */
        found->metrics = *metrics;
        for (int what = 0; what < BOW_N_TIMES; what++) {
            bow_method_metrics_times(metrics, (enum bow_method_time)what, BOW_N_CODES,
                                     &found->times[what]);
        }
    }
}

static struct found server_side;
static struct found client_side;

/* Both sides of one method. */
static void look(struct timed *timed, const char *path)
{
    memset(&server_side, 0, sizeof(server_side));
    memset(&client_side, 0, sizeof(client_side));
    server_side.path = path;
    client_side.path = path;
    bow_server_each_method(timed->pair->server, find, &server_side);
    bow_client_each_method(timed->pair->client, find, &client_side);
}

static struct bow_metrics client_totals(struct timed *timed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_advance(timed, 20 * MS);
    assert_int_equal(bow_client_metrics(timed->pair->client, &metrics), 0);
    return metrics;
}

static void hold_for(struct timed *timed, uint64_t ns)
{
    (void)timed_hold(timed, 100 * SECOND);
    timed_advance(timed, ns);
    assert_int_equal(timed_reply(timed->held, NULL), 0);
    timed_run(timed);
}

/* Times and sizes */

static void test_metrics_times_are_those_that_calls_took(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    hold_for(timed, 5 * MS);
    hold_for(timed, 40 * MS);
    hold_for(timed, 3 * SECOND);
    look(timed, HOLD);
    for (int i = 0; i < 2; i++) {
        const struct found *side = i == 0 ? &server_side : &client_side;
        assert_int_equal(side->times[BOW_TIME_CALL].count, 3);
        assert_int_equal(side->times[BOW_TIME_CALL].sum, 3045 * MS);
        assert_int_equal(side->times[BOW_TIME_CALL].max, 3 * SECOND);
        assert_int_equal(side->metrics.total_ns, 3045 * MS);
        assert_int_equal(bow_histogram_quantile(&side->times[BOW_TIME_CALL], 0.5) / MS, 40);
        assert_int_equal(side->metrics.ended[BOW_OK], 3);
    }
    assert_int_equal(client_side.times[BOW_TIME_ATTEMPT].sum, 3045 * MS);
    assert_int_equal(server_side.times[BOW_TIME_ATTEMPT].count, 0);
    assert_int_equal(client_side.metrics.attempts, 3);
}

static void only_with(const struct bow_method_metrics *metrics, void *user)
{
    const unsigned *code = user;
    struct bow_histogram times;

    if (strcmp(metrics->path, HOLD) == 0) {
        bow_method_metrics_times(metrics, BOW_TIME_CALL, *code, &times);
        assert_int_equal(times.count, 1);
        assert_int_equal(times.sum, *code == BOW_OK ? 2 * MS : 7 * MS);
        bow_method_metrics_times(metrics, BOW_TIME_CALL, BOW_N_CODES + 1, &times);
        assert_int_equal(times.count, 0);
        bow_method_metrics_times(metrics, (enum bow_method_time)BOW_N_TIMES, BOW_OK, &times);
        assert_int_equal(times.count, 0);
    }
}

static void test_metrics_times_are_kept_apart_by_code(void **state)
{
    struct timed *timed = *state;
    unsigned codes[] = {BOW_OK, BOW_NOT_FOUND};

    timed_begin(timed, NULL, NULL);
    hold_for(timed, 2 * MS);
    (void)timed_hold(timed, 100 * SECOND);
    timed_advance(timed, 7 * MS);
    assert_int_equal(bow_call_fail(timed->held, BOW_NOT_FOUND, "no"), 0);
    timed_run(timed);
    for (size_t i = 0; i < 2; i++) {
        bow_server_each_method(timed->pair->server, only_with, &codes[i]);
        bow_client_each_method(timed->pair->client, only_with, &codes[i]);
    }
}

static void test_metrics_many_of_one_batch_are_each_counted(void **state)
{
    enum { N = 40 };
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    for (int i = 0; i < N; i++) { /* of two methods in turn, more than are counted at once */
        timed_say(timed, (size_t)i);
        if (i % 2 == 0) {
            struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
            Calls__Request request = CALLS__REQUEST__INIT;
            assert_int_equal(calls__echo__absent__start(timed->pair->client, &request, &options,
                                                        timed_on_done, timed, NULL),
                             0);
        }
    }
    timed_run(timed);
    look(timed, SAY);
    assert_int_equal(server_side.times[BOW_TIME_CALL].count, N);
    assert_int_equal(client_side.times[BOW_TIME_CALL].count, N);
    look(timed, "/calls.Echo/Absent");
    assert_int_equal(server_side.metrics.ended[BOW_UNIMPLEMENTED], N / 2);
    assert_int_equal(server_side.times[BOW_TIME_CALL].count, N / 2);
    assert_int_equal(client_side.metrics.ended[BOW_UNIMPLEMENTED], N / 2);
}

static uint64_t bucket_of(size_t n_bytes)
{
    uint64_t bucket = 0;

    while ((UINT64_C(1) << bucket) < n_bytes) {
        bucket++;
    }
    return bucket;
}

static void test_metrics_sizes_are_those_of_the_messages(void **state)
{
    static const size_t payloads[] = {0, 1, 62, 63, 1000, 100000};
    struct timed *timed = *state;
    struct bow_sizes expected = {0};

    timed_begin(timed, NULL, NULL);
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        Calls__Request request = CALLS__REQUEST__INIT;
        request.payload.len = payloads[i];
        size_t n = calls__request__get_packed_size(&request);
        expected.count++;
        expected.sum += n;
        expected.buckets[bucket_of(n)]++;
        timed_say(timed, payloads[i]);
        timed_run(timed);
    }
    look(timed, SAY);
    assert_memory_equal(&server_side.metrics.received, &expected, sizeof(expected));
    assert_memory_equal(&client_side.metrics.sent, &expected, sizeof(expected));
    assert_int_equal(server_side.metrics.sent.sum, client_side.metrics.received.sum);
    assert_int_equal(server_side.metrics.sent.count, expected.count);
    assert_true(server_side.metrics.sent.sum > 101000);
    assert_int_equal(server_side.metrics.bytes_in, expected.sum);
    assert_int_equal(client_side.metrics.bytes_out, expected.sum);
    assert_int_equal(client_side.metrics.bytes_in, server_side.metrics.bytes_out);
}

static void test_metrics_in_flight_are_those_that_have_not_ended(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    (void)timed_hold(timed, 100 * SECOND);
    look(timed, HOLD);
    assert_int_equal(server_side.metrics.in_flight, 1);
    assert_int_equal(client_side.metrics.in_flight, 1);
    assert_int_equal(timed_reply(timed->held, NULL), 0);
    timed_run(timed);
    look(timed, HOLD);
    assert_int_equal(server_side.metrics.in_flight, 0);
    assert_int_equal(client_side.metrics.in_flight, 0);
}

/* What ends otherwise */

static void test_metrics_cancelled_by_the_client_count_on_both_sides(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    uint64_t id = timed_hold(timed, 100 * SECOND);
    timed_advance(timed, 9 * MS);
    bow_client_cancel(timed->pair->client, id);
    timed_run(timed);
    (void)timed_reply(timed->held, NULL);
    look(timed, HOLD);
    assert_int_equal(client_side.metrics.cancelled, 1);
    assert_int_equal(client_side.metrics.ended[BOW_CANCELLED], 1);
    assert_int_equal(server_side.metrics.cancelled, 1);
    assert_int_equal(server_side.metrics.ended[BOW_CANCELLED], 1);
    assert_int_equal(client_side.times[BOW_TIME_CALL].sum, 9 * MS);
    assert_int_equal(server_side.times[BOW_TIME_CALL].sum, 9 * MS);
}

static void test_metrics_one_that_expires_is_not_cancelled(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    (void)timed_hold(timed, 50 * MS);
    timed_advance(timed, 60 * MS);
    (void)timed_reply(timed->held, NULL);
    look(timed, HOLD);
    assert_int_equal(client_side.metrics.ended[BOW_DEADLINE_EXCEEDED], 1);
    assert_int_equal(client_side.metrics.cancelled, 0);
    assert_int_equal(server_side.metrics.ended[BOW_DEADLINE_EXCEEDED], 1);
    assert_int_equal(server_side.metrics.cancelled, 0);
}

/* The connection goes before the call has left. */
static void test_metrics_retried_are_two_attempts_of_one_call(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    timed_say(timed, 0);
    timed_run(timed);
    timed_say(timed, 0);
    bow_test_break(timed->test, BOW_TEST_RESET);
    timed_run(timed);
    assert_int_equal(timed->n_done, 2);
    assert_int_equal(timed->n_failed, 0);
    look(timed, SAY);
    assert_int_equal(client_side.metrics.started, 2);
    assert_int_equal(client_side.metrics.attempts, 3);
    assert_int_equal(client_side.metrics.retries, 1);
    assert_int_equal(client_side.metrics.ended[BOW_OK], 2);
    assert_int_equal(client_side.times[BOW_TIME_CALL].count, 2);
    assert_int_equal(client_side.times[BOW_TIME_ATTEMPT].count, 3);
    assert_int_equal(client_side.metrics.sent.count, 3);
    assert_int_equal(client_totals(timed).calls_retried, 1);
}

/* Waiting */

static void start_waiting(struct timed *timed)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = true;
    options.timeout_ns = 100 * SECOND;
    assert_int_equal(calls__echo__say__start(timed->pair->client, &request, &options, timed_on_done,
                                             timed, NULL),
                     0);
    timed_run(timed);
}

static void test_metrics_time_in_the_queue_ends_with_a_connection(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    bow_test_refuse(timed->test, true);
    start_waiting(timed);
    timed_advance(timed, 10 * SECOND);
    assert_int_equal(client_totals(timed).calls_queued, 1);
    look(timed, SAY);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].count, 0);
    assert_int_equal(client_side.metrics.attempts, 0);
    bow_test_refuse(timed->test, false);
    timed_advance(timed, 40 * SECOND);
    assert_int_equal(timed->n_done, 1);
    assert_int_equal(timed->n_failed, 0);
    look(timed, SAY);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].count, 1);
    assert_true(client_side.times[BOW_TIME_QUEUE].sum >= 10 * SECOND);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].sum, client_side.times[BOW_TIME_CALL].sum);
    assert_int_equal(client_side.times[BOW_TIME_ATTEMPT].sum, 0);
    assert_int_equal(client_totals(timed).calls_queued, 0);
    timed_say(timed, 0); /* does not wait */
    timed_run(timed);
    look(timed, SAY);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].count, 1);
}

static void test_metrics_time_in_the_queue_ends_with_the_call(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    bow_test_refuse(timed->test, true);
    start_waiting(timed);
    timed_advance(timed, 101 * SECOND);
    assert_int_equal(timed->n_failed, 1);
    look(timed, SAY);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].count, 1);
    assert_int_equal(client_side.times[BOW_TIME_QUEUE].sum, 100 * SECOND);
    assert_int_equal(client_side.metrics.ended[BOW_DEADLINE_EXCEEDED], 1);
    assert_int_equal(client_side.metrics.attempts, 0);
}

/* A server whose handlers have max_calls of a connection lets further ones wait: over gRPC those
 * that come before the client knows. */
static void test_metrics_time_before_a_handler_counts_on_the_server(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_call_options call = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    options.max_calls = 1;
    options.max_deadline_ns = 1000 * SECOND;
    timed_begin(timed, &options, NULL);
    call.timeout_ns = 500 * SECOND;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(calls__echo__hold__start(timed->pair->client, &request, &call,
                                                  timed_on_done, timed, NULL),
                         0);
    }
    timed_run(timed);
    for (int i = 0; i < 3; i++) {
        timed_advance(timed, SECOND);
        assert_int_equal(timed_reply(timed->held, NULL), 0);
        timed_run(timed);
    }
    assert_int_equal(timed->n_done, 3);
    timed_advance(timed, 20 * MS);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    look(timed, HOLD);
    assert_int_equal(server_side.times[BOW_TIME_QUEUE].count, metrics.calls_delayed);
    assert_true(metrics.calls_delayed > 0);
    assert_int_equal(server_side.times[BOW_TIME_QUEUE].max, 2 * SECOND);
}

/* Limits */

static int serve_limited(struct bow_server *server, void *user)
{
    int rc = timed_serve(server, user);

    return rc == 0 ? bow_server_limit_calls(server, &HOLD[1], 1) : rc;
}

static void begin_limited(struct timed *timed, const struct bow_server_options *server,
                          const struct bow_client_options *client)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    options.serve = serve_limited;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.server = server;
    options.client = client;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
}

static void start_hold(struct timed *timed)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call *held = timed->held;

    assert_int_equal(
        calls__echo__hold__start(timed->pair->client, &request, NULL, timed_on_done, timed, NULL),
        0);
    timed_run(timed);
    timed->held = held;
}

static void expect_refused_of_hold(struct timed *timed, enum bow_refusal refusal)
{
    look(timed, HOLD);
    for (unsigned i = 0; i < BOW_N_REFUSALS; i++) {
        assert_int_equal(server_side.metrics.refused[i], i == (unsigned)refusal);
    }
    assert_int_equal(server_side.metrics.started, 2);
    assert_int_equal(server_side.metrics.ended[BOW_RESOURCE_EXHAUSTED], 1);
    assert_int_equal(timed_reply(timed->held, NULL), 0);
    timed_run(timed);
    look(timed, HOLD);
    assert_int_equal(server_side.times[BOW_TIME_CALL].count, 2); /* also of the refused */
    assert_int_equal(server_side.metrics.received.count, 2);
}

static void test_metrics_refused_by_the_methods_limit(void **state)
{
    struct timed *timed = *state;

    begin_limited(timed, NULL, NULL);
    (void)timed_hold(timed, 10 * SECOND);
    start_hold(timed);
    assert_int_equal(timed->code, BOW_RESOURCE_EXHAUSTED);
    expect_refused_of_hold(timed, BOW_REFUSED_METHOD);
}

static void work(struct timed *timed, struct bow_call *call)
{
    (void)call;
    bow__fake_system_advance(&timed->test->fake, 200 * MS);
}

/* Those of the turns behind it have waited as long as those of its own. */
static void test_metrics_refused_in_a_later_turn_count_from_when_they_came(void **state)
{
    struct timed *timed = *state;
    const uint64_t n_refused = 1000;
    Calls__Request request = CALLS__REQUEST__INIT;

    if (timed_is_grpc()) { /* where heads overtake messages, so the handler is entered last */
        return;
    }
    begin_limited(timed, NULL, NULL);
    (void)timed_hold(timed, 10 * SECOND);
    struct bow_call *held = timed->held;
    timed->enter = work;
    assert_int_equal(
        calls__echo__say__start(timed->pair->client, &request, NULL, timed_on_done, timed, NULL),
        0);
    for (uint64_t i = 0; i < n_refused; i++) {
        assert_int_equal(calls__echo__hold__start(timed->pair->client, &request, NULL,
                                                  timed_on_done, timed, NULL),
                         0);
    }
    timed_run(timed);
    look(timed, HOLD);
    assert_int_equal(server_side.metrics.refused[BOW_REFUSED_METHOD], n_refused);
    assert_int_equal(server_side.times[BOW_TIME_CALL].count, n_refused);
    assert_int_equal(server_side.times[BOW_TIME_CALL].sum, n_refused * 200 * MS);
    assert_int_equal(timed_reply(held, NULL), 0);
    timed_run(timed);
}

static void test_metrics_refused_by_the_servers_limit(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.max_server_calls = 1;
    timed_begin(timed, &options, NULL);
    (void)timed_hold(timed, 10 * SECOND);
    start_hold(timed);
    assert_int_equal(timed->code, BOW_RESOURCE_EXHAUSTED);
    expect_refused_of_hold(timed, BOW_REFUSED_SERVER);
}

static void test_metrics_refused_by_the_clients_queue(void **state)
{
    struct timed *timed = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_call_options call = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.max_queued_calls = 1;
    timed_begin(timed, NULL, &options);
    bow_test_refuse(timed->test, true);
    start_waiting(timed);
    call.wait_for_ready = true;
    assert_int_equal(
        calls__echo__say__start(timed->pair->client, &request, &call, timed_on_done, timed, NULL),
        -EAGAIN);
    look(timed, SAY);
    assert_int_equal(client_side.metrics.refused[BOW_REFUSED_QUEUE], 1);
    assert_int_equal(client_side.metrics.started, 1); /* what is refused there has not begun */
    assert_int_equal(client_totals(timed).calls_refused_queue, 1);
    bow_test_refuse(timed->test, false);
    timed_advance(timed, 100 * SECOND);
    assert_int_equal(timed->n_done, 1);
}

static void test_metrics_names_of_limits(void **state)
{
    (void)state;
    assert_string_equal(bow_refusal_name(BOW_REFUSED_METHOD), "bow_server_limit_calls");
    assert_string_equal(bow_refusal_name(BOW_N_REFUSALS), "");
}

/* Streams */

struct streaming {
    struct calls__echo__stream__call call;
    bool listens;
    bool reads;
    int n_closed;
    size_t n_received;
};

static struct streaming streaming;

static void on_request(struct calls__echo__stream__call call, const Calls__Request *message,
                       void *user)
{
    (void)call;
    (void)user;
    streaming.n_received += message->payload.len;
}

static void serve_stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_message = on_request};

    (void)user;
    streaming.call = call;
    if (streaming.listens) {
        calls__echo__stream__listen(call, &events, NULL);
    }
}

static void on_reply(struct calls__echo__stream__stream stream, const Calls__Reply *message,
                     void *user)
{
    (void)stream;
    (void)message;
    (void)user;
}

static void on_closed(struct calls__echo__stream__stream stream, struct bow_result *result,
                      void *user)
{
    (void)stream;
    (void)result;
    (void)user;
    streaming.n_closed++;
}

static int serve_streams(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.stream = serve_stream};

    return calls__echo__serve(server, &handlers, user);
}

static struct bow_stream *open_stream(struct timed *timed, bool listens)
{
    static const struct calls__echo__stream__stream_events events = {.on_message = on_reply,
                                                                     .on_closed = on_closed};
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct calls__echo__stream__stream stream;

    memset(&streaming, 0, sizeof(streaming));
    streaming.listens = listens;
    options.serve = serve_streams;
    options.grpc = timed_is_grpc();
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
    assert_int_equal(calls__echo__stream__open(timed->pair->client, NULL, &events, NULL, &stream),
                     0);
    timed_run(timed);
    assert_non_null(streaming.call.call);
    return stream.stream;
}

/* Until there is no room. */
static void send_all(struct timed *timed, struct bow_stream *stream, size_t *n_sent)
{
    static uint8_t bytes[PIECE_BYTES];
    Calls__Request request = CALLS__REQUEST__INIT;
    int rc = 0;

    request.payload = (ProtobufCBinaryData){sizeof(bytes), bytes};
    while (rc == 0) {
        rc = bow_stream_send(stream, &request.base);
        *n_sent += rc == 0 ? sizeof(bytes) : 0;
        timed_run(timed);
    }
    assert_int_equal(rc, -EAGAIN);
}

static void test_metrics_stalls_of_a_client_that_sends(void **state)
{
    struct timed *timed = *state;
    struct bow_stream *stream = open_stream(timed, false);
    size_t n_sent = 0;

    send_all(timed, stream, &n_sent);
    look(timed, STREAM);
    assert_int_equal(client_side.metrics.stalls, 0); /* it is not over */
    streaming.listens = true;
    serve_stream(streaming.call, NULL);
    timed_run(timed);
    look(timed, STREAM);
    assert_int_equal(client_side.metrics.stalls, 1);
    assert_int_equal(server_side.metrics.stalls, 0);
    assert_int_equal(streaming.n_received, n_sent);
    assert_int_equal(bow_stream_half_close(stream), 0);
    timed_run(timed);
    assert_int_equal(calls__echo__stream__finish(streaming.call), 0);
    bow_stream_unref(stream);
    timed_run(timed);
    assert_int_equal(streaming.n_closed, 1);
    look(timed, STREAM);
    assert_int_equal(client_side.metrics.stalls, 1);
    assert_int_equal(client_side.metrics.sent.count, 1); /* of the call, not of each message */
    assert_true(client_side.metrics.sent.sum > n_sent);
    assert_int_equal(server_side.metrics.received.sum, client_side.metrics.sent.sum);
    assert_int_equal(server_side.metrics.ended[BOW_OK], 1);
}

static void test_metrics_stalls_that_end_with_the_call(void **state)
{
    struct timed *timed = *state;
    struct bow_stream *stream = open_stream(timed, false);
    size_t n_sent = 0;

    send_all(timed, stream, &n_sent);
    bow_stream_cancel(stream);
    bow_stream_unref(stream);
    timed_run(timed);
    assert_int_equal(streaming.n_closed, 1);
    look(timed, STREAM);
    assert_int_equal(client_side.metrics.stalls, 1);
    assert_int_equal(client_side.metrics.cancelled, 1);
    assert_int_equal(server_side.metrics.cancelled, 1);
}

static void test_metrics_stalls_of_a_server_that_sends(void **state)
{
    static uint8_t bytes[PIECE_BYTES];
    struct timed *timed = *state;
    struct bow_stream *stream = open_stream(timed, true);
    Calls__Reply reply = CALLS__REPLY__INIT;
    int rc = 0;

    bow_stream_pause(stream);
    reply.payload = (ProtobufCBinaryData){sizeof(bytes), bytes};
    while (rc == 0) {
        rc = calls__echo__stream__send(streaming.call, &reply);
        timed_run(timed);
    }
    assert_int_equal(rc, -EAGAIN);
    look(timed, STREAM);
    assert_int_equal(server_side.metrics.stalls, 1);
    assert_int_equal(client_side.metrics.stalls, 0);
    bow_stream_resume(stream);
    timed_run(timed);
    assert_int_equal(bow_stream_half_close(stream), 0);
    timed_run(timed);
    assert_int_equal(calls__echo__stream__finish(streaming.call), 0);
    bow_stream_unref(stream);
    timed_run(timed);
    look(timed, STREAM);
    assert_int_equal(server_side.metrics.stalls, 1);
    assert_int_equal(server_side.metrics.sent.sum, client_side.metrics.received.sum);
    assert_true(server_side.metrics.sent.sum > BOW_STREAM_WRITABLE_BYTES);
}

/* By time */

static int n_told_by_server;
static int n_told_by_client;

static void on_server_metrics(const struct bow_server *server, void *user)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_non_null(user);
    assert_int_equal(bow_server_metrics(server, &metrics), 0);
    n_told_by_server++;
}

static void on_client_metrics(const struct bow_client *client, void *user)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_non_null(user);
    assert_int_equal(bow_client_metrics(client, &metrics), 0);
    n_told_by_client++;
}

static void test_metrics_are_asked_for_each_interval(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    n_told_by_server = 0;
    n_told_by_client = 0;
    server.metrics_interval_ns = 10 * SECOND;
    server.on_metrics = on_server_metrics;
    server.metrics_user = timed;
    client.metrics_interval_ns = 4 * SECOND;
    client.on_metrics = on_client_metrics;
    client.metrics_user = timed;
    timed_begin(timed, &server, &client);
    timed_advance(timed, 10 * SECOND);
    assert_int_equal(n_told_by_server, 1);
    assert_int_equal(n_told_by_client, 0); /* it has made no call */
    timed_say(timed, 0);
    timed_advance(timed, 20 * SECOND);
    assert_int_equal(n_told_by_server, 3);
    assert_int_equal(n_told_by_client, 5);
    bow_test_pair_free(timed->test, timed->pair);
    timed->pair = NULL;
    assert_int_equal(n_told_by_server, 4); /* once more at its end */
    assert_int_equal(n_told_by_client, 5);
}

/* Want of memory */

static int count_in_want(struct bow_test *test, void *user)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct timed timed = {.test = test};
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    (void)user;
    options.serve = timed_serve;
    options.user = &timed;
    options.grpc = timed_is_grpc();
    int rc = bow_test_pair_new(test, &options, &timed.pair);
    if (rc < 0) {
        return 0;
    }
    const Calls__Reply *reply =
        calls__echo__say__call(timed.pair->blocking, &request, NULL, &result);
    bool is_ok = reply != NULL;
    bow_result_fini(&result);
    memset(&client_side, 0, sizeof(client_side));
    client_side.path = SAY;
    bow_client_each_method(timed.pair->blocking, find, &client_side);
    if (is_ok && client_side.metrics.started == 0) {
        client_side.path = "*"; /* there was no memory for its name */
        bow_client_each_method(timed.pair->blocking, find, &client_side);
    }
    return is_ok && client_side.metrics.ended[BOW_OK] != 1 ? -EBADMSG : 0;
}

static void test_metrics_want_of_memory_costs_no_call(void **state)
{
    (void)state;
    assert_true(bow_test_fail_each(count_in_want, NULL) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_metrics_times_are_those_that_calls_took),
        TEST(test_metrics_times_are_kept_apart_by_code),
        TEST(test_metrics_many_of_one_batch_are_each_counted),
        TEST(test_metrics_sizes_are_those_of_the_messages),
        TEST(test_metrics_in_flight_are_those_that_have_not_ended),
        TEST(test_metrics_cancelled_by_the_client_count_on_both_sides),
        TEST(test_metrics_one_that_expires_is_not_cancelled),
        TEST(test_metrics_retried_are_two_attempts_of_one_call),
        TEST(test_metrics_time_in_the_queue_ends_with_a_connection),
        TEST(test_metrics_time_in_the_queue_ends_with_the_call),
        TEST(test_metrics_time_before_a_handler_counts_on_the_server),
        TEST(test_metrics_refused_by_the_methods_limit),
        TEST(test_metrics_refused_in_a_later_turn_count_from_when_they_came),
        TEST(test_metrics_refused_by_the_servers_limit),
        TEST(test_metrics_refused_by_the_clients_queue),
        cmocka_unit_test(test_metrics_names_of_limits),
        TEST(test_metrics_stalls_of_a_client_that_sends),
        TEST(test_metrics_stalls_that_end_with_the_call),
        TEST(test_metrics_stalls_of_a_server_that_sends),
        TEST(test_metrics_are_asked_for_each_interval),
        cmocka_unit_test(test_metrics_want_of_memory_costs_no_call),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
