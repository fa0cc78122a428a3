/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that a client begins before it can know of a low max_calls, or up to what the protocol
 * promises to it: handlers have as many as that at a time, the others wait for their turn, in
 * order, and none is refused. PROTOCOL is the argument.
 */

#include "call_fixture.h"
#include "timed_fixture.h"

#include <bowline/call_stream.h>
#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_CALLS 3
#define N_CALLS 100

static struct {
    struct bow_call *calls[N_CALLS]; /* that handlers have, oldest first */
    int n;
    int n_entered;
    uint64_t n_started; /* of Hold, which are so numbered */
    uint64_t next;
    int n_done;
    int n_ok;
    char message[512]; /* of the last that was not OK */
} seen;

static void take(struct bow_call *call)
{
    seen.calls[seen.n++] = call;
    seen.n_entered++;
    assert_in_range(seen.n, 1, MAX_CALLS);
}

static struct bow_call *give(void)
{
    assert_int_not_equal(seen.n, 0);
    struct bow_call *call = seen.calls[0];
    memmove(&seen.calls[0], &seen.calls[1], (size_t)--seen.n * sizeof(seen.calls[0]));
    return call;
}

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)user;
    assert_int_equal(request->number, seen.next);
    seen.next++;
    take(call);
}

static void hold_stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_message = NULL};

    assert_int_equal(calls__echo__stream__listen(call, &events, user), 0);
    take(call.call);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)user;
    (void)request;
    assert_int_equal(calls__echo__say__reply(call, &reply), 0);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say, .hold = hold, .stream = hold_stream};

    return calls__echo__serve(server, &handlers, user);
}

static void begin(struct timed *timed)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;

    memset(&seen, 0, sizeof(seen));
    server.max_calls = MAX_CALLS;
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.server = &server;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    (void)reply;
    (void)user;
    seen.n_done++;
    seen.n_ok += result->status.code == BOW_OK;
    if (result->status.code != BOW_OK) {
        snprintf(seen.message, sizeof(seen.message), "%s: %s", bow_code_name(result->status.code),
                 result->status.message);
    }
}

static void start_sized(struct timed *timed, uint64_t n, ProtobufCBinaryData payload,
                        uint64_t *ret_ids)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload = payload;
    for (uint64_t i = 0; i < n; i++) {
        request.number = seen.n_started++;
        int rc = calls__echo__hold__start(timed->pair->client, &request, NULL, on_done, NULL,
                                          ret_ids != NULL ? &ret_ids[i] : NULL);
        if (rc != 0) {
            fail_msg("starting call %d: %d", (int)request.number, rc);
        }
    }
    timed_run(timed);
}

static void start_holds(struct timed *timed, uint64_t n, uint64_t *ret_ids)
{
    start_sized(timed, n, (ProtobufCBinaryData){0, NULL}, ret_ids);
}

static void expect_none_refused(struct timed *timed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_advance(timed, SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.calls_refused_connection, 0);
    assert_int_equal(metrics.protocol_errors, 0);
    assert_int_equal(metrics.connections_opened, 1);
}

static void answer_all(struct timed *timed)
{
    while (seen.n > 0) {
        assert_int_equal(timed_reply(give(), NULL), 0);
        timed_run(timed);
    }
}

static void test_early_calls_wait_for_their_turn(void **state)
{
    struct timed *timed = *state;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    begin(timed);
    start_holds(timed, N_CALLS, NULL);
    assert_int_equal(seen.n, MAX_CALLS);
    timed_advance(timed, SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.calls_delayed, N_CALLS - MAX_CALLS);
    answer_all(timed);
    assert_int_equal(seen.n_done, N_CALLS);
    assert_int_equal(seen.n_ok, N_CALLS);
    expect_none_refused(timed);
}

/* Those that are answered where they arrive have nobody wait. */
static void test_early_calls_that_are_answered_at_once_do_not_wait(void **state)
{
    struct timed *timed = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    begin(timed);
    for (int i = 0; i < N_CALLS; i++) {
        assert_int_equal(
            calls__echo__say__start(timed->pair->client, &request, NULL, on_done, NULL, NULL), 0);
    }
    timed_run(timed);
    assert_int_equal(seen.n_ok, N_CALLS);
    expect_none_refused(timed);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.calls_delayed, 0);
}

/* One that waits is nobody's when its client gives it up, and one that handlers had gives its place
 * to the next. */
