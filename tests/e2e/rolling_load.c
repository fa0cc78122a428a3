/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients that call without a break.
 */

#include "rolling_load.h"
#include "lab.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PAUSE_NS (2 * LAB_MS)

static void note_failure(struct rolling_load *load, const char *what, const char *words)
{
    pthread_mutex_lock(&load->lock);
    if (atomic_fetch_add(&load->n_failed, 1) == 0) {
        snprintf(load->failure, sizeof(load->failure), "%s: %s", what, words);
    }
    pthread_mutex_unlock(&load->lock);
}

/* The next call after a pause; none when all is to end. */
static void go_on(struct rolling_user *user)
{
    if (atomic_load(&user->load->stopping)) {
        atomic_fetch_sub(&user->load->n_running, 1);
        return;
    }
    bow_timer_start(&user->pause, PAUSE_NS);
}

/* Unary calls */

static void on_hit(struct bow_result *result, const Rolling__Ball *reply, void *data)
{
    struct rolling_user *user = data;

    if (reply == NULL) {
        note_failure(user->load, "hit", result->status.message);
    } else if (reply->number != user->number) {
        note_failure(user->load, "hit", "another's reply");
    } else {
        atomic_fetch_add(&user->load->n_hits, 1);
    }
    go_on(user);
}

static void hit(struct bow_timer *timer, void *data)
{
    struct rolling_user *user = data;
    Rolling__Ball ball = ROLLING__BALL__INIT;

    (void)timer;
    ball.number = ++user->number;
    ball.client = 1;
    if (rolling__court__hit__start(user->load->client, &ball, NULL, on_hit, user, NULL) < 0) {
        note_failure(user->load, "hit", "it could not be started");
        go_on(user);
    }
}

/* Streams: a ball goes to and fro, and stays with the server where it began */

static void send_ball(struct rolling_user *user)
{
    Rolling__Ball ball = ROLLING__BALL__INIT;

    ball.number = user->number;
    if (rolling__court__play__stream_send(user->stream, &ball) < 0) {
        note_failure(user->load, "play", "a ball could not be sent");
    }
}

static void on_ball(struct rolling__court__play__stream stream, const Rolling__Ball *ball,
                    void *data)
{
    struct rolling_user *user = data;

    (void)stream;
    if (ball->number != user->number) {
        note_failure(user->load, "play", "another's ball");
    }
    if (++user->number == ROLLING_BALLS) {
        (void)bow_stream_half_close(stream.stream);
        return;
    }
    bow_timer_start(&user->pause, PAUSE_NS);
}

static void on_closed(struct rolling__court__play__stream stream, struct bow_result *result,
                      void *data)
{
    struct rolling_user *user = data;

    (void)stream;
    bow_timer_stop(&user->pause);
    if (result->status.code != BOW_OK) {
        note_failure(user->load, "play", result->status.message);
    } else if (user->number != ROLLING_BALLS) {
        note_failure(user->load, "play", "balls are lost");
    } else {
        atomic_fetch_add(&user->load->n_games, 1);
    }
    user->number = 0;
    bow_stream_unref(user->stream.stream);
    user->stream.stream = NULL;
    go_on(user);
}

static void begin_game(struct rolling_user *user)
{
    static const struct rolling__court__play__stream_events events = {
        .on_message = on_ball,
        .on_closed = on_closed,
    };

    if (rolling__court__play__open(user->load->client, NULL, &events, user, &user->stream) < 0) {
        note_failure(user->load, "play", "it could not be opened");
        go_on(user);
    }
}

static void play(struct bow_timer *timer, void *data)
{
    struct rolling_user *user = data;

    (void)timer;
    if (user->stream.stream == NULL) {
        begin_game(user);
    }
    if (user->stream.stream != NULL) {
        send_ball(user);
    }
}

/* Blocking calls of a confined client */

static void hit_and_wait(struct rolling_load *load, struct bow_client *client, uint64_t number)
{
    struct bow_result result = BOW_RESULT_INIT;
    Rolling__Ball ball = ROLLING__BALL__INIT;

    ball.number = number;
    ball.client = 2;
    if (rolling__court__hit__call(client, &ball, NULL, &result) == NULL) {
        note_failure(load, "blocking hit", result.status.message);
    } else {
        atomic_fetch_add(&load->n_hits, 1);
    }
    bow_result_fini(&result);
}

static struct bow_client *new_client(struct bow_loop *loop, const char *target)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;

    options.target = target;
    options.loop = loop;
    options.context = loop != NULL ? bow_loop_context(loop) : NULL;
    assert_int_equal(bow_client_new(&options, &client), 0);
    return client;
}

static void *call_blocking(void *data)
{
    struct rolling_load *load = data;
    struct bow_client *client = new_client(NULL, load->target);

    for (uint64_t number = 1; !atomic_load(&load->stopping); number++) {
        hit_and_wait(load, client, number);
        (void)bow_client_poll(client, PAUSE_NS);
    }
    bow_client_free(client);
    return NULL;
}

/* All of it */

static int begin(void *data)
{
    struct rolling_load *load = data;

    for (int i = 0; i < ROLLING_HITTERS; i++) {
        hit(NULL, &load->hitters[i]);
    }
    for (int i = 0; i < ROLLING_PLAYERS; i++) {
        play(NULL, &load->players[i]);
    }
    return 0;
}

static void init_users(struct rolling_load *load, struct rolling_user *users, int n,
                       bow_timer_fn fn)
{
    for (int i = 0; i < n; i++) {
        users[i].load = load;
        bow_timer_init(&users[i].pause, load->loop, fn, &users[i]);
    }
}

void rolling_load_start(struct rolling_load *load, const char *target)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;

    memset(load, 0, sizeof(*load));
    load->target = target;
    pthread_mutex_init(&load->lock, NULL);
    atomic_init(&load->n_running, ROLLING_HITTERS + ROLLING_PLAYERS);
    assert_int_equal(bow_context_new(&context_options, &load->context), 0);
    assert_int_equal(bow_loop_new(load->context, NULL, &load->loop), 0);
    load->client = new_client(load->loop, target);
    init_users(load, load->hitters, ROLLING_HITTERS, hit);
    init_users(load, load->players, ROLLING_PLAYERS, play);
    assert_int_equal(pthread_create(&load->thread, NULL, call_blocking, load), 0);
    assert_int_equal(bow_loop_execute(load->loop, "begin", begin, load), 0);
}

void rolling_load_stop(struct rolling_load *load)
{
    atomic_store(&load->stopping, true);
    pthread_join(load->thread, NULL);
    while (atomic_load(&load->n_running) > 0) {
        sched_yield();
    }
    bow_client_free(load->client);
    assert_int_equal(bow_loop_shutdown(load->loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(load->loop, BOW_NEVER), 0);
    bow_loop_unref(load->loop);
    assert_int_equal(bow_context_bytes(load->context), 0);
    bow_context_unref(load->context);
    pthread_mutex_destroy(&load->lock);
}
