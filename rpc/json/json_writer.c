/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the writers share: reasons, values of fields, maps. Knows nothing of whole messages. */
#include "rpc/json/json_writer.h"
#include "rpc/core/codec/message_info.h"
#include "rpc/core/codec/value.h"
#include "rpc/json/map_keys.h"
#include <bowline/well_known.h>
#include <stdlib.h>

/* Reasons */

bool bow__json_writer_refuse(struct bow__json_writer *w, const char *what, ...)
{
    va_list args;

    w->error = -EINVAL;
    bow__json_path_append(&w->path, &w->reason);
    va_start(args, what);
    bow__text_vprintf(&w->reason, what, args);
    va_end(args);
    return false;
}

bool bow__json_writer_no_memory(struct bow__json_writer *w)
{
    bow__json_writer_refuse(w, ": no memory");
    w->error = -ENOMEM;
    return false;
}

bool bow__json_writer_is_whole(struct bow__json_writer *w, const ProtobufCMessage *message)
{
    if (message == NULL) {
        return bow__json_writer_refuse(w, " is NULL, but a message is needed");
    }
    return message->descriptor != NULL ||
           bow__json_writer_refuse(w, " has no descriptor: begin it with its __INIT");
}

bool bow__json_writer_has_array(struct bow__json_writer *w, const void *elements, size_t n)
{
    return n == 0 || elements != NULL ||
           bow__json_writer_refuse(w, " is NULL, but has %zu elements", n);
}

/* Values */

static bool put_text(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                     const char *text)
{
    if (text == NULL) {
        if (field->label == PROTOBUF_C_LABEL_REQUIRED ||
            field->label == PROTOBUF_C_LABEL_REPEATED) {
            return bow__json_writer_refuse(w, " is NULL, but a string is needed");
        }
        text = "";
    }
    return bow__json_put_string(&w->out, text, strlen(text)) ||
           bow__json_writer_refuse(w, ": not UTF-8");
}

static bool put_bytes(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                      const ProtobufCBinaryData *bytes)
{
    if (bytes->data == NULL && bytes->len > 0) {
        return bow__json_writer_refuse(w, " is NULL, but has a length of %zu", bytes->len);
    }
    if (bow__field_is_text(field)) {
        const char *text = bytes->len > 0 ? (const char *)bytes->data : "";
        return bow__json_put_string(&w->out, text, bytes->len) ||
               bow__json_writer_refuse(w, ": not UTF-8");
    }
    bow__json_put_bytes(&w->out, (struct bow_slice){bytes->data, bytes->len});
    return true;
}

static void put_enum(struct bow__json_writer *w, const ProtobufCEnumDescriptor *type,
                     int32_t number)
{
    if (bow__known_null_value(type)) {
        bow__json_put(&w->out, "null");
        return;
    }
    const char *name = w->enums_as_numbers ? NULL : bow_enum_name(type, number);
    if (name == NULL) {
        bow__json_put_i64(&w->out, number);
        return;
    }
    bow__json_put_string(&w->out, name, strlen(name));
}

static void put_quoted_i64(struct bow__json_output *out, int64_t value)
{
    bow__json_put_char(out, '"');
    bow__json_put_i64(out, value);
    bow__json_put_char(out, '"');
}

static void put_quoted_u64(struct bow__json_output *out, uint64_t value)
{
    bow__json_put_char(out, '"');
    bow__json_put_u64(out, value);
    bow__json_put_char(out, '"');
}

bool bow__json_write_scalar(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                            const void *member)
{
    struct bow__json_output *out = &w->out;

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        bow__json_put_i64(out, *(const int32_t *)member);
        return true;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        bow__json_put_u64(out, *(const uint32_t *)member);
        return true;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_quoted_i64(out, *(const int64_t *)member);
        return true;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_quoted_u64(out, *(const uint64_t *)member);
        return true;
    case PROTOBUF_C_TYPE_FLOAT:
        bow__json_put_float(out, *(const float *)member);
        return true;
    case PROTOBUF_C_TYPE_DOUBLE:
        bow__json_put_double(out, *(const double *)member);
        return true;
    case PROTOBUF_C_TYPE_BOOL:
        bow__json_put(out, *(const protobuf_c_boolean *)member ? "true" : "false");
        return true;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(w, field->descriptor, *(const int32_t *)member);
        return true;
    case PROTOBUF_C_TYPE_STRING:
        return put_text(w, field, *(const char *const *)member);
    default: /* bytes */
        return put_bytes(w, field, member);
    }
}

/* Maps */

typedef bool (*entry_fn)(struct bow__json_writer *w, const ProtobufCMessage *entry);

static bool has_keys(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bow__json_path_index(&w->path, i);
        if (!bow__json_writer_is_whole(w, entries[i])) {
            return false;
        }
        const ProtobufCFieldDescriptor *key = &entries[i]->descriptor->fields[0];
        const void *member = (const char *)entries[i] + key->offset;
        if (key->type == PROTOBUF_C_TYPE_STRING && *(const char *const *)member == NULL) {
            return bow__json_writer_refuse(w, ".key is NULL, but a string is needed");
        }
    }
    return true;
}

static bool write_few(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n,
                      entry_fn fn)
{
    for (size_t i = 0; i < n; i++) {
        bow__json_path_index(&w->path, i);
        if (bow__map_find_later(entries, n, i) == NULL && !fn(w, entries[i])) {
            return false;
        }
    }
    return true;
}

/* In the order of the map, unless it has a key twice: then in the order of keys. */
static bool write_many(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n,
                       bow__map_place *places, entry_fn fn)
{
    bool is_unique = true;

    bow__map_sort(entries, n, places);
    for (size_t i = 0; i + 1 < n && is_unique; i++) {
        is_unique = !bow__map_same_key(*places[i], *places[i + 1]);
    }
    for (size_t i = 0; i < n; i++) {
        bow__map_place place = is_unique ? &entries[i] : places[i];
        bow__json_path_index(&w->path, (size_t)(place - entries));
        bool is_last = is_unique || i + 1 == n || !bow__map_same_key(*place, *places[i + 1]);
        if (is_last && !fn(w, *place)) {
            return false;
        }
    }
    return true;
}

bool bow__json_write_entries(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n,
                             entry_fn fn)
{
    if (!has_keys(w, entries, n)) {
        return false;
    }
    if (n <= BOW__MAP_FEW) {
        return write_few(w, entries, n, fn);
    }
    bow__map_place *places = malloc(n * sizeof places[0]); /* no overflow: `entries` is as large */
    if (places == NULL) {
        return bow__json_writer_no_memory(w);
    }
    bool is_written = write_many(w, entries, n, places, fn);
    free(places);
    return is_written;
}
