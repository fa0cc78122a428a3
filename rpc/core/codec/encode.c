/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The encoder: each put_ function writes so that its bytes end at `at` and returns
 * where they begin, or NULL when there is no room before `at` or the message is
 * wrong. Which of the two it was, and where, measuring it finds out afterwards, so
 * that nothing is kept for it here. Knows nothing of who sends the bytes, or where.
 */
#include "rpc/core/codec/encode.h"
#include "base/hints.h"
#include "rpc/core/codec/field_path.h"
#include "rpc/core/codec/value.h"
#include "rpc/core/codec/wire.h"
#include <bowline/limits.h>
#include <bowline/service.h>

/* Which fields are sent, and the numbers of varints */

static inline const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static inline const void *pointer_at(const void *member)
{
    return *(const void *const *)member;
}

static inline uint32_t load_u32(const void *member)
{
    uint32_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

static inline uint64_t load_u64(const void *member)
{
    uint64_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

/* Whether a proto3 field without presence differs from its default: bit for bit, so -0.0 does. */
static inline bool is_set(ProtobufCType type, const void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return load_u64(member) != 0;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = pointer_at(member);
        return text != NULL && text[0] != '\0';
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len != 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return pointer_at(member) != NULL;
    default:
        return load_u32(member) != 0;
    }
}

/* Whether `field` is of proto3 without presence: sent when it is not its default. */
static inline bool lacks_presence(const ProtobufCFieldDescriptor *field)
{
    return bow__likely(field->label == PROTOBUF_C_LABEL_NONE) &&
           bow__likely((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0);
}

/* Whether a field that is not repeated is sent. */
static inline bool is_present(const ProtobufCFieldDescriptor *field,
                              const ProtobufCMessage *message)
{
    const void *member = member_at(message, field->offset);
    const void *quantifier = member_at(message, field->quantifier_offset);
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        return load_u32(quantifier) == field->id;
    }
    if (lacks_presence(field)) {
        return is_set(field->type, member);
    }
    if (field->label == PROTOBUF_C_LABEL_REQUIRED) {
        return true;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *pointer = pointer_at(member);
        return pointer != NULL && pointer != field->default_value;
    }
    return load_u32(quantifier) != 0;
}

/* The text of a string field that is sent; NULL where it must not be. */
static inline const char *text_of(const ProtobufCFieldDescriptor *field, const void *member)
{
    const char *text = pointer_at(member);
    bool may_be_null = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    return text != NULL || !may_be_null ? text : "";
}

static inline enum bow__wire_type wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return BOW__WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return BOW__WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return BOW__WIRE_LEN;
    default:
        return BOW__WIRE_VARINT;
    }
}

/* What goes into the varint of a number of `type`. */
static inline uint64_t varint_of(ProtobufCType type, const void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return load_u64(member);
    case PROTOBUF_C_TYPE_SINT64:
        return bow__wire_zigzag64((int64_t)load_u64(member));
    case PROTOBUF_C_TYPE_SINT32:
        return bow__wire_zigzag32((int32_t)load_u32(member));
    case PROTOBUF_C_TYPE_UINT32:
        return load_u32(member);
    case PROTOBUF_C_TYPE_BOOL:
        return load_u32(member) != 0;
    default: /* int32 and enum: negative ones take ten bytes, as if they were int64 */
        return (uint64_t)(int64_t)(int32_t)load_u32(member);
    }
}

/* Writing */

/* A string whose end was looked for. In a large message that is worth knowing. */
struct known_string {
    const char *text; /* or NULL */
    size_t len;
};

/* A tag with a number, or a length, behind it. */
#define MOST_TAGGED_BYTES (BOW__WIRE_TAG_BYTES + BOW__WIRE_VARINT_BYTES)

struct encoder {
    uint8_t *begin;               /* of the room */
    uint8_t *little_room;         /* up to here there may be too little for a tag and a number */
    unsigned levels;              /* that may still be nested */
    struct known_string too_long; /* for the room; it was given up for it */
};

