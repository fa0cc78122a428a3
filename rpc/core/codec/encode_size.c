/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Measures a message without writing it, and finds what is wrong with one that
 * can't be encoded. Run when encode.c had no room, or refused.
 */
#include "rpc/core/codec/encode_internal.h"
#include "rpc/core/codec/field_path.h"
#include <bowline/limits.h>

struct measure {
    struct bow__text *reason; /* or NULL */
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
    return size != SIZE_MAX ? prefixed(size) : SIZE_MAX;
}

/* A value without its tag. */
static size_t measure_value(struct measure *m, const ProtobufCFieldDescriptor *field,
                            const void *member, size_t index)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = bow__encode_text(field, member);
        size_t len = text != NULL ? strlen(text) : 0;
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
        return measure_sub_message(m, field, bow__encode_pointer(member), index);
    default:
        break;
    }
    enum bow__wire_type type = bow__encode_wire_type(field->type);
    if (type == BOW__WIRE_VARINT) {
        return bow__wire_varint_size(bow__encode_varint_of(field->type, member));
    }
    return type == BOW__WIRE_FIXED32 ? 4 : 8;
}

static size_t measure_repeated(struct measure *m, const ProtobufCFieldDescriptor *field,
                               const ProtobufCMessage *message)
{
    size_t n;
    memcpy(&n, bow__encode_member(message, field->quantifier_offset), sizeof n);
    if (n == 0) {
        return 0;
    }
    const char *array = bow__encode_pointer(bow__encode_member(message, field->offset));
    if (array == NULL) {
        return refuse(m, field, "has a count, but its array is NULL: set both or neither");
    }
    bool is_packed = (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0;
    size_t tag = bow__wire_varint_size((uint64_t)field->id << 3);
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
    if (!bow__encode_is_sent(field, message)) {
        return 0;
    }
    size_t size = measure_value(m, field, bow__encode_member(message, field->offset), 0);
    return size != SIZE_MAX ? bow__wire_varint_size((uint64_t)field->id << 3) + size : SIZE_MAX;
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
        total += bow__wire_varint_size((uint64_t)unknown->tag << 3) + unknown->len;
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

size_t bow__encode_measure(const ProtobufCMessage *message, struct bow__text *reason)
{
    struct measure m = {.reason = reason, .root = message};
    return measure_message(&m, message);
}
