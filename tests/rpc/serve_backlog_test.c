/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies that clients do not take, or not as fast as they ask: nothing that was answered is lost,
 * calls that come meanwhile wait before their handlers, and what waits to be sent is bounded, of a
 * connection and of all together.
 */

#include "serve_fixture.h"
#include "tests/rpc/feed_in_turns.h"

#include <bowline/limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MAX_CALLS 5000
/* What connections, calls and blocks take beside the replies. */
#define SPARE_BYTES (4 * MIB)

struct answers {
    struct bow_call *held[MAX_CALLS]; /* of the loop */
    int n_held;
    size_t n_bytes; /* of each */
};

static struct answers *answers; /* of the test that runs */

static void answer(struct bow_call *call)
{
    static uint8_t payload[MIB]; /* never written to */
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.len = answers->n_bytes;
    reply.payload.data = payload;
    (void)bow_call_reply(call, &reply.base);
}

static void answer_at_once(struct serving *s, struct bow_call *call)
{
    answer(call);
    serve_step(s);
}

static void hold(struct serving *s, struct bow_call *call)
{
    answers->held[answers->n_held++] = call;
    serve_step(s);
}

static void answer_held(struct serving *s)
{
    for (int i = 0; i < answers->n_held; i++) {
        answer(answers->held[i]);
    }
    answers->n_held = 0;
    serve_step(s);
}

static void start_with(struct serving *s, size_t max_queued_reply_bytes, uint32_t workers)
{
    struct bow_server_options options;

    answers = calloc(1, sizeof(*answers));
    assert_non_null(answers);
    answers->n_bytes = MIB;
    calls_server_options(s->t, &options);
    options.max_calls = MAX_CALLS;
    options.max_queued_reply_bytes = max_queued_reply_bytes;
    options.workers = workers;
    serve_start(s, &options);
    serve_connect(s);
}

static void start(struct serving *s)
{
    start_with(s, 0, 0);
}

static void end(struct serving *s)
{
    bow_server_free(s->t->server);
    s->t->server = NULL;
    free(answers);
    answers = NULL;
}

/* What is sent at once comes in one read: of the answers to it none has left by then. */
static void send_at_once(struct session_peer *peer)
{
    struct iovec pieces[256];
    struct msghdr message = {.msg_iov = pieces};

    int n = peer->session->ops->drain(peer->session, pieces, 256);
    assert_in_range(n, 1, 255);
    message.msg_iovlen = (size_t)n;
    ssize_t n_sent = sendmsg(peer->fd, &message, MSG_NOSIGNAL);
    assert_true(n_sent > 0);
    peer->session->ops->sent(peer->session, (size_t)n_sent);
}

/* On the last call that was opened; not sent. */
static void put_message(struct session_peer *peer, uint32_t flags, uint8_t number)
{
    struct bow__block *block = bow__block_new(peer->context, 2);

    assert_non_null(block);
    block->data[0] = 1 << 3;
    block->data[1] = number;
    assert_int_equal(peer->session->ops->send(peer->session, peer->key, flags, block, 0, 2), 0);
}

/* Begun, and not sent. */
static void put_call(struct session_peer *peer, const char *path, uint64_t time_left_ns)
{
    session_peer_open(peer, path, time_left_ns);
    put_message(peer, BOW__SEND_END, 1);
}

static void put_calls(struct session_peer *peer, int n)
{
    for (int i = 0; i < n; i++) {
        put_call(peer, SERVE_PLAIN, BOW_NEVER);
    }
}

/* Nothing of the answers is read. */
static void call_many(struct serving *s, int n)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_server_metrics(s->t->server, &metrics), 0);
    put_calls(&s->peer, n);
    send_at_once(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_started, metrics.calls_started + (uint64_t)n);
}

/* The socket is read, so the server reads too; but nothing is made of it, so it gets no credit. */
static uint8_t taken[4 << 20];
static size_t n_taken;

static void take_without_credit(struct serving *s, struct bow_metrics *metrics)
{
    ssize_t got = recv(s->peer.fd, taken + n_taken, sizeof(taken) - n_taken, MSG_DONTWAIT);

    n_taken += got > 0 ? (size_t)got : 0;
    assert_int_equal(bow_server_metrics(s->t->server, metrics), 0);
}

