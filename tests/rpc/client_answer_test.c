/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Peers that take connections and do not serve: they close, reset, speak something else, or say
 * nothing. The next address of a name is found behind them, and calls that wait for a server wait
 * on. A thread plays the peer.
 */

#include "call_fixture.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_TAKEN 256
#define PEER_HOST "127.0.0.2"

enum manner { CLOSES, RESETS, SPEAKS_HTTP1, IS_SILENT };

struct peer {
    struct calls *t;
    enum manner manner;
    int listening;
    pthread_t thread;
    int n_taken; /* under the lock of t */
    int taken[MAX_TAKEN];
};

static void treat(struct peer *peer, int fd)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    const struct linger reset = {.l_onoff = 1};

    if (peer->manner == IS_SILENT) {
        return;
    }
    if (peer->manner == SPEAKS_HTTP1) {
        (void)send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    }
    if (peer->manner == RESETS) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    close(fd);
}

static void *play(void *user)
{
    struct peer *peer = user;
    int fd;

    while ((fd = accept(peer->listening, NULL, NULL)) >= 0) {
        treat(peer, fd);
        pthread_mutex_lock(&peer->t->lock);
        peer->taken[peer->n_taken % MAX_TAKEN] = fd;
        peer->n_taken++;
        pthread_cond_broadcast(&peer->t->changed);
        pthread_mutex_unlock(&peer->t->lock);
    }
    return NULL;
}

static void peer_begin(struct peer *peer, struct calls *t, enum manner manner, int listening)
{
    *peer = (struct peer){.t = t, .manner = manner, .listening = listening};
    assert_int_equal(pthread_create(&peer->thread, NULL, play, peer), 0);
}

static void peer_end(struct peer *peer)
{
    (void)shutdown(peer->listening, SHUT_RDWR);
    pthread_join(peer->thread, NULL);
    close(peer->listening);
    for (int i = 0; peer->manner == IS_SILENT && i < peer->n_taken; i++) {
        close(peer->taken[i]);
    }
}

static int n_taken(struct peer *peer)
{
    pthread_mutex_lock(&peer->t->lock);
    int n = peer->n_taken;
    pthread_mutex_unlock(&peer->t->lock);
    return n;
}

/* The client */

static int n_failures; /* under the lock of its t, as all here */
static int n_idle;

static void on_state(struct bow_client *client, struct bow_loop *loop, enum bow_client_state state,
                     void *user)
{
    struct calls *t = user;

    (void)client;
    (void)loop;
    pthread_mutex_lock(&t->lock);
    n_failures += state == BOW_CLIENT_TRANSIENT_FAILURE;
    n_idle += state == BOW_CLIENT_IDLE;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void make_client(struct calls *t, const char *target,
                        void (*change)(struct bow_client_options *options))
{
    struct bow_client_options options;

    n_failures = 0;
    n_idle = 0;
    calls_client_options(t, &options);
    options.target = target;
    options.plaintext = true;
    options.backoff_min_ns = 5 * MS;
    options.backoff_max_ns = 10 * MS;
    options.on_state = on_state;
    options.state_user = t;
    if (change != NULL) {
        change(&options);
    }
    t->client = calls_new_client(t, &options);
}

static void start(struct calls *t, bool waits)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.wait_for_ready = waits;
    assert_int_equal(calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL),
                     0);
}

static void start_server(struct calls *t)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
}

