/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_INTERCEPT_H
#define BOWLINE_RPC_INTERCEPTORS_INTERCEPT_H

/*
 * Where the calls of clients meet their interceptors (rpc/core/intercept.h
 * says in which order and when). Each call has one pointer to it, NULL where there are none.
 * All on the call's loop.
 *
 *     intercept_client.c   held before the queue
 */

#include "rpc/core/intercept.h"
#include "rpc/core/session.h"

struct bow__client_call;

/** Let a call that begins on its loop pass its client's interceptors. Returns 0 when it goes on; 1
 * when it is held, or refused and to be completed later; -ENOMEM; -EAGAIN with `reason`. */
int bow__client_intercept(struct bow__client_call *call, struct bow__text *reason);
/** The call is being completed. */
void bow__client_intercept_end(struct bow__client_call *call, const struct bow_status *status);
/** The call was never started after all: `rc` says why. */
void bow__client_intercept_undo(struct bow__client_call *call, int rc,
                                const struct bow__text *reason);

#endif
