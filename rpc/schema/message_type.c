/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Descriptors of messages, as protoc-gen-bowline would write them: the same labels, types, flags
 * and defaults for the same .proto.
 */
#include "rpc/schema/message_type.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/schema/default_value.h"
#include "rpc/schema/layout.h"
#include "rpc/schema/ranges.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* google.protobuf.FieldDescriptorProto */
enum { LABEL_REQUIRED = 2, LABEL_REPEATED = 3 };
enum { TYPE_STRING = 9, TYPE_GROUP = 10, TYPE_MESSAGE = 11, TYPE_ENUM = 14, N_TYPES = 19 };

#define MAX_NUMBER ((1 << 29) - 1)

static const ProtobufCType types[N_TYPES] = {
    [1] = PROTOBUF_C_TYPE_DOUBLE,    [2] = PROTOBUF_C_TYPE_FLOAT,
    [3] = PROTOBUF_C_TYPE_INT64,     [4] = PROTOBUF_C_TYPE_UINT64,
    [5] = PROTOBUF_C_TYPE_INT32,     [6] = PROTOBUF_C_TYPE_FIXED64,
    [7] = PROTOBUF_C_TYPE_FIXED32,   [8] = PROTOBUF_C_TYPE_BOOL,
    [9] = PROTOBUF_C_TYPE_STRING,    [10] = PROTOBUF_C_TYPE_MESSAGE,
    [11] = PROTOBUF_C_TYPE_MESSAGE,  [12] = PROTOBUF_C_TYPE_BYTES,
    [13] = PROTOBUF_C_TYPE_UINT32,   [14] = PROTOBUF_C_TYPE_ENUM,
    [15] = PROTOBUF_C_TYPE_SFIXED32, [16] = PROTOBUF_C_TYPE_SFIXED64,
    [17] = PROTOBUF_C_TYPE_SINT32,   [18] = PROTOBUF_C_TYPE_SINT64,
};

/* A message on its way; the arrays are by number, but for `names`, which is of indices by name. */
struct making {
    struct bow_schema *schema;
    struct bow__schema_symbol *symbol;
    struct bow__text *reason;
    const Bow__Schema__Field **protos;
    ProtobufCFieldDescriptor *fields;
    struct bow_field_info *infos;
    int32_t *oneof_of;
    unsigned *names;
    ProtobufCIntRange *ranges;
    struct bow__layout_oneof *oneofs;
    size_t n;
};

/* One of its fields. */
struct field {
    const Bow__Schema__Field *proto;
    ProtobufCFieldDescriptor *made;
    struct bow_field_info *info;
    const Bow__Schema__Enum *values; /* of an enum */
    bool is_map_entry;               /* the type of its messages is that of entries */
    bool is_implicit;                /* without presence, as in proto3 */
    struct bow__features features;
};

static int refuse(const struct making *it, const Bow__Schema__Field *field, const char *what)
{
    return bow__schema_refuse(it->reason, -EBADMSG, it->symbol->file, it->symbol->full_name,
                              "%s%.200s%s%s", field != NULL ? "field " : "",
                              field != NULL ? field->name : "", field != NULL ? " " : "", what);
}

/* Arrays */

static int compare_numbers(const void *a, const void *b)
{
    int32_t x = (*(const Bow__Schema__Field *const *)a)->number;
    int32_t y = (*(const Bow__Schema__Field *const *)b)->number;

    return (x > y) - (x < y);
}

static int compare_names(const void *a, const void *b, void *fields)
{
    return strcmp(((const ProtobufCFieldDescriptor *)fields)[*(const unsigned *)a].name,
                  ((const ProtobufCFieldDescriptor *)fields)[*(const unsigned *)b].name);
}

static int take_arrays(struct making *it)
{
    const Bow__Schema__Message *proto = it->symbol->proto.message;
    struct bow_schema *schema = it->schema;

    it->n = proto->n_field;
    if (it->n > BOW_LIMIT_SCHEMA_FIELDS) {
        return bow__schema_refuse(it->reason, -EMSGSIZE, it->symbol->file, it->symbol->full_name,
                                  "has %zu fields, of BOW_LIMIT_SCHEMA_FIELDS %u", it->n,
                                  BOW_LIMIT_SCHEMA_FIELDS);
    }
    it->protos = bow__schema_array(schema, it->n, sizeof(const Bow__Schema__Field *));
    it->fields = bow__schema_array(schema, it->n, sizeof(*it->fields));
    it->infos = bow__schema_array(schema, it->n, sizeof(*it->infos));
    it->oneof_of = bow__schema_array(schema, it->n, sizeof(*it->oneof_of));
    it->names = bow__schema_array(schema, it->n, sizeof(*it->names));
    it->ranges = bow__schema_array(schema, it->n + 1, sizeof(*it->ranges));
    it->oneofs = bow__schema_array(schema, proto->n_oneof, sizeof(*it->oneofs));
    if (it->protos == NULL || it->fields == NULL || it->infos == NULL || it->oneof_of == NULL ||
        it->names == NULL || it->ranges == NULL || it->oneofs == NULL) {
        return bow__schema_no_memory(schema, it->reason);
    }
    return 0;
}

