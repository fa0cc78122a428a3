/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Scalar values by the type that is wanted, which is looser than JSON's own types: numbers may
 * stand in quotation marks, integers may have a point. Then arrays and maps of any values. Knows
 * nothing of the fields of messages.
 */
#include "rpc/json/json_read_value.h"
#include "base/base64.h"
#include "rpc/core/codec/decode_array.h"
#include "rpc/core/codec/message_info.h"
#include "rpc/core/codec/value.h"
#include "rpc/json/map_keys.h"
#include <bowline/message.h>
#include <math.h>

/* Integers */

static bool refuse_number(struct bow__json_reader *r, const uint8_t *at, enum bow__decimal_fit fit,
                          const char *type)
{
    return fit == BOW__DECIMAL_FRACTION ? bow__json_refuse(r, at, "no integer")
                                        : bow__json_refuse(r, at, "out of range for %s", type);
}

static bool read_i64(struct bow__json_reader *r, int64_t min, int64_t max, const char *type,
                     int64_t *ret_value)
{
    struct bow__decimal number;

    bow__json_peek(r);
    const uint8_t *begin = r->at;
    if (!bow__json_read_number(r, &number)) {
        return false;
    }
    enum bow__decimal_fit fit = bow__decimal_to_i64(&number, min, max, ret_value);
    return fit == BOW__DECIMAL_FITS || refuse_number(r, begin, fit, type);
}

static bool read_u64(struct bow__json_reader *r, uint64_t max, const char *type,
                     uint64_t *ret_value)
{
    struct bow__decimal number;

    bow__json_peek(r);
    const uint8_t *begin = r->at;
    if (!bow__json_read_number(r, &number)) {
        return false;
    }
    enum bow__decimal_fit fit = bow__decimal_to_u64(&number, max, ret_value);
    return fit == BOW__DECIMAL_FITS || refuse_number(r, begin, fit, type);
}

static bool read_int32(struct bow__json_reader *r, int32_t *member)
{
    int64_t value;

    if (!read_i64(r, INT32_MIN, INT32_MAX, "32 bits", &value)) {
        return false;
    }
    *member = (int32_t)value;
    return true;
}

static bool read_uint32(struct bow__json_reader *r, uint32_t *member)
{
    uint64_t value;

    if (!read_u64(r, UINT32_MAX, "unsigned 32 bits", &value)) {
        return false;
    }
    *member = (uint32_t)value;
    return true;
}

/* Floating point */

static bool is_text(struct bow_slice text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* One of those that JSON has no number for, if it comes next. */
static bool take_infinite(struct bow__json_reader *r, double *ret_value)
{
    char c = bow__json_peek(r);
    const uint8_t *begin = r->at;
    struct bow_slice text;

    if (c != '"' || r->end - r->at < 2 || (r->at[1] >= '0' && r->at[1] <= '9') ||
        !bow__json_read_text(r, &text)) {
        return false;
    }
    if (is_text(text, "NaN")) {
        *ret_value = (double)NAN;
    } else if (is_text(text, "Infinity")) {
        *ret_value = (double)INFINITY;
    } else if (is_text(text, "-Infinity")) {
        *ret_value = -(double)INFINITY;
    } else {
        r->at = begin; /* a number, or nothing that is one */
        return false;
    }
    return true;
}

static bool read_double(struct bow__json_reader *r, double *member)
{
    struct bow__decimal number;

    if (take_infinite(r, member)) {
        return true;
    }
    const uint8_t *begin = r->at;
    return r->error == 0 && bow__json_read_number(r, &number) &&
           (bow__decimal_to_double(&number, member) ||
            bow__json_refuse(r, begin, "out of range for double"));
}

static bool read_float(struct bow__json_reader *r, float *member)
{
    struct bow__decimal number;
    double infinite;

    if (take_infinite(r, &infinite)) {
        *member = (float)infinite;
        return true;
    }
    const uint8_t *begin = r->at;
    return r->error == 0 && bow__json_read_number(r, &number) &&
           (bow__decimal_to_float(&number, member) ||
            bow__json_refuse(r, begin, "out of range for float"));
}

/* Others */

static bool read_bool(struct bow__json_reader *r, protobuf_c_boolean *member)
{
    if (bow__json_take_word(r, "true")) {
        *member = 1;
        return true;
    }
    if (bow__json_take_word(r, "false")) {
        *member = 0;
        return true;
    }
    return bow__json_refuse_next(r, "true or false");
}

/* A string of which C knows the length: it may have a NUL inside. */
static bool read_text_as_bytes(struct bow__json_reader *r, ProtobufCBinaryData *member)
{
    struct bow_slice text;

    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "a string");
    }
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    uint8_t *data = text.len > 0 ? bow__arena_alloc_bytes(r->arena, text.len) : NULL;
    if (text.len > 0 && data == NULL) {
        return bow__json_no_memory(r);
    }
    if (text.len > 0) {
        memcpy(data, text.data, text.len);
    }
    *member = (ProtobufCBinaryData){.len = text.len, .data = data};
    return true;
}

