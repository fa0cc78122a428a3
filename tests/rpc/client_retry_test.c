/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that servers turn away: what was sent is sent once more, what never left the client as
 * often as that happens. The servers are the test itself, one after the other at one address.
 */

#include "call_fixture.h"
#include "session_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_PEERS 3

struct visit {
    struct calls *t;
    int listening;
    struct session_peer *peer; /* the last of them */
    struct session_peer peers[MAX_PEERS];
    int n_peers;
    int n_held_turns; /* under the lock of t */
};

static void begin(struct calls *t, struct visit *visit)
{
    struct bow_client_options options;

    *visit = (struct visit){.t = t, .listening = calls_raw_listen(t)};
    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

static void end(struct visit *visit)
{
    for (int i = 0; i < visit->n_peers; i++) {
        if (visit->peers[i].session != NULL) {
            session_peer_end(&visit->peers[i]);
        }
    }
    bow_client_free(visit->t->client);
    visit->t->client = NULL;
    close(visit->listening);
}

static void start_say(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
}

static void accept_client(struct visit *visit)
{
    int fd = accept(visit->listening, NULL, NULL);

    assert_true(fd >= 0);
    assert_true(visit->n_peers < MAX_PEERS);
    visit->peer = &visit->peers[visit->n_peers++];
    session_peer_begin(visit->peer, visit->t->context, fd, true, calls_is_grpc());
}

static void answer(struct visit *visit)
{
    session_peer_wait(visit->peer, &visit->peer->n_messages, 1);
    session_peer_send(visit->peer, BOW__SEND_END, "", 0);
}

/* A server that drains before it has read what its client sent. */
static void turn_away(struct visit *visit)
{
    struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "restarting"};

    accept_client(visit);
    visit->peer->session->ops->goaway(visit->peer->session, &reason);
    visit->peer->session->ops->leave(visit->peer->session);
    session_peer_flush(visit->peer);
}

static void test_retry_call_that_a_leaving_server_did_not_take(void **state)
{
    struct calls *t = *state;
    struct visit visit;

    begin(t, &visit);
    start_say(t);
    turn_away(&visit);
    accept_client(&visit);
    answer(&visit);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    end(&visit);
}

/* As gRPC does: what reached a server is tried again by itself once. */
static void test_retry_call_that_two_leaving_servers_did_not_take_fails(void **state)
{
    struct calls *t = *state;
    struct visit visit;

    begin(t, &visit);
    start_say(t);
    turn_away(&visit);
    turn_away(&visit);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_true(t->result.status.not_processed);
    end(&visit);
}

/* What never left */

/* In a turn that goes on when the test has done its part. */
static int start_in_held_turn(void *user)
{
    struct visit *visit = user;
    struct calls *t = visit->t;

    pthread_mutex_lock(&t->lock);
    visit->n_held_turns++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    calls_wait(t, &t->n_let_go, 1);
    start_say(t);
    return 0;
}

/* So that the client's next write fails at once, and nothing of it leaves. */
static void reset(struct session_peer *peer)
{
    struct linger linger = {.l_onoff = 1};

    assert_int_equal(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    session_peer_end(peer);
    peer->session = NULL;
}

/* A call that is begun on a connection that was just lost: it is written to nobody. */
static void lose_unsent(struct visit *visit)
{
    struct calls *t = visit->t;

    start_say(t);
    accept_client(visit);
    answer(visit);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(bow_loop_execute(t->loop, "held turn", start_in_held_turn, visit), 0);
    calls_wait(t, &visit->n_held_turns, 1);
    reset(visit->peer);
    calls_let_go(t);
}

static void finish(struct visit *visit, enum bow_code code, bool not_processed)
{
    struct session_peer *peer = visit->peer;
    struct bow_status status = {.code = code, .message = "", .not_processed = not_processed};

    session_peer_wait(peer, &peer->n_messages, 1);
    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, &status), 0);
    session_peer_flush(peer);
}

static void test_retry_what_never_left_does_not_count(void **state)
{
    struct calls *t = *state;
    struct visit visit;

    begin(t, &visit);
    lose_unsent(&visit);
    accept_client(&visit);
    finish(&visit, BOW_UNAVAILABLE, true); /* which is its first try */
    session_peer_wait(visit.peer, &visit.peer->n_messages, 2);
    session_peer_send(visit.peer, BOW__SEND_END, "", 0);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_OK);
    end(&visit);
}

static void test_retry_what_left_counts_after_what_did_not(void **state)
{
    struct calls *t = *state;
    struct visit visit;

    begin(t, &visit);
    lose_unsent(&visit);
    turn_away(&visit);
    turn_away(&visit);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_true(t->result.status.not_processed);
    end(&visit);
}

/* What was sent and is lost with its connection may have run. */
static void test_retry_what_was_sent_and_lost_is_not_sent_again(void **state)
{
    struct calls *t = *state;
    struct visit visit;

    begin(t, &visit);
    start_say(t);
    accept_client(&visit);
    session_peer_wait(visit.peer, &visit.peer->n_messages, 1);
    reset(visit.peer);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_false(t->result.status.not_processed);
    end(&visit);
}

#define RETRY_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RETRY_TEST(test_retry_call_that_a_leaving_server_did_not_take),
        RETRY_TEST(test_retry_call_that_two_leaving_servers_did_not_take_fails),
        RETRY_TEST(test_retry_what_never_left_does_not_count),
        RETRY_TEST(test_retry_what_left_counts_after_what_did_not),
        RETRY_TEST(test_retry_what_was_sent_and_lost_is_not_sent_again),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