static int check_oneofs(const struct making *it)
{
    const Bow__Schema__Message *proto = it->symbol->proto.message;

    for (size_t i = 0; i < proto->n_oneof; i++) {
        if (!bow__schema_is_name(proto->oneof[i]->name)) {
            return refuse(it, NULL, "one of its oneofs has no name");
        }
    }
    return 0;
}

static int sort_fields(struct making *it)
{
    const Bow__Schema__Message *proto = it->symbol->proto.message;

    for (size_t i = 0; i < it->n; i++) {
        const Bow__Schema__Field *field = proto->field[i];
        if (!bow__schema_is_name(field->name)) {
            return refuse(it, NULL, "one of its fields has no name");
        }
        if (field->number < 1 || field->number > MAX_NUMBER) {
            return refuse(it, field, "has a number that is none: 1 to 536870911 are");
        }
        it->protos[i] = field;
    }
    if (it->n > 0) {
        qsort(it->protos, it->n, sizeof(const Bow__Schema__Field *), compare_numbers);
    }
    for (size_t i = 1; i < it->n; i++) {
        if (it->protos[i]->number == it->protos[i - 1]->number) {
            return refuse(it, it->protos[i], "has the number of another field");
        }
    }
    return 0;
}

/* Once all of them have their names. */
static int sort_names(struct making *it)
{
    for (size_t i = 0; i < it->n; i++) {
        it->names[i] = (unsigned)i;
    }
    qsort_r(it->names, it->n, sizeof(*it->names), compare_names, it->fields);
    for (size_t i = 1; i < it->n; i++) {
        if (strcmp(it->fields[it->names[i]].name, it->fields[it->names[i - 1]].name) == 0) {
            return refuse(it, it->protos[it->names[i]], "has the name of another field");
        }
    }
    return 0;
}

/* A field's parts */

static int resolve_type(struct making *it, struct field *field)
{
    const Bow__Schema__Field *proto = field->proto;
    struct bow__schema_symbol *symbol;
    bool is_enum = proto->type == TYPE_ENUM;
    char element[BOW_LIMIT_SCHEMA_NAME_BYTES];

    if (proto->type < 1 || proto->type >= N_TYPES) {
        return refuse(it, proto, "has no type");
    }
    field->made->type = types[proto->type];
    if (!is_enum && field->made->type != PROTOBUF_C_TYPE_MESSAGE) {
        return 0;
    }
    (void)snprintf(element, sizeof(element), "%s.%s", it->symbol->full_name, proto->name);
    int rc =
        bow__schema_resolve(it->schema, it->symbol->file, element, proto->type_name,
                            is_enum ? BOW__SYMBOL_ENUM : BOW__SYMBOL_MESSAGE, it->reason, &symbol);
    if (rc < 0) {
        return rc;
    }
    if (is_enum) {
        field->made->descriptor = symbol->made.enumeration;
        field->values = symbol->proto.enumeration;
        return 0;
    }
    const Bow__Schema__MessageOptions *options = symbol->proto.message->options;
    field->made->descriptor = symbol->made.message;
    field->is_map_entry = options != NULL && options->map_entry;
    if (field->is_map_entry && proto->label != LABEL_REPEATED) {
        return refuse(it, proto, "is an entry of a map, and not repeated");
    }
    return 0;
}

static void set_label(struct making *it, struct field *field)
{
    const Bow__Schema__Field *proto = field->proto;
    bool is_required = proto->label == LABEL_REQUIRED;

    field->features = bow__features_over(it->symbol->features,
                                         proto->options != NULL ? proto->options->features : NULL);
    is_required = it->symbol->file->is_edition ? field->features.presence == BOW__PRESENCE_REQUIRED
                                               : is_required;
    /* In proto3 all is, messages and oneofs, too: so they are in generated code. */
    field->is_implicit = field->features.presence == BOW__PRESENCE_IMPLICIT;
    if (it->symbol->file->is_edition &&
        (field->made->type == PROTOBUF_C_TYPE_MESSAGE || proto->has_oneof_index)) {
        field->is_implicit = false;
    }
    if (proto->label == LABEL_REPEATED) {
        field->made->label = PROTOBUF_C_LABEL_REPEATED;
    } else if (field->is_implicit) {
        field->made->label = PROTOBUF_C_LABEL_NONE;
    } else {
        field->made->label = is_required ? PROTOBUF_C_LABEL_REQUIRED : PROTOBUF_C_LABEL_OPTIONAL;
    }
}

