/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Protobuf's own types that JSON has a form of its own for, but Any, which holds whole messages.
 * Values call themselves for those they hold, the depth being limited.
 */
#include "rpc/json/json_read_known.h"
#include "rpc/json/json_read_value.h"
#include "rpc/json/time_text.h"

/* Times */

static bool read_time(struct bow__json_reader *r, ProtobufCMessage *time,
                      bool (*read)(struct bow_slice text, int64_t *ret_seconds, int32_t *ret_nanos),
                      const char *what)
{
    struct bow_slice text;
    int64_t seconds;
    int32_t nanos;

    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, what);
    }
    const uint8_t *begin = r->at;
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    if (!read(text, &seconds, &nanos)) {
        return bow__json_refuse(r, begin, "%s is needed", what);
    }
    bow__known_set_time(time, seconds, nanos);
    return true;
}

/* Field masks */

/* Turn "fooBar.baz" into "foo_bar.baz". Returns what is behind it, its NUL; NULL when it cannot be
 * turned back. */
static char *put_path(char *to, struct bow_slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        uint8_t c = path.data[i];
        bool is_upper = c >= 'A' && c <= 'Z';
        if (!is_upper && c != '.' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) {
            return NULL;
        }
        if (is_upper) {
            *to++ = '_';
            c = (uint8_t)(c - 'A' + 'a');
        }
        *to++ = (char)c;
    }
    *to++ = '\0';
    return to;
}

static size_t count_paths(struct bow_slice text)
{
    size_t n = text.len > 0;

    for (size_t i = 0; i < text.len; i++) {
        n += text.data[i] == ',';
    }
    return n;
}

static bool read_paths(struct bow_slice text, char **paths, char *to)
{
    const uint8_t *at = text.data, *end = text.data + text.len;

    for (size_t i = 0; at <= end; i++) {
        const uint8_t *comma = memchr(at, ',', (size_t)(end - at));
        struct bow_slice path = {at, (size_t)((comma != NULL ? comma : end) - at)};
        paths[i] = to;
        to = path.len > 0 ? put_path(to, path) : NULL;
        if (to == NULL) {
            return false;
        }
        at = path.data + path.len + 1;
    }
    return true;
}

static bool read_field_mask(struct bow__json_reader *r, ProtobufCMessage *mask)
{
    const ProtobufCFieldDescriptor *field = &mask->descriptor->fields[0];
    struct bow_slice text;

    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "paths in quotation marks, with commas between");
    }
    const uint8_t *begin = r->at;
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    size_t n = count_paths(text);
    if (n == 0) {
        return true;
    }
    char **paths = bow__arena_alloc(r->arena, n * sizeof paths[0]);
    char *names = bow__arena_alloc_bytes(r->arena, 2 * text.len + 1);
    if (paths == NULL || names == NULL) {
        return bow__json_no_memory(r);
    }
    if (!read_paths(text, paths, names)) {
        return bow__json_refuse(r, begin, "paths of names in lowerCamelCase are needed");
    }
    *(size_t *)(void *)((char *)mask + field->quantifier_offset) = n;
    *(char ***)bow__known_member(mask, 0) = paths;
    return true;
}

/* Struct, Value, ListValue */

static bool read_value(struct bow__json_reader *r, ProtobufCMessage *value);

/* The element of a list, or the value of a Struct's entry. */
static enum bow__json_got read_below(struct bow__json_reader *r,
                                     const ProtobufCFieldDescriptor *field, void *member)
{
    ProtobufCMessage *value = bow__json_new(r, field->descriptor);

    if (value == NULL) {
        return BOW__JSON_FAILED;
    }
    if (!bow__json_path_down(&r->path)) {
        bow__json_too_deep(r);
        return BOW__JSON_FAILED;
    }
    if (!read_value(r, value)) {
        return BOW__JSON_FAILED;
    }
    bow__json_path_up(&r->path);
    *(ProtobufCMessage **)member = value;
    return BOW__JSON_VALUE;
}

