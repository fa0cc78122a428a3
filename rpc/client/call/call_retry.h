/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CALL_RETRY_H
#define BOWLINE_RPC_CLIENT_CALL_CALL_RETRY_H

/*
 * A call's attempts, one after the other: whether one that has failed is followed by another, and
 * when. A call whose method has a policy has a struct bow__call_retry, in its own memory; one of a
 * method that is merely declared idempotent gets one when an attempt has failed.
 *
 *     OPEN, QUEUED ──► bow__call_retry_failed() ──► RESTING ──► ops->resubmit() ──► QUEUED, OPEN
 *                                 └─► false: the caller ends it
 *
 * What was certainly not processed is sent again without all this, see client_conn.c. All on the
 * loop.
 */

#include "rpc/client/call/client_call.h"

/** Before a call of a method that may have a policy is sent: what it says of the call itself.
 * Returns 0; -EMSGSIZE for a request that it does not allow, with the reason; -ENOMEM. */
int bow__call_retry_begin(struct bow__client_call *call, struct bow__text *reason);
/** Whether that is to be called. */
static inline bool bow__call_retry_concerns(const struct bow__client_call *call)
{
    return call->calls->retries.has_policies || call->stream != NULL;
}

/** It has been sent, by which an attempt may have begun that has a time-out of its own. */
void bow__call_retry_sent(struct bow__client_call *call);
/** Something of an answer has come: there is no other attempt. */
void bow__call_retry_commit(struct bow__client_call *call);
/** It goes back to where it waits without an attempt of its policy being spent. */
void bow__call_retry_stop(struct bow__client_call *call);

/**
 * An attempt of `call`, which is QUEUED, OPEN, or POSTED and in no list, has failed with `status`.
 * Returns whether there is another: then the call RESTS until it is due. Else nothing has changed
 * but the budget, and `text` (NULL: nobody wants it) has the status' message with what else there
 * is to say, if `status->message` points there then.
 */
bool bow__call_retry_failed(struct bow__client_call *call, struct bow_status *status,
                            struct bow__text *text);

/** Attempts before this one that count: not those which certainly no handler has seen. */
static inline uint32_t bow__call_retry_previous(const struct bow__client_call *call)
{
    return call->n_failed + (call->retried ? 1u : 0u);
}

#endif