static uint8_t *put_message(struct encoder *e, const ProtobufCMessage *message, uint8_t *at);
static uint8_t *put_sub_messages(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                 const ProtobufCMessage *const *messages, size_t n, uint8_t *at);

static inline uint8_t *put_varint(struct encoder *e, uint64_t value, uint8_t *at)
{
    return bow__wire_write_varint_before(e->begin, at, value);
}

static inline uint64_t tag_of(const ProtobufCFieldDescriptor *field, enum bow__wire_type type)
{
    return (uint64_t)field->id << 3 | type;
}

static inline uint8_t *put_tag(struct encoder *e, const ProtobufCFieldDescriptor *field,
                               enum bow__wire_type type, uint8_t *at)
{
    return put_varint(e, tag_of(field, type), at);
}

BOW__LONG_WAY static uint8_t *put_tagged_in_little_room(struct encoder *e, uint64_t tag,
                                                        uint64_t value, uint8_t *at)
{
    at = put_varint(e, value, at);
    return at != NULL ? put_varint(e, tag, at) : NULL;
}

/* A tag with the number, or the length, behind it: where there is room for any, it is asked once.
 */
static inline uint8_t *put_tagged(struct encoder *e, uint64_t tag, uint64_t value, uint8_t *at)
{
    if (bow__unlikely(at <= e->little_room)) {
        return put_tagged_in_little_room(e, tag, value, at);
    }
    at = bow__wire_varint_before(at, value);
    if (bow__likely(tag < 0x80)) {
        *--at = (uint8_t)tag;
        return at;
    }
    return bow__wire_varint_before(at, tag);
}

/* `at` is where the value begins, or NULL. */
static inline uint8_t *put_tag_of(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                  enum bow__wire_type type, uint8_t *at)
{
    return at != NULL ? put_tag(e, field, type, at) : NULL;
}

/* Up to 32 bytes, as most texts have, from both ends: less than a call of memcpy() costs. */
static BOW__SHORT_WAY void copy(uint8_t *to, const uint8_t *data, size_t len)
{
    if (len > 32) {
        memcpy(to, data, len);
    } else if (len > 16) {
        memcpy(to, data, 16);
        memcpy(to + len - 16, data + len - 16, 16);
    } else if (len >= 8) {
        memcpy(to, data, 8);
        memcpy(to + len - 8, data + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, data, 4);
        memcpy(to + len - 4, data + len - 4, 4);
    } else {
        to[0] = data[0];
        to[len / 2] = data[len / 2];
        to[len - 1] = data[len - 1];
    }
}

static BOW__SHORT_WAY uint8_t *put_prefixed(struct encoder *e,
                                            const ProtobufCFieldDescriptor *field, const void *data,
                                            size_t len, uint8_t *at)
{
    if (len > (size_t)(at - e->begin)) {
        return NULL;
    }
    if (len > 0) {
        if (data == NULL) {
            return NULL;
        }
        at -= len;
        copy(at, data, len);
    }
    return put_tagged(e, tag_of(field, BOW__WIRE_LEN), len, at);
}

static BOW__SHORT_WAY uint8_t *put_string(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                          const void *member, uint8_t *at)
{
    const char *text = text_of(field, member);
    if (bow__unlikely(text == NULL || text[0] == '\0') && lacks_presence(field)) {
        return at;
    }
    if (text == NULL) {
        return NULL;
    }
    size_t len = strlen(text);
    if (len > (size_t)(at - e->begin)) {
        e->too_long.text = text;
        e->too_long.len = len;
        return NULL;
    }
    return put_prefixed(e, field, text, len, at);
}

