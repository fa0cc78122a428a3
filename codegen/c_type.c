/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The types of descriptor.proto, and what each is in C.
 */

#include "codegen/c_type.h"
#include "codegen/value.h"

#include <string.h>

#define TYPE(name) GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_##name

struct scalar {
    Google__Protobuf__FieldDescriptorProto__Type type;
    const char *c_type;
    const char *constant;
    size_t size;
    const char *(*value)(struct memory *memory, const char *text);
};

static const char *bool_value(struct memory *memory, const char *text)
{
    (void)memory;
    return value_bool(text);
}

static const struct scalar scalars[] = {
    {TYPE(DOUBLE), "double ", "PROTOBUF_C_TYPE_DOUBLE", 8, value_double},
    {TYPE(FLOAT), "float ", "PROTOBUF_C_TYPE_FLOAT", 4, value_float},
    {TYPE(INT64), "int64_t ", "PROTOBUF_C_TYPE_INT64", 8, value_int64},
    {TYPE(UINT64), "uint64_t ", "PROTOBUF_C_TYPE_UINT64", 8, value_uint64},
    {TYPE(INT32), "int32_t ", "PROTOBUF_C_TYPE_INT32", 4, value_int32},
    {TYPE(FIXED64), "uint64_t ", "PROTOBUF_C_TYPE_FIXED64", 8, value_uint64},
    {TYPE(FIXED32), "uint32_t ", "PROTOBUF_C_TYPE_FIXED32", 4, value_uint32},
    {TYPE(BOOL), "protobuf_c_boolean ", "PROTOBUF_C_TYPE_BOOL", 4, bool_value},
    {TYPE(UINT32), "uint32_t ", "PROTOBUF_C_TYPE_UINT32", 4, value_uint32},
    {TYPE(SFIXED32), "int32_t ", "PROTOBUF_C_TYPE_SFIXED32", 4, value_int32},
    {TYPE(SFIXED64), "int64_t ", "PROTOBUF_C_TYPE_SFIXED64", 8, value_int64},
    {TYPE(SINT32), "int32_t ", "PROTOBUF_C_TYPE_SINT32", 4, value_int32},
    {TYPE(SINT64), "int64_t ", "PROTOBUF_C_TYPE_SINT64", 8, value_int64},
};

static const struct scalar *scalar_of(const struct model_field *field)
{
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++) {
        if (scalars[i].type == field->proto->type) {
            return &scalars[i];
        }
    }
    return NULL;
}

const char *c_type_of(struct memory *memory, const struct model_file *file,
                      const struct model_field *field)
{
    if (field->is_string) {
        return file->options.const_strings ? "const char *" : "char *";
    }
    if (field->is_bytes) {
        return "ProtobufCBinaryData ";
    }
    if (field->message != NULL) {
        return memory_printf(memory, "%s *", field->message->c_name);
    }
    if (field->enumeration != NULL) {
        return memory_printf(memory, "%s ", field->enumeration->c_name);
    }
    return scalar_of(field)->c_type;
}

const char *c_type_constant(const struct model_field *field)
{
    if (field->is_string) {
        return "PROTOBUF_C_TYPE_STRING";
    }
    if (field->is_bytes) {
        return "PROTOBUF_C_TYPE_BYTES";
    }
    if (field->message != NULL) {
        return "PROTOBUF_C_TYPE_MESSAGE";
    }
    return field->enumeration != NULL ? "PROTOBUF_C_TYPE_ENUM" : scalar_of(field)->constant;
}

size_t c_type_size(const struct model_field *field)
{
    if (field->is_bytes) {
        return 16;
    }
    if (field->is_string || field->message != NULL) {
        return 8;
    }
    return field->enumeration != NULL ? 4 : scalar_of(field)->size;
}

bool c_type_is_packable(const struct model_field *field)
{
    return !field->is_string && !field->is_bytes && field->message == NULL;
}

/* A value that the enum lacks is none that protoc lets through. */
static const char *enum_value(const struct model_enum *type, const char *name)
{
    for (size_t i = 0; name != NULL && i < type->n_values; i++) {
        if (strcmp(type->values[i].proto->name, name) == 0) {
            return type->values[i].constant;
        }
    }
    return type->n_values > 0 ? type->values[0].constant : "0";
}

const char *c_type_default(struct memory *memory, const struct model_field *field)
{
    const char *text = field->proto->default_value;

    if (field->enumeration != NULL) {
        return enum_value(field->enumeration, text);
    }
    return text != NULL ? scalar_of(field)->value(memory, text) : "0";
}

struct bow_slice c_type_default_bytes(struct memory *memory, const struct model_field *field)
{
    if (field->proto->type == TYPE(BYTES)) {
        return value_unescape(memory, field->proto->default_value);
    }
    return field->default_bytes;
}

static const char *initial_string(const struct model_file *file, const struct model_field *field)
{
    if (field->default_symbol != NULL) {
        return field->default_symbol;
    }
    if (!file->is_proto3) {
        return "NULL";
    }
    /* By way of a number, for compilers that are asked to warn when const is cast away. */
    return file->options.const_strings ? "protobuf_c_empty_string"
                                       : "(char *)(uintptr_t)protobuf_c_empty_string";
}

static const char *initial_bytes(struct memory *memory, const struct model_field *field)
{
    if (field->default_symbol == NULL) {
        return "{0, NULL}";
    }
    return memory_printf(memory, "{%zu, %s}", c_type_default_bytes(memory, field).len,
                         field->default_data);
}

const char *c_type_initial(struct memory *memory, const struct model_file *file,
                           const struct model_field *field)
{
    if (field->is_repeated || field->message != NULL) {
        return "NULL";
    }
    if (field->is_string) {
        return initial_string(file, field);
    }
    return field->is_bytes ? initial_bytes(memory, field) : c_type_default(memory, field);
}

const char *c_type_zero_union(struct memory *memory, const struct model_field *first)
{
    if (first->is_bytes) {
        return "{{0, NULL}}";
    }
    if (first->is_string || first->message != NULL) {
        return "{NULL}";
    }
    if (first->enumeration != NULL) {
        return memory_printf(memory, "{(%s)0}", first->enumeration->c_name);
    }
    return "{0}";
}
