/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Protobuf's own types that JSON has a form of its own for, but Any, which holds whole messages.
 * Knows nothing of other messages.
 */
#include "rpc/json/json_write_known.h"
#include "rpc/json/time_text.h"
#include <math.h>

static const ProtobufCMessage *message_at(const ProtobufCMessage *message, unsigned index)
{
    return *(ProtobufCMessage *const *)bow__known_member(message, index);
}

static size_t count_at(const ProtobufCMessage *message, unsigned index)
{
    return *(const size_t *)(const void *)((const char *)message +
                                           message->descriptor->fields[index].quantifier_offset);
}

/* Times */

static bool put_timestamp(struct bow__json_writer *w, const ProtobufCMessage *time)
{
    int64_t seconds = bow__known_seconds(time);
    int32_t nanos = bow__known_nanos(time);

    if (!bow__known_timestamp_is_valid(seconds, nanos)) {
        return bow__json_writer_refuse(w, ": no time of the years 1 to 9999 (%lld s, %d ns)",
                                       (long long)seconds, (int)nanos);
    }
    bow__json_put_char(&w->out, '"');
    w->out.at =
        bow__time_write_timestamp(bow__json_room(&w->out, BOW__TIME_TEXT_BYTES), seconds, nanos);
    bow__json_put_char(&w->out, '"');
    return true;
}

static bool put_duration(struct bow__json_writer *w, const ProtobufCMessage *time)
{
    int64_t seconds = bow__known_seconds(time);
    int32_t nanos = bow__known_nanos(time);

    if (!bow__known_duration_is_valid(seconds, nanos)) {
        return bow__json_writer_refuse(
            w, ": no duration within 10,000 years, of one sign (%lld s, %d ns)", (long long)seconds,
            (int)nanos);
    }
    bow__json_put_char(&w->out, '"');
    w->out.at =
        bow__time_write_duration(bow__json_room(&w->out, BOW__TIME_TEXT_BYTES), seconds, nanos);
    bow__json_put_char(&w->out, '"');
    return true;
}

/* Field masks */

/* A path in lowerCamelCase, if it can be turned back from there. */
static bool put_path(struct bow__json_writer *w, const char *path)
{
    bool is_behind_line = false;

    if (path[0] == '\0') {
        return false;
    }
    for (; *path != '\0'; path++) {
        char c = *path;
        bool is_lower = c >= 'a' && c <= 'z';
        bool is_good = is_lower || (c >= '0' && c <= '9') || c == '.' || c == '_';
        if (!is_good || (is_behind_line && !is_lower)) {
            return false;
        }
        if (c != '_') {
            bow__json_put_char(&w->out, is_behind_line ? (char)(c - 'a' + 'A') : c);
        }
        is_behind_line = c == '_';
    }
    return !is_behind_line;
}

static bool put_field_mask(struct bow__json_writer *w, const ProtobufCMessage *mask)
{
    const ProtobufCFieldDescriptor *field = &mask->descriptor->fields[0];
    char *const *paths = *(char **const *)bow__known_member(mask, 0);
    size_t n = count_at(mask, 0);

    bow__json_path_at(&w->path, field);
    if (!bow__json_writer_has_array(w, paths, n)) {
        return false;
    }
    bow__json_put_char(&w->out, '"');
    for (size_t i = 0; i < n; i++) {
        bow__json_path_index(&w->path, i);
        if (i > 0) {
            bow__json_put_char(&w->out, ',');
        }
        if (paths[i] == NULL) {
            return bow__json_writer_refuse(w, " is NULL, but a string is needed");
        }
        if (!put_path(w, paths[i])) {
            return bow__json_writer_refuse(w, ": no path of names in lower_snake_case");
        }
    }
    bow__json_put_char(&w->out, '"');
    bow__json_path_at(&w->path, NULL);
    return true;
}

/* Struct, Value, ListValue: each calls those below it, the depth being limited */

static bool put_value(struct bow__json_writer *w, const ProtobufCMessage *value);

/* `put` for the message that the field at the path holds. */
static bool put_below(struct bow__json_writer *w, const ProtobufCMessage *message,
                      bool (*put)(struct bow__json_writer *w, const ProtobufCMessage *message))
{
    if (!bow__json_writer_is_whole(w, message)) {
        return false;
    }
    if (!bow__json_path_down(&w->path)) {
        return bow__json_writer_refuse(w, ": nested deeper than %zu levels", w->path.max_depth);
    }
    if (!put(w, message)) {
        return false;
    }
    bow__json_path_up(&w->path);
    return true;
}

