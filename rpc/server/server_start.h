/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_START_H
#define BOWLINE_RPC_SERVER_SERVER_START_H

/*
 * A server's start.
 */

#include "rpc/server/server_state.h"

/** Start with a main loop of the given kind unless options name one. */
int bow__server_start(struct bow_server *server, enum bow_loop_thread kind);

#endif
