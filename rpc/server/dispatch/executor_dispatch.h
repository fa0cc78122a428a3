/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_EXECUTOR_DISPATCH_H
#define BOWLINE_RPC_SERVER_DISPATCH_EXECUTOR_DISPATCH_H

/*
 * Handlers that run on an executor: how a call gets there, and how the events of a streaming
 * one do. What the methods of an executor share is in the registry.
 *
 * Design. A call that waits for a thread is held by the executor's task, as a handler holds it
 * otherwise: the loop may end it, and the task then lets go of it without entering the
 * handler. Of a streaming call one event is given at a time, the entry being the first: the
 * loop leaves the call's listening alone from handing the event over until the executor has posted
 * that it is done, so they need no strand to stay in order. What is on an executor counts in the
 * worker's `n_on_executors`, for neither it nor the handlers may go before.
 */

#include "rpc/server/dispatch/server_call.h"

/**
 * Have the handler of `server_call` run on its executor. Loop; the call is not the loop's
 * afterwards. Returns 0; -EAGAIN over max_waiting; or what posting fails with.
 */
int bow__executor_dispatch_enter(struct bow__server_call *server_call);

/** A member of struct bow__call_ops. */
int bow__executor_dispatch_post_event(struct bow_call *call);

#endif
