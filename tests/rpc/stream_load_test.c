/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's streams under load: many messages, many threads that send at once, and ends
 * that race with them.
 */

#include "stream_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N_SENDERS = 4, N_EACH = 25000, N_ALL = N_SENDERS * N_EACH };

struct sender {
    struct streams *s;
    struct bow_stream *stream; /* a reference */
    uint64_t number;
    uint64_t n; /* to send */
    pthread_t thread;
    int rc;
};

static int n_wakes(struct streams *s)
{
    pthread_mutex_lock(&s->t->lock);
    int n = s->n_wakes;
    pthread_mutex_unlock(&s->t->lock);
    return n;
}

/* It is writable again, or has ended. */
static void wake(struct streams *s, struct bow_stream *stream)
{
    (void)stream;
    pthread_mutex_lock(&s->t->lock);
    s->n_wakes++;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

static void begin(struct streams *s)
{
    s->in_writable = wake;
    s->in_closed = wake;
    streams_begin(s, &streams_both);
}

/* Whoever is told to wait is told when to go on. */
static int send_patiently(struct sender *sender, uint64_t number)
{
    for (;;) {
        int n = n_wakes(sender->s);
        int rc = streams_send(sender->stream, sender->number << 32 | number);
        if (rc != -EAGAIN) {
            return rc;
        }
        streams_wait(sender->s, &sender->s->n_wakes, n + 1);
    }
}

static void *send_all(void *user)
{
    struct sender *sender = user;

    for (uint64_t i = 1; i <= sender->n && sender->rc == 0; i++) {
        sender->rc = send_patiently(sender, i);
    }
    bow_stream_unref(sender->stream);
    return NULL;
}

static void start_sender(struct sender *sender, struct streams *s, uint64_t number, uint64_t n)
{
    *sender = (struct sender){
        .s = s,
        .stream = bow_stream_ref(s->stream),
        .number = number,
        .n = n,
    };
    assert_int_equal(pthread_create(&sender->thread, NULL, send_all, sender), 0);
}

static void test_load_threads_send_each_in_its_order(void **state)
{
    struct streams *s = *state;
    struct sender senders[N_SENDERS];

    begin(s);
    for (uint64_t i = 0; i < N_SENDERS; i++) {
        start_sender(&senders[i], s, i, N_EACH);
    }
    stream_peer_wait(&s->peer, &s->peer.n_messages, N_ALL);
    for (int i = 0; i < N_SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        assert_int_equal(senders[i].rc, 0);
    }
    assert_int_equal(s->peer.n_disordered, 0);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    stream_peer_wait(&s->peer, &s->peer.n_half_closes, 1);
    assert_int_equal(s->peer.n_messages, N_ALL);
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

static void answer(struct streams *s, struct bow_stream *stream)
{
    int rc = streams_send(stream, ++s->n_sent);

    s->rc = rc < 0 ? rc : s->rc;
}

static void test_load_many_messages_go_both_ways(void **state)
{
    struct streams *s = *state;

    streams_begin(s, &streams_both);
    s->in_message = answer;
    for (int n = 0; n < N_ALL; n += 100) {
        for (int i = 1; i <= 100; i++) {
            stream_peer_send(&s->peer, (uint64_t)(n + i));
        }
        stream_peer_wait(&s->peer, &s->peer.n_messages, n + 100);
    }
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(s->rc, 0);
    assert_int_equal(s->n_messages, N_ALL);
    assert_int_equal(s->n_disordered + s->peer.n_disordered, 0);
}

/* Each order of a cancellation, the server's end and two senders: one end, and no later event. */

static void *cancel(void *user)
{
    struct sender *sender = user;

    bow_stream_cancel(sender->stream);
    bow_stream_unref(sender->stream);
    return NULL;
}

static void race(struct streams *s, int round)
{
    struct sender senders[3];

    s->n_closed = 0;
    s->peer.n_messages = 0;
    streams_open(s, &streams_both, NULL);
    for (uint64_t i = 0; i < 2; i++) {
        start_sender(&senders[i], s, i, UINT64_MAX);
    }
    senders[2] = (struct sender){.s = s, .stream = bow_stream_ref(s->stream)};
    if (round % 3 != 0) {
        stream_peer_wait(&s->peer, &s->peer.n_messages, round % 5);
    }
    assert_int_equal(pthread_create(&senders[2].thread, NULL, cancel, &senders[2]), 0);
    if (round % 2 == 0 && s->peer.n_opens > round) {
        struct bow_status status = BOW_STATUS_OK_INIT;
        /* It may have ended already. */
        (void)s->peer.session->ops->finish(s->peer.session, s->peer.key, &status);
    }
    streams_wait_serving(s, &s->n_closed, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(senders[i].thread, NULL);
    }
    assert_int_equal(senders[0].rc, -ECANCELED);
    assert_int_equal(senders[1].rc, -ECANCELED);
    assert_int_equal(s->n_closed, 1);
    assert_true(s->result.status.code == BOW_OK || s->result.status.code == BOW_CANCELLED);
}

static void test_load_ends_race_with_senders(void **state)
{
    enum { N_ROUNDS = 150 };
    struct streams *s = *state;

    begin(s);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, NULL);
    for (int i = 0; i < N_ROUNDS; i++) {
        race(s, i);
    }
}

#define LOAD_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(test_load_threads_send_each_in_its_order),
        LOAD_TEST(test_load_many_messages_go_both_ways),
        LOAD_TEST(test_load_ends_race_with_senders),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