static bool is_apart(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES ||
           type == PROTOBUF_C_TYPE_MESSAGE;
}

static bool is_packed(const struct field *field)
{
    const Bow__Schema__FieldOptions *options = field->proto->options;

    if (field->made->label != PROTOBUF_C_LABEL_REPEATED || is_apart(field->made->type)) {
        return false;
    }
    return options != NULL && options->has_packed ? options->packed : field->features.is_packed;
}

static bool is_group(const struct field *field)
{
    return field->proto->type == TYPE_GROUP ||
           (field->proto->type == TYPE_MESSAGE && field->features.is_delimited &&
            !field->is_map_entry);
}

static void set_flags(struct field *field)
{
    const Bow__Schema__FieldOptions *options = field->proto->options;
    bool is_string = field->proto->type == TYPE_STRING;
    uint32_t flags = 0;

    flags |= is_packed(field) ? PROTOBUF_C_FIELD_FLAG_PACKED : 0u;
    flags |= options != NULL && options->deprecated ? PROTOBUF_C_FIELD_FLAG_DEPRECATED : 0u;
    flags |= field->proto->has_oneof_index ? PROTOBUF_C_FIELD_FLAG_ONEOF : 0u;
    flags |= is_group(field) ? (uint32_t)BOW_DESCRIPTOR_GROUP : 0u;
    flags |= is_string && !field->features.is_utf8 ? (uint32_t)BOW_DESCRIPTOR_UNCHECKED : 0u;
    field->made->flags = flags;
}

static void set_info(struct field *field)
{
    const Bow__Schema__Field *proto = field->proto;
    const Bow__Schema__FieldOptions *options = proto->options;
    bool is_secret = options != NULL && (options->secret || options->debug_redact);
    uint32_t flags = 0;

    flags |= field->is_map_entry ? (uint32_t)BOW_FIELD_MAP : 0u;
    flags |= proto->proto3_optional ? (uint32_t)BOW_FIELD_PROTO3_OPTIONAL : 0u;
    flags |= is_secret ? (uint32_t)BOW_FIELD_SECRET : 0u;
    flags |= is_group(field) ? (uint32_t)BOW_FIELD_GROUP : 0u;
    flags |= proto->type == TYPE_STRING && field->features.is_utf8 ? (uint32_t)BOW_FIELD_UTF8 : 0u;
    field->info->number = (uint32_t)proto->number;
    field->info->flags = flags;
    field->info->json_name = proto->json_name; /* NULL: derived where it is needed */
    field->info->oneof_index =
        proto->has_oneof_index && !proto->proto3_optional ? proto->oneof_index : -1;
}

/* An enum of proto2 begins with its first value, whatever its number. */
static const void *first_value(const struct field *field)
{
    bool is_own = field->made->label != PROTOBUF_C_LABEL_REPEATED && !field->proto->has_oneof_index;

    if (field->values == NULL || field->values->n_value == 0 || field->is_implicit || !is_own ||
        field->values->value[0]->number == 0) {
        return NULL;
    }
    return &field->values->value[0]->number;
}

static const void *unsaid_default(const struct field *field)
{
    if (field->made->type == PROTOBUF_C_TYPE_STRING && field->is_implicit) {
        return protobuf_c_empty_string;
    }
    return first_value(field);
}

static int set_default(struct making *it, struct field *field)
{
    const Bow__Schema__Field *proto = field->proto;
    struct bow_slice text = {proto->default_value.data, proto->default_value.len};

    if (!proto->has_default_value || field->made->label == PROTOBUF_C_LABEL_REPEATED) {
        field->made->default_value = unsaid_default(field);
        return 0;
    }
    int rc = bow__schema_default(it->schema, field->made->type, field->values, text,
                                 &field->made->default_value);
    if (rc == -EBADMSG) {
        return refuse(it, proto, "has a default that is no value of its type");
    }
    return rc < 0 ? bow__schema_no_memory(it->schema, it->reason) : 0;
}

