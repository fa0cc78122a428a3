/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many connections a client has to one address: one while that takes its calls, more where
 * max_connections_per_address allows them and the server has no stream left, and one again when
 * they have nothing to do. PROTOCOL is the argument.
 */

#include "tests/support/raw_listen.h"
#include "timed_fixture.h"

#include <bowline/limits.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define N_CALLS 1024

/* What a connection takes at once: a server that speaks Bowline's own protocol never says less than
 * what holds without its word. */
#define MAX_CALLS (timed_is_grpc() ? 4 : 100)

static struct {
    struct bow_call *calls[N_CALLS]; /* that handlers have, oldest first */
    int n;
    int n_done;
    int n_ok;
    char message[512]; /* of the last that was not OK */
} seen;

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)request;
    (void)user;
    assert_in_range(seen.n, 0, N_CALLS - 1);
    seen.calls[seen.n++] = call;
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)user;
    assert_int_equal(timed_reply(call, request), 0);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say, .hold = hold};

    return calls__echo__serve(server, &handlers, user);
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

static void start_say(struct timed *timed)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__say__start(timed->pair->client, &request, NULL, on_done, NULL, NULL), 0);
    timed_run(timed);
}

static void start_holds(struct timed *timed, int n, uint64_t timeout_ns)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = timeout_ns;
    for (int i = 0; i < n; i++) {
        assert_int_equal(
            calls__echo__hold__start(timed->pair->client, &request, &options, on_done, NULL, NULL),
            0);
    }
    timed_run(timed);
}

/* One call is made, so that the client knows what the server takes. */
static void begin_with(struct timed *timed, struct bow_server_options *server,
                       struct bow_client_options *client)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    memset(&seen, 0, sizeof(seen));
    server->max_calls = (uint32_t)MAX_CALLS;
    client->default_timeout_ns = 1000 * SECOND;
    server->max_deadline_ns = 1000 * SECOND;
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.server = server;
    options.client = client;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
    start_say(timed);
    assert_int_equal(seen.n_ok, 1);
}

static void begin(struct timed *timed, uint32_t max_connections)
{
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.max_connections_per_address = max_connections;
    begin_with(timed, &server, &client);
}

static void answer(struct timed *timed, int n)
{
    for (int i = 0; i < n; i++) {
        struct bow_call *call = seen.calls[0];
        memmove(&seen.calls[0], &seen.calls[1], (size_t)--seen.n * sizeof(seen.calls[0]));
        assert_int_equal(timed_reply(call, NULL), 0);
        timed_run(timed);
    }
}

static void answer_all(struct timed *timed)
{
    while (seen.n > 0) {
        answer(timed, 1);
    }
}

static struct bow_metrics server_metrics(struct timed *timed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_advance(timed, 20 * MS);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    return metrics;
}

static uint64_t n_open(struct timed *timed)
{
    struct bow_metrics metrics = server_metrics(timed);

    return metrics.connections_opened - metrics.connections_closed;
}

static uint64_t n_without_stream(struct timed *timed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_advance(timed, 20 * MS);
    assert_int_equal(bow_client_metrics(timed->pair->client, &metrics), 0);
    return metrics.calls_without_stream;
}

static void expect_all_ok(int n)
{
    if (seen.n_ok != n) {
        fail_msg("%d of %d calls have ended, %d well: %s", seen.n_done, n, seen.n_ok, seen.message);
    }
}

static void test_connections_one_by_default_and_what_waits_is_counted(void **state)
{
    struct timed *timed = *state;

    begin(timed, 0);
    start_holds(timed, MAX_CALLS + 6, 0);
    assert_int_equal(seen.n, MAX_CALLS);
    assert_int_equal(n_open(timed), 1);
    assert_int_equal(n_without_stream(timed), 6);
    answer_all(timed);
    expect_all_ok(1 + MAX_CALLS + 6);
}

static void test_connections_are_added_until_calls_have_streams(void **state)
{
    struct timed *timed = *state;

    begin(timed, 4);
    start_holds(timed, MAX_CALLS, 0);
    assert_int_equal(n_open(timed), 1);
    start_holds(timed, 1, 0);
    assert_int_equal(seen.n, MAX_CALLS + 1);
    assert_int_equal(n_open(timed), 2);
    start_holds(timed, MAX_CALLS, 0);
    assert_int_equal(seen.n, 2 * MAX_CALLS + 1);
    assert_int_equal(n_open(timed), 3);
    answer_all(timed);
    expect_all_ok(1 + 2 * MAX_CALLS + 1);
}