static bool read_bytes(struct bow__json_reader *r, ProtobufCBinaryData *member)
{
    struct bow_slice text;

    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "bytes as base64 in quotation marks");
    }
    const uint8_t *begin = r->at;
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    uint8_t *data = bow__arena_alloc_bytes(r->arena, bow__base64_bytes(text.len));
    if (data == NULL) {
        return bow__json_no_memory(r);
    }
    size_t len;
    if (bow__base64_decode(text, data, &len) < 0) {
        return bow__json_refuse(r, begin, "no base64");
    }
    *member = (ProtobufCBinaryData){.len = len, .data = data};
    return true;
}

/* The value of that name, or NULL. */
static const ProtobufCEnumValue *find_name(const ProtobufCEnumDescriptor *type,
                                           struct bow_slice name)
{
    size_t low = 0, high = type->values_by_name != NULL ? type->n_value_names : 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const char *other = type->values_by_name[middle].name;
        int order = strncmp((const char *)name.data, other, name.len);
        if (order == 0 && other[name.len] == '\0') {
            return &type->values[type->values_by_name[middle].index];
        }
        if (order > 0) {
            low = middle + 1;
        } else {
            high = middle; /* `name` is a part of the other, too */
        }
    }
    return NULL;
}

static enum bow__json_got read_enum(struct bow__json_reader *r, const ProtobufCEnumDescriptor *type,
                                    int32_t *member)
{
    struct bow__decimal number;
    struct bow_slice name;
    int64_t value;

    if (bow__known_null_value(type) && bow__json_take_word(r, "null")) {
        *member = 0;
        return BOW__JSON_VALUE;
    }
    if (bow__json_peek(r) != '"') {
        return read_int32(r, member) ? BOW__JSON_VALUE : BOW__JSON_FAILED;
    }
    const uint8_t *begin = r->at;
    if (!bow__json_read_text(r, &name)) {
        return BOW__JSON_FAILED;
    }
    bool has_nul = memchr(name.data, '\0', name.len) != NULL; /* and names end there */
    const ProtobufCEnumValue *found = name.len > 0 && !has_nul ? find_name(type, name) : NULL;
    if (found != NULL) {
        *member = found->value;
        return BOW__JSON_VALUE;
    }
    if (name.len > 0 && bow__decimal_read(name, &number) == name.len &&
        bow__decimal_to_i64(&number, INT32_MIN, INT32_MAX, &value) == BOW__DECIMAL_FITS) {
        *member = (int32_t)value;
        return BOW__JSON_VALUE;
    }
    if (r->ignore_unknown) {
        return BOW__JSON_NOTHING;
    }
    bow__json_refuse(r, begin, "no value of %s", type->name != NULL ? type->name : "the enum");
    return BOW__JSON_FAILED;
}

static bool read_plain(struct bow__json_reader *r, ProtobufCType type, void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_int32(r, member);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_uint32(r, member);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_i64(r, INT64_MIN, INT64_MAX, "64 bits", member);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_u64(r, UINT64_MAX, "unsigned 64 bits", member);
    case PROTOBUF_C_TYPE_FLOAT:
        return read_float(r, member);
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_double(r, member);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(r, member);
    case PROTOBUF_C_TYPE_STRING:
        return bow__json_read_string(r, member);
    default:
        return read_bytes(r, member);
    }
}

enum bow__json_got bow__json_read_scalar(struct bow__json_reader *r,
                                         const ProtobufCFieldDescriptor *field, void *member)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        return read_enum(r, field->descriptor, member);
    }
    if (bow__field_is_text(field)) {
        return read_text_as_bytes(r, member) ? BOW__JSON_VALUE : BOW__JSON_FAILED;
    }
    return read_plain(r, field->type, member) ? BOW__JSON_VALUE : BOW__JSON_FAILED;
}

/* Messages */

ProtobufCMessage *bow__json_new(struct bow__json_reader *r, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = bow_message_new(type, bow__arena_as_public(r->arena));

    if (message == NULL) {
        bow__json_no_memory(r);
    }
    return message;
}

void bow__json_mark(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *quantifier = (char *)message + field->quantifier_offset;
    bool is_pointer =
        field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        *(uint32_t *)quantifier = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !is_pointer) {
        *(protobuf_c_boolean *)quantifier = 1;
    }
}

/* Arrays: they grow as the decoder's do */

struct array {
    char *elements;
    size_t n, size;
};

static bool has_room(const struct array *array)
{
    return array->elements != NULL && array->n < bow__decode_capacity(array->elements);
}

