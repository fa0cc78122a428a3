/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client and its connection: calls that wait for one through failed attempts, and how it
 * stands.
 */

#include "call_fixture.h"

#include <bowline/metrics.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_STATES 64

struct told {
    struct calls *t;
    enum bow_client_state states[MAX_STATES];
    int n_told; /* under the lock of t */
    int n_told_elsewhere;
    int n_ready;
    int n_failures;
    int n_looks;
};

static void on_state(struct bow_client *client, struct bow_loop *loop, enum bow_client_state state,
                     void *user)
{
    struct told *told = user;

    (void)client;
    pthread_mutex_lock(&told->t->lock);
    told->n_told_elsewhere += !bow_loop_in_loop(loop);
    if (told->n_told < MAX_STATES) {
        told->states[told->n_told++] = state;
    }
    told->n_ready += state == BOW_CLIENT_READY;
    told->n_failures += state == BOW_CLIENT_TRANSIENT_FAILURE;
    pthread_cond_broadcast(&told->t->changed);
    pthread_mutex_unlock(&told->t->lock);
}

static void make_client(struct calls *t, struct told *told)
{
    struct bow_client_options options;

    *told = (struct told){.t = t};
    calls_client_options(t, &options);
    options.backoff_min_ns = 5 * MS;
    options.backoff_max_ns = 10 * MS;
    options.on_state = on_state;
    options.state_user = told;
    t->client = calls_new_client(t, &options);
}

static void start(struct calls *t, bool waits, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = waits;
    options.timeout_ns = timeout_ns;
    request.number = 5;
    assert_int_equal(calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL),
                     0);
}

static void start_server(struct calls *t)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
}

static void test_ready_call_waits_through_failed_attempts(void **state)
{
    struct calls *t = *state;
    struct told told;

    calls_choose_dead_address(t);
    make_client(t, &told);
    start(t, true, 0);
    calls_wait(t, &told.n_failures, 3); /* it goes on by itself */
    assert_int_equal(t->n_done, 0);
    start(t, false, 0); /* beside it, one that does not wait */
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(t->n_done, 1);
    start_server(t);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_OK);
    assert_int_equal(((const Calls__Reply *)t->result.reply)->number, 5);
    calls_free_client(t);
}

static void test_ready_calls_keep_their_order(void **state)
{
    struct calls *t = *state;
    struct told told;

    calls_choose_dead_address(t);
    make_client(t, &told);
    for (int i = 0; i < 10; i++) {
        start(t, true, 0);
    }
    calls_wait(t, &told.n_failures, 2);
    start(t, true, 0);
    start_server(t);
    calls_wait(t, &t->n_done, 11);
    assert_int_equal(t->n_said, 11);
    calls_free_client(t);
}

/* Read until the request of a call of `start` has come. Says nothing. */
static void expect_request(int peer)
{
    static const char native[] = "/calls.Echo/Say";
    static const char http2[] = "\0\0\0\0\2\x08\5";
    const char *sign = calls_is_grpc() ? http2 : native;
    size_t n_sign = calls_is_grpc() ? sizeof(http2) - 1 : sizeof(native) - 1;
    const struct timeval limit = {.tv_sec = 20};
    char bytes[4096];
    size_t n = 0;

    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    while (memmem(bytes, n, sign, n_sign) == NULL) {
        ssize_t got = recv(peer, bytes + n, sizeof(bytes) - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
    }
}

static int start_both(void *user)
{
    start(user, true, 0);
    start(user, false, 0);
    return 0;
}

/* A server that has not answered is good enough for one that does not wait for that. */
static void test_ready_call_holds_up_none_that_does_not_wait(void **state)
{
    struct calls *t = *state;

    for (int behind = 0; behind < 2; behind++) {
        struct told told;
        int listening = calls_raw_listen(t);
        make_client(t, &told);
        if (behind) { /* its connection is there */
            start(t, true, 0);
        } else {
            assert_int_equal(bow_loop_execute(t->loop, "start", start_both, t), 0);
        }
        int peer = accept(listening, NULL, NULL);
        assert_true(peer >= 0);
        if (behind) {
            char byte;
            assert_int_equal(recv(peer, &byte, 1, MSG_PEEK), 1);
            start(t, false, 0);
        }
        expect_request(peer);
        assert_int_equal(t->n_done, 0);
        calls_free_client(t);
        close(peer);
        close(listening);
        t->n_done = 0;
    }
}

static void test_ready_call_ends_at_its_deadline_and_says_why(void **state)
{
    struct calls *t = *state;
    struct told told;

    calls_choose_dead_address(t);
    make_client(t, &told);
    start(t, true, 60 * MS);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_DEADLINE_EXCEEDED);
    assert_non_null(strstr(t->result.status.message, "deadline of 60 ms passed"));
    assert_non_null(strstr(t->result.status.message, "the last attempt: "));
    assert_true(told.n_failures > 1);
    calls_free_client(t);
}