/* Between two tags in place of behind a length. */
BOW__LONG_WAY static uint8_t *put_group(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                        const ProtobufCMessage *message, uint8_t *at)
{
    at = put_tag(e, field, BOW__WIRE_GROUP_END, at);
    if (at == NULL) {
        return NULL;
    }
    at = put_message(e, message, at);
    return at != NULL ? put_tag(e, field, BOW__WIRE_GROUP_START, at) : NULL;
}

static inline bool is_group(const ProtobufCFieldDescriptor *field)
{
    return bow__unlikely((field->flags & BOW_DESCRIPTOR_GROUP) != 0);
}

/* `at` is where `message` begins, which ends at `end`, or NULL. */
static inline uint8_t *put_length_of(struct encoder *e, uint64_t tag, uint8_t *at,
                                     const uint8_t *end)
{
    return at != NULL ? put_tagged(e, tag, (size_t)(end - at), at) : NULL;
}

static inline uint8_t *put_sub_message(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                       const ProtobufCMessage *message, uint8_t *end)
{
    if (e->levels == 0 || message == NULL) {
        return NULL;
    }
    uint8_t *at;
    e->levels--;
    if (is_group(field)) {
        at = put_group(e, field, message, end);
    } else {
        at = put_length_of(e, tag_of(field, BOW__WIRE_LEN), put_message(e, message, end), end);
    }
    e->levels++;
    return at;
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
 * A value and its tag. A proto3 field without presence is not sent when it has its
 * default; `at` is then returned as it is. That is decided here and not before, for
 * so each field costs one dispatch on its type.
 */
static BOW__SHORT_WAY uint8_t *put_value(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                         const void *member, uint8_t *at)
{
    uint64_t value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return put_string(e, field, member, at);
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = member;
        if (bow__unlikely(bytes->len == 0) && lacks_presence(field)) {
            return at;
        }
        return put_prefixed(e, field, bytes->data, bytes->len, at);
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        if (pointer_at(member) == NULL && lacks_presence(field)) {
            return at;
        }
        return put_sub_message(e, field, pointer_at(member), at);
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        value = load_u32(member);
        if (bow__unlikely(value == 0) && lacks_presence(field)) {
            return at;
        }
        return put_tag_of(e, field, BOW__WIRE_FIXED32, put_fixed32(e, (uint32_t)value, at));
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        value = load_u64(member);
        if (bow__unlikely(value == 0) && lacks_presence(field)) {
            return at;
        }
        return put_tag_of(e, field, BOW__WIRE_FIXED64, put_fixed64(e, value, at));
    case PROTOBUF_C_TYPE_INT64: /* the rest are varint_of()'s, of which no second dispatch */
    case PROTOBUF_C_TYPE_UINT64:
        value = load_u64(member);
        break;
    case PROTOBUF_C_TYPE_SINT64:
        value = varint_of(PROTOBUF_C_TYPE_SINT64, member);
        break;
    case PROTOBUF_C_TYPE_SINT32:
        value = varint_of(PROTOBUF_C_TYPE_SINT32, member);
        break;
    case PROTOBUF_C_TYPE_UINT32:
        value = varint_of(PROTOBUF_C_TYPE_UINT32, member);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        value = varint_of(PROTOBUF_C_TYPE_BOOL, member);
        break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        value = varint_of(PROTOBUF_C_TYPE_INT32, member);
        break;
    default:
        bow__unreachable();
    }
    if (bow__unlikely(value == 0) && lacks_presence(field)) {
        return at;
    }
    return put_tagged(e, tag_of(field, BOW__WIRE_VARINT), value, at);
}

static BOW__SHORT_WAY uint8_t *put_numbers(struct encoder *e, ProtobufCType type, const char *array,
                                           size_t n, uint8_t *at)
{
    size_t size = bow__value_size(type);
    for (; n > 0 && at != NULL; n--) {
        const void *member = array + (n - 1) * size;
        switch (wire_type_of(type)) {
        case BOW__WIRE_FIXED32:
            at = put_fixed32(e, load_u32(member), at);
            break;
        case BOW__WIRE_FIXED64:
            at = put_fixed64(e, load_u64(member), at);
            break;
        default:
            at = put_varint(e, varint_of(type, member), at);
        }
    }
    return at;
}

