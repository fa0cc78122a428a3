/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_NAMES_H
#define BOWLINE_RPC_JSON_JSON_NAMES_H

/*
 * The names that JSON has for a message's fields. The generator's table says them; where there is
 * none, as for messages of protoc-gen-c, they are made from the names in the .proto, as protoc
 * does.
 */

#include "rpc/core/codec/message_info.h"
#include <bowline/slice.h>
#include <string.h>

/** What the generator says of the fields of `type`, in the order of its descriptor; or NULL. */
static inline const struct bow_field_info *bow__json_fields(const ProtobufCMessageDescriptor *type)
{
    const struct bow_message_info *info = bow__message_info(type);
    return info != NULL && info->n_fields == type->n_fields ? info->fields : NULL;
}

/** The index of the field that JSON calls `name`, by its name there or in the .proto; n_fields when
 * there is none. `guess` is the one that is looked at first. */
unsigned bow__json_find(const ProtobufCMessageDescriptor *type, const struct bow_field_info *infos,
                        struct bow_slice name, unsigned guess);

/**
 * Derive the lowerCamelCase of a name in a .proto, one character at a time; `*is_upper` is false at
 * first. Returns what stands for `c`, or NUL for nothing.
 */
static inline char bow__json_camel(char c, bool *is_upper)
{
    if (c == '_') {
        *is_upper = true;
        return '\0';
    }
    bool raises = *is_upper && c >= 'a' && c <= 'z';
    *is_upper = false;
    return raises ? (char)(c - 'a' + 'A') : c;
}

#endif
