/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_BALANCER_STAGE_H
#define BOWLINE_RPC_CLIENT_BALANCER_STAGE_H

/*
 * Why calls of a balancer wait, or fail without having gone: at which stage its name and its
 * connections are, and what has failed last. Changes nothing. On the loop.
 */

#include "rpc/client/balancer.h"

/** What a call that waits for a connection waits for: "resolving the name of", "connecting to",
 * "waiting for the health of". */
const char *bow__balancer_stage(const struct bow__balancer *balancer);
/** The subchannel whose last attempt failed last, or NULL. */
const struct bow__subchannel *bow__balancer_last_failed(const struct bow__balancer *balancer);
/** Whether a call that waits does so for a stream, servers being there. */
bool bow__balancer_lacks_streams(const struct bow__balancer *balancer);
/** A connection of which nothing was ever heard, or NULL. */
const struct bow__client_conn *bow__balancer_silent(const struct bow__balancer *balancer);
/** Append why no connection takes calls. */
void bow__balancer_describe_failures(const struct bow__balancer *balancer, struct bow__text *text);

#endif