static void test_ready_calls_end_with_their_client(void **state)
{
    struct calls *t = *state;
    struct told told;

    calls_choose_dead_address(t);
    make_client(t, &told);
    start(t, true, BOW_NEVER);
    calls_wait(t, &told.n_failures, 1);
    calls_free_client(t);
    assert_int_equal(t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
}

/* States */

static void expect_states(struct told *told, const enum bow_client_state *states, int n)
{
    calls_wait(told->t, &told->n_told, n);
    assert_int_equal(told->n_told, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(told->states[i], states[i]);
    }
    assert_int_equal(told->n_told_elsewhere, 0);
}

static void test_state_of_a_client_that_calls(void **state)
{
    static const enum bow_client_state states[] = {BOW_CLIENT_CONNECTING, BOW_CLIENT_READY,
                                                   BOW_CLIENT_IDLE, BOW_CLIENT_SHUTDOWN};
    struct calls *t = *state;
    struct told told;

    start_server(t);
    make_client(t, &told);
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_IDLE);
    start(t, false, 0);
    calls_wait(t, &t->n_done, 1);
    calls_wait(t, &told.n_ready, 1);
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_READY);
    calls_kill_server(t);
    calls_wait(t, &told.n_told, 3);
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_IDLE);
    calls_free_client(t);
    expect_states(&told, states, 4);
}

static void test_state_of_a_client_that_cannot_connect(void **state)
{
    static const enum bow_client_state states[] = {BOW_CLIENT_TRANSIENT_FAILURE,
                                                   BOW_CLIENT_SHUTDOWN};
    struct calls *t = *state;
    struct told told;

    calls_choose_dead_address(t);
    make_client(t, &told);
    start(t, false, 0);
    calls_wait(t, &t->n_done, 1);
    calls_wait(t, &told.n_failures, 1);
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_TRANSIENT_FAILURE);
    calls_free_client(t);
    /* CONNECTING comes first, unless the attempt failed within the turn. */
    bool connecting = told.states[0] == BOW_CLIENT_CONNECTING;
    assert_int_equal(told.n_told, 2 + connecting);
    assert_memory_equal(told.states + connecting, states, sizeof(states));
}

static void test_state_of_a_client_whose_loop_shuts_down(void **state)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct calls *t = *state;
    struct bow_client_options options;
    struct told told = {.t = t};
    struct bow_loop *loop = NULL;

    start_server(t);
    assert_int_equal(bow_loop_new(t->context, &loop_options, &loop), 0);
    calls_client_options(t, &options);
    options.loop = loop;
    options.on_state = on_state;
    options.state_user = &told;
    t->client = calls_new_client(t, &options);
    start(t, false, 0);
    calls_wait(t, &t->n_done, 1);
    calls_wait(t, &told.n_ready, 1);
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    assert_int_equal(told.states[told.n_told - 1], BOW_CLIENT_SHUTDOWN);
    calls_free_client(t);
    bow_loop_unref(loop);
}

#define N_LARGE 16
#define LARGE_BYTES 60000
#define MAX_LOOKS 1000 /* turns of the loop: far less than the second that last words may take */

static int start_large(void *user)
{
    static uint8_t bytes[LARGE_BYTES];
    struct calls *t = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.data = bytes;
    request.payload.len = sizeof(bytes);
    options.timeout_ns = 300 * MS;
    for (int i = 0; i < N_LARGE; i++) {
        assert_int_equal(
            calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
    }
    return 0;
}

static int look(void *user)
{
    struct told *told = user;

    pthread_mutex_lock(&told->t->lock);
    told->n_looks++;
    pthread_cond_broadcast(&told->t->changed);
    pthread_mutex_unlock(&told->t->lock);
    return 0;
}

/* What could not be sent yet does not keep a connection that its server has ended: a call that is
 * begun then would be lost with it. (Over TCP and gRPC all of it may have been sent.) */
static void test_state_after_the_server_ended_a_connection_that_it_does_not_read(void **state)
{
    struct calls *t = *state;
    struct told told;
    int listening = calls_raw_listen(t);

    make_client(t, &told);
    assert_int_equal(bow_loop_execute(t->loop, "start", start_large, t), 0);
    int peer = accept(listening, NULL, NULL);
    assert_true(peer >= 0);
    calls_wait(t, &t->n_done, N_LARGE);
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    enum bow_client_state after = BOW_CLIENT_READY;
    for (int i = 1; after == BOW_CLIENT_READY && i <= MAX_LOOKS; i++) {
        assert_int_equal(bow_loop_execute(t->loop, "look", look, &told), 0);
        calls_wait(t, &told.n_looks, i);
        after = bow_client_get_state(t->client);
    }
    calls_free_client(t);
    close(peer);
    close(listening);
    assert_int_equal(after, BOW_CLIENT_TRANSIENT_FAILURE); /* it has never answered */
}

#define READY_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        READY_TEST(test_ready_call_waits_through_failed_attempts),
        READY_TEST(test_ready_calls_keep_their_order),
        READY_TEST(test_ready_call_holds_up_none_that_does_not_wait),
        READY_TEST(test_ready_call_ends_at_its_deadline_and_says_why),
        READY_TEST(test_ready_calls_end_with_their_client),
        READY_TEST(test_state_of_a_client_that_calls),
        READY_TEST(test_state_of_a_client_that_cannot_connect),
        READY_TEST(test_state_of_a_client_whose_loop_shuts_down),
        READY_TEST(test_state_after_the_server_ended_a_connection_that_it_does_not_read),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