/* A loop for each type: one for all would ask for each number which it is. */
static inline uint8_t *put_numbers_of(struct encoder *e, ProtobufCType type, const char *array,
                                      size_t n, uint8_t *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return put_numbers(e, PROTOBUF_C_TYPE_FIXED32, array, n, at);
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return put_numbers(e, PROTOBUF_C_TYPE_FIXED64, array, n, at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return put_numbers(e, PROTOBUF_C_TYPE_UINT64, array, n, at);
    case PROTOBUF_C_TYPE_SINT64:
        return put_numbers(e, PROTOBUF_C_TYPE_SINT64, array, n, at);
    case PROTOBUF_C_TYPE_SINT32:
        return put_numbers(e, PROTOBUF_C_TYPE_SINT32, array, n, at);
    case PROTOBUF_C_TYPE_UINT32:
        return put_numbers(e, PROTOBUF_C_TYPE_UINT32, array, n, at);
    case PROTOBUF_C_TYPE_BOOL:
        return put_numbers(e, PROTOBUF_C_TYPE_BOOL, array, n, at);
    default:
        return put_numbers(e, PROTOBUF_C_TYPE_INT32, array, n, at);
    }
}

BOW__LONG_WAY static uint8_t *put_packed(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                         const char *array, size_t n, uint8_t *at)
{
    size_t size = bow__value_size(field->type);
    uint8_t *end = at;
    if (BOW__WIRE_IS_LITTLE_ENDIAN && wire_type_of(field->type) != BOW__WIRE_VARINT &&
        n <= INT32_MAX) {
        /* Numbers of fixed size, as they lie. */
        return put_prefixed(e, field, array, n * size, at);
    }
    at = put_numbers_of(e, field->type, array, n, at);
    if (at == NULL) {
        return NULL;
    }
    return put_tagged(e, tag_of(field, BOW__WIRE_LEN), (size_t)(end - at), at);
}

/* Elements that are sent whatever they are: of a repeated field, or one of a field that is present.
 */
BOW__LONG_WAY static uint8_t *put_elements(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                           const char *array, size_t n, uint8_t *at)
{
    size_t size = bow__value_size(field->type);
    for (const char *member = array + n * size; n > 0 && at != NULL; n--) {
        member -= size;
        at = put_value(e, field, member, at);
    }
    return at;
}

