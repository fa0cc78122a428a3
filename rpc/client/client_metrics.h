/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_METRICS_H
#define BOWLINE_RPC_CLIENT_CLIENT_METRICS_H

/*
 * When options.on_metrics is called.
 */

#include "rpc/client/client.h"

/** A balancer has opened: call it on the first one's loop. Its end stops that (client.c). Loop. */
void bow__client_metrics_start(struct bow__balancer *balancer);

#endif