static int check_texts(struct making *it, const Bow__Schema__Field *proto)
{
    const Bow__Schema__Message *message = it->symbol->proto.message;

    if (proto->has_oneof_index &&
        (proto->oneof_index < 0 || (size_t)proto->oneof_index >= message->n_oneof)) {
        return refuse(it, proto, "names a oneof that is not there");
    }
    if (proto->has_oneof_index && proto->label == LABEL_REPEATED) {
        return refuse(it, proto, "is repeated, and in a oneof");
    }
    if (proto->json_name != NULL) {
        struct bow_slice name = bow__schema_slice(proto->json_name);
        if (bow__utf8_prefix(name, false) != name.len) {
            return refuse(it, proto, "has a json_name that is not UTF-8");
        }
    }
    return 0;
}

static int make_field(struct making *it, size_t index)
{
    struct field field = {
        .proto = it->protos[index],
        .made = &it->fields[index],
        .info = &it->infos[index],
    };

    int rc = check_texts(it, field.proto);
    if (rc == 0) {
        field.made->name = field.proto->name;
        field.made->id = (uint32_t)field.proto->number;
        rc = resolve_type(it, &field);
    }
    if (rc < 0) {
        return rc;
    }
    set_label(it, &field);
    set_flags(&field);
    set_info(&field);
    it->oneof_of[index] = field.proto->has_oneof_index ? field.proto->oneof_index : -1;
    return set_default(it, &field);
}

/* The message */

/* Whoever reads a map relies on it. */
static int check_entry(const struct making *it)
{
    const ProtobufCFieldDescriptor *key = &it->fields[0];
    bool is_entry = it->n == 2 && key[0].id == 1 && key[1].id == 2 &&
                    strcmp(key[0].name, "key") == 0 && strcmp(key[1].name, "value") == 0;

    if (!is_entry || it->oneof_of[0] >= 0 || it->oneof_of[1] >= 0 ||
        key[0].label == PROTOBUF_C_LABEL_REPEATED || key[1].label == PROTOBUF_C_LABEL_REPEATED) {
        return refuse(it, NULL, "is to be a map's entry, which has a key 1 and a value 2");
    }
    switch (key[0].type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return refuse(it, it->protos[0], "is of a type that no key of a map can have");
    default:
        return 0;
    }
}

static void put_descriptor(struct making *it)
{
    const Bow__Schema__Message *proto = it->symbol->proto.message;
    const Bow__Schema__MessageOptions *options = proto->options;
    const char *package = it->symbol->file->proto->package;
    struct bow_message_info *info = it->symbol->info;
    struct bow__ranges ranges = {.ranges = it->ranges};

    for (size_t i = 0; i < it->n; i++) {
        bow__ranges_add(&ranges, (int32_t)it->fields[i].id, (unsigned)i);
    }
    bow__ranges_end(&ranges, (unsigned)it->n);
    *it->symbol->made.message = (ProtobufCMessageDescriptor){
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
        .name = it->symbol->full_name,
        .short_name = proto->name,
        .c_name = proto->name,
        .package_name = package != NULL ? package : "",
        .sizeof_message =
            bow__schema_layout(it->fields, it->n, it->oneof_of, it->oneofs, proto->n_oneof),
        .n_fields = (unsigned)it->n,
        .fields = it->fields,
        .fields_sorted_by_name = it->names,
        .n_field_ranges = ranges.n,
        .field_ranges = it->ranges,
        .reserved1 = info,
    };
    info->fields = it->infos;
    info->n_fields = it->n;
    info->flags = it->symbol->file->is_proto2 ? (uint32_t)BOW_MESSAGE_PROTO2 : 0u;
    info->flags |= options != NULL && options->map_entry ? (uint32_t)BOW_MESSAGE_MAP_ENTRY : 0u;
    info->flags |=
        options != NULL && options->message_set_wire_format ? (uint32_t)BOW_MESSAGE_SET : 0u;
}

int bow__schema_make_message(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                             struct bow__text *reason)
{
    struct making it = {.schema = schema, .symbol = symbol, .reason = reason};
    const Bow__Schema__MessageOptions *options = symbol->proto.message->options;

    int rc = take_arrays(&it);
    if (rc == 0) {
        rc = check_oneofs(&it);
    }
    if (rc == 0) {
        rc = sort_fields(&it);
    }
    for (size_t i = 0; i < it.n && rc == 0; i++) {
        rc = make_field(&it, i);
    }
    if (rc == 0) {
        rc = sort_names(&it);
    }
    if (rc == 0 && options != NULL && options->map_entry) {
        rc = check_entry(&it);
    }
    if (rc == 0) {
        put_descriptor(&it);
    }
    return rc;
}