static inline uint8_t *put_repeated(struct encoder *e, const ProtobufCFieldDescriptor *field,
                                    const ProtobufCMessage *message, uint8_t *at)
{
    size_t n = *(const size_t *)member_at(message, field->quantifier_offset);
    const char *array = pointer_at(member_at(message, field->offset));
    if (n == 0) {
        return at;
    }
    if (array == NULL) {
        return NULL;
    }
    bool is_packed = (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0;
    if (is_packed) {
        return put_packed(e, field, array, n, at);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && !is_group(field)) {
        return put_sub_messages(e, field, (const void *)array, n, at);
    }
    return put_elements(e, field, array, n, at);
}

/* Of the members of a oneof that end at `field` the one that is set, else the first: most are not,
 * and of those no more is asked. */
static inline const ProtobufCFieldDescriptor *skip_unset(const ProtobufCFieldDescriptor *field,
                                                         const ProtobufCFieldDescriptor *first,
                                                         const ProtobufCMessage *message)
{
    unsigned oneof = field->quantifier_offset;
    uint32_t set = load_u32(member_at(message, oneof));
    while (field->id != set && field != first && field[-1].quantifier_offset == oneof) {
        field--;
    }
    return field;
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
    if (unknown->tag == 0) { /* no field's: raw.h */
        return at;
    }
    return put_varint(e, (uint64_t)unknown->tag << 3 | unknown->wire_type, at);
}

BOW__LONG_WAY static uint8_t *put_unknown_fields(struct encoder *e, const ProtobufCMessage *message,
                                                 uint8_t *at)
{
    if (message->unknown_fields == NULL) {
        return NULL;
    }
    for (size_t i = message->n_unknown_fields; i > 0 && at != NULL; i--) {
        at = put_unknown(e, &message->unknown_fields[i - 1], at);
    }
    return at;
}

static BOW__SHORT_WAY uint8_t *put_fields(struct encoder *e, const ProtobufCMessage *message,
                                          uint8_t *at)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == NULL) {
        return NULL;
    }
    if (message->n_unknown_fields > 0) {
        at = put_unknown_fields(e, message, at);
        if (at == NULL) {
            return NULL;
        }
    }
    if (type->n_fields == 0) { /* and `fields` may be NULL */
        return at;
    }
    const ProtobufCFieldDescriptor *const first = type->fields;
    const ProtobufCFieldDescriptor *field = first + type->n_fields;
    while (field != first) {
        field--;
        if (bow__unlikely(!lacks_presence(field))) {
            if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                at = put_repeated(e, field, message, at);
                if (at == NULL) {
                    return NULL;
                }
                continue;
            }
            if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
                field = skip_unset(field, first, message);
            }
            if (!is_present(field, message)) {
                continue;
            }
        }
        at = put_value(e, field, member_at(message, field->offset), at);
        if (at == NULL) {
            return NULL;
        }
    }
    return at;
}

BOW__ON_A_CACHE_LINE BOW__LONG_WAY static uint8_t *
put_message(struct encoder *e, const ProtobufCMessage *message, uint8_t *at)
{
    return put_fields(e, message, at);
}

/* Of a repeated field, but no groups. There are many, and most are small: to enter a function for
 * each took a tenth of the time. */
BOW__ON_A_CACHE_LINE BOW__LONG_WAY static uint8_t *
put_sub_messages(struct encoder *e, const ProtobufCFieldDescriptor *field,
                 const ProtobufCMessage *const *messages, size_t n, uint8_t *at)
{
    if (e->levels == 0) {
        return NULL;
    }
    uint64_t tag = tag_of(field, BOW__WIRE_LEN);
    e->levels--;
    for (; n > 0 && at != NULL; n--) {
        const ProtobufCMessage *message = messages[n - 1];
        if (message == NULL) {
            return NULL;
        }
        at = put_length_of(e, tag, put_fields(e, message, at), at);
    }
    e->levels++;
    return at;
}

/* Measuring: without writing, and what is wrong with a message that cannot be encoded */

struct measure {
    struct bow__text *reason; /* or NULL */
    struct known_string known;
    const ProtobufCMessage *root;
    size_t depth;
    struct bow__field_step steps[BOW_LIMIT_MESSAGE_DEPTH];
};

static size_t measure_message(struct measure *m, const ProtobufCMessage *message);

static struct bow__field_step step_of(const void *measure, size_t i)
{
    return ((const struct measure *)measure)->steps[i];
}

/* `field` NULL: the message itself is at fault. */
static size_t refuse(struct measure *m, const ProtobufCFieldDescriptor *field, const char *what)
{
    if (m->reason == NULL) {
        return SIZE_MAX;
    }
    if (m->root->descriptor != NULL) {
        bow__field_path_append(m->reason, m->root->descriptor, step_of, m, m->depth);
    } else {
        bow__text_printf(m->reason, "message");
    }
    if (field != NULL) {
        bow__field_path_append_field(m->reason, field);
    }
    bow__text_printf(m->reason, " %s", what);
    return SIZE_MAX;
}

static size_t refuse_size(struct measure *m, const ProtobufCFieldDescriptor *field)
{
    return refuse(m, field, "is over 2 GiB - 1");
}

static size_t tag_size(uint32_t number)
{
    return bow__wire_varint_size((uint64_t)number << 3);
}

