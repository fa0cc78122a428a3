/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of several servers when one of them leaves, or refuses: what was not processed goes to
 * another, what runs is let run, and no call fails.
 */

#include "list_fixture.h"
#include "session_peer.h"

#include <bowline/metrics.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Also those that have come back since. */
static void reach_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 1);
    }
}

/* One server is the test itself */

struct played {
    int fd;
    struct session_peer peer;
};

/* In the first server's place. */
static void play(struct list *list, struct played *played)
{
    list_kill_server(list, 0);
    played->fd = calls_raw_listen(list->servers[0]);
    list_name_target(list);
}

static void accept_client(struct list *list, struct played *played)
{
    int fd = accept(played->fd, NULL, NULL);

    assert_true(fd >= 0);
    session_peer_begin(&played->peer, list->t->context, fd, true, calls_is_grpc());
    session_peer_wait(&played->peer, &played->peer.n_readies, 1);
}

static int n_done(struct list *list)
{
    pthread_mutex_lock(&list->t->lock);
    int n = list->t->n_done;
    pthread_mutex_unlock(&list->t->lock);
    return n;
}

/* Calls until one is with the played server, so that the next goes to another. Returns how many
 * have been started since the client was made; all but that one have been answered. */
static int call_until_asked(struct list *list, struct played *played)
{
    int n = 1;

    list_start_say(list);
    calls_wait(list->t, &list->t->n_done, 1); /* by the other, which is ready now */
    accept_client(list, played);
    while (played->peer.n_messages == 0) {
        if (n_done(list) == n) {
            list_start_say(list);
            n++;
        }
        (void)session_peer_serve(&played->peer, 1);
    }
    calls_wait(list->t, &list->t->n_done, n - 1);
    return n;
}

static void finish(struct session_peer *peer, enum bow_code code, bool not_processed)
{
    struct bow_status status = {.code = code, .message = "", .not_processed = not_processed};

    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, &status), 0);
    session_peer_flush(peer);
}

static void stop_playing(struct list *list, struct played *played)
{
    list_free_client(list);
    session_peer_end(&played->peer);
    close(played->fd);
}

static void test_move_refused_call_goes_to_another_server(void **state)
{
    struct list *list = *state;
    struct played played;

    play(list, &played);
    list_kill_server(list, 2);
    list_new_client(list, NULL);
    int n = call_until_asked(list, &played);
    /* Then one for the other server: the next turn would be the refusing server's again. */
    list_start_say(list);
    calls_wait(list->t, &list->t->n_done, n);
    finish(&played.peer, BOW_UNAVAILABLE, true);
    calls_wait(list->t, &list->t->n_done, n + 1);
    assert_int_equal(list->t->result.status.code, BOW_OK);
    assert_int_equal(played.peer.n_opens, 1);
    stop_playing(list, &played);
}

/* What may have been processed is not sent to anybody else. */
static void test_move_call_that_may_have_run_is_not_moved(void **state)
{
    struct list *list = *state;
    struct played played;

    play(list, &played);
    list_kill_server(list, 2);
    list_new_client(list, NULL);
    int n = call_until_asked(list, &played);
    int before = list_said(list, 1);
    session_peer_end(&played.peer);
    calls_wait(list->t, &list->t->n_done, n);
    assert_int_equal(list->t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(list_said(list, 1), before);
    list_free_client(list);
    close(played.fd);
}

static void slow_to_retry(struct bow_client_options *options)
{
    options->backoff_min_ns = 3600 * 1000 * MS;
    options->backoff_max_ns = 3600 * 1000 * MS;
}

/* One that takes connections and ends them soon is not connected to at once, whatever is called. */
static void test_move_f25_connections_that_end_soon_are_made_with_pauses(void **state)
{
    struct list *list = *state;
    struct played played;

    play(list, &played);
    list_new_client(list, slow_to_retry);
    int n = call_until_asked(list, &played);
    session_peer_end(&played.peer);
    calls_wait(list->t, &list->t->n_done, n);
    for (int i = 1; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 3);
    }
    struct pollfd again = {.fd = played.fd, .events = POLLIN};
    assert_int_equal(poll(&again, 1, 0), 0);
    list_free_client(list);
    close(played.fd);
}

/* Servers that leave */

static void start_patient_server(struct list *list, int i)
{
    struct calls *t = list->servers[i];
    struct bow_server_options options;

    list_kill_server(list, i);
    calls_server_options(t, &options);
    options.grace_ns = BOW_NEVER;
    t->server = calls_start_server(t, &options);
}

static void start_many(struct list *list, int n)
{
    for (int i = 0; i < n; i++) {
        list_start_say(list);
    }
}

/* Calls are under way at all times, and one that takes long is at the server that leaves. */
static void test_move_server_that_leaves_fails_no_call(void **state)
{
    enum { ROUNDS = 4, MANY = 50 };
    struct list *list = *state;
    struct calls *t = list->t;
    int done = 0;

    for (int i = 0; i < LIST_SERVERS; i++) {
        start_patient_server(list, i);
    }
    list_new_client(list, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int leaves = round % LIST_SERVERS;
        struct calls *leaver = list->servers[leaves];
        reach_all(list);
        while (list_held(list, leaves) == 0) {
            list_start_hold(list);
            assert_int_equal(list_say(list, NULL), BOW_OK);
        }
        start_many(list, MANY);
        bow_server_stop(leaver->server);
        start_many(list, MANY);
        done += 2 * MANY;
        calls_wait(t, &t->n_done, done);
        for (int i = 0; i < LIST_SERVERS; i++) {
            while (list_held(list, i) > 0) {
                assert_int_equal(calls_reply(calls_take_held(list->servers[i]), 1), 0);
                done++;
            }
        }
        calls_wait(t, &t->n_done, done);
        assert_int_equal(bow_server_join(leaver->server), 0);
        start_patient_server(list, leaves);
    }
    assert_int_equal(t->n_failed, 0);
}

/* Connections that nobody needs */

static void soon_idle(struct bow_client_options *options)
{
    options->idle_timeout_ns = 200 * MS;
}

static uint64_t n_opened(struct list *list)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(list->t->client, &metrics), 0);
    return metrics.connections_opened;
}

static void test_move_idle_connections_stay_closed_until_a_call(void **state)
{
    struct list *list = *state;

    list_new_client(list, soon_idle);
    reach_all(list);
    while (bow_client_get_state(list->t->client) != BOW_CLIENT_IDLE) {
    }
    /* A machine that stands still may let one idle away between two calls: not all of them. */
    calls_hold_loop(50 * MS); /* this thread, until the counters have been published */
    assert_true(n_opened(list) < 2 * LIST_SERVERS);
    assert_int_equal(list_say(list, NULL), BOW_OK);
}

#define MOVE_TEST(name) cmocka_unit_test_setup_teardown(name, list_setup, list_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        MOVE_TEST(test_move_refused_call_goes_to_another_server),
        MOVE_TEST(test_move_call_that_may_have_run_is_not_moved),
        MOVE_TEST(test_move_f25_connections_that_end_soon_are_made_with_pauses),
        MOVE_TEST(test_move_server_that_leaves_fails_no_call),
        MOVE_TEST(test_move_idle_connections_stay_closed_until_a_call),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