static void wait_started_without_credit(struct serving *s, uint64_t n)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    n_taken = 0;
    while (metrics.calls_started < n) {
        take_without_credit(s, &metrics);
    }
}

/* In as many turns as their replies take. Returns how many of the `n` more calls handlers have
 * had by when all others wait. */
static int call_without_credit(struct serving *s, int n)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    int n_before = serve_count(s, &s->n_steps);
    int n_entered = 0;

    n_taken = 0;
    put_calls(&s->peer, n);
    send_at_once(&s->peer);
    while (n_entered + (int)metrics.calls_delayed < n) {
        take_without_credit(s, &metrics);
        n_entered = serve_count(s, &s->n_steps) - n_before;
    }
    return n_entered;
}

static void make_something_of_it(struct session_peer *peer)
{
    ssize_t used = feed_in_turns(peer->session, taken, n_taken, 1);

    assert_true(used >= 0 && n_taken - (size_t)used <= sizeof(peer->bytes));
    peer->n_bytes = n_taken - (size_t)used;
    memcpy(peer->bytes, taken + used, peer->n_bytes);
}

static void expect_all_answered(struct serving *s, int n)
{
    session_peer_wait(&s->peer, &s->peer.n_ends, n);
    assert_int_equal(s->peer.n_messages, n);
    assert_int_equal(s->peer.code, BOW_OK);
}

/* One connection */

static void test_backlog_f38_of_what_was_answered_is_sent(void **state)
{
    struct serving *s = *state;
    const int n = 300;

    start(s);
    answers->n_bytes = 314000;
    s->enter = hold;
    call_many(s, n);
    serve_wait(s, &s->n_steps, n);
    serve_on_loop(s, answer_held);
    expect_all_answered(s, n);
    end(s);
}

static void test_backlog_f38_lets_calls_wait_before_their_handlers(void **state)
{
    struct serving *s = *state;
    const int n = 100;
    /* And what the socket has taken. */
    const int n_most = (int)(BOW_LIMIT_QUEUED_REPLY_BYTES / MIB) + 10;

    start(s);
    s->enter = answer_at_once;
    size_t before = bow_context_bytes(s->t->context);
    int n_entered = call_without_credit(s, n);
    assert_in_range(n_entered, 50, n_most);
    CALLS_WAIT_METRIC(s->t, calls_delayed, (uint64_t)(n - n_entered));
    assert_in_range(bow_context_bytes(s->t->context), before,
                    before + BOW_LIMIT_QUEUED_REPLY_BYTES + MIB + SPARE_BYTES);
    make_something_of_it(&s->peer);
    expect_all_answered(s, n);
    end(s);
}

static void start_after_large_replies(struct serving *s)
{
    start(s);
    s->enter = hold;
    call_many(s, 8);
    serve_wait(s, &s->n_steps, 8);
    serve_on_loop(s, answer_held);
    expect_all_answered(s, 8);
    s->n_steps = 0;
}

static void test_backlog_f38_expects_as_much_of_calls_in_progress(void **state)
{
    struct serving *s = *state;

    start_after_large_replies(s);
    call_many(s, 41);
    serve_wait(s, &s->n_steps, 41);
    s->enter = answer_at_once;
    assert_in_range(call_without_credit(s, 40), 20, 26);
    serve_on_loop(s, answer_held);
    make_something_of_it(&s->peer);
    expect_all_answered(s, 8 + 41 + 40);
    end(s);
}

static void hold_some(struct serving *s, struct bow_call *call)
{
    if (answers->n_held < 41) {
        hold(s, call);
    } else {
        answer_at_once(s, call);
    }
}

static void test_backlog_f38_expects_as_much_of_calls_that_came_with_it(void **state)
{
    struct serving *s = *state;

    start_after_large_replies(s);
    s->enter = hold_some;
    assert_in_range(call_without_credit(s, 41 + 40), 41 + 20, 41 + 26);
    s->enter = answer_at_once;
    serve_on_loop(s, answer_held);
    make_something_of_it(&s->peer);
    expect_all_answered(s, 8 + 41 + 40);
    end(s);
}

/* Streams, and what their clients say meanwhile */

