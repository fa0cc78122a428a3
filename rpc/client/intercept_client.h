/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_INTERCEPT_CLIENT_H
#define BOWLINE_RPC_CLIENT_INTERCEPT_CLIENT_H

/*
 * Where a client's calls meet its interceptors (rpc/core/intercept.h says in which order and when):
 * before the queue. On the call's loop.
 */

#include "rpc/client/balancer.h"

/** Let a call that begins on its loop pass its client's interceptors. Returns 0 when it goes on; 1
 * when it is held, or refused and to be completed later; -ENOMEM; -EAGAIN with `reason`. */
int bow__client_intercept(struct bow__client_call *call, struct bow__text *reason);
/** The call was never started after all: `rc` says why. */
void bow__client_intercept_undo(struct bow__client_call *call, int rc,
                                const struct bow__text *reason);
/** End a call that the balancer has refused with `rc` after its starter had gone on. */
void bow__client_fail_submitted(struct bow__client_call *call, int rc,
                                const struct bow__text *reason);

#endif
