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
#define BOW__SERVED_BYTES ((size_t)4096)

struct bow__served {
    struct bow_call call; /* first */
    struct bow__worker *worker;
    struct bow__server_conn *conn; /* NULL once the stream has ended */
    struct bow__link link;         /* while it is fresh */
    struct bow_channel *channel;   /* outlives the call */
    struct bow_timer timer;        /* set up once it is `lasting` */
    struct bow_task task;
    struct bow__deferred deferred;  /* of a streaming call */
    struct bow_task elsewhere_task; /* of one whose handler runs on an executor */
    atomic_bool entered;            /* likewise: relaxed, the handler was entered there */
    uint64_t started_ns;
    uint64_t timeout_ns;
    uint32_t index;     /* of the method: outlives its entry */
    bool lasting;       /* it has outlived its batch: its timer is set up, and it is counted */
    bool capped;        /* by the server's max_deadline_ns */
    bool complete;      /* the client has ended its side */
    size_t n_request;   /* bytes that its metadata and its unary request take beside it */
    size_t n_in_flight; /* what it counts for, while it is lasting or nobody waits for it */
    struct bow_channel *held; /* by a call that nobody waits for */
    struct bow__served *next; /* idle */
    _Alignas(16) uint8_t slab[];
};

/* The call is the first member; constness of a call does not extend to what it is part of. */
static inline struct bow__served *bow__served_of(const struct bow_call *call)
{
    return (struct bow__served *)(uintptr_t)call;
}

static inline struct bow__method_counts *bow__served_counts(const struct bow__served *served)
{
    return &served->worker->counters.methods[served->call.entry->index];
}

static inline bool bow__served_is_entered_stream(const struct bow__served *served)
{
    return served->call.stream != NULL && served->call.invoked;
}

#endif
