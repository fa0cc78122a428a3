/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Entering handlers. Knows nothing of where they run.
 */

#include "rpc/core/call/call_invoke.h"
#include "rpc/core/registry.h"

void bow__call_enter(struct bow_call *call)
{
    const struct bow__registered_method *entry = call->entry;

    if (!entry->method->invoke(call, call->request, entry->handlers, entry->user)) {
        (void)bow_call_fail(call, BOW_UNIMPLEMENTED, "%s is not implemented by this server",
                            call->method->path);
    }
}

void bow__call_invoke(struct bow_call *call)
{
    call->invoked = true;
    bow__call_enter(call);
}
