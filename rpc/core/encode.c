/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The encoder: each put_ function writes so that its bytes end at `at` and returns
 * where they begin, or NULL when there is no room before `at` or the message is
 * wrong. Which of the two it was, and where, encode_size.c finds out afterwards, so
 * that nothing is kept for it here.
 */
#include "rpc/core/encode.h"
#include "rpc/core/encode_internal.h"
#include <bowline/limits.h>

struct encoder {
    uint8_t *begin;  /* of the room */
    unsigned levels; /* that may still be nested */
};

static uint8_t *put_message(struct encoder *e, const ProtobufCMessage *message, uint8_t *at);

static inline uint8_t *put_varint(struct encoder *e, uint64_t value, uint8_t *at)
{
    return bow__wire_write_varint_before(e->begin, at, value);
}

static inline uint8_t *put_tag(struct encoder *e, const ProtobufCFieldDescriptor *field,
                               enum bow__wire_type type, uint8_t *at)
{
    return put_varint(e, (uint64_t)field->id << 3 | type, at);
}

static inline uint8_t *put_bytes(struct encoder *e, const void *data, size_t len, uint8_t *at)
{
    if (len > (size_t)(at - e->begin)) {
        return NULL;
    }
    if (len > 0) {
        if (data == NULL) {
            return NULL;
        }
        at -= len;
        memcpy(at, data, len);
    }
    return put_varint(e, len, at);
}

static inline uint8_t *put_sub_message(struct encoder *e, const ProtobufCMessage *message,
                                       uint8_t *at)
{
    if (message == NULL || e->levels == 0) {
        return NULL;
    }
    e->levels--;
    uint8_t *begin = put_message(e, message, at);
    e->levels++;
    return begin != NULL ? put_varint(e, (size_t)(at - begin), begin) : NULL;
}

static inline uint8_t *put_number(struct encoder *e, ProtobufCType type, const void *member,
                                  uint8_t *at)
{
    size_t room = (size_t)(at - e->begin);
    switch (bow__encode_wire_type(type)) {
    case BOW__WIRE_FIXED32:
        if (room < 4) {
            return NULL;
        }
        bow__wire_store32(at - 4, bow__encode_u32(member));
        return at - 4;
    case BOW__WIRE_FIXED64:
        if (room < 8) {
            return NULL;
        }
        bow__wire_store64(at - 8, bow__encode_u64(member));
        return at - 8;
    default:
        return put_varint(e, bow__encode_varint_of(type, member), at);
    }
}

static inline uint8_t *put_value(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                 const void *member, uint8_t *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = bow__encode_text(field, member);
        at = text != NULL ? put_bytes(e, text, strlen(text), at) : NULL;
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = member;
        at = put_bytes(e, bytes->data, bytes->len, at);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        at = put_sub_message(e, bow__encode_pointer(member), at);
        break;
    default:
        at = put_number(e, field->type, member, at);
        break;
    }
    return at != NULL ? put_tag(e, field, bow__encode_wire_type(field->type), at) : NULL;
}

static uint8_t *put_packed(struct encoder *e, const ProtobufCFieldDescriptor *field,
                           const char *array, size_t n, uint8_t *at)
{
    size_t size = bow__encode_element_size(field->type);
    uint8_t *end = at;
    for (size_t i = n; i > 0 && at != NULL; i--) {
        at = put_number(e, field->type, array + (i - 1) * size, at);
    }
    at = at != NULL ? put_varint(e, (size_t)(end - at), at) : NULL;
    return at != NULL ? put_tag(e, field, BOW__WIRE_LEN, at) : NULL;
}

static uint8_t *put_repeated(struct encoder *e, const ProtobufCFieldDescriptor *field,
                             const ProtobufCMessage *message, uint8_t *at)
{
    size_t n;
    memcpy(&n, bow__encode_member(message, field->quantifier_offset), sizeof n);
    if (n == 0) {
        return at;
    }
    const char *array = bow__encode_pointer(bow__encode_member(message, field->offset));
    if (array == NULL) {
        return NULL;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0) {
        return put_packed(e, field, array, n, at);
    }
    size_t size = bow__encode_element_size(field->type);
    for (size_t i = n; i > 0 && at != NULL; i--) {
        at = put_value(e, field, array + (i - 1) * size, at);
    }
    return at;
}

static uint8_t *put_unknown(struct encoder *e, const ProtobufCMessageUnknownField *unknown,
                            uint8_t *at)
{
    if (unknown->len > (size_t)(at - e->begin) || (unknown->data == NULL && unknown->len > 0)) {
        return NULL;
    }
    if (unknown->len > 0) {
        at -= unknown->len;
        memcpy(at, unknown->data, unknown->len);
    }
    return put_varint(e, (uint64_t)unknown->tag << 3 | unknown->wire_type, at);
}

static uint8_t *put_message(struct encoder *e, const ProtobufCMessage *message, uint8_t *at)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == NULL || (message->n_unknown_fields > 0 && message->unknown_fields == NULL)) {
        return NULL;
    }
    for (size_t i = message->n_unknown_fields; i > 0 && at != NULL; i--) {
        at = put_unknown(e, &message->unknown_fields[i - 1], at);
    }
    for (size_t i = type->n_fields; i > 0 && at != NULL; i--) {
        const ProtobufCFieldDescriptor *field = &type->fields[i - 1];
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            at = put_repeated(e, field, message, at);
        } else if (bow__encode_is_sent(field, message)) {
            at = put_value(e, field, bow__encode_member(message, field->offset), at);
        }
    }
    return at;
}

ssize_t bow__encode(const ProtobufCMessage *message, uint8_t *buf, size_t cap,
                    struct bow__text *reason)
{
    if (cap > INT32_MAX) { /* what does not fit then is over the limit */
        cap = INT32_MAX;
    }
    struct encoder e = {.begin = buf, .levels = BOW_LIMIT_MESSAGE_DEPTH};
    const uint8_t *begin = put_message(&e, message, buf + cap);
    if (begin == NULL) {
        return bow__encode_measure(message, reason) == SIZE_MAX ? -EINVAL : -ENOBUFS;
    }
    size_t len = (size_t)(buf + cap - begin);
    memmove(buf, begin, len);
    return (ssize_t)len;
}

size_t bow__encoded_size(const ProtobufCMessage *message)
{
    return bow__encode_measure(message, NULL);
}
