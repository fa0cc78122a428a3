/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From when on a client's connection is idle: the end of its last call, in whatever way that ended.
 */

#include "timed_fixture.h"

#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define IDLE_NS (10 * SECOND)

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct timed *timed = user;

    (void)request;
    timed->held = call;
}

static void on_message(struct calls__echo__stream__call call, const Calls__Request *message,
                       void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)message;
    (void)user;
    assert_int_equal(calls__echo__stream__send(call, &reply), 0);
    assert_int_equal(calls__echo__stream__finish(call), 0);
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_message = on_message};

    assert_int_equal(calls__echo__stream__listen(call, &events, user), 0);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.hold = hold, .stream = stream};

    return calls__echo__serve(server, &handlers, user);
}

static void begin(struct timed *timed)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.idle_timeout_ns = IDLE_NS;
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.client = &client;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
}

/* The connection's last call has just ended there. */
static void expect_idle_from_now(struct timed *timed)
{
    timed_advance(timed, IDLE_NS - SECOND);
    assert_int_equal(bow_client_get_state(timed->pair->client), BOW_CLIENT_READY);
    timed_advance(timed, 2 * SECOND);
    assert_int_equal(bow_client_get_state(timed->pair->client), BOW_CLIENT_IDLE);
}

static void test_idle_counts_from_an_answer(void **state)
{
    struct timed *timed = *state;

    begin(timed);
    timed_hold(timed, BOW_NEVER);
    timed_advance(timed, IDLE_NS - SECOND);
    assert_int_equal(timed_reply(timed->held, NULL), 0);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1);
    expect_idle_from_now(timed);
}

/* The server's clock is ahead, so the call has left the connection when our timer ends it. */
static void test_idle_counts_from_a_deadline_that_the_server_kept(void **state)
{
    struct timed *timed = *state;

    begin(timed);
    timed_hold(timed, IDLE_NS - SECOND);
    timed_advance(timed, IDLE_NS - SECOND - 10 * MS);
    assert_int_equal(bow_call_fail(timed->held, BOW_DEADLINE_EXCEEDED, "too late"), 0);
    timed_run(timed);
    assert_int_equal(timed->n_done, 0);
    timed_advance(timed, 10 * MS);
    assert_int_equal(timed->n_done, 1);
    assert_int_equal(timed->code, BOW_DEADLINE_EXCEEDED);
    expect_idle_from_now(timed);
}

static void on_closed(struct calls__echo__stream__stream opened, struct bow_result *result,
                      void *user)
{
    struct timed *timed = user;

    (void)opened;
    timed->n_done++;
    timed->code = result->status.code;
}

static void on_reply(struct calls__echo__stream__stream opened, const Calls__Reply *reply,
                     void *user)
{
    (void)opened;
    (void)reply;
    (void)user;
}

/* What the server sent last waits for who does not read now. */
static void test_idle_counts_from_the_end_of_a_paused_stream(void **state)
{
    static const struct calls__echo__stream__stream_events events = {
        .on_message = on_reply,
        .on_closed = on_closed,
    };
    struct timed *timed = *state;
    struct calls__echo__stream__stream opened;
    Calls__Request request = CALLS__REQUEST__INIT;

    begin(timed);
    assert_int_equal(calls__echo__stream__open(timed->pair->client, NULL, &events, timed, &opened),
                     0);
    bow_stream_pause(opened.stream);
    timed_run(timed);
    timed_advance(timed, IDLE_NS - SECOND);
    assert_int_equal(bow_stream_send(opened.stream, &request.base), 0);
    timed_run(timed);
    expect_idle_from_now(timed);
    assert_int_equal(timed->n_done, 0);
    bow_stream_resume(opened.stream);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1);
    assert_int_equal(timed->code, BOW_OK);
    bow_stream_unref(opened.stream);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_idle_counts_from_an_answer),
        TEST(test_idle_counts_from_a_deadline_that_the_server_kept),
        TEST(test_idle_counts_from_the_end_of_a_paused_stream),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
