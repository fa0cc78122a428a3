/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_RELOAD_H
#define BOWLINE_RPC_SERVER_SERVER_RELOAD_H

/*
 * Renewed certificates.
 */

#include "rpc/server/server_state.h"

/** bow_server_reload(), with the outcome told to the log and on_reload. */
void bow__server_reload_by_signal(struct bow_server *server);

#endif