/* An entry of a Struct's map. */
static bool put_member(struct bow__json_writer *w, const ProtobufCMessage *entry)
{
    const ProtobufCMessageDescriptor *type = entry->descriptor;

    bow__json_next(&w->out);
    bow__json_path_at(&w->path, &type->fields[0]);
    if (!bow__json_write_scalar(w, &type->fields[0], bow__known_member(entry, 0))) {
        return false;
    }
    bow__json_colon(&w->out);
    bow__json_path_at(&w->path, &type->fields[1]);
    return put_below(w, message_at(entry, 1), put_value);
}

static bool put_entry(struct bow__json_writer *w, const ProtobufCMessage *entry)
{
    return put_below(w, entry, put_member);
}

static bool put_struct(struct bow__json_writer *w, const ProtobufCMessage *message)
{
    ProtobufCMessage *const *entries = *(ProtobufCMessage * *const *)bow__known_member(message, 0);
    size_t n = count_at(message, 0);

    bow__json_path_at(&w->path, &message->descriptor->fields[0]);
    if (!bow__json_writer_has_array(w, entries, n)) {
        return false;
    }
    bow__json_open(&w->out, '{');
    if (n > 0 && !bow__json_write_entries(w, entries, n, put_entry)) {
        return false;
    }
    bow__json_close(&w->out, '}');
    return true;
}

static bool put_list(struct bow__json_writer *w, const ProtobufCMessage *message)
{
    ProtobufCMessage *const *values = *(ProtobufCMessage * *const *)bow__known_member(message, 0);
    size_t n = count_at(message, 0);

    bow__json_path_at(&w->path, &message->descriptor->fields[0]);
    if (!bow__json_writer_has_array(w, values, n)) {
        return false;
    }
    bow__json_open(&w->out, '[');
    for (size_t i = 0; i < n; i++) {
        bow__json_path_index(&w->path, i);
        bow__json_next(&w->out);
        if (!put_below(w, values[i], put_value)) {
            return false;
        }
    }
    bow__json_close(&w->out, ']');
    return true;
}

static bool put_value(struct bow__json_writer *w, const ProtobufCMessage *value)
{
    const ProtobufCMessageDescriptor *type = value->descriptor;
    uint32_t id =
        *(const uint32_t *)(const void *)((const char *)value + type->fields[0].quantifier_offset);

    if (id == 0 || id > type->n_fields) { /* nothing is set */
        bow__json_put(&w->out, "null");
        return true;
    }
    unsigned index = id - 1;
    bow__json_path_at(&w->path, &type->fields[index]);
    switch (index) {
    case BOW__VALUE_NULL:
        bow__json_put(&w->out, "null");
        return true;
    case BOW__VALUE_NUMBER:
        if (!isfinite(*(const double *)bow__known_member(value, index))) {
            return bow__json_writer_refuse(w, ": JSON has no number for it");
        }
        break;
    case BOW__VALUE_STRUCT:
        return put_below(w, message_at(value, index), put_struct);
    case BOW__VALUE_LIST:
        return put_below(w, message_at(value, index), put_list);
    default:
        break;
    }
    return bow__json_write_scalar(w, &type->fields[index], bow__known_member(value, index));
}

bool bow__json_write_known(struct bow__json_writer *w, const ProtobufCMessage *message,
                           enum bow__known_type kind)
{
    switch (kind) {
    case BOW__KNOWN_TIMESTAMP:
        return put_timestamp(w, message);
    case BOW__KNOWN_DURATION:
        return put_duration(w, message);
    case BOW__KNOWN_FIELD_MASK:
        return put_field_mask(w, message);
    case BOW__KNOWN_STRUCT:
        return put_struct(w, message);
    case BOW__KNOWN_LIST_VALUE:
        return put_list(w, message);
    case BOW__KNOWN_VALUE:
        return put_value(w, message);
    default: /* a wrapper */
        bow__json_path_at(&w->path, &message->descriptor->fields[0]);
        return bow__json_write_scalar(w, &message->descriptor->fields[0],
                                      bow__known_member(message, 0));
    }
}
