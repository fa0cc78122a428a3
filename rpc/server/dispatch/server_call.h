/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_SERVER_CALL_H
#define BOWLINE_RPC_SERVER_DISPATCH_SERVER_CALL_H

/*
 * A call on a server's connection: the call itself, and what its connection and worker have of it.
 * All on the loop but where a member says otherwise.
 */

#include "rpc/core/call/call.h"
#include "rpc/server/dispatch/worker.h"

/** A call with its arena's first memory; the whole is this large. */
#define BOW__SERVER_CALL_BYTES ((size_t)4096)

struct bow__server_call {
    struct bow_call call; /* first */
    struct bow__worker *worker;
    struct bow__method_counts *counts; /* the worker's, of its method */
    struct bow__server_conn *conn;     /* NULL once the stream has ended */
    struct bow__link link;             /* in the connection's batch_calls, then its calls, or
                                          its backlog's while it `waits` */
    struct bow_channel *channel;       /* outlives the call */
    struct bow_timer timer;            /* set up once it outlives its batch */
    struct bow_task task;
    struct bow__deferred deferred;   /* of a streaming call */
    struct bow_task executor_task;   /* of one whose handler runs on an executor */
    _Atomic(uint64_t) entered_at_ns; /* likewise: relaxed, when the handler was entered there; 0: it
                                        was not */
    uint64_t started_ns;
    uint64_t timeout_ns;
    uint32_t index;      /* of the method: outlives its entry */
    bool outlives_batch; /* it has outlived its batch: its timer is set up, and it is counted */
    bool capped;         /* by the server's max_deadline_ns */
    bool complete;       /* the client has ended its side */
    bool waits;          /* before its handler, in the list of its connection's backlog */
    size_t n_session;    /* bytes that its session keeps for it, without messages */
    size_t n_request;    /* bytes that its metadata and its unary request take beside it */
    size_t n_in_flight;  /* what it counts for, once it outlives its batch */
    size_t n_received;   /* message bytes, */
    size_t n_sent;       /* as they were sent */
    /* In the backlog, then for a thread of an executor. */
    uint64_t waits_since_ns;
    struct bow_channel *channel_ref; /* a reference, once nobody waits for the call */
    struct bow__server_call *next;   /* idle */
    _Alignas(16) uint8_t slab[];
};

/* The call is the first member; constness of a call does not extend to what it is part of. */
static inline struct bow__server_call *bow__server_call_of(const struct bow_call *call)
{
    return (struct bow__server_call *)(uintptr_t)call;
}

static inline bool bow__server_call_is_entered_stream(const struct bow__server_call *server_call)
{
    return server_call->call.stream != NULL && server_call->call.invoked;
}

static inline bool bow__server_call_is_entered_unary(const struct bow__server_call *server_call)
{
    return server_call->call.stream == NULL && server_call->call.invoked;
}

#endif
