/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_STOP_H
#define BOWLINE_RPC_SERVER_SERVER_STOP_H

/*
 * A server's end: what others set off, and who reports.
 */

#include "rpc/server/server_state.h"

/** Set up tasks and timers of the drain; before start. */
void bow__server_init_stop(struct bow_server *server);

/** Skip what is left of the lame-duck period, or, after it, of the grace period. Thread: any. */
void bow__server_hurry(struct bow_server *server);

/** A part that was counted in n_parts is over. On the main loop. */
void bow__server_part_done(struct bow_server *server);

/** Another process has its sockets: drain at once, without a lame duck, for there who connects is
 * served. On the main loop. */
void bow__server_leave(struct bow_server *server);

/** A worker reports, on its loop. */
void bow__server_on_worker_done(struct bow__worker *worker);

#endif
