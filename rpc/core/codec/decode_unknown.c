/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Fields that a message's descriptor does not have, or has with another wire type.
 * They are kept as protobuf-c keeps them, so that they are sent on: `data` is all
 * that follows the tag: a length prefix included, and of a group all up to its end tag,
 * with that one. So libprotobuf-c, which knows no groups, writes them right as well.
 */
#include "rpc/core/codec/decode_unknown.h"
#include "rpc/core/codec/decode_array.h"
#include "rpc/core/codec/decode_group.h"
#include "rpc/core/codec/decode_reason.h"
#include "rpc/core/codec/wire.h"

/* The value of `wire_type` at `at` (no group); returns its end, or NULL with a reason. */
static const uint8_t *skip_single(struct bow__decoder *d, uint32_t number, unsigned wire_type,
                                  const uint8_t *at)
{
    const uint8_t *end = d->top->end;
    size_t left = (size_t)(end - at);
    uint64_t value;
    const uint8_t *next;
    switch (wire_type) {
    case BOW__WIRE_VARINT:
        next = bow__wire_read_varint(at, end, &value);
        return next != NULL ? next
                            : bow__decode_refuse_number(
                                  d, number, at,
                                  bow__wire_is_cut(at, end) ? "cut off" : "a varint above 64 bits");
    case BOW__WIRE_FIXED64:
        return left >= 8 ? at + 8 : bow__decode_refuse_number(d, number, at, "cut off");
    case BOW__WIRE_FIXED32:
        return left >= 4 ? at + 4 : bow__decode_refuse_number(d, number, at, "cut off");
    case BOW__WIRE_LEN:
        next = bow__wire_read_varint(at, end, &value);
        if (next == NULL || value > (size_t)(end - next)) {
            return bow__decode_refuse_number(d, number, at, "length goes beyond the message's end");
        }
        return next + value;
    default:
        return bow__decode_refuse_number(d, number, at, "no such wire type");
    }
}

/* Open groups count as levels of nesting: their numbers wait in the free frames above the top. */
static struct bow__decode_frame *open_group(struct bow__decoder *d, struct bow__decode_frame *outer,
                                            uint32_t number, const uint8_t *at)
{
    if (outer == d->last) {
        bow__decode_refuse_number(d, number, at, "groups nested too deep");
        return NULL;
    }
    outer[1].index = number;
    return outer + 1;
}

/* Walk over group `number`, whose start tag ends at `at`. */
static const uint8_t *skip_group(struct bow__decoder *d, uint32_t number, const uint8_t *at)
{
    struct bow__decode_frame *open = open_group(d, d->top, number, at);
    while (open != NULL && open != d->top) {
        uint64_t tag;
        if (at == d->top->end) {
            return bow__decode_refuse_number(d, (uint32_t)open->index, at,
                                             "cut off before the group's end");
        }
        const uint8_t *body = bow__decode_read_tag(d, at, &tag);
        if (body == NULL) {
            return NULL;
        }
        number = (uint32_t)(tag >> 3);
        at = body;
        if ((tag & 7) == BOW__WIRE_GROUP_START) {
            open = open_group(d, open, number, at);
        } else if ((tag & 7) != BOW__WIRE_GROUP_END) {
            at = skip_single(d, number, tag & 7, at);
        } else if (number == open->index) {
            open--;
        } else {
            at = bow__decode_refuse_number(d, number, at, "end of a group that did not begin");
        }
        if (at == NULL) {
            return NULL;
        }
    }
    return open != NULL ? at : NULL;
}

static const uint8_t *skip_value(struct bow__decoder *d, uint32_t number, unsigned wire_type,
                                 const uint8_t *at)
{
    return wire_type == BOW__WIRE_GROUP_START ? skip_group(d, number, at)
                                              : skip_single(d, number, wire_type, at);
}

/* The next element of the message's unknown fields, or NULL out of memory. */
static ProtobufCMessageUnknownField *unknown_slot(struct bow__decoder *d, ProtobufCMessage *message)
{
    size_t n = message->n_unknown_fields;
    ProtobufCMessageUnknownField *fields =
        bow__decode_reserve(d->arena, message->unknown_fields, n, 1, sizeof *fields);
    if (fields == NULL) {
        return NULL;
    }
    message->unknown_fields = fields;
    return &fields[n];
}

static uint8_t *keep_bytes(struct bow__decoder *d, const uint8_t *at, size_t len)
{
    if (d->block != NULL) {
        return (uint8_t *)(uintptr_t)at; /* the block is the call's own by now */
    }
    uint8_t *copy = bow__arena_alloc_bytes(d->arena, len);
    if (copy != NULL) {
        memcpy(copy, at, len);
    }
    return copy;
}

const uint8_t *bow__decode_unknown(struct bow__decoder *d, uint32_t number, unsigned wire_type,
                                   const uint8_t *at)
{
    if (wire_type == BOW__WIRE_GROUP_END) {
        return bow__decode_end_group(d, number, at);
    }
    const uint8_t *next = skip_value(d, number, wire_type, at);
    if (next == NULL) {
        return NULL;
    }
    ProtobufCMessage *message = d->top->message;
    ProtobufCMessageUnknownField *slot = unknown_slot(d, message);
    uint8_t *data = slot != NULL ? keep_bytes(d, at, (size_t)(next - at)) : NULL;
    if (data == NULL) {
        return bow__decode_no_memory(d, NULL, at);
    }
    slot->tag = number;
    slot->wire_type = (ProtobufCWireType)wire_type;
    slot->len = (size_t)(next - at);
    slot->data = data;
    message->n_unknown_fields++;
    return next;
}
