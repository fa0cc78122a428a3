/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Output that a peer does not take. Heartbeats are off: they see nothing wrong with a peer that
 * talks and never reads.
 */

#include "timed_fixture.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_BYTES ((size_t)48 << 10)
#define N_CALLS 8 /* of them fill what is on its way */

static void begin(struct timed *timed, uint64_t server_ns, uint64_t client_ns)
{
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    server.heartbeat_ns = BOW_NEVER;
    server.write_timeout_ns = server_ns;
    client.heartbeat_ns = BOW_NEVER;
    client.write_timeout_ns = client_ns;
    timed_begin(timed, &server, &client);
    timed_say(timed, 0); /* windows are told */
    timed_run(timed);
    assert_int_equal(timed->n_done, 1);
}

static void stall(struct timed *timed, struct bow_call *call)
{
    (void)call;
    bow_test_break(timed->test, BOW_TEST_STALL);
}

static void say_many(struct timed *timed)
{
    for (int i = 0; i < N_CALLS; i++) {
        timed_say(timed, N_BYTES);
    }
    timed_run(timed);
}

static uint64_t n_stalled(struct timed *timed)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    timed_advance(timed, 20 * MS); /* they are published then */
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    return metrics.connections_stalled;
}

static void test_stalled_replies_end_the_connection_in_time(void **state)
{
    struct timed *timed = *state;

    begin(timed, 10 * SECOND, BOW_NEVER);
    timed->enter = stall;
    say_many(timed);
    timed_advance(timed, 9 * SECOND);
    assert_int_equal(n_stalled(timed), 0);
    timed_advance(timed, SECOND);
    assert_int_equal(n_stalled(timed), 1);
    timed->enter = NULL;
    bow_test_resume(timed->test); /* now the client hears of the end */
    timed_run(timed);
    assert_int_equal(timed->n_done, 1 + N_CALLS);
    assert_true(timed->n_failed > 0);
}

static void test_stalled_requests_end_the_connection_in_time(void **state)
{
    struct timed *timed = *state;

    begin(timed, BOW_NEVER, 10 * SECOND);
    bow_test_break(timed->test, BOW_TEST_STALL);
    say_many(timed);
    timed_advance(timed, 9 * SECOND);
    assert_int_equal(timed->n_done, 1);
    timed_advance(timed, SECOND + MS);
    assert_int_equal(timed->n_done, 1 + N_CALLS);
    assert_int_equal(timed->code, BOW_UNAVAILABLE);
    assert_non_null(strstr(timed->text, "the peer took nothing of what was sent to it for 10 s "
                                        "(write_timeout_ns)"));
    timed_say(timed, 0); /* over another connection */
    timed_run(timed);
    assert_int_equal(timed->code, BOW_OK);
}

static void test_stalled_for_less_goes_on(void **state)
{
    struct timed *timed = *state;

    begin(timed, 10 * SECOND, 10 * SECOND);
    for (int i = 0; i < 3; i++) {
        bow_test_break(timed->test, BOW_TEST_STALL);
        say_many(timed);
        timed_advance(timed, 9 * SECOND);
        bow_test_resume(timed->test);
        timed_run(timed);
    }
    timed_advance(timed, 60 * SECOND); /* nothing waits */
    assert_int_equal(timed->n_done, 1 + 3 * N_CALLS);
    assert_int_equal(timed->n_failed, 0);
    assert_int_equal(n_stalled(timed), 0);
}

