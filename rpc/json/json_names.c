/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Looking up fields by the names that JSON has for them. Knows nothing of values. */
#include "rpc/json/json_names.h"

static bool is_name(const char *text, struct bow_slice name)
{
    return text != NULL && strnlen(text, name.len + 1) == name.len &&
           memcmp(text, name.data, name.len) == 0;
}

static bool is_camel_of(const char *field, struct bow_slice name)
{
    bool is_upper = false;
    size_t n = 0;

    for (; field != NULL && *field != '\0'; field++) {
        char c = bow__json_camel(*field, &is_upper);
        if (c != '\0' && (n == name.len || name.data[n++] != (uint8_t)c)) {
            return false;
        }
    }
    return field != NULL && n == name.len;
}

static bool is_json_name(const ProtobufCMessageDescriptor *type, const struct bow_field_info *infos,
                         unsigned index, struct bow_slice name)
{
    const char *json_name = infos != NULL ? infos[index].json_name : NULL;

    return json_name != NULL ? is_name(json_name, name)
                             : is_camel_of(type->fields[index].name, name);
}

unsigned bow__json_find(const ProtobufCMessageDescriptor *type, const struct bow_field_info *infos,
                        struct bow_slice name, unsigned guess)
{
    unsigned n = type->n_fields;

    if (guess < n && is_json_name(type, infos, guess, name)) {
        return guess;
    }
    for (unsigned i = 0; i < n; i++) {
        if (is_json_name(type, infos, i, name)) {
            return i;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (is_name(type->fields[i].name, name)) {
            return i;
        }
    }
    return n;
}
