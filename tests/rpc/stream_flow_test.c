/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's streams and back-pressure: a server that reads slowly, and a client that is paused.
 */

#include "stream_fixture.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Back-pressure */

static uint64_t send_until_refused(struct streams *s)
{
    uint64_t n = 0;
    int rc = 0;

    while ((rc = streams_send_sized(s->stream, s->n_sent + 1, 1000)) == 0) {
        s->n_sent++;
        n++;
    }
    assert_int_equal(rc, -EAGAIN);
    assert_false(bow_stream_is_writable(s->stream));
    return n;
}

static void fill(struct streams *s)
{
    (void)send_until_refused(s);
}

static void test_stream_before_the_connection_is_bounded(void **state)
{
    struct streams *s = *state;

    streams_open(s, &streams_both, NULL);
    uint64_t n = send_until_refused(s);
    /* The kernel may have made the connection by itself: then the first window is on its way. */
    assert_in_range(n, BOW_STREAM_WRITABLE_BYTES / 1200,
                    (BOW_STREAM_WRITABLE_BYTES + ((size_t)64 << 10)) / 1000 + 1);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, (int)n);
    streams_wait_serving(s, &s->n_writable, 1);
    assert_int_equal(streams_send(s->stream, s->n_sent + 1), 0);
    stream_peer_wait(&s->peer, &s->peer.n_messages, (int)n + 1);
    assert_int_equal(s->peer.n_disordered, 0);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