static void enter_either(struct serving *s, struct bow_call *call)
{
    if (strcmp(bow_call_path(call), SERVE_PLAIN) == 0) {
        answer_at_once(s, call);
    } else {
        serve_listen(s, call);
    }
}

static void reply_gathered(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 7);
}

static void test_backlog_f38_keeps_what_streams_say_meanwhile(void **state)
{
    struct serving *s = *state;
    const int n = 80;

    start(s);
    s->enter = enter_either;
    s->in_half_close = reply_gathered;
    call_many(s, n);
    session_peer_open(&s->peer, SERVE_GATHER, BOW_NEVER);
    put_message(&s->peer, 0, 1);
    put_message(&s->peer, 0, 2);
    put_message(&s->peer, BOW__SEND_END, 3);
    send_at_once(&s->peer);
    wait_started_without_credit(s, (uint64_t)n + 1);
    assert_int_equal(serve_count(s, &s->n_entered), serve_count(s, &s->n_steps));
    assert_int_equal(serve_count(s, &s->n_messages), 0);
    make_something_of_it(&s->peer);
    expect_all_answered(s, n + 1);
    serve_wait(s, &s->n_closed, 1);
    assert_int_equal(s->n_messages, 3);
    assert_int_equal(s->n_disordered, 0);
    assert_int_equal(s->n_half_closes, 1);
    assert_int_equal(s->rc, 0);
    end(s);
}

static void test_backlog_f38_deadlines_pass_while_calls_wait(void **state)
{
    struct serving *s = *state;
    const int n = 80;

    start(s);
    s->enter = answer_at_once;
    call_many(s, n);
    put_call(&s->peer, SERVE_PLAIN, 20 * MS);
    put_call(&s->peer, SERVE_GATHER, 20 * MS);
    send_at_once(&s->peer);
    wait_started_without_credit(s, (uint64_t)n + 2);
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 2);
    make_something_of_it(&s->peer);
    session_peer_wait(&s->peer, &s->peer.n_ends, n + 2);
    assert_int_equal(serve_count(s, &s->n_steps), n);
    assert_int_equal(s->peer.n_messages, n);
    end(s);
}

static void test_backlog_f38_calls_that_wait_go_with_their_connection(void **state)
{
    struct serving *s = *state;

    start(s);
    s->enter = answer_at_once;
    call_many(s, 80);
    session_peer_open(&s->peer, SERVE_GATHER, BOW_NEVER);
    put_message(&s->peer, 0, 1);
    send_at_once(&s->peer);
    wait_started_without_credit(s, 81);
    int n_entered = serve_count(s, &s->n_steps);
    session_peer_end(&s->peer);
    s->has_peer = false;
    CALLS_WAIT_METRIC(s->t, calls_ended, 81);
    CALLS_WAIT_METRIC(s->t, connections_closed, 1);
    assert_int_equal(serve_count(s, &s->n_steps), n_entered);
    end(s);
}

/* Reads and does not listen, so that no credit comes. */
static void *take_bytes(void *user)
{
    static uint8_t bytes[64 << 10];
    const struct session_peer *peer = user;

    while (recv(peer->fd, bytes, sizeof(bytes), 0) > 0) {
    }
    return NULL;
}

static void test_backlog_f38_of_calls_that_wait_is_bounded(void **state)
{
    static char value[12 * KIB];
    struct bow_metadata_entry entry = {"key", {(const uint8_t *)value, sizeof(value)}};
    struct bow_metadata metadata = {&entry, 1};
    struct bow_metrics metrics = BOW_METRICS_INIT;
    struct serving *s = *state;
    pthread_t taker;

    start(s);
    assert_int_equal(pthread_create(&taker, NULL, take_bytes, &s->peer), 0);
    memset(value, 'v', sizeof(value));
    s->enter = answer_at_once;
    size_t before = bow_context_bytes(s->t->context);
    call_many(s, 80);
    for (int i = 80; i < MAX_CALLS; i++) {
        session_peer_begin_stream(&s->peer, SERVE_GATHER, BOW_NEVER, &metadata);
    }
    CALLS_WAIT_METRIC(s->t, calls_started, MAX_CALLS);
    assert_int_equal(bow_server_metrics(s->t->server, &metrics), 0);
    assert_true(metrics.calls_refused_connection > 0);
    assert_int_equal(calls_n_refused(s->t->server, BOW_REFUSED_CONNECTION),
                     metrics.calls_refused_connection);
    assert_in_range(metrics.calls_delayed, 3000, 4700);
    assert_in_range(bow_context_bytes(s->t->context), before,
                    before + BOW_LIMIT_QUEUED_REPLY_BYTES + BOW_LIMIT_WAITING_REQUEST_BYTES +
                        8 * SPARE_BYTES);
    end(s);
    pthread_join(taker, NULL);
}