/* The place of the next element, which counts when `n` does. */
static void *next_place(struct bow__json_reader *r, struct array *array)
{
    if (!has_room(array)) {
        char *grown = bow__decode_reserve(r->arena, array->elements, array->n, 1, array->size);
        if (grown == NULL) {
            bow__json_no_memory(r);
            return NULL;
        }
        array->elements = grown;
    }
    return array->elements + array->n * array->size;
}

static void store(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                  const struct array *array)
{
    if (array->n > 0) {
        *(size_t *)(void *)((char *)message + field->quantifier_offset) = array->n;
        *(void **)(void *)((char *)message + field->offset) = array->elements;
    }
}

bool bow__json_read_elements(struct bow__json_reader *r, ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field, bow__json_value_fn read)
{
    struct array array = {.size = bow__value_size(field->type)};

    if (!bow__json_take(r, '[')) {
        return bow__json_refuse_next(r, "an array");
    }
    if (bow__json_take(r, ']')) {
        return true;
    }
    do {
        void *place = next_place(r, &array);
        bow__json_path_index(&r->path, array.n);
        enum bow__json_got got = place != NULL ? read(r, field, place) : BOW__JSON_FAILED;
        if (got == BOW__JSON_FAILED) {
            return false;
        }
        array.n += got == BOW__JSON_VALUE;
    } while (bow__json_has_next(r, ']'));
    store(message, field, &array);
    return r->error == 0;
}

/* Maps */

/* A key from its text, which is in quotation marks whatever its type. */
static bool read_key(struct bow__json_reader *r, const ProtobufCFieldDescriptor *key, void *member)
{
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        return bow__json_read_string(r, member);
    }
    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "a key in quotation marks");
    }
    if (key->type != PROTOBUF_C_TYPE_BOOL) {
        return read_plain(r, key->type, member);
    }
    const uint8_t *begin = r->at;
    struct bow_slice text;
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    *(protobuf_c_boolean *)member = is_text(text, "true");
    return is_text(text, "true") || is_text(text, "false") ||
           bow__json_refuse(r, begin, "\"true\" or \"false\" is needed");
}

static enum bow__json_got read_entry(struct bow__json_reader *r, ProtobufCMessage *entry,
                                     bow__json_value_fn read)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0], *value = key + 1;

    if (!bow__json_path_down(&r->path)) {
        bow__json_too_deep(r);
        return BOW__JSON_FAILED;
    }
    bow__json_path_at(&r->path, key);
    if (!read_key(r, key, (char *)entry + key->offset)) {
        return BOW__JSON_FAILED;
    }
    bow__json_mark(entry, key);
    if (!bow__json_take(r, ':')) {
        bow__json_refuse_next(r, "':'");
        return BOW__JSON_FAILED;
    }
    bow__json_path_at(&r->path, value);
    enum bow__json_got got = read(r, value, (char *)entry + value->offset);
    if (got != BOW__JSON_FAILED) {
        bow__json_mark(entry, value);
        bow__json_path_up(&r->path);
    }
    return got;
}

static bool is_unique(struct bow__json_reader *r, const struct array *array)
{
    ProtobufCMessage **entries = (ProtobufCMessage **)(void *)array->elements;

    if (array->n <= BOW__MAP_FEW) {
        for (size_t i = 0; i < array->n; i++) {
            if (bow__map_find_later(entries, array->n, i) != NULL) {
                bow__json_path_index(&r->path, i);
                return bow__json_refuse(r, r->at - 1, "a key is there twice");
            }
        }
        return true;
    }
    bow__map_place *places = bow__arena_alloc(r->arena, array->n * sizeof places[0]);
    if (places == NULL) {
        return bow__json_no_memory(r);
    }
    bow__map_sort(entries, array->n, places);
    for (size_t i = 0; i + 1 < array->n; i++) {
        if (bow__map_same_key(*places[i], *places[i + 1])) {
            bow__json_path_index(&r->path, (size_t)(places[i] - entries));
            return bow__json_refuse(r, r->at - 1, "a key is there twice");
        }
    }
    return true;
}

bool bow__json_read_entries(struct bow__json_reader *r, ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field, bow__json_value_fn read)
{
    struct array array = {.size = sizeof(ProtobufCMessage *)};

    if (!bow__json_take(r, '{')) {
        return bow__json_refuse_next(r, "an object");
    }
    if (bow__json_take(r, '}')) {
        return true;
    }
    do {
        ProtobufCMessage **place = next_place(r, &array);
        bow__json_path_index(&r->path, array.n);
        ProtobufCMessage *entry = place != NULL ? bow__json_new(r, field->descriptor) : NULL;
        enum bow__json_got got = entry != NULL ? read_entry(r, entry, read) : BOW__JSON_FAILED;
        if (got == BOW__JSON_FAILED) {
            return false;
        }
        *place = entry;
        array.n += got == BOW__JSON_VALUE;
    } while (bow__json_has_next(r, '}'));
    if (r->error != 0 || !is_unique(r, &array)) {
        return false;
    }
    store(message, field, &array);
    return true;
}