/* The peer keeps its credit: what the client still takes is its window and the bound. */
static void check_slow_reader(struct streams *s, void (*fill_up)(struct streams *s))
{
    streams_begin(s, &streams_both);
    s->peer.keeps_credit = true;
    do {
        fill_up(s);
        while (stream_peer_serve(&s->peer, 30)) {
        }
    } while (bow_stream_is_writable(s->stream)); /* until all that goes is gone */
    assert_true(s->n_sent < (2 << 20) / 1000);
    int n = s->n_writable;
    while (!bow_stream_is_writable(s->stream)) {
        stream_peer_serve(&s->peer, 10);
        if (s->peer.n_kept > 0) {
            stream_peer_give_credit(&s->peer);
        }
    }
    streams_wait_serving(s, &s->n_writable, n + 1);
    stream_peer_wait(&s->peer, &s->peer.n_messages, (int)s->n_sent);
    assert_int_equal(s->peer.n_disordered, 0);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void fill_on_loop(struct streams *s)
{
    streams_on_loop(s, fill);
}

/* However large the windows are: what is sent in one go waits for the socket, and counts. */
static void test_stream_takes_so_much_in_one_turn(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    /* Then the peer's settings have come too. */
    stream_peer_send(&s->peer, 1);
    streams_wait_serving(s, &s->n_messages, 1);
    streams_on_loop(s, fill);
    assert_in_range(s->n_sent, 30, 2 * BOW_STREAM_WRITABLE_BYTES / 1000 + 2);
    streams_wait_serving(s, &s->n_writable, 1);
    stream_peer_wait(&s->peer, &s->peer.n_messages, (int)s->n_sent);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void test_stream_is_held_back_by_a_slow_reader_on_the_loop(void **state)
{
    check_slow_reader(*state, fill_on_loop);
}

static void test_stream_is_held_back_by_a_slow_reader_elsewhere(void **state)
{
    check_slow_reader(*state, fill);
}

/* A loop that has other things to do: what holds the sender back is what it counts itself. */
struct busy {
    sem_t has_begun;
    sem_t may_end;
};

static int be_busy(void *user)
{
    struct busy *busy = user;

    (void)sem_post(&busy->has_begun);
    while (sem_wait(&busy->may_end) < 0) {
    }
    return 0;
}

static void test_stream_f15_is_bounded_while_its_loop_is_busy(void **state)
{
    struct streams *s = *state;
    struct busy busy;
    int rc = 0;

    assert_int_equal(sem_init(&busy.has_begun, 0, 0), 0);
    assert_int_equal(sem_init(&busy.may_end, 0, 0), 0);
    streams_begin(s, &streams_both);
    assert_int_equal(bow_loop_execute(s->t->loop, "test", be_busy, &busy), 0);
    while (sem_wait(&busy.has_begun) < 0) {
    }
    while (s->n_sent < 1000 && (rc = streams_send_sized(s->stream, s->n_sent + 1, 1000)) == 0) {
        s->n_sent++;
    }
    (void)sem_post(&busy.may_end);
    assert_int_equal(rc, -EAGAIN);
    assert_in_range(s->n_sent, BOW_STREAM_WRITABLE_BYTES / 1200,
                    BOW_STREAM_WRITABLE_BYTES / 1000 + 1);
    streams_wait_serving(s, &s->n_writable, 1);
    stream_peer_wait(&s->peer, &s->peer.n_messages, (int)s->n_sent);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    sem_destroy(&busy.may_end);
    sem_destroy(&busy.has_begun);
}

static void pause_here(struct streams *s)
{
    bow_stream_pause(s->stream);
}

static void resume_here(struct streams *s)
{
    int n = s->n_messages;

    bow_stream_resume(s->stream);
    s->rc = s->n_messages - n;
}

static void test_stream_paused_keeps_messages_and_their_credit(void **state)
{
    enum { N = 200, SIZE = 4096 };
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    streams_on_loop(s, pause_here);
    for (uint64_t i = 1; i <= N; i++) {
        stream_peer_send_sized(&s->peer, i, SIZE);
    }
    while (stream_peer_serve(&s->peer, 50)) {
    }
    assert_int_equal(s->n_messages, 0);
    /* More than the stream's window does not come over. */
    size_t queued = s->peer.session->ops->queued(s->peer.session, s->peer.key);
    assert_true(queued > (size_t)N * SIZE / 4);
    streams_on_loop(s, resume_here);
    assert_int_equal(s->rc, 0); /* not from inside resume */
    streams_wait_serving(s, &s->n_messages, N);
    assert_int_equal(s->n_disordered, 0);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void pause_in_message(struct streams *s, struct bow_stream *stream)
{
    (void)s;
    bow_stream_pause(stream);
}

static void test_stream_pause_holds_at_once_and_the_end_comes_after_what_waits(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    s->in_message = pause_in_message;
    for (uint64_t i = 1; i <= 4; i++) {
        stream_peer_send(&s->peer, i);
    }
    stream_peer_finish(&s->peer, BOW_ABORTED, "the end");
    streams_wait(s, &s->n_messages, 1);
    while (stream_peer_serve(&s->peer, 30)) {
    }
    for (int i = 2; i <= 4; i++) {
        assert_int_equal(s->n_messages, i - 1);
        assert_int_equal(s->n_closed, 0);
        streams_on_loop(s, resume_here);
        streams_wait(s, &s->n_messages, i);
    }
    streams_expect_closed(s, BOW_ABORTED, "the end");
    assert_int_equal(s->n_disordered, 0);
}

static void test_stream_cancelled_while_messages_wait_ends_at_once(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    streams_on_loop(s, pause_here);
    stream_peer_send(&s->peer, 1);
    stream_peer_finish(&s->peer, BOW_OK, "");
    while (bow_stream_is_writable(s->stream)) { /* the server's end has come */
        stream_peer_serve(&s->peer, 1);
    }
    assert_int_equal(s->n_closed, 0);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, "cancelled");
    assert_int_equal(s->n_messages, 0);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(test_stream_before_the_connection_is_bounded),
        STREAM_TEST(test_stream_takes_so_much_in_one_turn),
        STREAM_TEST(test_stream_is_held_back_by_a_slow_reader_on_the_loop),
        STREAM_TEST(test_stream_is_held_back_by_a_slow_reader_elsewhere),
        STREAM_TEST(test_stream_f15_is_bounded_while_its_loop_is_busy),
        STREAM_TEST(test_stream_paused_keeps_messages_and_their_credit),
        STREAM_TEST(test_stream_pause_holds_at_once_and_the_end_comes_after_what_waits),
        STREAM_TEST(test_stream_cancelled_while_messages_wait_ends_at_once),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
