/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_MESSAGE_INFO_H
#define BOWLINE_RPC_CORE_CODEC_MESSAGE_INFO_H

/*
 * From a protobuf-c descriptor to what Bowline's generator says of the same message. Knows nothing
 * of how either is used.
 */

#include <bowline/service.h>

/** NULL for a descriptor that protoc-gen-c made, or a hand. Thread: any. */
static inline const struct bow_message_info *
bow__message_info(const ProtobufCMessageDescriptor *type)
{
    return (const struct bow_message_info *)type->reserved1;
}

/** Whether bytes are a string in the .proto. Thread: any. */
static inline bool bow__field_is_text(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_BYTES && (field->flags & BOW_DESCRIPTOR_TEXT) != 0;
}

#endif
