/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies that are still on their way when their connection is to end, for its age or with its
 * server: a reader that is slow gets all of them, one that stands still does not keep the server,
 * and whoever is cut off is told.
 */

#include "timed_fixture.h"

#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_MESSAGES 2
#define N_CALLS 8 /* of unary ones that fill what is on its way */
#define N_BEHIND 500
#define SAY_BYTES ((size_t)48 << 10)

/* The first takes most of the window, and the second waits behind it. */
static const size_t message_bytes[N_MESSAGES] = {(size_t)200 << 10, (size_t)1 << 20};

struct reader {
    struct calls__echo__stream__stream stream;
    int n_received;
    int n_closed;
    enum bow_code code;
    char text[512];
};

static struct reader reader;
static int n_poured;
static bool says_much;   /* and stalls the connection before it does */
static bool leaves_open; /* the handler does not finish its call */
static int n_ended;      /* handlers that heard of the end of their call */
static enum bow_code ended_with;

/* The server */

static void on_served(struct calls__echo__stream__call call, const struct bow_status *status,
                      void *user)
{
    (void)call;
    (void)user;
    n_ended++;
    ended_with = status->code;
}

static void send_one(struct calls__echo__stream__call call, size_t n_bytes)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.len = n_bytes;
    reply.payload.data = calloc(1, n_bytes);
    assert_non_null(reply.payload.data);
    assert_int_equal(calls__echo__stream__send(call, &reply), 0);
    free(reply.payload.data);
}

/* The first has left. */
static void pour_rest(struct calls__echo__stream__call call, void *user)
{
    (void)user;
    if (n_poured == 1) {
        send_one(call, message_bytes[n_poured++]);
        if (!leaves_open) {
            assert_int_equal(calls__echo__stream__finish(call), 0);
        }
    }
}

static void pour(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_writable = pour_rest,
                                                                   .on_closed = on_served};

    (void)user;
    assert_int_equal(calls__echo__stream__listen(call, &events, NULL), 0);
    n_poured = 1;
    send_one(call, message_bytes[0]);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    static uint8_t bytes[SAY_BYTES];
    struct timed *timed = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)request;
    if (says_much) {
        bow_test_break(timed->test, BOW_TEST_STALL);
        reply.payload.data = bytes;
        reply.payload.len = sizeof(bytes);
    }
    assert_int_equal(calls__echo__say__reply(call, &reply), 0);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say, .stream = pour};

    return calls__echo__serve(server, &handlers, user);
}

static struct bow_server_options server_options(void)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.heartbeat_ns = BOW_NEVER;
    options.write_timeout_ns = 10 * SECOND;
    options.grace_ns = 3600 * SECOND;
    return options;
}

static void begin(struct timed *timed, const struct bow_server_options *server)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options secured = *server;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.heartbeat_ns = BOW_NEVER;
    client.write_timeout_ns = BOW_NEVER;
    timed_secure(timed, &secured, &client);
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.server = &secured;
    options.client = &client;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
    leaves_open = false;
    says_much = false;
    n_ended = 0;
}

/* The client */

static void on_message(struct calls__echo__stream__stream stream, const Calls__Reply *message,
                       void *user)
{
    (void)stream;
    (void)user;
    assert_int_equal(message->payload.len, message_bytes[reader.n_received]);
    reader.n_received++;
}

static void on_closed(struct calls__echo__stream__stream stream, struct bow_result *result,
                      void *user)
{
    (void)stream;
    (void)user;
    reader.n_closed++;
    reader.code = result->status.code;
    snprintf(reader.text, sizeof(reader.text), "%s", result->status.message);
}

/* A reader that gives no credit for now. */
static void open_paused(struct timed *timed)
{
    static const struct calls__echo__stream__stream_events events = {.on_message = on_message,
                                                                     .on_closed = on_closed};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = BOW_NEVER;
    reader = (struct reader){.n_received = 0};
    assert_int_equal(
        calls__echo__stream__open(timed->pair->client, &options, &events, NULL, &reader.stream), 0);
    bow_stream_pause(reader.stream.stream);
    timed_advance(timed, SECOND);
    assert_int_equal(reader.n_received, 0);
    assert_int_equal(n_ended, leaves_open ? 0 : 1);
}

static void expect_all(struct timed *timed)
{
    assert_int_equal(reader.n_closed, 0);
    bow_stream_resume(reader.stream.stream);
    timed_run(timed);
    assert_int_equal(reader.n_received, N_MESSAGES);
    assert_int_equal(reader.n_closed, 1);
    assert_int_equal(reader.code, BOW_OK);
}

