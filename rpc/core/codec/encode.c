/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The encoder: each put_ function writes so that its bytes end at `at` and returns
 * where they begin, or NULL when there is no room before `at` or the message is
 * wrong. Which of the two it was, and where, encode_size.c finds out afterwards, so
 * that nothing is kept for it here.
 */
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/encode_internal.h"
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

/* `at` is where the value begins, or NULL. */
static inline uint8_t *put_tag_of(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                  enum bow__wire_type type, uint8_t *at)
{
    return at != NULL ? put_tag(e, field, type, at) : NULL;
}

static inline uint8_t *put_prefixed(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                    const void *data, size_t len, uint8_t *at)
{
    if (len > (size_t)(at - e->begin) || (data == NULL && len > 0)) {
        return NULL;
    }
    if (len > 0) {
        at -= len;
        memcpy(at, data, len);
    }
    return put_tag_of(e, field, BOW__WIRE_LEN, put_varint(e, len, at));
}

static inline uint8_t *put_string(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                  const void *member, bool is_implicit, uint8_t *at)
{
    const char *text = bow__encode_text(field, member);
    if (is_implicit && (text == NULL || text[0] == '\0')) {
        return at;
    }
    return text != NULL ? put_prefixed(e, field, text, strlen(text), at) : NULL;
}

static inline uint8_t *put_sub_message(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                       const ProtobufCMessage *message, bool is_implicit,
                                       uint8_t *at)
{
    if (message == NULL && is_implicit) {
        return at;
    }
    if (message == NULL || e->levels == 0) {
        return NULL;
    }
    e->levels--;
    uint8_t *begin = put_message(e, message, at);
    e->levels++;
    if (begin == NULL) {
        return NULL;
    }
    return put_tag_of(e, field, BOW__WIRE_LEN, put_varint(e, (size_t)(at - begin), begin));
}

static inline uint8_t *put_fixed32(struct encoder *e, uint32_t value, uint8_t *at)
{
    if (at - e->begin < 4) {
        return NULL;
    }
    bow__wire_store32(at - 4, value);
    return at - 4;
}

static inline uint8_t *put_fixed64(struct encoder *e, uint64_t value, uint8_t *at)
{
    if (at - e->begin < 8) {
        return NULL;
    }
    bow__wire_store64(at - 8, value);
    return at - 8;
}

/*
 * A value and its tag. `is_implicit`: a proto3 field without presence, not sent
 * when it has its default; `at` is then returned as it is. That is decided here
 * and not before, for so each field costs one dispatch on its type.
 */
static inline uint8_t *put_value(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                 const void *member, bool is_implicit, uint8_t *at)
{
    uint64_t value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return put_string(e, field, member, is_implicit, at);
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = member;
        bool is_sent = !is_implicit || bytes->len > 0;
        return is_sent ? put_prefixed(e, field, bytes->data, bytes->len, at) : at;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        return put_sub_message(e, field, bow__encode_pointer(member), is_implicit, at);
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        value = bow__encode_u32(member);
        if (is_implicit && value == 0) {
            return at;
        }
        return put_tag_of(e, field, BOW__WIRE_FIXED32, put_fixed32(e, (uint32_t)value, at));
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        value = bow__encode_u64(member);
        if (is_implicit && value == 0) {
            return at;
        }
        return put_tag_of(e, field, BOW__WIRE_FIXED64, put_fixed64(e, value, at));
    default:
        value = bow__encode_varint_of(field->type, member);
        if (is_implicit && value == 0) {
            return at;
        }
        return put_tag_of(e, field, BOW__WIRE_VARINT, put_varint(e, value, at));
    }
}

static inline uint8_t *put_packed_number(struct encoder *e, ProtobufCType type, const void *member,
                                         uint8_t *at)
{
    switch (bow__encode_wire_type(type)) {
    case BOW__WIRE_FIXED32:
        return put_fixed32(e, bow__encode_u32(member), at);
    case BOW__WIRE_FIXED64:
        return put_fixed64(e, bow__encode_u64(member), at);
    default:
        return put_varint(e, bow__encode_varint_of(type, member), at);
    }
}

static uint8_t *put_packed(struct encoder *e, const ProtobufCFieldDescriptor *field,
                           const char *array, size_t n, uint8_t *at)
{
    size_t size = bow__value_size(field->type);
    uint8_t *end = at;
    if (BOW__WIRE_IS_LITTLE_ENDIAN && bow__encode_wire_type(field->type) != BOW__WIRE_VARINT &&
        n <= INT32_MAX) {
        /* Numbers of fixed size, as they lie. */
        return put_prefixed(e, field, array, n * size, at);
    }
    for (size_t i = n; i > 0; i--) {
        at = put_packed_number(e, field->type, array + (i - 1) * size, at);
        if (at == NULL) {
            return NULL;
        }
    }
    return put_tag_of(e, field, BOW__WIRE_LEN, put_varint(e, (size_t)(end - at), at));
}

/* All elements of a field. One that is not repeated is an array of one. */
static inline uint8_t *put_field(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                 const ProtobufCMessage *message, uint8_t *at)
{
    const char *array = bow__encode_member(message, field->offset);
    size_t n = 1;
    bool is_implicit = bow__encode_is_implicit(field);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        n = *(const size_t *)bow__encode_member(message, field->quantifier_offset);
        array = bow__encode_pointer(array);
        if (n > 0 && array == NULL) {
            return NULL;
        }
        if (n > 0 && (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0) {
            return put_packed(e, field, array, n, at);
        }
    } else if (!is_implicit && !bow__encode_is_sent(field, message)) {
        return at;
    }
    while (n > 0 && at != NULL) {
        n--;
        at = put_value(e, field, array + n * bow__value_size(field->type), is_implicit, at);
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
    if (type->n_fields == 0) { /* and `fields` may be NULL */
        return at;
    }
    const ProtobufCFieldDescriptor *field = type->fields + type->n_fields;
    while (field != type->fields && at != NULL) {
        field--;
        at = put_field(e, field, message, at);
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