/* `len` bytes with their length in front. */
static size_t prefixed(size_t len)
{
    return bow__wire_varint_size(len) + len;
}

static size_t measure_sub_message(struct measure *m, const ProtobufCFieldDescriptor *field,
                                  const ProtobufCMessage *message, size_t index)
{
    if (message == NULL) {
        return refuse(m, field, "is NULL, but a message is needed: point it to one");
    }
    if (m->depth == BOW_LIMIT_MESSAGE_DEPTH) {
        return refuse(m, field, "is nested too deep (BOW_LIMIT_MESSAGE_DEPTH)");
    }
    m->steps[m->depth] = (struct bow__field_step){field, index};
    m->depth++;
    size_t size = measure_message(m, message);
    m->depth--;
    if (size == SIZE_MAX) {
        return SIZE_MAX;
    }
    bool is_group = (field->flags & BOW_DESCRIPTOR_GROUP) != 0;
    return is_group ? size + tag_size(field->id) : prefixed(size);
}

static size_t length_of(const struct measure *m, const char *text)
{
    if (text == NULL) {
        return 0;
    }
    return text == m->known.text ? m->known.len : strlen(text);
}

/* A value without its tag. */
static size_t measure_value(struct measure *m, const ProtobufCFieldDescriptor *field,
                            const void *member, size_t index)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = text_of(field, member);
        size_t len = length_of(m, text);
        if (len > INT32_MAX) {
            return refuse_size(m, field);
        }
        return text != NULL
                   ? prefixed(len)
                   : refuse(m, field,
                            "is NULL, but a string is needed: set it (\"\" for an empty one)");
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = member;
        if (bytes->len > INT32_MAX) {
            return refuse_size(m, field);
        }
        bool is_whole = bytes->len == 0 || bytes->data != NULL;
        return is_whole ? prefixed(bytes->len)
                        : refuse(m, field, "has a len, but its data is NULL: set both or neither");
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        return measure_sub_message(m, field, pointer_at(member), index);
    default:
        break;
    }
    enum bow__wire_type type = wire_type_of(field->type);
    if (type == BOW__WIRE_VARINT) {
        return bow__wire_varint_size(varint_of(field->type, member));
    }
    return type == BOW__WIRE_FIXED32 ? 4 : 8;
}

static size_t measure_repeated(struct measure *m, const ProtobufCFieldDescriptor *field,
                               const ProtobufCMessage *message)
{
    size_t n;
    memcpy(&n, member_at(message, field->quantifier_offset), sizeof n);
    if (n == 0) {
        return 0;
    }
    const char *array = pointer_at(member_at(message, field->offset));
    if (array == NULL) {
        return refuse(m, field, "has a count, but its array is NULL: set both or neither");
    }
    bool is_packed = (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0;
    size_t tag = tag_size(field->id);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const void *member = array + i * bow__value_size(field->type);
        size_t size = measure_value(m, field, member, i);
        if (size == SIZE_MAX) {
            return SIZE_MAX;
        }
        total += is_packed ? size : tag + size;
        if (total > INT32_MAX) {
            return refuse_size(m, field);
        }
    }
    return is_packed ? tag + prefixed(total) : total;
}

static size_t measure_field(struct measure *m, const ProtobufCFieldDescriptor *field,
                            const ProtobufCMessage *message)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return measure_repeated(m, field, message);
    }
    if (!is_present(field, message)) {
        return 0;
    }
    size_t size = measure_value(m, field, member_at(message, field->offset), 0);
    return size != SIZE_MAX ? tag_size(field->id) + size : SIZE_MAX;
}

