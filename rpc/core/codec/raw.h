/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_RAW_H
#define BOWLINE_RPC_CORE_CODEC_RAW_H

/*
 * A message whose bytes are left as they are, in the clothes of a protobuf-c struct, so that it
 * takes every message's way. It has no fields but one unknown one of number 0, which no message has
 * on the wire: the encoder writes what it holds without a tag, as the whole message.
 *
 * Such messages stay inside: programs see slices.
 */

#include "base/arena.h"
#include "base/text.h"
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

struct bow__raw_message {
    ProtobufCMessage base;
    ProtobufCMessageUnknownField content; /* base.unknown_fields: never copy the struct */
};

extern const ProtobufCMessageDescriptor bow__raw_message__descriptor;

static inline void bow__raw_message_init(struct bow__raw_message *raw, struct bow_slice bytes)
{
    raw->content = (ProtobufCMessageUnknownField){
        .len = bytes.len, .data = (uint8_t *)(uintptr_t)bytes.data, /* only read */
    };
    raw->base = (ProtobufCMessage){
        .descriptor = &bow__raw_message__descriptor,
        .n_unknown_fields = 1,
        .unknown_fields = &raw->content,
    };
}

static inline struct bow_slice bow__raw_message_bytes(const ProtobufCMessage *message)
{
    const ProtobufCMessageUnknownField *content = message->unknown_fields;

    return (struct bow_slice){content->data, content->len};
}

/** As bow__decode(): `bytes` are copied unless they are in a block that the arena `has_adopted`.
 * Returns 0, or -ENOMEM. */
int bow__raw_decode(struct bow_slice bytes, bool has_adopted, struct bow__arena *arena,
                    ProtobufCMessage **ret_message, struct bow__text *reason);

#endif
