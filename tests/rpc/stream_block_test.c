/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The blocking style of a client's streams, with a client on a loop of another thread and with
 * one that is confined to the test's. The server plays a script on a thread of its own.
 */

#include "rpc/native/frame.h"
#include "stream_fixture.h"
#include "tests/support/gate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

typedef void (*script_fn)(struct streams *s);

struct script {
    struct streams *s;
    script_fn fn;
    pthread_t thread;
};

static void *run_script(void *user)
{
    struct script *script = user;

    streams_accept(script->s);
    script->fn(script->s);
    while (script->s->peer.n_hang_ups == 0) {
        stream_peer_serve(&script->s->peer, 20);
    }
    return NULL;
}

static void play(struct streams *s, script_fn fn, struct script *ret_script)
{
    *ret_script = (struct script){.s = s, .fn = fn};
    assert_int_equal(pthread_create(&ret_script->thread, NULL, run_script, ret_script), 0);
}

/* The connection goes with the client. */
static void end_play(struct script *script)
{
    bow_client_free(script->s->t->client);
    script->s->t->client = NULL;
    pthread_join(script->thread, NULL);
}

static void expect_message(struct streams *s, uint64_t number)
{
    const ProtobufCMessage *message = NULL;

    assert_int_equal(bow_stream_receive(s->stream, BOW_NEVER, &message), 1);
    assert_int_equal(((const Calls__Reply *)message)->number, number);
}

static void expect_end(struct streams *s)
{
    const ProtobufCMessage *message = NULL;

    assert_int_equal(bow_stream_receive(s->stream, BOW_NEVER, &message), 0);
    assert_null(message);
}

static void expect_finish(struct streams *s, enum bow_code code, const char *words)
{
    bow_result_fini(&s->result);
    assert_int_equal(bow_stream_finish(s->stream, &s->result), 0);
    if (s->result.status.code != code || strstr(s->result.status.message, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(s->result.status.code), s->result.status.message);
    }
}

static int write_number(struct streams *s, uint64_t number, size_t n_payload, uint64_t timeout_ns)
{
    static uint8_t payload[4096];
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = number;
    request.payload.data = payload;
    request.payload.len = n_payload;
    return bow_stream_write(s->stream, &request.base, timeout_ns);
}

/* Messages */

static void echo_three(struct streams *s)
{
    for (int i = 1; i <= 3; i++) {
        stream_peer_wait(&s->peer, &s->peer.n_messages, i);
        stream_peer_send(&s->peer, (uint64_t)i * 10);
    }
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
}

static void test_block_write_and_receive_in_turn(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, echo_three, &script);
    streams_open_blocking(s, &streams_both, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(write_number(s, i, 0, BOW_NEVER), 0);
        expect_message(s, i * 10);
    }
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    expect_end(s);
    expect_end(s);
    expect_finish(s, BOW_OK, "");
    assert_null(s->result.reply);
    end_play(&script);
}

static void gather_five(struct streams *s)
{
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, 5);
    stream_peer_reply(&s->peer, 55);
}

static void test_block_finish_gives_the_reply(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, gather_five, &script);
    streams_open_blocking(s, &streams_gather, NULL);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(write_number(s, i, 0, BOW_NEVER), 0);
    }
    expect_finish(s, BOW_OK, "");
    assert_int_equal(((const Calls__Reply *)s->result.reply)->number, 55);
    end_play(&script);
}

static void pour_and_fail(struct streams *s)
{
    for (uint64_t i = 1; i <= 3; i++) {
        stream_peer_send(&s->peer, i);
    }
    stream_peer_finish(&s->peer, BOW_DATA_LOSS, "out of water");
}

static void test_block_messages_come_before_the_error(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, pour_and_fail, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        expect_message(s, i);
    }
    expect_end(s);
    expect_finish(s, BOW_DATA_LOSS, "out of water");
    end_play(&script);
}

/* Back-pressure */

enum { N_POURED = 200, POURED_BYTES = 4096 };

static void pour_much(struct streams *s)
{
    for (uint64_t i = 1; i <= N_POURED; i++) {
        stream_peer_send_sized(&s->peer, i, POURED_BYTES);
    }
    while (stream_peer_serve(&s->peer, 50)) {
    }
    size_t queued = s->peer.session->ops->queued(s->peer.session, s->peer.key);
    pthread_mutex_lock(&s->t->lock);
    s->rc = queued > (size_t)N_POURED * POURED_BYTES / 4;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
    stream_peer_finish(&s->peer, BOW_OK, "");
}

