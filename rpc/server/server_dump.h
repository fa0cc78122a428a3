/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_DUMP_H
#define BOWLINE_RPC_SERVER_SERVER_DUMP_H

#include "rpc/inspect/gather.h"
#include "rpc/server/server_state.h"

/** A gather of all of the server's loops, to be started; none before its start. Returns 0 or a
 * negative errno. Thread: any. */
int bow__server_gather_new(struct bow_server *server, const struct bow__snapshot_limits *limits,
                           struct bow__gather **ret_gather);

/** bow_server_dump() to the log, a line each, or to stderr where that shows none. Thread: that of
 * bow_server_run(). */
void bow__server_dump_by_signal(struct bow_server *server);

#endif
