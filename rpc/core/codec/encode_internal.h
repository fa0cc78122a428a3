/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_ENCODE_INTERNAL_H
#define BOWLINE_RPC_CORE_CODEC_ENCODE_INTERNAL_H

/*
 * What encoding (encode.c) and measuring (encode_size.c) have in common: which
 * fields are sent, and the numbers of varints.
 */

#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/value.h"
#include "rpc/core/codec/wire.h"

/**
 * The length of `message` encoded; SIZE_MAX when it can't be, with why appended to
 * `reason` unless that is NULL.
 */
size_t bow__encode_measure(const ProtobufCMessage *message, struct bow__text *reason);

static inline const void *bow__encode_member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static inline const void *bow__encode_pointer(const void *member)
{
    return *(const void *const *)member;
}

static inline uint32_t bow__encode_u32(const void *member)
{
    uint32_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

static inline uint64_t bow__encode_u64(const void *member)
{
    uint64_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

/** Whether a proto3 field without presence differs from its default: bit for bit, so -0.0 does. */
static inline bool bow__encode_is_set(ProtobufCType type, const void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return bow__encode_u64(member) != 0;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = bow__encode_pointer(member);
        return text != NULL && text[0] != '\0';
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len != 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return bow__encode_pointer(member) != NULL;
    default:
        return bow__encode_u32(member) != 0;
    }
}

/** Whether `field` is of proto3 without presence: sent when it is not its default. */
static inline bool bow__encode_is_implicit(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_NONE &&
           (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
}

/** Whether a field that is not repeated is sent. */
static inline bool bow__encode_is_sent(const ProtobufCFieldDescriptor *field,
                                       const ProtobufCMessage *message)
{
    const void *member = bow__encode_member(message, field->offset);
    const void *quantifier = bow__encode_member(message, field->quantifier_offset);
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        return bow__encode_u32(quantifier) == field->id;
    }
    if (bow__encode_is_implicit(field)) {
        return bow__encode_is_set(field->type, member);
    }
    if (field->label == PROTOBUF_C_LABEL_REQUIRED) {
        return true;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *pointer = bow__encode_pointer(member);
        return pointer != NULL && pointer != field->default_value;
    }
    return bow__encode_u32(quantifier) != 0;
}

/** The text of a string field that is sent; NULL where it must not be. */
static inline const char *bow__encode_text(const ProtobufCFieldDescriptor *field,
                                           const void *member)
{
    const char *text = bow__encode_pointer(member);
    bool may_be_null = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    return text != NULL || !may_be_null ? text : "";
}

static inline enum bow__wire_type bow__encode_wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return BOW__WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return BOW__WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return BOW__WIRE_LEN;
    default:
        return BOW__WIRE_VARINT;
    }
}

/** What goes into the varint of a number of `type`. */
static inline uint64_t bow__encode_varint_of(ProtobufCType type, const void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return bow__encode_u64(member);
    case PROTOBUF_C_TYPE_SINT64:
        return bow__wire_zigzag64((int64_t)bow__encode_u64(member));
    case PROTOBUF_C_TYPE_SINT32:
        return bow__wire_zigzag32((int32_t)bow__encode_u32(member));
    case PROTOBUF_C_TYPE_UINT32:
        return bow__encode_u32(member);
    case PROTOBUF_C_TYPE_BOOL:
        return bow__encode_u32(member) != 0;
    default: /* int32 and enum: negative ones take ten bytes, as if they were int64 */
        return (uint64_t)(int64_t)(int32_t)bow__encode_u32(member);
    }
}

#endif
