/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_FIELD_H
#define BOWLINE_RPC_NATIVE_FIELD_H

/*
 * Single fields of a header block, read and written. The reader's error is sticky:
 * fields are read one after the other and looked at once, at the end. Knows no
 * message; inline, for each call reads and writes some.
 */

#include "rpc/core/codec/wire.h"
#include "rpc/native/header.h"

#include <errno.h>
#include <string.h>

/* Reading. */

struct bow__field_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t field; /* of the last tag */
    uint32_t type;
    struct bow__header_error error; /* `what` NULL: none yet */
};

static inline void bow__field_set_error(struct bow__field_reader *reader, const char *field,
                                        const char *what)
{
    if (reader->error.what == NULL) {
        reader->error = (struct bow__header_error){.field = field, .what = what};
    }
    reader->at = reader->end;
}

static inline uint64_t bow__field_take_varint(struct bow__field_reader *reader, const char *field)
{
    uint64_t value = 0;
    const uint8_t *next = bow__wire_read_varint(reader->at, reader->end, &value);

    if (next == NULL) {
        bool cut = bow__wire_is_cut(reader->at, reader->end);
        bow__field_set_error(reader, field, cut ? "varint is cut short" : "varint exceeds 64 bits");
        return 0;
    }
    reader->at = next;
    return value;
}

static inline struct bow_slice bow__field_take_bytes(struct bow__field_reader *reader,
                                                     const char *field)
{
    uint64_t len = bow__field_take_varint(reader, field);

    if (len > (size_t)(reader->end - reader->at)) {
        bow__field_set_error(reader, field, "length runs past the end");
        return (struct bow_slice){NULL, 0};
    }
    struct bow_slice bytes = {reader->at, (size_t)len};
    reader->at += bytes.len;
    return bytes;
}

static inline void bow__field_skip_fixed(struct bow__field_reader *reader, size_t n)
{
    if ((size_t)(reader->end - reader->at) < n) {
        bow__field_set_error(reader, "unknown field", "fixed number is cut short");
        return;
    }
    reader->at += n;
}

static inline void bow__field_skip(struct bow__field_reader *reader)
{
    switch (reader->type) {
    case BOW__WIRE_VARINT:
        (void)bow__field_take_varint(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED64:
        bow__field_skip_fixed(reader, 8);
        return;
    case BOW__WIRE_LEN:
        (void)bow__field_take_bytes(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED32:
        bow__field_skip_fixed(reader, 4);
        return;
    default:
        bow__field_set_error(reader, "unknown field",
                             "groups and wire types above 5 are not allowed");
        return;
    }
}

static inline bool bow__field_next(struct bow__field_reader *reader)
{
    if (reader->at == reader->end) {
        return false;
    }
    uint64_t tag = bow__field_take_varint(reader, "tag");
    if (tag > UINT32_MAX || (tag >> 3) == 0) {
        bow__field_set_error(reader, "tag", "field number is out of range");
    }
    reader->field = (uint32_t)(tag >> 3);
    reader->type = (uint32_t)(tag & 7);
    return reader->error.what == NULL;
}

static inline bool bow__field_has_type(struct bow__field_reader *reader, const char *field,
                                       enum bow__wire_type type)
{
    if (reader->type == (uint32_t)type) {
        return true;
    }
    bow__field_set_error(reader, field, "wrong wire type");
    return false;
}

static inline void bow__field_read_u64(struct bow__field_reader *reader, const char *field,
                                       uint64_t *ret_value)
{
    if (bow__field_has_type(reader, field, BOW__WIRE_VARINT)) {
        *ret_value = bow__field_take_varint(reader, field);
    }
}

static inline void bow__field_read_u32(struct bow__field_reader *reader, const char *field,
                                       uint32_t *ret_value)
{
    uint64_t value = 0;

    bow__field_read_u64(reader, field, &value);
    if (value > UINT32_MAX) {
        bow__field_set_error(reader, field, "number exceeds 32 bits");
        return;
    }
    *ret_value = (uint32_t)value;
}

static inline void bow__field_read_bool(struct bow__field_reader *reader, const char *field,
                                        bool *ret_value)
{
    uint64_t value = 0;

    bow__field_read_u64(reader, field, &value);
    *ret_value = value != 0;
}

static inline void bow__field_read_bytes(struct bow__field_reader *reader, const char *field,
                                         struct bow_slice *ret_bytes)
{
    if (bow__field_has_type(reader, field, BOW__WIRE_LEN)) {
        *ret_bytes = bow__field_take_bytes(reader, field);
    }
}

static inline struct bow__field_reader bow__field_reader_of(struct bow_slice block)
{
    return (struct bow__field_reader){.at = block.data,
                                      .end = block.len > 0 ? block.data + block.len : block.data};
}

static inline int bow__field_end(const struct bow__field_reader *reader,
                                 struct bow__header_error *ret_error)
{
    if (reader->error.what == NULL) {
        return 0;
    }
    *ret_error = reader->error;
    return -EBADMSG;
}

/* Writing. Field numbers are below 16: a tag is one byte. */

static inline size_t bow__field_number_size(uint64_t value)
{
    return value == 0 ? 0 : 1 + bow__wire_varint_size(value);
}

static inline size_t bow__field_bytes_size(struct bow_slice bytes)
{
    return bytes.len == 0 ? 0 : 1 + bow__wire_varint_size(bytes.len) + bytes.len;
}

static inline uint8_t *bow__field_write_always(uint8_t *to, uint32_t field, uint64_t value)
{
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_VARINT);
    return bow__wire_write_varint(to, value);
}

static inline uint8_t *bow__field_write_number(uint8_t *to, uint32_t field, uint64_t value)
{
    return value == 0 ? to : bow__field_write_always(to, field, value);
}

static inline uint8_t *bow__field_write_bytes(uint8_t *to, uint32_t field, struct bow_slice bytes)
{
    if (bytes.len == 0) {
        return to;
    }
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_LEN);
    to = bow__wire_write_varint(to, bytes.len);
    memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

#endif
