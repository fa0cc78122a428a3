/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_RECEIVE_H
#define BOWLINE_RPC_CORE_RECEIVE_H

/*
 * What each message of a peer passes on its way to the program, on either side and whatever the
 * kind of call: inflated, shown to the interceptors, decoded.
 */

#include "rpc/core/decode.h"
#include "rpc/core/intercept.h"
#include "rpc/core/packing.h"

struct bow__receiver {
    struct bow__packing *packing;
    struct bow__intercepted *intercepted; /* NULL: nobody looks */
    struct bow__arena *arena;             /* takes the message's block if there is one */
    const ProtobufCMessageDescriptor *type;
};

/** Decode `message` under the cap that its size allows. Returns 0; as bow__packing_inflate() or
 * bow__decode(), with `reason`; -EACCES when an interceptor refuses it, which says what it wants to
 * in `reason`. */
static inline int bow__receive(const struct bow__receiver *receiver, struct bow__message *message,
                               ProtobufCMessage **ret_decoded, struct bow__text *reason)
{
    struct bow__arena *arena = receiver->arena;
    struct bow__decode_options options = {0};

    int rc = bow__packing_inflate(receiver->packing, message, reason);
    if (rc == 0) {
        rc = bow__intercept_received(receiver->intercepted, message->bytes, reason);
    }
    if (rc < 0) {
        return rc;
    }
    arena->max_bytes = bow__decode_cap(message->bytes.len);
    if (message->block != NULL && bow__arena_adopt(arena, message->block) == 0) {
        options.block = message->block;
        message->block = NULL;
    }
    rc = bow__decode(receiver->type, message->bytes, &options, arena, ret_decoded, reason);
    arena->max_bytes = BOW_LIMIT_CALL_ARENA_BYTES;
    return rc;
}

#endif
