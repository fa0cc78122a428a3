/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_GONE_H
#define BOWLINE_RPC_CORE_CALL_CALL_GONE_H

/* Calls that programs use after their end: whether one is that, and saying so. */

#include "rpc/core/call/call.h"

/** Whether the call has ended, and its memory waits for another: it is nobody's any more. */
static inline bool bow__call_is_gone(const struct bow_call *call)
{
    return atomic_load_explicit(&call->end_code, memory_order_relaxed) == BOW__CALL_GONE;
}

/** A call that is gone was used: `what` was done, as "answered again". What bow__misuse() returns.
 */
int bow__call_is_misused(const struct bow_call *call, const char *what);

#endif