static size_t measure_unknown(struct measure *m, const ProtobufCMessage *message)
{
    size_t total = 0;
    if (message->n_unknown_fields > 0 && message->unknown_fields == NULL) {
        return refuse(m, NULL,
                      "has n_unknown_fields, but its unknown_fields is NULL: set both or neither");
    }
    for (size_t i = 0; i < message->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *unknown = &message->unknown_fields[i];
        if (unknown->data == NULL && unknown->len > 0) {
            return refuse(m, NULL, "has an unknown field with a len whose data is NULL");
        }
        if (unknown->len > INT32_MAX || total > INT32_MAX) {
            return refuse_size(m, NULL);
        }
        total += (unknown->tag != 0 ? tag_size(unknown->tag) : 0) + unknown->len;
    }
    return total;
}

static size_t measure_message(struct measure *m, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == NULL) {
        return refuse(m, NULL, "has no descriptor: set the message to its __INIT first");
    }
    size_t total = measure_unknown(m, message);
    for (unsigned i = 0; i < type->n_fields && total != SIZE_MAX; i++) {
        size_t size = measure_field(m, &type->fields[i], message);
        if (size == SIZE_MAX) {
            return SIZE_MAX;
        }
        total += size;
        if (total > INT32_MAX) {
            return refuse_size(m, &type->fields[i]);
        }
    }
    return total;
}

/* The length of `message` encoded; SIZE_MAX when it cannot be, with why appended to `reason` unless
 * that is NULL. */
static size_t measure_whole(const ProtobufCMessage *message, struct known_string known,
                            struct bow__text *reason)
{
    struct measure m = {.reason = reason, .known = known, .root = message};
    return measure_message(&m, message);
}

void bow__encode_explain(const ProtobufCMessage *message, struct bow__text *reason)
{
    (void)measure_whole(message, (struct known_string){NULL, 0}, reason);
}

void bow__encode_say_changed(struct bow__text *reason)
{
    if (reason != NULL) {
        bow__text_printf(reason, "the message changed while it was encoded: let no other thread "
                                 "write to it meanwhile");
    }
}

/* Why there was no room, or what is wrong. */
BOW__LONG_WAY static ssize_t measure_failed(const ProtobufCMessage *message, size_t cap,
                                            struct known_string known, struct bow__text *reason)
{
    size_t size = measure_whole(message, known, reason);
    if (size <= cap) {
        bow__encode_say_changed(reason);
        return -EINVAL;
    }
    return size == SIZE_MAX ? -EINVAL : (ssize_t)size;
}

/* Into [begin, end), so that it ends where that does. */
static inline ssize_t encode_between(uint8_t *begin, uint8_t *end, const ProtobufCMessage *message,
                                     struct bow__text *reason)
{
    size_t cap = (size_t)(end - begin);
    struct encoder e; /* field by field: it costs each call */
    e.begin = begin;
    e.little_room = begin + (cap < MOST_TAGGED_BYTES ? cap : MOST_TAGGED_BYTES - 1);
    e.levels = BOW_LIMIT_MESSAGE_DEPTH;
    e.too_long.text = NULL;
    const uint8_t *at = put_message(&e, message, end);
    return at != NULL ? end - at : measure_failed(message, cap, e.too_long, reason);
}

/* What does not fit then is over the limit. */
static inline size_t most_room(size_t cap)
{
    return cap < INT32_MAX ? cap : INT32_MAX;
}

ssize_t bow__encode_at_end(const ProtobufCMessage *message, uint8_t *buf, size_t cap,
                           struct bow__text *reason)
{
    uint8_t *end = buf + cap;
    return encode_between(end - most_room(cap), end, message, reason);
}

ssize_t bow__encode(const ProtobufCMessage *message, uint8_t *buf, size_t cap,
                    struct bow__text *reason)
{
    uint8_t *end = buf + most_room(cap);
    ssize_t n = encode_between(buf, end, message, reason);
    if (n > 0 && n < end - buf) {
        memmove(buf, end - n, (size_t)n);
    }
    return n;
}

size_t bow__encoded_size(const ProtobufCMessage *message)
{
    return measure_whole(message, (struct known_string){NULL, 0}, NULL);
}
