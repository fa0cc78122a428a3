/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streams of a server that nobody reads, each on a connection of its own: their producers are
 * told to stop, each costs its windows and no more, and goes on when it is read.
 */

#include "timed_fixture.h"

#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_STREAMS 50
#define N_MESSAGES 2048
#define MESSAGE_BYTES 1024
/* What waits on the stream, its window, and the memory around them: half of what it has to send. */
#define MAX_STREAM_BYTES ((size_t)1 << 20)
/* Of messages without bytes, likewise; a window has room for many, which take memory each. */
#define N_EMPTY 150000
#define MAX_EMPTY_BYTES ((size_t)10 << 20)

struct unread {
    struct timed *timed;
    struct bow_client *client;
    struct calls__echo__stream__stream stream;
    int n_received; /* with as many bytes as were sent */
    enum bow_code code;
    bool closed;
};

struct producer {
    int n_sent;
    int n_told; /* to stop */
};

static int n_stopped; /* producers that were told to, at least once */
static int n_messages;
static size_t message_bytes;

static void pour(struct calls__echo__stream__call call, void *user)
{
    static uint8_t bytes[MESSAGE_BYTES];
    struct producer *producer = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.data = bytes;
    reply.payload.len = message_bytes;
    while (producer->n_sent < n_messages) {
        int rc = calls__echo__stream__send(call, &reply);
        if (rc == -EAGAIN) {
            n_stopped += producer->n_told++ == 0;
            return;
        }
        assert_int_equal(rc, 0);
        producer->n_sent++;
    }
    assert_int_equal(calls__echo__stream__finish(call), 0);
}

static void on_served(struct calls__echo__stream__call call, const struct bow_status *status,
                      void *user)
{
    (void)call;
    (void)status;
    free(user);
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_writable = pour,
                                                                   .on_closed = on_served};
    struct producer *producer = calloc(1, sizeof(*producer));

    (void)user;
    assert_non_null(producer);
    assert_int_equal(calls__echo__stream__listen(call, &events, producer), 0);
    pour(call, producer);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.stream = stream};

    return calls__echo__serve(server, &handlers, user);
}

static void on_message(struct calls__echo__stream__stream stream_of, const Calls__Reply *message,
                       void *user)
{
    struct unread *unread = user;

    (void)stream_of;
    unread->n_received += message->payload.len == message_bytes;
}

static void on_closed(struct calls__echo__stream__stream stream_of, struct bow_result *result,
                      void *user)
{
    struct unread *unread = user;

    (void)stream_of;
    unread->code = result->status.code;
    unread->closed = true;
}

static void begin(struct timed *timed, int n, size_t n_bytes)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    n_messages = n;
    message_bytes = n_bytes;
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
    n_stopped = 0;
}

static void open_paused(struct unread *unread, struct timed *timed)
{
    static const struct calls__echo__stream__stream_events events = {.on_message = on_message,
                                                                     .on_closed = on_closed};
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    *unread = (struct unread){.timed = timed};
    options.context = bow_test_context(timed->test);
    options.loop = bow_test_loop(timed->test);
    options.target = timed->pair->target;
    assert_int_equal(bow_client_new(&options, &unread->client), 0);
    assert_int_equal(
        calls__echo__stream__open(unread->client, NULL, &events, unread, &unread->stream), 0);
    bow_stream_pause(unread->stream.stream);
}

static void test_unread_f15_streams_cost_their_windows_and_no_more(void **state)
{
    static struct unread streams[N_STREAMS];
    struct timed *timed = *state;

    begin(timed, N_MESSAGES, MESSAGE_BYTES);
    size_t before = bow_context_bytes(bow_test_context(timed->test));
    for (int i = 0; i < N_STREAMS; i++) {
        open_paused(&streams[i], timed);
    }
    timed_advance(timed, SECOND);
    assert_int_equal(n_stopped, N_STREAMS);
    size_t held = bow_context_bytes(bow_test_context(timed->test)) - before;
    if (held > N_STREAMS * MAX_STREAM_BYTES) {
        fail_msg("%d unread streams cost %zu KiB", N_STREAMS, held >> 10);
    }
    for (int i = 0; i < N_STREAMS; i++) {
        assert_int_equal(streams[i].n_received, 0);
        bow_stream_resume(streams[i].stream.stream);
    }
    timed_advance(timed, SECOND);
    for (int i = 0; i < N_STREAMS; i++) {
        assert_true(streams[i].closed);
        assert_int_equal(streams[i].code, BOW_OK);
        assert_int_equal(streams[i].n_received, N_MESSAGES);
        bow_stream_unref(streams[i].stream.stream);
        bow_client_free(streams[i].client);
    }
    timed_run(timed);
}

/* They spend next to nothing of a window. */
static void test_unread_f15_messages_without_bytes_are_held_back(void **state)
{
    static struct unread stream;
    struct timed *timed = *state;

    begin(timed, N_EMPTY, 0);
    size_t before = bow_context_bytes(bow_test_context(timed->test));
    open_paused(&stream, timed);
    timed_advance(timed, SECOND);
    size_t held = bow_context_bytes(bow_test_context(timed->test)) - before;
    if (held > MAX_EMPTY_BYTES) {
        fail_msg("a stream of unread messages without bytes costs %zu KiB", held >> 10);
    }
    assert_int_equal(n_stopped, 1);
    bow_stream_resume(stream.stream.stream);
    timed_advance(timed, SECOND);
    assert_true(stream.closed);
    assert_int_equal(stream.code, BOW_OK);
    assert_int_equal(stream.n_received, N_EMPTY);
    bow_stream_unref(stream.stream.stream);
    bow_client_free(stream.client);
    timed_run(timed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unread_f15_streams_cost_their_windows_and_no_more),
        TEST(test_unread_f15_messages_without_bytes_are_held_back),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