/* What it is told, over both protocols, once it reads on. */
static void expect_cut(struct timed *timed, const char *why)
{
    const char *address = strstr(timed->pair->target, "inproc:");

    bow_stream_resume(reader.stream.stream);
    timed_run(timed);
    assert_int_equal(reader.n_closed, 1);
    assert_int_equal(reader.code, BOW_UNAVAILABLE);
    if (strstr(reader.text, why) == NULL || strstr(reader.text, address) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\", or of %s", reader.text, why, address);
    }
}

/* Tests */

static void test_drain_f36_slow_stream_outlives_the_age(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();

    options.max_age_ns = 10 * SECOND;
    begin(timed, &options);
    open_paused(timed);
    timed_advance(timed, 17 * SECOND);
    expect_all(timed);
}

static void test_drain_f36_slow_stream_outlives_the_stop(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();

    begin(timed, &options);
    open_paused(timed);
    bow_server_stop(timed->pair->server);
    timed_advance(timed, 9 * SECOND);
    expect_all(timed);
}

/* A socket that is full moves again before its time-out, in both ways of leaving. */
static void reply_into_a_full_socket(struct timed *timed, uint64_t max_age_ns)
{
    struct bow_server_options options = server_options();

    options.max_age_ns = max_age_ns;
    begin(timed, &options);
    says_much = true;
    for (int i = 0; i < N_CALLS; i++) {
        timed_say(timed, 0);
    }
    timed_run(timed);
    if (max_age_ns == 0) {
        bow_server_stop(timed->pair->server);
    }
    timed_advance(timed, 9 * SECOND);
    bow_test_resume(timed->test);
    timed_run(timed);
    assert_int_equal(timed->n_done, N_CALLS);
    assert_int_equal(timed->n_failed, 0);
}

static void test_drain_f36_replies_in_a_full_socket_outlive_the_age(void **state)
{
    reply_into_a_full_socket(*state, SECOND);
}

static void test_drain_f36_replies_in_a_full_socket_outlive_the_stop(void **state)
{
    reply_into_a_full_socket(*state, 0);
}

static void test_drain_f36_reader_that_stands_still_is_given_up(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();
    struct bow_metrics metrics = BOW_METRICS_INIT;

    begin(timed, &options);
    open_paused(timed);
    bow_server_stop(timed->pair->server);
    timed_advance(timed, 15 * SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.connections_stalled, 1);
    assert_int_equal(metrics.connections_closed, 1);
    expect_cut(timed, "write_timeout_ns");
}

static void test_drain_f39_end_of_the_age_is_told(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();

    options.max_age_ns = 10 * SECOND;
    options.max_age_grace_ns = 3 * SECOND;
    begin(timed, &options);
    open_paused(timed);
    timed_advance(timed, 15 * SECOND);
    expect_cut(timed, "max_age_grace_ns is over");
}

static void test_drain_f39_end_of_grace_is_told(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();

    options.grace_ns = 3 * SECOND;
    begin(timed, &options);
    leaves_open = true;
    open_paused(timed);
    bow_server_stop(timed->pair->server);
    timed_advance(timed, 4 * SECOND);
    assert_int_equal(n_ended, 1);
    assert_int_equal(ended_with, BOW_UNAVAILABLE);
    expect_cut(timed, "(grace_ns) is over");
}

/* Calls that its client began before it could read of the end are served, and not sent back to be
 * tried once more: a client's library does that once, and then tells its user. */
static void test_drain_f37_calls_of_a_client_that_is_behind_are_served(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options options = server_options();
    struct bow_metrics metrics = BOW_METRICS_INIT;

    options.max_age_ns = 10 * SECOND;
    begin(timed, &options);
    timed_say(timed, 0);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1);
    bow_test_break(timed->test, BOW_TEST_STALL);
    for (int i = 0; i < N_BEHIND; i++) {
        timed_say(timed, 0);
    }
    timed_advance(timed, 15 * SECOND);
    bow_test_resume(timed->test);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1 + N_BEHIND);
    assert_int_equal(timed->n_failed, 0);
    timed_advance(timed, SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.connections_opened, 1);
}

static int tear_down(void **state)
{
    bow_stream_unref(reader.stream.stream);
    reader.stream.stream = NULL;
    return timed_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_drain_f36_slow_stream_outlives_the_age),
        TEST(test_drain_f36_slow_stream_outlives_the_stop),
        TEST(test_drain_f36_replies_in_a_full_socket_outlive_the_age),
        TEST(test_drain_f36_replies_in_a_full_socket_outlive_the_stop),
        TEST(test_drain_f36_reader_that_stands_still_is_given_up),
        TEST(test_drain_f37_calls_of_a_client_that_is_behind_are_served),
        TEST(test_drain_f39_end_of_the_age_is_told),
        TEST(test_drain_f39_end_of_grace_is_told),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
