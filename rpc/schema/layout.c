/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Offsets of members. Knows nothing of what a .proto says. */
#include "rpc/schema/layout.h"
#include "rpc/core/codec/value.h"

#define ALIGNMENT 8u /* of the widest member */

/* The next free place for `size` bytes; values larger than a pointer consist of such. */
static unsigned place(size_t *size, size_t n)
{
    size_t alignment = n < ALIGNMENT ? n : ALIGNMENT;
    size_t at = (*size + alignment - 1) & ~(alignment - 1);

    *size = at + n;
    return (unsigned)at;
}

static void place_field(ProtobufCFieldDescriptor *field, size_t *size)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        field->quantifier_offset = place(size, sizeof(size_t));
        field->offset = place(size, sizeof(void *));
        return;
    }
    /* A string or message that is not there is NULL. */
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->type != PROTOBUF_C_TYPE_STRING &&
        field->type != PROTOBUF_C_TYPE_MESSAGE) {
        field->quantifier_offset = place(size, sizeof(protobuf_c_boolean));
    }
    field->offset = place(size, bow__value_size(field->type));
}

static void place_oneof(struct bow__layout_oneof *oneof, size_t *size)
{
    oneof->case_offset = place(size, sizeof(int));
    oneof->value_offset = place(size, oneof->value_size);
}

size_t bow__schema_layout(ProtobufCFieldDescriptor *fields, size_t n_fields,
                          const int32_t *oneof_of, struct bow__layout_oneof *oneofs,
                          size_t n_oneofs)
{
    size_t size = sizeof(ProtobufCMessage);

    for (size_t i = 0; i < n_fields; i++) {
        size_t n = bow__value_size(fields[i].type);
        if (oneof_of[i] < 0) {
            place_field(&fields[i], &size);
        } else if (n > oneofs[oneof_of[i]].value_size) {
            oneofs[oneof_of[i]].value_size = n;
        }
    }
    for (size_t i = 0; i < n_oneofs; i++) {
        if (oneofs[i].value_size > 0) {
            place_oneof(&oneofs[i], &size);
        }
    }
    for (size_t i = 0; i < n_fields; i++) {
        if (oneof_of[i] >= 0) {
            fields[i].quantifier_offset = oneofs[oneof_of[i]].case_offset;
            fields[i].offset = oneofs[oneof_of[i]].value_offset;
        }
    }
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}