static bool read_struct(struct bow__json_reader *r, ProtobufCMessage *message)
{
    bow__json_path_at(&r->path, &message->descriptor->fields[0]);
    return bow__json_read_entries(r, message, &message->descriptor->fields[0], read_below);
}

static bool read_list(struct bow__json_reader *r, ProtobufCMessage *message)
{
    bow__json_path_at(&r->path, &message->descriptor->fields[0]);
    return bow__json_read_elements(r, message, &message->descriptor->fields[0], read_below);
}

/* The Struct or ListValue of a Value. */
static bool read_inner(struct bow__json_reader *r, const ProtobufCFieldDescriptor *field,
                       void *member,
                       bool (*read)(struct bow__json_reader *r, ProtobufCMessage *message))
{
    ProtobufCMessage *message = bow__json_new(r, field->descriptor);

    if (message == NULL) {
        return false;
    }
    if (!bow__json_path_down(&r->path)) {
        return bow__json_too_deep(r);
    }
    if (!read(r, message)) {
        return false;
    }
    bow__json_path_up(&r->path);
    *(ProtobufCMessage **)member = message;
    return true;
}

/* The field for the value that comes next; as many as there are: none comes. */
static unsigned kind_of_next(struct bow__json_reader *r)
{
    char c = bow__json_peek(r);

    switch (c) {
    case 'n':
        return BOW__VALUE_NULL;
    case '"':
        return BOW__VALUE_STRING;
    case 't':
    case 'f':
        return BOW__VALUE_BOOL;
    case '{':
        return BOW__VALUE_STRUCT;
    case '[':
        return BOW__VALUE_LIST;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? BOW__VALUE_NUMBER : BOW__VALUE_LIST + 1;
    }
}

static bool read_value(struct bow__json_reader *r, ProtobufCMessage *value)
{
    unsigned kind = kind_of_next(r);
    if (kind > BOW__VALUE_LIST) {
        return bow__json_refuse_next(r, "a value");
    }
    const ProtobufCFieldDescriptor *field = &value->descriptor->fields[kind];
    void *member = bow__known_member(value, kind);

    bow__json_path_at(&r->path, field);
    if (kind == BOW__VALUE_STRUCT || kind == BOW__VALUE_LIST) {
        if (!read_inner(r, field, member, kind == BOW__VALUE_STRUCT ? read_struct : read_list)) {
            return false;
        }
    } else if (kind == BOW__VALUE_NULL) {
        if (!bow__json_take_word(r, "null")) {
            return bow__json_refuse_next(r, "a value");
        }
        *(int32_t *)member = 0;
    } else if (bow__json_read_scalar(r, field, member) != BOW__JSON_VALUE) {
        return false;
    }
    bow__json_mark(value, field);
    return true;
}

bool bow__json_read_known(struct bow__json_reader *r, ProtobufCMessage *message,
                          enum bow__known_type kind)
{
    switch (kind) {
    case BOW__KNOWN_TIMESTAMP:
        return read_time(r, message, bow__time_read_timestamp,
                         "a time as \"2024-02-29T12:00:00.5Z\", of the years 1 to 9999,");
    case BOW__KNOWN_DURATION:
        return read_time(r, message, bow__time_read_duration,
                         "a duration as \"1.5s\", within 10,000 years,");
    case BOW__KNOWN_FIELD_MASK:
        return read_field_mask(r, message);
    case BOW__KNOWN_STRUCT:
        return read_struct(r, message);
    case BOW__KNOWN_LIST_VALUE:
        return read_list(r, message);
    case BOW__KNOWN_VALUE:
        return read_value(r, message);
    default: /* a wrapper */
        bow__json_path_at(&r->path, &message->descriptor->fields[0]);
        return bow__json_read_scalar(r, &message->descriptor->fields[0],
                                     bow__known_member(message, 0)) == BOW__JSON_VALUE;
    }
}