static void test_block_messages_not_received_hold_the_server_back(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, pour_much, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    expect_message(s, 1);
    streams_wait(s, &s->rc, 1);
    for (uint64_t i = 2; i <= N_POURED; i++) {
        expect_message(s, i);
    }
    expect_end(s);
    expect_finish(s, BOW_OK, "");
    end_play(&script);
}

static void test_block_finish_drops_what_was_not_received(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, pour_much, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    expect_message(s, 1);
    if (bow_stream_loop(s->stream) == s->t->loop) {
        streams_wait(s, &s->rc, 1); /* the window is used up */
    }
    expect_finish(s, BOW_OK, "");
    end_play(&script);
}

static void read_late(struct streams *s)
{
    s->peer.keeps_credit = true;
    while (!s->peer.keeps_credit || s->peer.n_kept == 0) {
        stream_peer_serve(&s->peer, 20);
    }
    streams_wait(s, &s->n_writable, 1); /* the test has seen its time-out */
    stream_peer_give_credit(&s->peer);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    s->rc = s->peer.n_messages;
    stream_peer_finish(&s->peer, BOW_OK, "");
}

static void test_block_write_waits_for_a_slow_reader(void **state)
{
    struct streams *s = *state;
    struct script script;
    uint64_t n = 0;
    int rc = 0;

    play(s, read_late, &script);
    streams_open_blocking(s, &streams_both, NULL);
    while ((rc = write_number(s, n + 1, 4000, 50 * MS)) == 0) {
        n++;
        assert_true(n < 1000);
    }
    assert_int_equal(rc, -ETIMEDOUT);
    pthread_mutex_lock(&s->t->lock);
    s->n_writable = 1;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
    assert_int_equal(write_number(s, n + 1, 4000, BOW_NEVER), 0);
    expect_finish(s, BOW_OK, "");
    end_play(&script);
    assert_int_equal(s->rc, n + 1);
    assert_int_equal(s->peer.n_disordered, 0);
}

/* Times and threads */