static void test_stalled_without_a_limit_stays(void **state)
{
    struct timed *timed = *state;

    begin(timed, BOW_NEVER, BOW_NEVER);
    timed->enter = stall;
    say_many(timed);
    timed_advance(timed, 3600 * SECOND);
    assert_int_equal(n_stalled(timed), 0);
    timed->enter = NULL;
    bow_test_resume(timed->test);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1 + N_CALLS);
    assert_int_equal(timed->n_failed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

/* Of a server that is short of what may wait the peer that takes nothing goes long before. */
static void test_stalled_f42_ends_where_memory_is_short(void **state)
{
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;
    struct timed *timed = *state;

    server.heartbeat_ns = BOW_NEVER;
    server.max_queued_reply_bytes = 4 * N_BYTES;
    client.heartbeat_ns = BOW_NEVER;
    timed_begin(timed, &server, &client);
    timed_say(timed, 0);
    timed_run(timed);
    timed->enter = stall;
    say_many(timed);
    timed_advance(timed, BOW_LIMIT_UNTAKEN_NS - SECOND);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.connections_untaken, 0);
    timed_advance(timed, 2 * SECOND);
    timed_advance(timed, 20 * MS);
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_int_equal(metrics.connections_untaken, 1);
    timed->enter = NULL;
    bow_test_resume(timed->test);
    timed_run(timed);
    assert_int_equal(timed->n_done, 1 + N_CALLS);
}

/* Many of them */

#define N_CLIENTS 100 /* more than go in one turn */
#define LARGE_BYTES ((size_t)512 << 10)

static struct bow_call *held[N_CLIENTS];
static int n_held;

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)request;
    (void)user;
    assert_in_range(n_held, 0, N_CLIENTS - 1);
    held[n_held++] = call;
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.hold = hold};

    return calls__echo__serve(server, &handlers, user);
}

static struct bow_client *call_hold(struct timed *timed, const struct bow_client_options *options)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;
    struct bow_client *client = NULL;

    call_options.timeout_ns = BOW_NEVER;
    assert_int_equal(bow_client_new(options, &client), 0);
    assert_int_equal(
        calls__echo__hold__start(client, &request, &call_options, timed_on_done, timed, NULL), 0);
    return client;
}

static void answer_all(void)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.len = LARGE_BYTES;
    reply.payload.data = calloc(1, LARGE_BYTES);
    assert_non_null(reply.payload.data);
    while (n_held > 0) {
        (void)calls__echo__hold__reply(held[--n_held], &reply);
    }
    free(reply.payload.data);
}

/* However many have to go for it, the shortage ends when it is looked at. */
static void test_stalled_f42_many_end_where_memory_is_short(void **state)
{
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;
    struct bow_client *clients[N_CLIENTS];
    struct timed *timed = *state;

    n_held = 0;
    server.heartbeat_ns = BOW_NEVER;
    server.max_queued_reply_bytes = LARGE_BYTES * 16;
    timed_secure(timed, &server, &client);
    options.serve = serve;
    options.user = timed;
    options.grpc = timed_is_grpc();
    options.server = &server;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
    client.context = bow_test_context(timed->test);
    client.loop = bow_test_loop(timed->test);
    client.target = timed->pair->target;
    client.heartbeat_ns = BOW_NEVER;
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = call_hold(timed, &client);
    }
    timed_run(timed);
    assert_int_equal(n_held, N_CLIENTS);
    bow_test_break(timed->test, BOW_TEST_STALL);
    answer_all();
    timed_advance(timed, BOW_LIMIT_UNTAKEN_NS + 100 * MS); /* looks are a second apart */
    assert_int_equal(bow_server_metrics(timed->pair->server, &metrics), 0);
    assert_in_range(metrics.connections_untaken, N_CLIENTS - 16, N_CLIENTS - 8);
    for (int i = 0; i < N_CLIENTS; i++) {
        bow_client_free(clients[i]);
    }
    timed_run(timed);
    assert_int_equal(timed->n_done, N_CLIENTS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stalled_replies_end_the_connection_in_time),
        TEST(test_stalled_requests_end_the_connection_in_time),
        TEST(test_stalled_for_less_goes_on),
        TEST(test_stalled_without_a_limit_stays),
        TEST(test_stalled_f42_ends_where_memory_is_short),
        TEST(test_stalled_f42_many_end_where_memory_is_short),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