/* All connections together */

#define N_PEERS 60
#define N_CALLS 20 /* of each */
#define MAX_QUEUED (8 * MIB)
#define REPLY_BYTES (128 * KIB)
#define CALL_BYTES (5 * KIB) /* that waits, with its stream */

static struct session_peer *peers[N_PEERS];

static void connect_all(struct serving *s)
{
    for (int i = 0; i < N_PEERS; i++) {
        peers[i] = calloc(1, sizeof(struct session_peer));
        assert_non_null(peers[i]);
        session_peer_begin(peers[i], s->peer_context, calls_raw_connect(s->t), false,
                           calls_is_grpc());
        session_peer_wait(peers[i], &peers[i]->n_readies, 1);
    }
}

static void disconnect_all(void)
{
    for (int i = 0; i < N_PEERS; i++) {
        session_peer_end(peers[i]);
        free(peers[i]);
    }
}

static int count_messages(void)
{
    int n = 0;

    for (int i = 0; i < N_PEERS; i++) {
        n += peers[i]->n_messages;
    }
    return n;
}

static void silence_is_bounded(struct serving *s, uint32_t workers)
{
    start_with(s, MAX_QUEUED, workers);
    connect_all(s);
    answers->n_bytes = REPLY_BYTES;
    s->enter = answer_at_once;
    size_t before = bow_context_bytes(s->t->context);
    for (int i = 0; i < N_PEERS; i++) {
        put_calls(peers[i], N_CALLS);
        send_at_once(peers[i]);
    }
    CALLS_WAIT_METRIC(s->t, calls_started, N_PEERS * N_CALLS);
    /* Each may have gone beyond by one reply, and what lies before its socket; calls wait. */
    size_t beyond = N_PEERS * (REPLY_BYTES + 64 * KIB + N_CALLS * CALL_BYTES);
    assert_in_range(bow_context_bytes(s->t->context), before,
                    before + MAX_QUEUED + beyond + SPARE_BYTES);
    assert_true(serve_count(s, &s->n_steps) < N_PEERS * N_CALLS);
    /* Who has taken all is served. */
    answers->n_bytes = 10;
    put_calls(&s->peer, 1);
    expect_all_answered(s, 1);
    answers->n_bytes = REPLY_BYTES;
    for (int tries = 0; count_messages() < N_PEERS * N_CALLS && tries < 20000; tries++) {
        for (int i = 0; i < N_PEERS; i++) {
            (void)session_peer_serve(peers[i], 0);
        }
    }
    assert_int_equal(count_messages(), N_PEERS * N_CALLS);
    end(s);
    disconnect_all();
}

static void test_backlog_f42_of_many_that_are_silent_is_bounded(void **state)
{
    silence_is_bounded(*state, 0);
}

static void test_backlog_f42_of_several_loops_is_shared(void **state)
{
    silence_is_bounded(*state, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_backlog_f38_of_what_was_answered_is_sent),
        TEST(test_backlog_f38_lets_calls_wait_before_their_handlers),
        TEST(test_backlog_f38_expects_as_much_of_calls_in_progress),
        TEST(test_backlog_f38_expects_as_much_of_calls_that_came_with_it),
        TEST(test_backlog_f38_keeps_what_streams_say_meanwhile),
        TEST(test_backlog_f38_deadlines_pass_while_calls_wait),
        TEST(test_backlog_f38_calls_that_wait_go_with_their_connection),
        TEST(test_backlog_f38_of_calls_that_wait_is_bounded),
        TEST(test_backlog_f42_of_many_that_are_silent_is_bounded),
        TEST(test_backlog_f42_of_several_loops_is_shared),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
