/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_INVOKE_H
#define BOWLINE_RPC_CORE_CALL_CALL_INVOKE_H

/*
 * A call's way into its handler: the request of a unary one is decoded, and the handler entered.
 * One that does not implement the method is answered for.
 */

#include "rpc/core/call/call.h"
#include "rpc/core/call/receive.h"

/** Decode the request under the cap that its size allows, taking the message's block if it has one.
 * Returns 0, or -EBADMSG, -ENOMEM, -EMSGSIZE or -ENOTSUP with `reason`. Loop, before invoke. */
static inline int bow__call_decode(struct bow_call *call, struct bow__message *message,
                                   struct bow__text *reason)
{
    call->request_compressed = message->compressed;
    int rc = bow__open_message(call->compression, call->intercepted, message, reason);

    return rc == 0 ? bow__decode_message(call->method->input, message, &call->arena, &call->request,
                                         reason)
                   : rc;
}

/** Enter the handler, which may answer before this returns. Loop. */
void bow__call_invoke(struct bow_call *call);
/** The same elsewhere: the loop has marked the call invoked. */
void bow__call_enter(struct bow_call *call);

#endif
