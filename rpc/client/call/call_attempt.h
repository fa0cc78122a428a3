/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CALL_ATTEMPT_H
#define BOWLINE_RPC_CLIENT_CALL_CALL_ATTEMPT_H

/*
 * Whether a call may be sent again at all: it is still there to be sent, nothing of an answer has
 * been seen, and the budget of its loop allows it. Knows no policies. On the loop.
 */

#include "rpc/client/call/client_call.h"

/** Whether all of it is there to be sent again, and nothing of an answer has been seen. */
bool bow__call_may_be_resent(const struct bow__client_call *call);

/** An attempt has failed in a way that may be tried again. */
void bow__call_budget_fail(struct bow__client_call *call);
/** Take what one more attempt costs. Returns whether there may be one. */
bool bow__call_budget_take(struct bow__client_call *call);

#endif
