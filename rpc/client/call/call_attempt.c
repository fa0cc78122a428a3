/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What each further attempt of a call needs.
 */

#include "rpc/client/call/call_attempt.h"
#include "rpc/client/call/stream_send.h"

static bool is_kept(const struct bow__client_call *call)
{
    if (bow__method_sends_many(call->method)) {
        return bow__stream_may_retry(call->stream);
    }
    return call->block != NULL || call->n_request <= BOW__INLINE_REQUEST_BYTES;
}

/* Whatever else it says, a server that has answered something has run a handler. */
static bool has_answered(const struct bow__client_call *call)
{
    return call->reply != NULL || call->initial.n > 0 ||
           (call->stream != NULL && call->stream->n_received > 0);
}

bool bow__call_may_be_resent(const struct bow__client_call *call)
{
    return is_kept(call) && !has_answered(call) && !call->calls->closing;
}

static struct bow__retry_budget *settled_budget(struct bow__client_call *call)
{
    struct bow__client_calls *calls = call->calls;
    struct bow__retries *retries = &calls->retries;
    const struct bow_metrics *counted = &calls->counters.now;

    bow__retry_budget_settle(&retries->budget, counted->calls_started,
                             counted->calls_ended - retries->n_failed, bow_loop_now(calls->loop));
    return &retries->budget;
}

void bow__call_budget_fail(struct bow__client_call *call)
{
    bow__retry_budget_fail(settled_budget(call));
}

bool bow__call_budget_take(struct bow__client_call *call)
{
    return bow__retry_budget_take(settled_budget(call));
}
