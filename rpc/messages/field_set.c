/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Setting and clearing fields that hold one value. Whatever needs memory takes it first, so that
 * what fails has changed nothing, and a value may be made of the one that it replaces.
 */
#include "rpc/core/codec/message_init.h"
#include "rpc/messages/field.h"
#include "rpc/messages/message_life.h"
#include "rpc/messages/storage.h"
#include <bowline/message_field.h>

/* The field of the oneof of `field` that is selected, or NULL. */
static const ProtobufCFieldDescriptor *selected(const ProtobufCMessage *message,
                                                const ProtobufCFieldDescriptor *field)
{
    uint32_t number = bow__member_quantifier(message, field);

    return number != 0 ? protobuf_c_message_descriptor_get_field(message->descriptor, number)
                       : NULL;
}

static void note_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (bow__is_in_oneof(field)) {
        bow__member_set_quantifier(message, field, field->id);
    } else if (bow__has_flag(field)) {
        bow__member_set_quantifier(message, field, 1);
    }
}

/* Drop what `field`, which is not repeated, and its oneof have, and note that it is there. Its
 * member is to be set next. */
static void select_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                         struct bow_arena *arena)
{
    const ProtobufCFieldDescriptor *former =
        bow__is_in_oneof(field) ? selected(message, field) : field;

    if (arena == NULL && former != NULL) {
        bow__message_drop_field(message, former);
    }
    note_set(message, field);
}

static bool is_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                  ProtobufCType type)
{
    return bow__field_is_single(message, field) && field->type == type;
}

static void set_pointer(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        void *pointer, struct bow_arena *arena)
{
    select_field(message, field, arena);
    bow__member_set_pointer(bow__member(message, field), pointer);
}

bool bow_message_set_string(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const char *value, struct bow_arena *arena)
{
    if (value != NULL) {
        return bow_message_set_string_n(message, field, value, strlen(value), arena);
    }
    if (!is_of(message, field, PROTOBUF_C_TYPE_STRING)) {
        return false;
    }
    bow_message_clear_field(message, field, arena);
    return true;
}

bool bow_message_set_string_n(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                              const char *value, size_t len, struct bow_arena *arena)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_STRING)) {
        return false;
    }
    char *copy = bow__storage_copy_text(arena, value, len);
    if (copy == NULL) {
        return false;
    }
    set_pointer(message, field, copy, arena);
    return true;
}

static void make_empty(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *member = bow__member(message, field);

    if (bow__is_repeated(field)) {
        *bow__member_count(message, field) = 0;
        bow__member_set_pointer(member, NULL);
        return;
    }
    if (bow__is_in_oneof(field)) {
        bow__member_set_quantifier(message, field, 0);
        memset(member, 0, bow__value_size(field->type));
        return;
    }
    if (bow__has_flag(field)) {
        bow__member_set_quantifier(message, field, 0);
    }
    bow__message_set_default(message, field);
}

bool bow_message_set_string_ref(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                const char *value)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_STRING)) {
        return false;
    }
    if (value != NULL) {
        note_set(message, field);
        bow__member_set_pointer(bow__member(message, field), (void *)(uintptr_t)value);
    } else if (bow__member_is_own(message, field)) {
        make_empty(message, field);
    }
    return true;
}

static void store_bytes(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        const void *data, size_t len)
{
    const ProtobufCBinaryData bytes = {len, (uint8_t *)(uintptr_t)data};

    memcpy(bow__member(message, field), &bytes, sizeof bytes);
}

bool bow_message_set_bytes(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           const void *data, size_t len, struct bow_arena *arena)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_BYTES)) {
        return false;
    }
    void *copy = bow__storage_copy(arena, data, len);
    if (copy == NULL && len > 0) {
        return false;
    }
    select_field(message, field, arena);
    store_bytes(message, field, copy, len);
    return true;
}

bool bow_message_set_bytes_ref(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                               const void *data, size_t len)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_BYTES)) {
        return false;
    }
    note_set(message, field);
    store_bytes(message, field, data, len);
    return true;
}

bool bow_message_set_scalar(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const void *value, struct bow_arena *arena)
{
    char copy[8]; /* it may be the member itself, or lie in what is dropped */

    if (!bow__field_is_single(message, field) || bow__is_apart(field->type)) {
        return false;
    }
    memcpy(copy, value, bow__value_size(field->type));
    if (bow__is_in_oneof(field)) {
        select_field(message, field, arena);
    } else {
        note_set(message, field);
    }
    memcpy(bow__member(message, field), copy, bow__value_size(field->type));
    return true;
}

ProtobufCMessage *bow_message_mutable(ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field,
                                      struct bow_arena *arena)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_MESSAGE)) {
        return NULL;
    }
    ProtobufCMessage *held = bow__member_is_own(message, field)
                                 ? bow__member_pointer(bow__member(message, field))
                                 : NULL;
    if (held != NULL) {
        return held;
    }
    held = bow_message_new(field->descriptor, arena);
    if (held != NULL) {
        set_pointer(message, field, held, arena);
    }
    return held;
}

bool bow_message_set_message(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                             ProtobufCMessage *value, struct bow_arena *arena)
{
    if (!is_of(message, field, PROTOBUF_C_TYPE_MESSAGE) ||
        (value != NULL && value->descriptor != field->descriptor)) {
        return false;
    }
    if (value == NULL) {
        bow_message_clear_field(message, field, arena);
        return true;
    }
    bool is_there = bow__member_is_own(message, field) &&
                    bow__member_pointer(bow__member(message, field)) == value;
    if (!is_there) {
        set_pointer(message, field, value, arena);
    }
    return true;
}

bool bow_message_has(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return message != NULL && bow__member_has(message, field);
}

void bow_message_clear_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                             struct bow_arena *arena)
{
    if (message == NULL || (!bow__is_repeated(field) && !bow__member_is_own(message, field))) {
        return;
    }
    if (arena == NULL) {
        bow__message_drop_field(message, field);
    }
    make_empty(message, field);
}