static void say_nothing(struct streams *s)
{
    pthread_mutex_lock(&s->t->lock);
    s->rc = 1; /* the call has come */
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

static void test_block_receive_times_out_and_the_deadline_ends(void **state)
{
    struct streams *s = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    const ProtobufCMessage *message = NULL;
    struct script script;

    play(s, say_nothing, &script);
    options.timeout_ns = 600 * MS;
    streams_open_blocking(s, &streams_pour, &options);
    assert_int_equal(bow_stream_receive(s->stream, 0, &message), -ETIMEDOUT);
    assert_int_equal(bow_stream_receive(s->stream, 10 * MS, &message), -ETIMEDOUT);
    expect_end(s);
    expect_finish(s, BOW_DEADLINE_EXCEEDED, "deadline of 600 ms passed");
    end_play(&script);
}

static void *cancel_elsewhere(void *user)
{
    struct streams *s = user;

    streams_wait(s, &s->rc, 1);
    bow_stream_cancel(s->stream);
    bow_stream_unref(s->stream);
    return NULL;
}

static void test_block_cancel_elsewhere_ends_the_wait(void **state)
{
    struct streams *s = *state;
    struct script script;
    pthread_t thread;

    play(s, say_nothing, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    bow_stream_ref(s->stream);
    assert_int_equal(pthread_create(&thread, NULL, cancel_elsewhere, s), 0);
    expect_end(s);
    expect_finish(s, BOW_CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    end_play(&script);
}

static void test_block_client_freed_first_ends_it(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, pour_and_fail, &script);
    streams_open_blocking(s, &streams_both, NULL);
    assert_int_equal(write_number(s, 1, 0, BOW_NEVER), 0);
    expect_message(s, 1);
    end_play(&script);
    assert_int_equal(write_number(s, 2, 0, BOW_NEVER), -ECANCELED);
    assert_int_equal(bow_stream_finish(s->stream, &s->result), 0);
    assert_true(s->result.status.code != BOW_OK);
}

static void send_rubbish(struct streams *s)
{
    stream_peer_send(&s->peer, 1);
    stream_peer_send_bytes(&s->peer, "\x12\x01\xFF", 3);
    stream_peer_finish(&s->peer, BOW_OK, "");
}

static void test_block_undecodable_message_is_the_end(void **state)
{
    struct streams *s = *state;
    struct script script;

    play(s, send_rubbish, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    expect_message(s, 1);
    expect_end(s);
    expect_finish(s, BOW_INTERNAL, "calls.Reply.text");
    end_play(&script);
}

/* Two threads at once */

static void *write_on(void *user)
{
    struct streams *s = user;
    uint64_t n = 0;
    int rc = 0;

    while ((rc = write_number(s, n + 1, 4000, BOW_NEVER)) == 0) {
        n++;
    }
    pthread_mutex_lock(&s->t->lock);
    s->rc = rc;
    s->n_wakes++;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
    return NULL;
}

static void *receive_on(void *user)
{
    struct streams *s = user;
    const ProtobufCMessage *message = NULL;

    while (bow_stream_receive(s->stream, BOW_NEVER, &message) == 1) {
        pthread_mutex_lock(&s->t->lock);
        s->n_messages++;
        pthread_mutex_unlock(&s->t->lock);
    }
    return NULL;
}

/* A stream whose peer gives no credit, and a thread that waits to send. */
static void begin_to_write(struct streams *s, pthread_t *ret_thread)
{
    streams_open_blocking(s, &streams_both, NULL);
    streams_accept(s);
    s->peer.keeps_credit = true;
    assert_int_equal(pthread_create(ret_thread, NULL, write_on, s), 0);
    while (stream_peer_serve(&s->peer, 20) || bow_stream_is_writable(s->stream)) {
    }
}

static bool has_received(struct streams *s, int n)
{
    int n_received = 0;

    for (int i = 0; i < 2000 && n_received < n; i++) {
        (void)stream_peer_serve(&s->peer, 1);
        pthread_mutex_lock(&s->t->lock);
        n_received = s->n_messages;
        pthread_mutex_unlock(&s->t->lock);
    }
    return n_received >= n;
}

static void test_block_receive_is_woken_beside_a_write_that_waits(void **state)
{
    struct streams *s = *state;
    pthread_t writer;
    pthread_t receiver;
    int n = 0;

    begin_to_write(s, &writer);
    assert_int_equal(pthread_create(&receiver, NULL, receive_on, s), 0);
    do {
        stream_peer_send(&s->peer, (uint64_t)++n);
    } while (has_received(s, n) && n < 100);
    bow_stream_cancel(s->stream);
    pthread_join(writer, NULL);
    pthread_join(receiver, NULL);
    assert_int_equal(n, 100);
    assert_int_equal(s->n_messages, 100);
    assert_int_equal(s->rc, -ECANCELED);
    expect_finish(s, BOW_CANCELLED, "cancelled");
}

static void test_block_half_close_elsewhere_ends_a_write_that_waits(void **state)
{
    struct streams *s = *state;
    pthread_t writer;

    begin_to_write(s, &writer);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    streams_wait(s, &s->n_wakes, 1);
    pthread_join(writer, NULL);
    assert_int_equal(s->rc, -EPIPE);
    bow_stream_cancel(s->stream);
    expect_finish(s, BOW_CANCELLED, "cancelled");
}

/* Who may not */

static void try_here(struct streams *s)
{
    const ProtobufCMessage *message = NULL;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(bow_stream_receive(s->stream, BOW_NEVER, &message), -EDEADLK);
    assert_int_equal(write_number(s, 1, 0, BOW_NEVER), -EDEADLK);
    assert_int_equal(bow_stream_finish(s->stream, &result), -EDEADLK);
}

static void test_block_on_the_clients_loop_is_refused(void **state)
{
    struct streams *s = *state;

    streams_open_blocking(s, &streams_both, NULL);
    streams_on_loop(s, try_here);
    bow_stream_cancel(s->stream);
    expect_finish(s, BOW_CANCELLED, "cancelled");
}

static void try_in_closed(struct streams *s, struct bow_stream *stream)
{
    struct bow_stream *blocking = s->stream;

    (void)stream;
    try_here(s);
    s->stream = blocking;
}

static void test_block_in_a_callback_of_a_confined_client_is_refused(void **state)
{
    struct streams *s = *state;

    streams_open(s, &streams_both, NULL);
    struct bow_stream *heard = s->stream;
    s->in_closed = try_in_closed;
    streams_open_blocking(s, &streams_pour, NULL); /* drives the loop as well */
    bow_stream_cancel(heard);
    while (s->n_closed == 0) {
        assert_int_equal(bow_client_poll(s->t->client, BOW_NEVER), 0);
    }
    bow_stream_cancel(s->stream);
    expect_finish(s, BOW_CANCELLED, "cancelled");
}

/* The connection's end lies behind more than a client reads in a turn: as much as the kernel takes.
 */
struct last_words {
    struct gate heard;
    struct gate said;
};

static struct last_words last_words;

static void fill(int fd)
{
    static uint8_t frame[BOW__FRAME_HEADER_BYTES + 65536];
    const struct bow__frame header = {.length = 65536, .type = BOW__FRAME_FIRST_SKIPPED};

    bow__frame_encode(frame, &header);
    while (send(fd, frame, sizeof(frame), MSG_DONTWAIT) == sizeof(frame)) {
    }
}

static void say_and_go(struct streams *s)
{
    stream_peer_send(&s->peer, 1);
    gate_wait(&last_words.heard, 1);
    fill(s->peer.fd);
    assert_int_equal(shutdown(s->peer.fd, SHUT_WR), 0);
    gate_add(&last_words.said);
    while (s->peer.n_hang_ups == 0) {
        stream_peer_serve(&s->peer, 20);
    }
    stream_peer_end(&s->peer);
    streams_accept(s);
    stream_peer_send(&s->peer, 3);
    stream_peer_finish(&s->peer, BOW_OK, "");
}

static void test_block_confined_open_reads_up_to_the_end_of_a_connection(void **state)
{
    struct streams *s = *state;
    struct script script;

    if (calls_is_grpc()) {
        skip(); /* the frames that fill the kernel's buffers are native ones */
    }
    gate_init(&last_words.heard);
    gate_init(&last_words.said);
    play(s, say_and_go, &script);
    streams_open_blocking(s, &streams_pour, NULL);
    struct bow_stream *first = s->stream;
    expect_message(s, 1);
    gate_add(&last_words.heard);
    gate_wait(&last_words.said, 1);
    streams_open_blocking(s, &streams_pour, NULL);
    struct bow_stream *second = s->stream;
    expect_message(s, 3);
    s->stream = first;
    expect_finish(s, BOW_UNAVAILABLE, "");
    s->stream = second;
    expect_end(s);
    expect_finish(s, BOW_OK, "");
    end_play(&script);
    gate_fini(&last_words.heard);
    gate_fini(&last_words.said);
}

static void *try_elsewhere(void *user)
{
    struct streams *s = user;
    const ProtobufCMessage *message = NULL;

    s->rc = bow_stream_receive(s->stream, BOW_NEVER, &message);
    return NULL;
}

static void test_block_confined_elsewhere_is_refused(void **state)
{
    struct streams *s = *state;
    pthread_t thread;

    streams_open_blocking(s, &streams_both, NULL);
    assert_int_equal(pthread_create(&thread, NULL, try_elsewhere, s), 0);
    pthread_join(thread, NULL);
    assert_int_equal(s->rc, -EINVAL);
    bow_stream_cancel(s->stream);
    expect_finish(s, BOW_CANCELLED, "cancelled");
}

static void test_block_with_events_is_refused(void **state)
{
    struct streams *s = *state;
    const ProtobufCMessage *message = NULL;

    streams_open(s, &streams_both, NULL);
    bow_stream_ref(s->stream);
    assert_int_equal(bow_stream_receive(s->stream, 0, &message), -EINVAL);
    assert_int_equal(write_number(s, 1, 0, BOW_NEVER), -EINVAL);
    assert_int_equal(bow_stream_finish(s->stream, &s->result), -EINVAL);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
    bow_stream_unref(s->stream);
}

#define BOTH_TESTS(name)                                                                           \
    cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown),                        \
    {                                                                                              \
#name " (confined)", name, streams_setup_confined, streams_teardown, NULL                  \
    }
#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)
#define CONFINED_TEST(name)                                                                        \
    cmocka_unit_test_setup_teardown(name, streams_setup_confined, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOTH_TESTS(test_block_write_and_receive_in_turn),
        BOTH_TESTS(test_block_finish_gives_the_reply),
        BOTH_TESTS(test_block_messages_come_before_the_error),
        BOTH_TESTS(test_block_finish_drops_what_was_not_received),
        BOTH_TESTS(test_block_write_waits_for_a_slow_reader),
        BOTH_TESTS(test_block_receive_times_out_and_the_deadline_ends),
        BOTH_TESTS(test_block_cancel_elsewhere_ends_the_wait),
        BOTH_TESTS(test_block_client_freed_first_ends_it),
        BOTH_TESTS(test_block_undecodable_message_is_the_end),
        LOOP_TEST(test_block_messages_not_received_hold_the_server_back),
        LOOP_TEST(test_block_receive_is_woken_beside_a_write_that_waits),
        LOOP_TEST(test_block_half_close_elsewhere_ends_a_write_that_waits),
        LOOP_TEST(test_block_on_the_clients_loop_is_refused),
        LOOP_TEST(test_block_with_events_is_refused),
        CONFINED_TEST(test_block_in_a_callback_of_a_confined_client_is_refused),
        CONFINED_TEST(test_block_confined_elsewhere_is_refused),
        CONFINED_TEST(test_block_confined_open_reads_up_to_the_end_of_a_connection),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
