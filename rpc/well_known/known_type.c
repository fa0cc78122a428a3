/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The names and fields of protobuf's own types. Knows nothing of what is done with them. */
#include "rpc/well_known/known_type.h"

#define MAX_FIELDS 6

struct shape {
    const char *name; /* behind "google.protobuf." */
    enum bow__known_type kind;
    ProtobufCLabel label; /* of all fields; LABEL_NONE */
    bool is_oneof;
    unsigned n_fields;                /* numbered from 1 on */
    ProtobufCType fields[MAX_FIELDS]; /* their types */
};

#define WRAPPER(name, type)                                                                        \
    {                                                                                              \
        name, BOW__KNOWN_WRAPPER, PROTOBUF_C_LABEL_NONE, false, 1,                                 \
        {                                                                                          \
            PROTOBUF_C_TYPE_##type                                                                 \
        }                                                                                          \
    }

static const struct shape shapes[] = {
    {"Any",
     BOW__KNOWN_ANY,
     PROTOBUF_C_LABEL_NONE,
     false,
     2,
     {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_BYTES}},
    {"Duration",
     BOW__KNOWN_DURATION,
     PROTOBUF_C_LABEL_NONE,
     false,
     2,
     {PROTOBUF_C_TYPE_INT64, PROTOBUF_C_TYPE_INT32}},
    {"FieldMask",
     BOW__KNOWN_FIELD_MASK,
     PROTOBUF_C_LABEL_REPEATED,
     false,
     1,
     {PROTOBUF_C_TYPE_STRING}},
    {"ListValue",
     BOW__KNOWN_LIST_VALUE,
     PROTOBUF_C_LABEL_REPEATED,
     false,
     1,
     {PROTOBUF_C_TYPE_MESSAGE}},
    {"Struct", BOW__KNOWN_STRUCT, PROTOBUF_C_LABEL_REPEATED, false, 1, {PROTOBUF_C_TYPE_MESSAGE}},
    {"Timestamp",
     BOW__KNOWN_TIMESTAMP,
     PROTOBUF_C_LABEL_NONE,
     false,
     2,
     {PROTOBUF_C_TYPE_INT64, PROTOBUF_C_TYPE_INT32}},
    {"Value",
     BOW__KNOWN_VALUE,
     PROTOBUF_C_LABEL_NONE,
     true,
     6,
     {PROTOBUF_C_TYPE_ENUM, PROTOBUF_C_TYPE_DOUBLE, PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_BOOL,
      PROTOBUF_C_TYPE_MESSAGE, PROTOBUF_C_TYPE_MESSAGE}},
    WRAPPER("BoolValue", BOOL),
    WRAPPER("BytesValue", BYTES),
    WRAPPER("DoubleValue", DOUBLE),
    WRAPPER("FloatValue", FLOAT),
    WRAPPER("Int32Value", INT32),
    WRAPPER("Int64Value", INT64),
    WRAPPER("StringValue", STRING),
    WRAPPER("UInt32Value", UINT32),
    WRAPPER("UInt64Value", UINT64),
};

static bool has_shape(const ProtobufCMessageDescriptor *type, const struct shape *shape)
{
    if (type->n_fields != shape->n_fields) {
        return false;
    }
    for (unsigned i = 0; i < shape->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_oneof = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (field->id != i + 1 || field->type != shape->fields[i] || field->label != shape->label ||
            is_oneof != shape->is_oneof) {
            return false;
        }
    }
    return true;
}

/* Whether the message fields of a Struct, Value or ListValue hold what they are to hold: what is
 * read into them goes by their place. */
static bool holds(const ProtobufCMessageDescriptor *type, unsigned index, const char *name)
{
    return strcmp(((const ProtobufCMessageDescriptor *)type->fields[index].descriptor)->name,
                  name) == 0;
}

static bool holds_values(const ProtobufCMessageDescriptor *type, enum bow__known_type kind)
{
    if (kind == BOW__KNOWN_VALUE) {
        return holds(type, BOW__VALUE_STRUCT, "google.protobuf.Struct") &&
               holds(type, BOW__VALUE_LIST, "google.protobuf.ListValue");
    }
    if (kind == BOW__KNOWN_LIST_VALUE) {
        return holds(type, 0, "google.protobuf.Value");
    }
    if (kind == BOW__KNOWN_STRUCT) {
        const ProtobufCMessageDescriptor *entry = type->fields[0].descriptor;
        return entry->n_fields == 2 && entry->fields[0].type == PROTOBUF_C_TYPE_STRING &&
               entry->fields[1].type == PROTOBUF_C_TYPE_MESSAGE &&
               holds(entry, 1, "google.protobuf.Value");
    }
    return true;
}

enum bow__known_type bow__known_google_type(const ProtobufCMessageDescriptor *type)
{
    const char *name = type->name + strlen("google.protobuf.");

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct shape *shape = &shapes[i];
        if (name[0] == shape->name[0] && strcmp(name, shape->name) == 0) {
            return has_shape(type, shape) && holds_values(type, shape->kind) ? shape->kind
                                                                             : BOW__KNOWN_NONE;
        }
    }
    return BOW__KNOWN_NONE;
}