static void test_connections_are_added_for_a_burst_up_to_their_limit(void **state)
{
    struct timed *timed = *state;

    begin(timed, 3);
    start_holds(timed, 5 * MAX_CALLS, 0);
    assert_int_equal(seen.n, 3 * MAX_CALLS);
    assert_int_equal(n_open(timed), 3);
    answer_all(timed);
    assert_int_equal(n_open(timed), 3);
    expect_all_ok(1 + 5 * MAX_CALLS);
}

static void test_connections_deadline_says_what_the_call_waited_for(void **state)
{
    struct timed *timed = *state;

    begin(timed, 2);
    start_holds(timed, 2 * MAX_CALLS, 0);
    start_holds(timed, 1, SECOND);
    timed_advance(timed, 2 * SECOND);
    if (strstr(seen.message, "waiting for a stream slot at") == NULL ||
        strstr(seen.message, "max_connections_per_address is 2") == NULL) {
        fail_msg("\"%s\" does not name what to change", seen.message);
    }
    answer_all(timed);
}

/* They have nothing to do while the first takes all calls. */
static void test_connections_that_a_burst_has_left_are_closed_and_the_first_stays(void **state)
{
    struct timed *timed = *state;

    begin(timed, 3);
    start_holds(timed, 3 * MAX_CALLS, 0);
    assert_int_equal(n_open(timed), 3);
    answer_all(timed);
    for (int i = 0; i < 15; i++) {
        timed_advance(timed, BOW_LIMIT_FURTHER_IDLE_NS / 10);
        start_say(timed);
    }
    assert_int_equal(n_open(timed), 1);
    assert_int_equal(server_metrics(timed).connections_opened, 3);
    start_holds(timed, MAX_CALLS + 1, 0);
    assert_int_equal(n_open(timed), 2);
    answer_all(timed);
    expect_all_ok(1 + 3 * MAX_CALLS + 15 + MAX_CALLS + 1);
}

/* The calls of a connection that is lost are as lost as ever, and the others go on. */
static void test_connections_lost_are_made_again(void **state)
{
    struct timed *timed = *state;

    begin(timed, 3);
    start_holds(timed, 2 * MAX_CALLS, 0);
    assert_int_equal(n_open(timed), 2);
    bow_test_break(timed->test, BOW_TEST_RESET);
    timed_run(timed);
    while (seen.n > 0) {
        struct bow_call *call = seen.calls[--seen.n];
        bow_call_fail(call, BOW_INTERNAL, "nobody waits for it");
    }
    seen.n_ok = 0;
    start_say(timed);
    timed_advance(timed, SECOND);
    start_holds(timed, 2 * MAX_CALLS + 1, 0);
    assert_int_equal(seen.n, 2 * MAX_CALLS + 1);
    assert_int_equal(n_open(timed), 3);
    answer_all(timed);
    expect_all_ok(1 + 2 * MAX_CALLS + 1);
}

/* Calls go on over those that there are, and the server is not asked without a pause. */
static void test_connections_that_the_server_refuses_cost_no_call(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.max_connections_per_address = 4;
    server.max_connections = 1;
    begin_with(timed, &server, &client);
    start_holds(timed, 5 * MAX_CALLS, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen.n, MAX_CALLS);
        answer(timed, MAX_CALLS);
    }
    expect_all_ok(1 + 5 * MAX_CALLS);
    assert_int_equal(n_open(timed), 1);
    assert_int_equal(server_metrics(timed).connections_refused, 1);
}

static void test_connections_serve_while_the_first_is_made_again(void **state)
{
    struct timed *timed = *state;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.max_connections_per_address = 3;
    client.idle_timeout_ns = 3600 * SECOND;
    server.max_age_ns = 100 * SECOND;
    begin_with(timed, &server, &client);
    timed_advance(timed, 50 * SECOND);
    start_holds(timed, MAX_CALLS + 1, 0);
    assert_int_equal(n_open(timed), 2);
    timed_advance(timed, 65 * SECOND); /* the first is old */
    start_holds(timed, MAX_CALLS - 1, 0);
    assert_int_equal(server_metrics(timed).connections_opened, 2);
    start_holds(timed, 1, 0);
    assert_int_equal(server_metrics(timed).connections_opened, 3);
    assert_int_equal(seen.n, 2 * MAX_CALLS + 1);
    answer_all(timed);
    expect_all_ok(1 + 2 * MAX_CALLS + 1);
}

/** A second server beside that of begin(), and a client of both, which has called each. */
struct both {
    struct bow_test_pair *other;
    struct bow_client *first_client;
};

