/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_EXECUTOR_DISPATCH_H
#define BOWLINE_RPC_SERVER_EXECUTOR_DISPATCH_H

/*
 * Handlers that run on an executor: what its methods share, how a call gets there, and how
 * the events of a streaming one do.
 *
 * Design. A call that waits for a thread is held by the executor's task, as a handler holds it
 * otherwise: the loop may end it, and the task then lets go of it without entering the
 * handler. Of a streaming call one event is given at a time, the entry being the first: the
 * loop leaves the call's listening alone from handing the event over until the executor has posted
 * that it is done, so they need no strand to stay in order. What is elsewhere counts in the
 * worker's `n_elsewhere`, for neither it nor the handlers may go before.
 */

#include "rpc/server/worker.h"
#include <bowline/executor.h>

struct bow__executor_dispatch {
    struct bow_executor *executor; /* a reference */
    uint32_t max_waiting;
    atomic_uint n_waiting; /* relaxed: calls whose handler has not been entered */
    struct bow__executor_dispatch *next;
};

/** What the methods of `executor` share, from `*all` or new in it; NULL out of memory. Before
 * start.
 */
struct bow__executor_dispatch *bow__executor_dispatch_get(struct bow_context *context,
                                                          struct bow__executor_dispatch **all,
                                                          struct bow_executor *executor,
                                                          uint32_t max_waiting);
void bow__executor_dispatch_free_all(struct bow_context *context,
                                     struct bow__executor_dispatch *all);

/**
 * Have the handler of `served` run on its executor. Loop; the call is not the loop's afterwards.
 * Returns 0; -EAGAIN over max_waiting; or what posting fails with.
 */
int bow__executor_dispatch_enter(struct bow__served *served);

/** A member of struct bow__call_ops. */
int bow__executor_dispatch_give(struct bow_call *call);

#endif
