/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_WIRE_H
#define BOWLINE_CODEGEN_WIRE_H

/*
 * Reading protobuf's wire format field by field, and the check that stands before
 * every protobuf_c_message_unpack(): protobuf-c follows nesting as deep as the
 * stack, and merges a sub-message that comes twice in quadratic time.
 */

#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/** protoc itself accepts 32 levels of messages. */
#define WIRE_MAX_DEPTH 100

struct wire_field {
    uint32_t number;
    uint32_t type;          /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t value;         /* of a varint; 0 otherwise */
    struct bow_slice bytes; /* of the other three */
};

/** Take one field off the front of `*rest`. Returns false at the end and on bad bytes; then
 * `*rest` is empty only at the end. */
bool wire_next(struct bow_slice *rest, struct wire_field *ret_field);

/** Take a length and as many bytes off the front. Returns false when they are not there. */
bool wire_take_bytes(struct bow_slice *rest, struct bow_slice *ret_bytes);

/** Take a varint off `rest`; false when it is cut or too long: `rest` is then as before. */
bool wire_take_varint(struct bow_slice *rest, uint64_t *ret_value);

/** The `index`-th field `number` of `message` whose value is bytes; false when there are not so
 * many. */
bool wire_find(struct bow_slice message, uint32_t number, size_t index,
               struct bow_slice *ret_bytes);

/** Whether `bytes` can be unpacked safely: well formed, at most WIRE_MAX_DEPTH levels, no singular
 * sub-message twice. */
bool wire_is_safe(const ProtobufCMessageDescriptor *descriptor, struct bow_slice bytes);

#endif