static void begin_list(struct timed *timed, uint32_t max_server_connections, struct both *both)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options list = BOW_CLIENT_OPTIONS_INIT;
    char target[160];

    begin(timed, 1);
    server.max_calls = (uint32_t)MAX_CALLS;
    server.max_connections = max_server_connections;
    options.serve = serve;
    options.user = timed;
    options.server = &server;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &both->other), 0);
    snprintf(target, sizeof(target), "%slist:%s,%s", timed_is_grpc() ? "grpc:" : "",
             strstr(timed->pair->target, "inproc:"), strstr(both->other->target, "inproc:"));
    list.context = bow_test_context(timed->test);
    list.loop = bow_test_loop(timed->test);
    list.target = target;
    list.max_connections_per_address = 3;
    both->first_client = timed->pair->client;
    assert_int_equal(bow_client_new(&list, &timed->pair->client), 0);
    start_say(timed);
    start_say(timed);
}

static void end_list(struct timed *timed, const struct both *both)
{
    answer_all(timed);
    bow_client_free(timed->pair->client);
    timed->pair->client = both->first_client;
}

/* The first server has one more, of begin(). */
static void expect_open(struct timed *timed, const struct both *both, uint64_t n, uint64_t n_other)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(n_open(timed), 1 + n);
    assert_int_equal(bow_server_metrics(both->other->server, &metrics), 0);
    assert_int_equal(metrics.connections_opened - metrics.connections_closed, n_other);
}

/* Each address gets its second connection before one of them gets a third. */
static void test_connections_of_a_list_are_added_evenly(void **state)
{
    struct timed *timed = *state;
    struct both both;

    begin_list(timed, 0, &both);
    start_holds(timed, 2 * MAX_CALLS, 0);
    expect_open(timed, &both, 1, 1);
    start_holds(timed, MAX_CALLS + 1, 0);
    assert_int_equal(seen.n, 3 * MAX_CALLS + 1);
    expect_open(timed, &both, 2, 2);
    start_holds(timed, 3 * MAX_CALLS, 0);
    assert_int_equal(seen.n, 6 * MAX_CALLS);
    expect_open(timed, &both, 3, 3);
    end_list(timed, &both);
    expect_all_ok(1 + 2 + 6 * MAX_CALLS + 1);
}

static void test_connections_of_a_list_go_where_they_are_taken(void **state)
{
    struct timed *timed = *state;
    struct both both;

    begin_list(timed, 1, &both);
    start_holds(timed, 5 * MAX_CALLS, 0);
    assert_int_equal(seen.n, 4 * MAX_CALLS);
    expect_open(timed, &both, 3, 1);
    end_list(timed, &both);
    expect_all_ok(1 + 2 + 5 * MAX_CALLS);
}

/* Servers that the test plays; what they say is gRPC's */

#define MAX_PLAYED 8

/** A client and the connections that it has made. */
struct played {
    struct bow_client *client;
    int listening;
    uint16_t port;
    int fds[MAX_PLAYED];
    int n;
};

static void play(struct played *played, uint32_t max_connections)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[64];

    memset(&seen, 0, sizeof(seen));
    *played = (struct played){.n = 0};
    played->listening = raw_listen(&played->port);
    assert_int_equal(fcntl(played->listening, F_SETFL, O_NONBLOCK), 0);
    snprintf(target, sizeof(target), "%s127.0.0.1:%u", timed_is_grpc() ? "grpc:" : "",
             played->port);
    options.target = target;
    options.max_connections_per_address = max_connections;
    assert_int_equal(bow_client_new(&options, &played->client), 0);
}

static void end_play(struct played *played)
{
    bow_client_free(played->client);
    while (played->n > 0) {
        close(played->fds[--played->n]);
    }
    close(played->listening);
}

static void call_played(struct played *played)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__say__start(played->client, &request, NULL, on_done, NULL, NULL),
                     0);
}

static void tell(int fd, const void *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* SETTINGS, with MAX_CONCURRENT_STREAMS. */
static void tell_max_streams(int fd, uint8_t max)
{
    const uint8_t settings[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, max};

    tell(fd, settings, sizeof(settings));
}

/* Let the client do what it has to, and take the connections that it makes. */
static void turn(struct played *played)
{
    for (int i = 0; i < 40; i++) {
        assert_int_equal(bow_client_poll(played->client, 2 * MS), 0);
        int fd = accept(played->listening, NULL, NULL);
        if (fd >= 0) {
            assert_in_range(played->n, 0, MAX_PLAYED - 1);
            played->fds[played->n++] = fd;
        }
    }
}

/* How many frames of HEADERS have come so far, behind the preface. */
static int n_requests(int fd)
{
    uint8_t bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK);
    int n_headers = 0;

    for (ssize_t at = 24; at + 9 <= n;
         at += 9 + (bytes[at] << 16 | bytes[at + 1] << 8 | bytes[at + 2])) {
        n_headers += bytes[at + 3] == 1;
    }
    return n_headers;
}

