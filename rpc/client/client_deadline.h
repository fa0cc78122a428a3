/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_DEADLINE_H
#define BOWLINE_RPC_CLIENT_CLIENT_DEADLINE_H

/*
 * The deadline of a client's call: which, and what the call is told when it has passed.
 */

#include "rpc/client/balancer.h"

/** Set it by the options, the parent, or the client's default. Thread: who starts the call. */
void bow__client_deadline_set(struct bow__client_call *call,
                              const struct bow_call_options *options);
/** Arm it; it may have passed. Loop. */
void bow__client_deadline_arm(struct bow__client_call *call);

#endif
