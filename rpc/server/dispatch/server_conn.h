/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_SERVER_CONN_H
#define BOWLINE_RPC_SERVER_DISPATCH_SERVER_CONN_H

/*
 * The way of a connection to a worker.
 */

#include "rpc/server/dispatch/worker.h"

/** Bind a new connection. In on_channel. Returns 0, also for one over max_connections, which is
 * closed then; -ESHUTDOWN. */
int bow__server_conn_accept(struct bow__worker *worker, struct bow_channel *channel,
                            const struct bow_listen_options *listening);

/** Whether the connection of `call` has been told to end. Loop. */
bool bow__server_conn_is_leaving(const struct bow_call *call);

#endif
