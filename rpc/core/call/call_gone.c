/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Saying which method's call was used after its end. Knows nothing of how it ended. */

#include "rpc/core/call/call_gone.h"
#include "base/misuse.h"

int bow__call_is_misused(const struct bow_call *call, const char *what)
{
    return bow__misuse(
        call->arena.context, "a call of %s was %s after its end: %s, and so is its request",
        call->method->path, what,
        (call->method->flags & (BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING)) == 0
            ? "it is gone with its first answer"
            : "it is gone with its last reference");
}