static void expect_say(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    if (calls__echo__say__call(t->client, &request, NULL, &result) == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

static void expect_failure(struct calls *t, const char *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_UNAVAILABLE);
    if (strstr(result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", result.status.message, words);
    }
    bow_result_fini(&result);
}

/* A name of two addresses, the first of them the peer's and the second the server's, or not */

static int listen_at(const char *host, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

struct name {
    struct calls *t;
    struct peer peer;
    char target[64];
};

static void name_begin(struct name *name, struct calls *t, enum manner manner)
{
    calls_resolve_to(t, PEER_HOST, "127.0.0.1");
    start_server(t);
    uint16_t port = bow_server_port(t->server);
    name->t = t;
    snprintf(name->target, sizeof(name->target), "%sservers.test:%u",
             calls_is_grpc() ? "grpc:" : "", port);
    peer_begin(&name->peer, t, manner, listen_at(PEER_HOST, port));
}

static void name_end(struct name *name)
{
    calls_free_client(name->t);
    peer_end(&name->peer);
}

static void expect_second_address_serves(struct calls *t, enum manner manner,
                                         void (*change)(struct bow_client_options *options))
{
    struct name name;

    name_begin(&name, t, manner);
    make_client(t, name.target, change);
    expect_say(t);
    assert_int_equal(n_taken(&name.peer), 1);
    name_end(&name);
}

static void test_answer_f46_first_address_closes(void **state)
{
    expect_second_address_serves(*state, CLOSES, NULL);
}

static void test_answer_f46_first_address_resets(void **state)
{
    expect_second_address_serves(*state, RESETS, NULL);
}

static void test_answer_f46_first_address_speaks_http1(void **state)
{
    expect_second_address_serves(*state, SPEAKS_HTTP1, NULL);
}

/* Long before it is given up. */
static void test_answer_f46_first_address_is_silent(void **state)
{
    expect_second_address_serves(*state, IS_SILENT, NULL);
}

static void be_confined(struct bow_client_options *options)
{
    options->loop = NULL;
}

static void test_answer_f46_confined_client_finds_the_second_address(void **state)
{
    expect_second_address_serves(*state, CLOSES, be_confined);
}

static void test_answer_f46_confined_client_beside_a_silent_address(void **state)
{
    expect_second_address_serves(*state, IS_SILENT, be_confined);
}

static void be_soon_idle(struct bow_client_options *options)
{
    options->idle_timeout_ns = 5 * MS;
}

static void test_answer_f46_the_address_that_served_is_the_first_next_time(void **state)
{
    struct calls *t = *state;
    struct name name;

    name_begin(&name, t, CLOSES);
    make_client(t, name.target, be_soon_idle);
    for (int i = 1; i <= 3; i++) {
        expect_say(t);
        calls_wait(t, &n_idle, i);
    }
    assert_int_equal(n_taken(&name.peer), 1);
    name_end(&name);
}

static void test_answer_f46_no_address_serves(void **state)
{
    struct calls *t = *state;
    struct name name;

    name_begin(&name, t, CLOSES);
    calls_kill_server(t);
    make_client(t, name.target, NULL);
    expect_failure(t, "ECONNREFUSED");
    assert_int_equal(n_taken(&name.peer), 1); /* one attempt has tried each of them once */
    start_server(t);
    name_end(&name);
}

/* The second address is one that no host has a way to. */
static void test_answer_f63_address_out_of_reach_hides_no_failure(void **state)
{
    struct calls *t = *state;
    struct name name;

    name_begin(&name, t, CLOSES);
    calls_resolve_to(t, PEER_HOST, "224.0.0.1"); /* of many hosts, which is ENETUNREACH for TCP */
    make_client(t, name.target, NULL);
    expect_failure(t, "127.0.0.2");
    assert_int_equal(n_taken(&name.peer), 1);
    name_end(&name);
}

static void test_answer_f46_client_is_freed_between_two_addresses(void **state)
{
    struct calls *t = *state;
    struct name name;

    name_begin(&name, t, IS_SILENT);
    make_client(t, name.target, NULL);
    start(t, false);
    calls_wait(t, &name.peer.n_taken, 1);
    calls_free_client(t);
    assert_int_equal(t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_true(t->result.status.not_processed); /* it waited for an answer */
    name_end(&name);
}

static void be_impatient(struct bow_client_options *options)
{
    options->connect_timeout_ns = 50 * MS;
    options->backoff_min_ns = 1000 * MS; /* the next call is told of the failure */
    options->backoff_max_ns = 1000 * MS;
}

static void test_answer_f46_silent_server_is_given_up(void **state)
{
    struct calls *t = *state;
    struct peer peer;

    peer_begin(&peer, t, IS_SILENT, calls_raw_listen(t));
    make_client(t, t->target, be_impatient);
    expect_failure(t, "it never answered");
    calls_wait(t, &n_failures, 1);
    expect_failure(t, "said nothing for 50 ms (connect_timeout_ns)");
    calls_free_client(t);
    peer_end(&peer);
}

/* Waiting for a server */

static void test_answer_f48_deadline_says_that_no_server_answered(void **state)
{
    struct calls *t = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct peer peer;

    peer_begin(&peer, t, IS_SILENT, calls_raw_listen(t));
    make_client(t, t->target, NULL);
    options.wait_for_ready = true;
    options.timeout_ns = 50 * MS;
    assert_null(calls__echo__say__call(t->client, &request, &options, &result));
    assert_int_equal(result.status.code, BOW_DEADLINE_EXCEEDED);
    assert_true(result.status.not_processed);
    if (strstr(result.status.message, "waiting for the first answer of") == NULL) {
        fail_msg("%s", result.status.message);
    }
    bow_result_fini(&result);
    calls_free_client(t);
    peer_end(&peer);
}

static void expect_waits(struct calls *t, const char *target, enum manner manner)
{
    struct peer peer;

    peer_begin(&peer, t, manner, calls_raw_listen(t));
    char filled[512];
    snprintf(filled, sizeof(filled), target, t->address, t->address);
    make_client(t, filled, NULL);
    start(t, true);
    calls_wait(t, &n_failures, 3);
    assert_int_equal(t->n_done, 0);
    peer_end(&peer);
    start_server(t);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    assert_int_equal(t->n_said, 1);
    calls_free_client(t);
}

static void test_answer_f48_call_waits_while_connections_are_closed(void **state)
{
    expect_waits(*state, calls_is_grpc() ? "grpc:%s" : "%s", CLOSES);
}

static void test_answer_f48_call_waits_while_connections_are_reset(void **state)
{
    expect_waits(*state, calls_is_grpc() ? "grpc:%s" : "%s", RESETS);
}

static void test_answer_f48_call_waits_behind_another_protocol(void **state)
{
    expect_waits(*state, calls_is_grpc() ? "grpc:%s" : "%s", SPEAKS_HTTP1);
}

static void test_answer_f48_call_of_a_list_of_one_waits(void **state)
{
    expect_waits(*state, calls_is_grpc() ? "grpc:list:%s" : "list:%s", CLOSES);
}

static void test_answer_f48_call_of_a_list_of_two_waits(void **state)
{
    expect_waits(*state, calls_is_grpc() ? "grpc:list:%s,%s" : "list:%s,%s", CLOSES);
}

#define ANSWER_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ANSWER_TEST(test_answer_f46_silent_server_is_given_up),
        ANSWER_TEST(test_answer_f48_deadline_says_that_no_server_answered),
        ANSWER_TEST(test_answer_f48_call_waits_while_connections_are_closed),
        ANSWER_TEST(test_answer_f48_call_waits_while_connections_are_reset),
        ANSWER_TEST(test_answer_f48_call_waits_behind_another_protocol),
        ANSWER_TEST(test_answer_f48_call_of_a_list_of_one_waits),
        ANSWER_TEST(test_answer_f48_call_of_a_list_of_two_waits),
    };
    const struct CMUnitTest names[] = {
        ANSWER_TEST(test_answer_f46_first_address_closes),
        ANSWER_TEST(test_answer_f46_first_address_resets),
        ANSWER_TEST(test_answer_f46_first_address_speaks_http1),
        ANSWER_TEST(test_answer_f46_first_address_is_silent),
        ANSWER_TEST(test_answer_f46_confined_client_finds_the_second_address),
        ANSWER_TEST(test_answer_f46_confined_client_beside_a_silent_address),
        ANSWER_TEST(test_answer_f46_the_address_that_served_is_the_first_next_time),
        ANSWER_TEST(test_answer_f46_no_address_serves),
        ANSWER_TEST(test_answer_f63_address_out_of_reach_hides_no_failure),
        ANSWER_TEST(test_answer_f46_client_is_freed_between_two_addresses),
    };

    calls_choose(argc, argv);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!calls_is_unix()) {
        n_failed += cmocka_run_group_tests(names, NULL, NULL);
    }
    return n_failed;
}
