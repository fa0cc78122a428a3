/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_RECEIVE_H
#define BOWLINE_RPC_CORE_CALL_RECEIVE_H

/*
 * What each message of a peer passes on its way to the program, on either side and whatever the
 * kind of call: inflated, shown to the interceptors, decoded.
 */

#include "rpc/core/codec/decode.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/intercept.h"

/** Inflate `message`, and show it to who looks. Returns 0; as bow__compression_inflate(), with
 * `reason`; -EACCES when an interceptor refuses it, which says what it wants to in `reason`. */
static inline int bow__open_message(struct bow__compression *compression,
                                    struct bow__intercepted *intercepted,
                                    struct bow__message *message, struct bow__text *reason)
{
    int rc = bow__compression_inflate(compression, message, reason);

    return rc == 0 ? bow__intercept_received(intercepted, message->bytes, reason) : rc;
}

/** Decode it then, into `arena`, under the cap that its size allows; the arena takes the message's
 * block if it has one. Returns as bow__decode(). */
static inline int bow__decode_message(const ProtobufCMessageDescriptor *type,
                                      struct bow__message *message, struct bow__arena *arena,
                                      ProtobufCMessage **ret_decoded, struct bow__text *reason)
{
    struct bow__decode_options options = {0};
    size_t before = arena->used;

    arena->max_bytes = bow__decode_cap(message->bytes.len);
    if (message->block != NULL && bow__arena_adopt(arena, message->block) == 0) {
        options.block = message->block;
        message->block = NULL;
    }
    int rc = bow__decode(type, message->bytes, &options, arena, ret_decoded, reason);
    arena->max_bytes = bow__call_cap(message->bytes.len);
    message->n_made += arena->used - before;
    return rc;
}

/** What it takes in memory then, beside what the arena has at first: it may be many times what it
 * was, or nothing. */
static inline size_t bow__decoded_bytes(const struct bow__arena *arena)
{
    return arena->used;
}

#endif
