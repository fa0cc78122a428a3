/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Maps, told from other repeated messages. Knows nothing of what is in them.
 */
#include "rpc/core/codec/map_entry.h"
#include "rpc/core/codec/message_info.h"
#include <string.h>

/* Whether `name` is `field` in camel case and "Entry", as protoc calls the entries of a map. */
static bool is_entry_name(const char *name, const char *field)
{
    bool upper = true;
    for (; *field != '\0'; field++) {
        if (*field == '_') {
            upper = true;
            continue;
        }
        bool lowers = upper && *field >= 'a' && *field <= 'z';
        if (*name++ != (lowers ? *field - 'a' + 'A' : *field)) {
            return false;
        }
        upper = false;
    }
    return strcmp(name, "Entry") == 0;
}

/* Whether a map can have such a key; whoever reads one goes by that. */
static bool is_key(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return false;
    default:
        return true;
    }
}

static bool is_single(const ProtobufCFieldDescriptor *field)
{
    return field->label != PROTOBUF_C_LABEL_REPEATED &&
           (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
}

/*
 * Descriptors of protoc-gen-c don't mark maps. A hand-written message that passes for an entry is
 * one: that is how maps are written for compilers that have none.
 */
static bool passes_for_map_entry(const ProtobufCFieldDescriptor *field,
                                 const ProtobufCMessageDescriptor *type)
{
    return field != NULL && field->label == PROTOBUF_C_LABEL_REPEATED && type->n_fields == 2 &&
           type->fields[0].id == 1 && type->fields[1].id == 2 && type->short_name != NULL &&
           field->name != NULL && strcmp(type->fields[0].name, "key") == 0 &&
           strcmp(type->fields[1].name, "value") == 0 && is_single(&type->fields[0]) &&
           is_single(&type->fields[1]) && is_key(&type->fields[0]) &&
           is_entry_name(type->short_name, field->name);
}

bool bow__is_map_entry(const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessageDescriptor *type)
{
    const struct bow_message_info *info = bow__message_info(type);
    return info != NULL ? (info->flags & BOW_MESSAGE_MAP_ENTRY) != 0
                        : passes_for_map_entry(field, type);
}

bool bow__is_map(const ProtobufCMessageDescriptor *owner, const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label != PROTOBUF_C_LABEL_REPEATED) {
        return false;
    }
    const struct bow_message_info *info = bow__message_info(owner);
    size_t index = (size_t)(field - owner->fields);
    if (info != NULL && index < info->n_fields) {
        return (info->fields[index].flags & BOW_FIELD_MAP) != 0;
    }
    return passes_for_map_entry(field, field->descriptor);
}
