/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_REQUIRED_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_REQUIRED_H

/*
 * The required fields of proto2.
 */

#include "rpc/core/codec/decoder.h"
#include "rpc/core/codec/message_info.h"

/** The long way of bow__decode_required_size(). */
size_t bow__decode_required_look(struct bow__decoder *d, const ProtobufCMessageDescriptor *type);

/** Bytes in front of each message of `type` for its required fields; 0 when it has none. */
static inline size_t bow__decode_required_size(struct bow__decoder *d,
                                               const ProtobufCMessageDescriptor *type)
{
    const struct bow_message_info *info = bow__message_info(type);

    if (type == d->relaxed || (info != NULL && (info->flags & BOW_MESSAGE_PROTO2) == 0)) {
        return 0; /* proto3 has none */
    }
    return bow__decode_required_look(d, type);
}

/** What is in front of `message`, or NULL. */
static inline struct bow__decode_required *bow__decode_required_of(struct bow__decoder *d,
                                                                   ProtobufCMessage *message)
{
    size_t size = bow__decode_required_size(d, message->descriptor);
    return size == 0 ? NULL : (struct bow__decode_required *)(void *)((char *)message - size);
}

/** A piece of `message` (NULL is allowed) ends at `at`: note whether required fields are missing.
 */
void bow__decode_note_required(struct bow__decoder *d, ProtobufCMessage *message,
                               const uint8_t *at);

/** After the whole: refuse if a required field is missing anywhere. Returns 0 or -EBADMSG. */
int bow__decode_check_required(struct bow__decoder *d);

#endif
