/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_METRICS_H
#define BOWLINE_RPC_SERVER_SERVER_METRICS_H

/*
 * When options.on_metrics is called. On the main loop.
 */

#include "rpc/server/server_state.h"

void bow__server_metrics_start(struct bow_server *server);
/** Idempotent. */
void bow__server_metrics_stop(struct bow_server *server);
/** It has stopped: once more. */
void bow__server_metrics_last(struct bow_server *server);

#endif
