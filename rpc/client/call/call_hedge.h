/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CALL_HEDGE_H
#define BOWLINE_RPC_CLIENT_CALL_CALL_HEDGE_H

/*
 * A call's attempts, beside each other: the call itself is the first of them, each other is a
 * struct bow__client_call that is counted as no call, has no id, no timer, no interceptors and no
 * parent, and borrows the call's metadata. The first answer ends all of them.
 *
 *     call ──► attempt 1 ────────────────┐
 *      └─ delay ──► hedge ──► OK ──► its memory and the call's change places ──► the call is done
 *           └─ delay ──► hedge ──► dropped
 *
 * On the loop.
 */

#include "rpc/client/call/client_call.h"

/** Of a policy that hedges. */
void bow__call_hedge_init(struct bow__call_retry *retry);
/** The call has been sent: the others have their time from now on. */
void bow__call_hedge_sent(struct bow__call_retry *retry);
/** The next has its time. */
void bow__call_hedge_due(struct bow__call_retry *retry);
/** The call's own attempt has failed with `status`, which is not the end: whether others are under
 * way, or may be. Counts the failure. */
bool bow__call_hedge_goes_on(struct bow__call_retry *retry, const struct bow_status *status);
/** After that: the next is sent at once, or when the server says. */
void bow__call_hedge_hurry(struct bow__call_retry *retry, const struct bow_status *status);

#endif
