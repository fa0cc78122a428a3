/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_BALANCER_H
#define BOWLINE_RPC_CLIENT_BALANCER_H

/*
 * A client on one of its loops: calls, and the connections that they go to in turn.
 *
 * Design. A balancer belongs to its loop, and is in use from the first call on it. What threads
 * share, beside what client_call.h says:
 *
 *     shown_state    a relaxed hint
 *     used           acquire/release
 *     n_posted       release by the last use of the balancer for a call begun on another thread
 *                    (its start task, or who undoes it), and acquire by who frees the client
 *     settled        under the client's lock
 */

#include "rpc/client/resolver_watch.h"
#include "rpc/client/subchannel_set.h"
#include <bowline/loop.h>

struct bow__balancer;

/** What a balancer's client is told. On the loop. */
struct bow__balancer_ops {
    /** Its last act: it is touched no more but by tasks that are counted. */
    void (*on_settled)(struct bow__balancer *balancer);
    /** The close task has run. */
    void (*on_close_done)(struct bow__balancer *balancer);
};

struct bow__balancer {
    struct bow__client_calls calls; /* first */
    struct bow_client *client;
    const struct bow__balancer_ops *ops;
    atomic_bool used;
    atomic_uint n_posted; /* calls on their way from other threads */
    atomic_int shown_state;
    bool settled; /* the loop holds nothing of the balancer */

    /* The rest belongs to the loop. */
    struct bow__subchannel_list subchannels;
    struct bow__subchannel_set set;   /* of them, of a name */
    struct bow_resolver_watch *names; /* of a target that a resolver is asked for; or NULL */
    enum bow__connectivity state;     /* of the subchannels together */
    struct bow__client_conn *conn;    /* of the address whose turn it is, or NULL */
    enum bow_client_state notified_state;
    bool notifies; /* by a task that is posted, which holds the balancer as a call does */
    struct bow_task state_task;
    bool opened; /* the hook is set */
    struct bow_loop_hook hook;
    struct bow_task close_task;
};

static inline struct bow__balancer *bow__balancer_of(const struct bow__client_call *call)
{
    return BOW__CONTAINER(call->calls, struct bow__balancer, calls);
}

/** `balancer`: zeroed. `subchannels`: likewise, as many as the target has addresses. `names`: of a
 * target that a resolver is asked for, taken; or NULL. */
void bow__balancer_init(struct bow__balancer *balancer, struct bow_client *client,
                        const struct bow__client_config *config, struct bow__call_ids *ids,
                        const struct bow__balancer_ops *ops, struct bow_loop *loop,
                        struct bow__subchannel *subchannels, struct bow_resolver_watch *names);
void bow__balancer_fini(struct bow__balancer *balancer);

/**
 * Send `call`, or queue it, connecting when needed. Returns 0; or, with the call still the
 * caller's: -ENOTCONN (backing off: `reason` says why), -EAGAIN (the queue is full), -EMSGSIZE,
 * -ENOMEM, -ESHUTDOWN. Loop.
 */
int bow__balancer_submit(struct bow__balancer *balancer, struct bow__client_call *call,
                         struct bow__text *reason);

/** Say that the queue is full, and return -EAGAIN. Thread: any. */
int bow__balancer_refuse_queued(const struct bow__balancer *balancer, struct bow__text *reason);

#endif
