/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_BALANCER_H
#define BOWLINE_RPC_CLIENT_BALANCER_H

/*
 * A client on one of its loops: a balancer has an subchannel for each address of the target, and an
 * subchannel at most one connection that takes calls, or is to. Beside it there may be others
 * that take none any more and end when their calls have ended.
 *
 *     link.c         the queue, and which connection a call goes to
 *     link_state.c   telling how they stand
 *     subchannel.c     one address: connecting, back-off
 *     client_conn.c  what a session tells a client
 *
 * All of it belongs to the loop, but what client_state.h says is shared.
 */

#include "base/text.h"
#include "rpc/client/target.h"
#include "rpc/connection/conn.h"
#include "rpc/connection/loop_compression.h"
#include <bowline/client.h>
#include <bowline/timer.h>
#include <stdatomic.h>

struct bow__client_call;

/** In the order in which the subchannels' states make the balancer's: the highest counts. */
enum bow__connectivity {
    BOW__CONNECTIVITY_BACKING_OFF = 0, /* the last attempt failed */
    BOW__CONNECTIVITY_IDLE,
    BOW__CONNECTIVITY_CONNECTING,
    BOW__CONNECTIVITY_READY, /* takes calls */
};

struct bow__client_conn {
    struct bow__conn conn; /* first */
    struct bow__balancer *balancer;
    struct bow__subchannel *subchannel;
    struct bow__link at; /* in the balancer's conns */
};

struct bow__subchannel {
    struct bow__balancer *balancer;
    const struct bow__target_address *address;
    enum bow__connectivity state;
    struct bow__link turn;         /* READY: in the balancer's ready ones */
    struct bow__client_conn *conn; /* READY; or CONNECTING: being secured, or a list's, which has
                                      yet to answer */
    struct bow_connect *connect;
    struct bow_timer timer; /* of the next attempt, or of the answer */
    uint64_t tried_at_ns;
    uint64_t failed_at_ns;
    uint64_t backoff_ns; /* 0: the last attempt succeeded, or there was none */
    uint64_t next_try_ns;
    uint64_t n_calls_seen; /* calls that had begun on the balancer when the state changed last */
    bool was_up;           /* for the count of reconnects */
    bool doubted;          /* CONNECTING again, for its server has to show that it lives */
    struct bow__text last_error;
};

struct bow__balancer {
    struct bow_client *client;
    struct bow_loop *loop;
    atomic_bool used;
    atomic_uint n_queued;
    atomic_uint n_posted; /* calls on their way from other threads */
    atomic_int shown_state;
    bool settled; /* the loop holds nothing of the balancer; under the client's lock */

    /* The rest belongs to the loop. */
    enum bow__connectivity state;        /* of the subchannels together */
    struct bow__subchannel *subchannels; /* one for each address; the client's memory */
    struct bow__link ready;              /* subchannels that take calls */
    uint32_t n_ready;
    bool dormant;                  /* a list's: an subchannel may wait for a call to be of use */
    struct bow__client_conn *conn; /* that takes the next call */
    struct bow__link conns;        /* with those that end */
    struct bow__link held;         /* calls that wait for interceptors */
    uint32_t n_held;
    struct bow__link queue; /* calls that wait for a connection or a stream */
    size_t queued_bytes;    /* of them */
    struct bow__link calls; /* open ones */
    uint32_t n_calls;       /* all that are on the loop and not completed */
    enum bow_client_state told_state;
    bool tells_state; /* by a task that is posted, which holds the balancer as a call does */
    struct bow_task state_task;
    struct bow__counters counters;
    struct bow__loop_compression compression;
    struct bow__client_call *idle;
    uint32_t n_idle;
    bool opened; /* the hook is set */
    bool closing;
    struct bow_loop_hook hook;
    struct bow_task close_task;
};

/* link.c */

/** `subchannels`: zeroed, as many as the target has addresses. */
void bow__balancer_init(struct bow__balancer *balancer, struct bow_client *client,
                        struct bow_loop *loop, struct bow__subchannel *subchannels);
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
/** A call that was not processed is tried again, elsewhere if it can be: queued first. `counts`: as
 * the one time that this is done for what has left us. */
void bow__balancer_requeue(struct bow__balancer *balancer, struct bow__client_call *call,
                           bool counts);
/** A call that is in the queue leaves it. */
void bow__balancer_unqueue(struct bow__balancer *balancer, struct bow__client_call *call);
/** Send from the queue what can be. */
void bow__balancer_pump(struct bow__balancer *balancer);
/** A call left the balancer; it may be done. */
void bow__balancer_check_closed(struct bow__balancer *balancer);

/** An subchannel goes over to `state`: it takes calls from now on, or none any more. */
void bow__balancer_set_state(struct bow__balancer *balancer, struct bow__subchannel *subchannel,
                             enum bow__connectivity state);
/** The connection of an subchannel was lost to silence: those of the others may be as dead. */
void bow__balancer_doubt(struct bow__balancer *balancer, const struct bow__subchannel *lost);
/** An subchannel's attempt failed: with the last of them, calls that wait for no other fail. */
void bow__balancer_failed(struct bow__balancer *balancer);

/** What a call that waits for a connection waits for: "resolving the name of", "connecting to". */
const char *bow__balancer_stage(const struct bow__balancer *balancer);
/** The subchannel whose last attempt failed last, or NULL. */
const struct bow__subchannel *bow__balancer_last_failed(const struct bow__balancer *balancer);
/** A connection of which nothing was ever heard, or NULL. */
const struct bow__client_conn *bow__balancer_mute(const struct bow__balancer *balancer);

/* link_state.c */

void bow__balancer_state_init(struct bow__balancer *balancer);
/** The balancer's state, or `closing`, has changed. */
void bow__balancer_show_state(struct bow__balancer *balancer);

/* subchannel.c */

void bow__subchannel_init(struct bow__subchannel *subchannel, struct bow__balancer *balancer,
                          const struct bow__target_address *address);
/** Connect for calls that wait, unless it is too early after a failure; `at_once`: even then. */
void bow__subchannel_seek(struct bow__subchannel *subchannel, bool at_once);
/** Whether an attempt failed less than backoff_min_ns ago, and the next is not due. */
bool bow__subchannel_is_too_early(const struct bow__subchannel *subchannel);
/** Make no further attempt. */
void bow__subchannel_close(struct bow__subchannel *subchannel);
/** A connection is up; was answered by its peer; takes no more, or is gone, as `why` says (NULL: we
 * gave it up for want of calls). */
void bow__subchannel_conn_up(struct bow__subchannel *subchannel, struct bow__client_conn *conn);
void bow__subchannel_conn_answered(struct bow__subchannel *subchannel,
                                   struct bow__client_conn *conn);
void bow__subchannel_conn_retired(struct bow__subchannel *subchannel, struct bow__client_conn *conn,
                                  const char *why);
/** A server was lost to silence: one that has been silent as well takes calls when it has answered.
 */
void bow__subchannel_doubt(struct bow__subchannel *subchannel);
/** One that was never up: `why` says how it ended. */
void bow__subchannel_conn_failed(struct bow__subchannel *subchannel,
                                 const struct bow__client_conn *conn, const char *why);

/* client_conn.c */

/** on_channel of a balancer's connections; `user` is the subchannel. */
int bow__client_conn_init(struct bow_channel *channel, void *user);

#endif
