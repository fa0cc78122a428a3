/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_H
#define BOWLINE_RPC_CLIENT_CLIENT_H

/*
 * A client from inside: a balancer for each loop, in use from the first call on that loop.
 *
 * Design. What threads share, beside what balancer.h and client_call.h say:
 *
 *     closing                        a relaxed hint
 *     n_closing, free_when_settled   under the lock, as the balancers' `settled`
 *
 * A client is destroyed when no close task is under way, and each balancer is settled and
 * awaits no start task. A loop that shuts down settles its balancers by itself, at any time,
 * and refuses close tasks from some moment on.
 */

#include "rpc/client/balancer.h"
#include <bowline/group.h>
#include <pthread.h>

/** What a thread that a confined client does not belong to is told. */
#define BOW__CONFINED_TEXT                                                                         \
    "the client is confined to the thread that created it: make one for each thread, or set "      \
    "options.loop or options.group"

struct bow_client {
    struct bow__client_config config;
    pthread_t thread; /* of a confined one */
    bool driving;     /* confined: inside its loop */
    struct bow_loop *own_loop;
    struct bow__call_ids ids;
    struct bow__balancer *balancers;
    uint32_t n_balancers;
    uint32_t n_made; /* of them are set up: less only while the client is made */
    struct bow__subchannel *subchannels; /* of all balancers, one after the other */
    atomic_bool closing;
    /* Whose loop calls options.on_metrics: exchanged by each balancer as it opens, kept by the
     * first; then read by that loop. */
    _Atomic(struct bow__balancer *) metrics_balancer;
    struct bow_timer metrics_timer;

    pthread_mutex_t lock;
    pthread_cond_t settled;
    uint32_t n_closing; /* close tasks under way, and who posts them */
    bool free_when_settled;
};

/** The balancer for the calling thread, marked as used; NULL for a confined client on another
 * thread. */
struct bow__balancer *bow__client_balancer(struct bow_client *client);
/** Whether a process that this one was forked from uses it. Thread: any. */
bool bow__client_is_foreign(const struct bow_client *client);
/** Whether the calling thread is one of the client's loops'. */
bool bow__client_in_loops(const struct bow_client *client);
/** The loop holds something of the balancer from now on. Loop. */
void bow__client_unsettle(struct bow__balancer *balancer);
/** A call from another thread failed or was refused, and is counted no more: the balancer may go.
 * Thread: any. */
void bow__client_unpost(struct bow__balancer *balancer);

/** Drive a confined client's loop for one turn. Returns 0 or as bow_loop_run_once(). */
int bow__client_drive(struct bow_client *client, uint64_t timeout_ns);
/** Before a call that waits: have a confined client notice what came while nobody looked, so that a
 * connection that was lost is not used. Returns as bow__client_drive(). */
int bow__client_catch_up(struct bow_client *client);
/** After the last drive: shows the counters; the end of a confined client that a callback freed
 * meanwhile. */
void bow__client_end_drive(struct bow_client *client);

#endif
