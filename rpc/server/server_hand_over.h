/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_HAND_OVER_H
#define BOWLINE_RPC_SERVER_SERVER_HAND_OVER_H

/*
 * A server hands its sockets over because a signal says so.
 */

#include "rpc/server/server_state.h"

/** bow_server_hand_over() at options.take_over, its outcome logged. Thread: that of
 * bow_server_run(). */
void bow__server_hand_over_by_signal(struct bow_server *server);

#endif