static void test_connections_are_not_added_where_they_take_no_call(void **state)
{
    struct played played;

    (void)state;
    if (!timed_is_grpc()) {
        return; /* a server that speaks Bowline's own protocol takes 100 */
    }
    play(&played, 6);
    call_played(&played);
    turn(&played);
    assert_int_equal(played.n, 1);
    tell_max_streams(played.fds[0], 0);
    turn(&played);
    call_played(&played);
    turn(&played);
    assert_int_equal(played.n, 2);
    tell_max_streams(played.fds[1], 0);
    turn(&played);
    assert_int_equal(played.n, 2);
    end_play(&played);
}

/* The first is made again, and what accepts it never answers. */
static void test_connections_that_serve_are_not_left_for_one_that_is_silent(void **state)
{
    static const uint8_t goaway[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
    static const uint8_t reset[] = {0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2}; /* INTERNAL_ERROR */
    struct played played;

    (void)state;
    if (!timed_is_grpc()) {
        return; /* the same, above 100 calls */
    }
    play(&played, 2);
    call_played(&played);
    turn(&played);
    tell_max_streams(played.fds[0], 1);
    turn(&played);
    call_played(&played);
    turn(&played);
    assert_int_equal(played.n, 2);
    tell_max_streams(played.fds[1], 1);
    turn(&played);
    assert_int_equal(n_requests(played.fds[1]), 1);
    tell(played.fds[0], goaway, sizeof(goaway));
    call_played(&played);
    turn(&played);
    assert_int_equal(played.n, 3);
    assert_int_equal(n_requests(played.fds[2]), 0);
    tell(played.fds[1], reset, sizeof(reset)); /* its call is over */
    turn(&played);
    assert_int_equal(seen.n_done, 1);
    assert_int_equal(n_requests(played.fds[1]), 2);
    assert_int_equal(n_requests(played.fds[2]), 0);
    end_play(&played);
}

/* Another address, which is silent, is not what the calls wait for. */
static void test_connections_of_a_list_beside_a_silent_one_lack_streams(void **state)
{
    struct timed *timed = *state;
    struct bow_client_options list = BOW_CLIENT_OPTIONS_INIT;
    struct played played;
    char target[160];

    begin(timed, 1);
    play(&played, 1);
    snprintf(target, sizeof(target), "%slist:%s,127.0.0.1:%u", timed_is_grpc() ? "grpc:" : "",
             strstr(timed->pair->target, "inproc:"), played.port);
    list.context = bow_test_context(timed->test);
    list.loop = bow_test_loop(timed->test);
    list.target = target;
    struct bow_client *first_client = timed->pair->client;
    assert_int_equal(bow_client_new(&list, &timed->pair->client), 0);
    start_say(timed);
    start_holds(timed, MAX_CALLS, 0);
    start_holds(timed, 1, SECOND);
    assert_int_equal(seen.n, MAX_CALLS);
    assert_int_equal(n_without_stream(timed), 1);
    timed_advance(timed, 2 * SECOND);
    if (strstr(seen.message, "waiting for a stream slot at") == NULL) {
        fail_msg("\"%s\" names something else", seen.message);
    }
    answer_all(timed);
    bow_client_free(timed->pair->client);
    timed->pair->client = first_client;
    end_play(&played);
}

static void test_connections_more_than_the_limit_are_refused_with_a_reason(void **state)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    (void)state;
    options.target = "127.0.0.1:1";
    options.error = &error;
    options.max_connections_per_address = BOW_LIMIT_CONNECTIONS_PER_ADDRESS;
    assert_int_equal(bow_client_new(&options, &client), 0);
    bow_client_free(client);
    options.max_connections_per_address++;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "options.max_connections_per_address is 65, and at most 64 "
                                       "(BOW_LIMIT_CONNECTIONS_PER_ADDRESS)"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_connections_one_by_default_and_what_waits_is_counted),
        TEST(test_connections_are_added_until_calls_have_streams),
        TEST(test_connections_are_added_for_a_burst_up_to_their_limit),
        TEST(test_connections_deadline_says_what_the_call_waited_for),
        TEST(test_connections_that_a_burst_has_left_are_closed_and_the_first_stays),
        TEST(test_connections_lost_are_made_again),
        TEST(test_connections_that_the_server_refuses_cost_no_call),
        TEST(test_connections_serve_while_the_first_is_made_again),
        TEST(test_connections_of_a_list_are_added_evenly),
        TEST(test_connections_of_a_list_go_where_they_are_taken),
        TEST(test_connections_are_not_added_where_they_take_no_call),
        TEST(test_connections_that_serve_are_not_left_for_one_that_is_silent),
        TEST(test_connections_of_a_list_beside_a_silent_one_lack_streams),
        TEST(test_connections_more_than_the_limit_are_refused_with_a_reason),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
