/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_MAP_KEY_H
#define BOWLINE_RPC_MESSAGES_MAP_KEY_H

/*
 * Keys and values of the entries of a map. A key is given as the text of a string, and as a pointer
 * to what is of any other type.
 */

#include "rpc/messages/member.h"

static inline const ProtobufCFieldDescriptor *bow__entry_key(const ProtobufCMessageDescriptor *type)
{
    return &type->fields[0];
}

static inline const ProtobufCFieldDescriptor *
bow__entry_value(const ProtobufCMessageDescriptor *type)
{
    return &type->fields[1];
}

/** The key of an entry, as bow__map_key_order() takes it. */
static inline const void *bow__map_key_of(const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *field = bow__entry_key(entry->descriptor);
    const void *member = bow__member_const(entry, field);

    if (field->type != PROTOBUF_C_TYPE_STRING) {
        return member;
    }
    const char *text = bow__member_pointer(member);
    return text != NULL ? text : "";
}

/** Below, equal to or above 0, in some order of keys of `type`. */
static inline int bow__map_key_order(ProtobufCType type, const void *a, const void *b)
{
    if (type == PROTOBUF_C_TYPE_STRING) {
        return strcmp(a, b);
    }
    if (type == PROTOBUF_C_TYPE_BOOL) {
        protobuf_c_boolean x;
        protobuf_c_boolean y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return (x != 0) - (y != 0);
    }
    return memcmp(a, b, bow__value_size(type));
}

/** The same of the keys of two entries of one map. */
static inline int bow__map_entry_order(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    return bow__map_key_order(bow__entry_key(a->descriptor)->type, bow__map_key_of(a),
                              bow__map_key_of(b));
}

#endif
