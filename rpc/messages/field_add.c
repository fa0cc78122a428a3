/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Adding to repeated fields. How much room an array has is its storage's matter.
 */
#include "rpc/messages/field_add.h"
#include "rpc/messages/field.h"
#include "rpc/messages/storage.h"
#include <bowline/message.h>
#include <bowline/message_field.h>

bool bow__field_append(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       const void *value, struct bow_arena *arena)
{
    void *member = bow__member(message, field);
    size_t *n = bow__member_count(message, field);
    size_t size = bow__value_size(field->type);
    char *array = bow__storage_extend(arena, bow__member_pointer(member), *n, size);

    if (array == NULL) {
        return false;
    }
    memcpy(array + *n * size, value, size);
    bow__member_set_pointer(member, array);
    *n += 1;
    return true;
}

ProtobufCMessage *bow_message_add_message(ProtobufCMessage *message,
                                          const ProtobufCFieldDescriptor *field,
                                          struct bow_arena *arena)
{
    if (!bow__field_is_list(message, field) || field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return NULL;
    }
    ProtobufCMessage *added = bow_message_new(field->descriptor, arena);
    if (added == NULL || bow__field_append(message, field, &added, arena)) {
        return added;
    }
    if (arena == NULL) {
        bow_message_free(added);
    }
    return NULL;
}

bool bow_message_add_scalar(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const void *value, struct bow_arena *arena)
{
    char copy[8]; /* it may be an element of the array, which may move */

    if (!bow__field_is_list(message, field) || bow__is_apart(field->type)) {
        return false;
    }
    memcpy(copy, value, bow__value_size(field->type));
    return bow__field_append(message, field, copy, arena);
}

bool bow_message_add_string(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const char *value, struct bow_arena *arena)
{
    if (!bow__field_is_list(message, field) || field->type != PROTOBUF_C_TYPE_STRING ||
        value == NULL) {
        return false;
    }
    char *copy = bow__storage_copy_text(arena, value, strlen(value));
    if (copy == NULL) {
        return false;
    }
    bool is_added = bow__field_append(message, field, &copy, arena);
    if (!is_added) {
        bow__storage_drop(arena, copy);
    }
    return is_added;
}

bool bow_message_add_bytes(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           const void *data, size_t len, struct bow_arena *arena)
{
    if (!bow__field_is_list(message, field) || field->type != PROTOBUF_C_TYPE_BYTES) {
        return false;
    }
    ProtobufCBinaryData bytes = {len, bow__storage_copy(arena, data, len)};
    if (bytes.data == NULL && len > 0) {
        return false;
    }
    bool is_added = bow__field_append(message, field, &bytes, arena);
    if (!is_added) {
        bow__storage_drop(arena, bytes.data);
    }
    return is_added;
}
