/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_MEMBER_H
#define BOWLINE_RPC_MESSAGES_MEMBER_H

/*
 * The members of a message's struct that belong to a field: its value, or the array of them, and
 * what says whether it is there. The rules are the encoder's, which has them written for speed.
 */

#include "rpc/core/codec/value.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void *bow__member(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

static inline const void *bow__member_const(const ProtobufCMessage *message,
                                            const ProtobufCFieldDescriptor *field)
{
    return (const char *)message + field->offset;
}

static inline bool bow__is_repeated(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static inline bool bow__is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/** Whether a field, not of a oneof, has a has_ member: strings and messages have none. */
static inline bool bow__has_flag(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0;
}

/** Whether values of `type` lie in memory of their own. */
static inline bool bow__is_apart(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES ||
           type == PROTOBUF_C_TYPE_MESSAGE;
}

/** The count of a repeated field. */
static inline size_t *bow__member_count(ProtobufCMessage *message,
                                        const ProtobufCFieldDescriptor *field)
{
    return (size_t *)(void *)((char *)message + field->quantifier_offset);
}

static inline size_t bow__member_n(const ProtobufCMessage *message,
                                   const ProtobufCFieldDescriptor *field)
{
    size_t n;
    memcpy(&n, (const char *)message + field->quantifier_offset, sizeof n);
    return n;
}

/** The pointer that a member is: a string, a message, an array. */
static inline void *bow__member_pointer(const void *member)
{
    void *pointer;
    memcpy(&pointer, member, sizeof pointer);
    return pointer;
}

static inline void bow__member_set_pointer(void *member, void *pointer)
{
    memcpy(member, &pointer, sizeof pointer);
}

/** The case of a oneof, or the has_ of an optional field: both are 32 bits. */
static inline uint32_t bow__member_quantifier(const ProtobufCMessage *message,
                                              const ProtobufCFieldDescriptor *field)
{
    uint32_t value;
    memcpy(&value, (const char *)message + field->quantifier_offset, sizeof value);
    return value;
}

static inline void bow__member_set_quantifier(ProtobufCMessage *message,
                                              const ProtobufCFieldDescriptor *field, uint32_t value)
{
    memcpy((char *)message + field->quantifier_offset, &value, sizeof value);
}

/** Whether a member holds a value of its field: always, but for one that shares its place in a
 * oneof with another that is selected. */
static inline bool bow__member_is_own(const ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field)
{
    return !bow__is_in_oneof(field) || bow__member_quantifier(message, field) == field->id;
}

/** Whether a value is none of nothing but zeros, NULL, or an empty string: what is sent of a proto3
 * field without presence. */
static inline bool bow__value_is_set(ProtobufCType type, const void *member)
{
    static const char zeros[8] = {0};

    if (type == PROTOBUF_C_TYPE_STRING) {
        const char *text = bow__member_pointer(member);
        return text != NULL && text[0] != '\0';
    }
    if (type == PROTOBUF_C_TYPE_BYTES) {
        return ((const ProtobufCBinaryData *)member)->len != 0;
    }
    return memcmp(member, zeros, bow__value_size(type)) != 0;
}

/** bow_message_has(), of a message that is one. */
static inline bool bow__member_has(const ProtobufCMessage *message,
                                   const ProtobufCFieldDescriptor *field)
{
    const void *member = bow__member_const(message, field);

    if (bow__is_repeated(field)) {
        return bow__member_n(message, field) > 0;
    }
    if (bow__is_in_oneof(field)) {
        return bow__member_is_own(message, field);
    }
    if (field->label == PROTOBUF_C_LABEL_NONE) {
        return bow__value_is_set(field->type, member);
    }
    bool is_optional = field->label == PROTOBUF_C_LABEL_OPTIONAL;
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *pointer = bow__member_pointer(member);
        return pointer != NULL && !(is_optional && pointer == field->default_value);
    }
    return !is_optional || bow__member_quantifier(message, field) != 0;
}

#endif
