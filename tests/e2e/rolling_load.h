/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_ROLLING_LOAD_H
#define BOWLINE_TESTS_E2E_ROLLING_LOAD_H

/*
 * Clients that call without a break: unary calls and streams with callbacks on a loop, and blocking
 * calls of a client that is confined to a thread. What fails is counted, and the first failure's
 * words are kept.
 */

#include "rolling.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/timer.h>
#include <pthread.h>
#include <stdatomic.h>

/** Numbered from 1: the one on the loop, and the confined one. */
#define ROLLING_CLIENTS 2
#define ROLLING_HITTERS 16
#define ROLLING_PLAYERS 4
#define ROLLING_BALLS 20 /* of a stream */

struct rolling_load;

/** Calls, pauses, calls again; or plays a game. On the loop. */
struct rolling_user {
    struct rolling_load *load;
    struct bow_timer pause;
    struct rolling__court__play__stream stream;
    uint64_t number;
};

struct rolling_load {
    const char *target;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client *client;
    struct rolling_user hitters[ROLLING_HITTERS];
    struct rolling_user players[ROLLING_PLAYERS];
    pthread_t thread; /* of the confined client */

    atomic_bool stopping;
    atomic_uint n_running; /* users of the loop */
    atomic_ulong n_hits;
    atomic_ulong n_games;
    atomic_ulong n_failed;
    pthread_mutex_t lock;
    char failure[600]; /* the first; under the lock */
};

/** Begin to call `target`. */
void rolling_load_start(struct rolling_load *load, const char *target);
/** Let what is under way end, and no more begin; then free the clients. */
void rolling_load_stop(struct rolling_load *load);

#endif