static void test_early_calls_that_are_cancelled_leave_room(void **state)
{
    struct timed *timed = *state;
    uint64_t ids[N_CALLS];

    begin(timed);
    start_holds(timed, N_CALLS, ids);
    for (int i = 10; i < N_CALLS; i++) {
        bow_client_cancel(timed->pair->client, ids[i]);
    }
    timed_run(timed);
    assert_int_equal(seen.n_done, N_CALLS - 10);
    assert_int_equal(seen.n_entered, MAX_CALLS);
    struct bow_call *given_up = give();
    bow_client_cancel(timed->pair->client, ids[0]);
    timed_run(timed);
    assert_int_equal(seen.n_entered, MAX_CALLS + 1);
    assert_int_equal(timed_reply(given_up, NULL), -ECANCELED);
    answer_all(timed);
    assert_int_equal(seen.n_entered, 10);
    assert_int_equal(seen.n_ok, 10 - 1);
    expect_none_refused(timed);
}

/* What waits for its turn has a limit in bytes. */
static void test_early_calls_that_take_too_much_while_they_wait_are_refused(void **state)
{
    enum { PAYLOAD_BYTES = 1 << 20 };
    struct timed *timed = *state;
    struct bow_metrics metrics = BOW_METRICS_INIT;
    ProtobufCBinaryData payload = {PAYLOAD_BYTES, NULL};

    if (timed_is_grpc()) {
        print_message("skipped: over gRPC the client knows of max_calls by then\n");
        skip();
    }
    payload.data = calloc(1, PAYLOAD_BYTES);
    begin(timed);
    assert_non_null(payload.data);
    for (int i = 0; i < N_CALLS; i++) { /* one by one, so that they come whole in their order */
        start_sized(timed, 1, payload, NULL);
    }
    free(payload.data);
    int n_refused = seen.n_done;
    int most = (int)(BOW_LIMIT_WAITING_REQUEST_BYTES / PAYLOAD_BYTES) + 1;
    assert_in_range(n_refused, N_CALLS - MAX_CALLS - most, N_CALLS - MAX_CALLS - most / 2);
    size_t n_waiting;
    assert_int_equal(sscanf(seen.message,
                            "RESOURCE_EXHAUSTED: /calls.Echo/Hold: %zu bytes of calls wait on this "
                            "connection, for handlers have max_calls (3) of it; "
                            "BOW_LIMIT_WAITING_REQUEST_BYTES (67108864)",
                            &n_waiting),
                     1);
    assert_non_null(strstr(seen.message, "handlers have max_calls (3) of it; "
                                         "BOW_LIMIT_WAITING_REQUEST_BYTES (67108864)"));
    assert_in_range(n_waiting, BOW_LIMIT_WAITING_REQUEST_BYTES,
                    BOW_LIMIT_WAITING_REQUEST_BYTES + 4 * PAYLOAD_BYTES);
    timed_advance(timed, SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.calls_refused_connection, n_refused);
    assert_int_equal(calls_n_refused(timed->pair->server, BOW_REFUSED_CONNECTION), n_refused);
    answer_all(timed);
    assert_int_equal(seen.n_ok, N_CALLS - n_refused);
}

static void test_early_calls_are_answered_by_a_server_that_stops(void **state)
{
    struct timed *timed = *state;

    begin(timed);
    start_holds(timed, N_CALLS, NULL);
    bow_server_stop(timed->pair->server);
    timed_run(timed);
    answer_all(timed);
    assert_int_equal(seen.n_ok, N_CALLS);
}

/* Streams have a place each for as long as they last. */

static void on_closed(struct calls__echo__stream__stream stream, struct bow_result *result,
                      void *user)
{
    (void)stream;
    on_done(result, NULL, user);
}

static void test_early_streams_wait_for_their_turn(void **state)
{
    static const struct calls__echo__stream__stream_events events = {.on_closed = on_closed};
    struct timed *timed = *state;

    begin(timed);
    for (int i = 0; i < N_CALLS; i++) {
        assert_int_equal(calls__echo__stream__open(timed->pair->client, NULL, &events, NULL, NULL),
                         0);
    }
    timed_run(timed);
    assert_int_equal(seen.n, MAX_CALLS);
    while (seen.n > 0) {
        struct calls__echo__stream__call call = {give()};
        assert_int_equal(calls__echo__stream__finish(call), 0);
        timed_run(timed);
    }
    assert_int_equal(seen.n_ok, N_CALLS);
    expect_none_refused(timed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_early_calls_wait_for_their_turn),
        TEST(test_early_calls_that_are_answered_at_once_do_not_wait),
        TEST(test_early_calls_that_are_cancelled_leave_room),
        TEST(test_early_calls_that_take_too_much_while_they_wait_are_refused),
        TEST(test_early_calls_are_answered_by_a_server_that_stops),
        TEST(test_early_streams_wait_for_their_turn),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
