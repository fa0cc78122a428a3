/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Printing descriptors. Addresses are not printed: where they lead is.
 */

#include "describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bits of another generator's own stand above these. */
#define KNOWN_FLAGS 0xFFFFu

static const char *text_of(const char *text)
{
    return text != NULL ? text : "NULL";
}

static void print_bytes(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", bytes[i]);
    }
}

static void print_ranges(const ProtobufCIntRange *ranges, unsigned n_ranges)
{
    for (unsigned i = 0; i < n_ranges; i++) {
        printf("  range %d at %u\n", ranges[i].start_value, ranges[i].orig_index);
    }
    if (n_ranges > 0) {
        printf("  end at %u\n", ranges[n_ranges].orig_index);
    }
}

void describe_enum(const ProtobufCEnumDescriptor *type)
{
    printf("enum %s %s %s in %s, magic %" PRIx32 "\n", text_of(type->name),
           text_of(type->short_name), text_of(type->c_name), text_of(type->package_name),
           type->magic);
    for (unsigned i = 0; i < type->n_values; i++) {
        printf("  %d %s %s\n", type->values[i].value, text_of(type->values[i].name),
               text_of(type->values[i].c_name));
    }
    for (unsigned i = 0; i < type->n_value_names; i++) {
        printf("  %s at %u\n", type->values_by_name[i].name, type->values_by_name[i].index);
    }
    print_ranges(type->value_ranges, type->n_value_ranges);
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

/* A value as it lies in a message; with `is_default`, as default_value points to it, which of a
 * string is its first character. */
static void print_value(const ProtobufCFieldDescriptor *field, const void *at, int is_default)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        printf("\"%s\"", text_of(is_default ? at : *(char *const *)at));
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *data = at;
        printf("%zu bytes ", data->len);
        print_bytes(data->data, data->len);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        printf("%s", *(void *const *)at == NULL ? "NULL" : "a message");
    } else {
        print_bytes(at, size_of(field->type));
    }
}

static const char *descriptor_name(const ProtobufCFieldDescriptor *field)
{
    if (field->descriptor == NULL) {
        return "NULL";
    }
    return field->type == PROTOBUF_C_TYPE_ENUM
               ? text_of(((const ProtobufCEnumDescriptor *)field->descriptor)->name)
               : text_of(((const ProtobufCMessageDescriptor *)field->descriptor)->name);
}

static void print_field(const ProtobufCFieldDescriptor *field, const char *initial)
{
    const char *quantifier = initial + field->quantifier_offset;

    printf("  field %s = %" PRIu32 " label %d type %d at %u quantifier %u flags %" PRIx32
           " of %s\n",
           text_of(field->name), field->id, (int)field->label, (int)field->type, field->offset,
           field->quantifier_offset, field->flags & KNOWN_FLAGS, descriptor_name(field));
    if (field->default_value != NULL) {
        printf("    default ");
        print_value(field, field->default_value, 1);
        printf("\n");
    }
    printf("    initial ");
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        printf("%zu at %s", *(const size_t *)(const void *)quantifier,
               *(void *const *)(const void *)(initial + field->offset) == NULL ? "NULL" : "?");
    } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        printf("case %d", *(const int *)(const void *)quantifier);
    } else {
        print_value(field, initial + field->offset, 0);
        printf(" there %d",
               field->quantifier_offset != 0 ? *(const int *)(const void *)quantifier : -1);
    }
    printf("\n");
}

void describe_message(const ProtobufCMessageDescriptor *type, const void *initial)
{
    const ProtobufCMessage *base = initial;

    printf("message %s %s %s in %s, magic %" PRIx32 ", %zu bytes, init %d, initial %d %u\n",
           text_of(type->name), text_of(type->short_name), text_of(type->c_name),
           text_of(type->package_name), type->magic, type->sizeof_message,
           type->message_init != NULL, base->descriptor == type, base->n_unknown_fields);
    for (unsigned i = 0; i < type->n_fields; i++) {
        print_field(&type->fields[i], initial);
    }
    for (unsigned i = 0; type->fields_sorted_by_name != NULL && i < type->n_fields; i++) {
        printf("  by name %u\n", type->fields_sorted_by_name[i]);
    }
    print_ranges(type->field_ranges, type->n_field_ranges);
}
