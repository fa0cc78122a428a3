/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Wire format, reading only. Groups are refused: nothing that protoc says to a
 * plugin has one.
 */

#include "codegen/wire.h"

bool wire_take_varint(struct bow_slice *rest, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < rest->len && i < 10; i++) {
        uint8_t byte = rest->data[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            rest->data += i + 1;
            rest->len -= i + 1;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take(struct bow_slice *rest, uint64_t len, struct bow_slice *ret_bytes)
{
    if (len > rest->len) {
        return false;
    }
    *ret_bytes = (struct bow_slice){.data = rest->data, .len = (size_t)len};
    rest->data += len;
    rest->len -= (size_t)len;
    return true;
}

bool wire_take_bytes(struct bow_slice *rest, struct bow_slice *ret_bytes)
{
    uint64_t len = 0;
    struct bow_slice after = *rest;

    if (!wire_take_varint(&after, &len) || !take(&after, len, ret_bytes)) {
        return false;
    }
    *rest = after;
    return true;
}

static bool read_value(struct bow_slice *rest, struct wire_field *field)
{
    switch (field->type) {
    case 0:
        return wire_take_varint(rest, &field->value);
    case 1:
        return take(rest, 8, &field->bytes);
    case 2:
        return wire_take_bytes(rest, &field->bytes);
    case 5:
        return take(rest, 4, &field->bytes);
    default:
        return false;
    }
}

bool wire_next(struct bow_slice *rest, struct wire_field *ret_field)
{
    uint64_t tag = 0;
    struct bow_slice after = *rest;

    if (!wire_take_varint(&after, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return false;
    }
    struct wire_field field = {.number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7)};
    if (!read_value(&after, &field)) {
        return false;
    }
    *ret_field = field;
    *rest = after;
    return true;
}

bool wire_find(struct bow_slice message, uint32_t number, size_t index, struct bow_slice *ret_bytes)
{
    struct wire_field field;

    while (wire_next(&message, &field)) {
        if (field.number != number || field.type != 2) {
            continue;
        }
        if (index-- == 0) {
            *ret_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

static bool is_safe(const ProtobufCMessageDescriptor *descriptor, struct bow_slice bytes, int depth)
{
    uint64_t seen = 0; /* singular sub-messages, by index; no message of ours has 64 fields */
    struct wire_field field;

    if (depth > WIRE_MAX_DEPTH) {
        return false;
    }
    while (wire_next(&bytes, &field)) {
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(descriptor, field.number);
        if (known == NULL || known->type != PROTOBUF_C_TYPE_MESSAGE || field.type != 2) {
            continue;
        }
        uint64_t bit = UINT64_C(1) << ((known - descriptor->fields) & 63);
        if (known->label != PROTOBUF_C_LABEL_REPEATED && (seen & bit) != 0) {
            return false;
        }
        seen |= bit;
        if (!is_safe(known->descriptor, field.bytes, depth + 1)) {
            return false;
        }
    }
    return bytes.len == 0;
}

bool wire_is_safe(const ProtobufCMessageDescriptor *descriptor, struct bow_slice bytes)
{
    return is_safe(descriptor, bytes, 0);
}
