/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVICES_HEALTH_H
#define BOWLINE_RPC_SERVICES_HEALTH_H

/*
 * grpc.health.v1.Health over the states of a server's services: asked by Check and List, told to
 * who watches. What it says to users is in <bowline/health.h>.
 *
 *     states change, on any thread ──► each loop with watchers is posted a look ──► each watcher
 *     that was told another state is told the present one, if the one before has left
 *
 * Design. Calls and the list of who watches are their loop's. A loop is posted to once, however
 * often states change before it looks (`posted`, exchanged by who posts, cleared before the look);
 * one without watchers is not (`n_watchers`, counted up before the state is looked up that a
 * watcher is told first, so who changes it after that sees the watcher). A look holds its loop's
 * part; only while there are watchers does it look at the states, and those keep the server.
 */

#include "base/list.h"
#include "rpc/services/health_states.h"
#include <bowline/loop.h>
#include <bowline/service.h>
#include <bowline/timer.h>
#include <stdatomic.h>

struct bow_call;
struct bow_channel;

/** What a loop has of it. */
struct bow__health_loop {
    struct bow_context *context; /* a reference */
    struct bow__health *health;
    struct bow_loop *loop; /* the worker's */
    struct bow_task task;
    struct bow_timer behind_timer; /* armed while a watcher is behind */
    atomic_uint refs;              /* relaxed up, acq_rel down: health's, a posted look's */
    atomic_bool posted;            /* sequentially consistent, as the next */
    atomic_uint n_watchers;
    struct bow__link watchers;
};

struct bow__health {
    struct bow__health_states states;
    atomic_bool over; /* watching has ended; sequentially consistent, before loops are posted to */
    pthread_mutex_t loops_lock; /* the next two: who changes states may come before the start */
    struct bow__health_loop **loops;
    uint32_t n_loops;
    /** Whether the connection of a call has been told to end. Thread: loop. */
    bool (*is_leaving)(const struct bow_call *call);
};

extern const struct bow_service bow__health__health__service;

void bow__health_init(struct bow__health *health, struct bow_context *context,
                      bool (*is_leaving)(const struct bow_call *call));
void bow__health_fini(struct bow__health *health);

/** The handlers of the service, which is to have `health` for its user. */
const void *bow__health_handlers(size_t *ret_size);

/** Room for `n` loops, before they run; then each. Returns 0 or -ENOMEM. */
int bow__health_make_loops(struct bow__health *health, uint32_t n);
int bow__health_add_loop(struct bow__health *health, struct bow_loop *loop);
/** They have ended, or never ran. */
void bow__health_free_loops(struct bow__health *health);

/** As <bowline/health.h> has it. Returns 0, -ENOMEM, -ENOENT. Thread: any. */
int bow__health_set(struct bow__health *health, const char *service, enum bow_health_state state);
int bow__health_unset(struct bow__health *health, const char *service);

/** The server drains: nothing serves any more. Idempotent. Thread: any. */
void bow__health_drain(struct bow__health *health);
/** GOAWAY is being sent: who watches is ended, soon. Idempotent. Thread: any. */
void bow__health_end(struct bow__health *health);
/** `channel` has been told to end: who watches on it is ended, soon. Thread: `loop`. */
void bow__health_leave(struct bow__health *health, struct bow_loop *loop,
                       const struct bow_channel *channel);

#endif
