/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The decoder's hot path: one loop over fields with a stack of messages in place
 * of recursion. Values are dispatched on the field's type; the field that follows
 * the last one is tried before any look-up, since encoders write in field order.
 * What is seldom needed is in the other decode_ files.
 */
#include "rpc/core/codec/decode.h"
#include "base/block.h"
#include "base/hints.h"
#include "rpc/core/codec/decode_array.h"
#include "rpc/core/codec/decode_group.h"
#include "rpc/core/codec/decode_message.h"
#include "rpc/core/codec/decode_reason.h"
#include "rpc/core/codec/decode_required.h"
#include "rpc/core/codec/decode_unknown.h"
#include "rpc/core/codec/raw.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/codec/value.h"
#include "rpc/core/codec/wire.h"
#include <bowline/service.h>

static const uint8_t wire_types[] = {
    [PROTOBUF_C_TYPE_INT32] = BOW__WIRE_VARINT,     [PROTOBUF_C_TYPE_SINT32] = BOW__WIRE_VARINT,
    [PROTOBUF_C_TYPE_SFIXED32] = BOW__WIRE_FIXED32, [PROTOBUF_C_TYPE_INT64] = BOW__WIRE_VARINT,
    [PROTOBUF_C_TYPE_SINT64] = BOW__WIRE_VARINT,    [PROTOBUF_C_TYPE_SFIXED64] = BOW__WIRE_FIXED64,
    [PROTOBUF_C_TYPE_UINT32] = BOW__WIRE_VARINT,    [PROTOBUF_C_TYPE_FIXED32] = BOW__WIRE_FIXED32,
    [PROTOBUF_C_TYPE_UINT64] = BOW__WIRE_VARINT,    [PROTOBUF_C_TYPE_FIXED64] = BOW__WIRE_FIXED64,
    [PROTOBUF_C_TYPE_FLOAT] = BOW__WIRE_FIXED32,    [PROTOBUF_C_TYPE_DOUBLE] = BOW__WIRE_FIXED64,
    [PROTOBUF_C_TYPE_BOOL] = BOW__WIRE_VARINT,      [PROTOBUF_C_TYPE_ENUM] = BOW__WIRE_VARINT,
    [PROTOBUF_C_TYPE_STRING] = BOW__WIRE_LEN,       [PROTOBUF_C_TYPE_BYTES] = BOW__WIRE_LEN,
    [PROTOBUF_C_TYPE_MESSAGE] = BOW__WIRE_LEN,
};

/* The guess in a message without fields: its number is none that can come. */
static const ProtobufCFieldDescriptor no_field = {.id = 0};

static void *at_offset(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

static const ProtobufCFieldDescriptor *search_ranges(const ProtobufCMessageDescriptor *type,
                                                     uint32_t number)
{
    unsigned low = 0;
    unsigned high = type->n_field_ranges;
    while (low < high) { /* the first range that starts above `number` */
        unsigned middle = low + (high - low) / 2;
        if ((uint32_t)type->field_ranges[middle].start_value <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    const ProtobufCIntRange *range = &type->field_ranges[low - 1];
    size_t index = (size_t)range->orig_index + (number - (uint32_t)range->start_value);
    return index < range[1].orig_index ? &type->fields[index] : NULL;
}

static inline const ProtobufCFieldDescriptor *find_field(const struct bow__decode_frame *frame,
                                                         uint32_t number)
{
    if (frame->guess->id == number) {
        return frame->guess;
    }
    return search_ranges(frame->message->descriptor, number);
}

static inline void guess_after(struct bow__decode_frame *frame,
                               const ProtobufCFieldDescriptor *field)
{
    bool stays = field->label == PROTOBUF_C_LABEL_REPEATED || field == frame->last;
    frame->guess = stays ? field : field + 1;
}

/* What is asked of each field that comes is asked in one go. */
static inline bool is_special(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & ((uint32_t)PROTOBUF_C_FIELD_FLAG_ONEOF | BOW_DESCRIPTOR_GROUP)) != 0;
}

static inline bool is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

static inline bool is_group(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & BOW_DESCRIPTOR_GROUP) != 0;
}

static void select_oneof(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    uint32_t *selected = at_offset(message, field->quantifier_offset);
    if (*selected == field->id) {
        return;
    }
    *selected = field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) { /* the union held something else */
        *(ProtobufCMessage **)at_offset(message, field->offset) = NULL;
    }
}

/* Where the value of a field that is not repeated goes; notes that the field is there. */
static inline void *singular_slot(struct bow__decode_frame *frame,
                                  const ProtobufCFieldDescriptor *field)
{
    ProtobufCMessage *message = frame->message;
    if (is_special(field) && is_in_oneof(field)) {
        select_oneof(message, field);
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL) {
        if (field->quantifier_offset != 0) { /* strings and messages have no has_ member */
            *(protobuf_c_boolean *)at_offset(message, field->quantifier_offset) = 1;
        }
    } else if (field->label == PROTOBUF_C_LABEL_REQUIRED) {
        size_t index = (size_t)(field - message->descriptor->fields);
        frame->required->seen[index / 8] |= (uint8_t)(1u << index % 8);
    }
    return at_offset(message, field->offset);
}

/* The next element of a repeated field, or NULL out of memory. */
static inline void *repeated_slot(struct bow__decoder *d, struct bow__decode_frame *frame,
                                  const ProtobufCFieldDescriptor *field)
{
    size_t *n = at_offset(frame->message, field->quantifier_offset);
    char **array = at_offset(frame->message, field->offset);
    size_t size = bow__value_size(field->type);
    if (*n == 0 || *n == bow__decode_capacity(*array)) {
        char *grown = bow__decode_reserve(d->arena, *array, *n, 1, size);
        if (grown == NULL) {
            return NULL;
        }
        *array = grown;
    }
    char *slot = *array + *n * size;
    *n += 1;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        *(ProtobufCMessage **)(void *)slot = NULL;
    }
    return slot;
}

static inline void store32(void *slot, uint32_t value)
{
    memcpy(slot, &value, sizeof value);
}

static inline void store64(void *slot, uint64_t value)
{
    memcpy(slot, &value, sizeof value);
}

static inline const uint8_t *read_fixed32(const uint8_t *at, const uint8_t *end, void *slot)
{
    if (end - at < 4) {
        return NULL;
    }
    store32(slot, bow__wire_load32(at));
    return at + 4;
}

static inline const uint8_t *read_fixed64(const uint8_t *at, const uint8_t *end, void *slot)
{
    if (end - at < 8) {
        return NULL;
    }
    store64(slot, bow__wire_load64(at));
    return at + 8;
}

/* A number of any type at `at`, into `slot`. NULL (without a reason) when it can't be read. */
static inline const uint8_t *read_number(ProtobufCType type, const uint8_t *at, const uint8_t *end,
                                         void *slot)
{
    uint64_t value = 0;
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return read_fixed32(at, end, slot);
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_fixed64(at, end, slot);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        at = bow__wire_read_varint(at, end, &value);
        store64(slot, value);
        return at;
    case PROTOBUF_C_TYPE_SINT64:
        at = bow__wire_read_varint(at, end, &value);
        store64(slot, bow__wire_unzigzag64(value));
        return at;
    case PROTOBUF_C_TYPE_SINT32:
        at = bow__wire_read_varint(at, end, &value);
        store32(slot, bow__wire_unzigzag32((uint32_t)value));
        return at;
    case PROTOBUF_C_TYPE_BOOL:
        at = bow__wire_read_varint(at, end, &value);
        store32(slot, value != 0);
        return at;
    default: /* int32, uint32, enum: the low half */
        at = bow__wire_read_varint(at, end, &value);
        store32(slot, (uint32_t)value);
        return at;
    }
}

/* The length prefix at `at`; returns the first byte after it, `*ret_len` bytes being there. */
static inline const uint8_t *read_len(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                      const uint8_t *at, size_t *ret_len)
{
    const uint8_t *end = d->top->end;
    uint64_t len;
    const uint8_t *body = bow__wire_read_varint(at, end, &len);
    if (body == NULL) {
        bow__decode_refuse_value(d, field, at, end);
        return NULL;
    }
    if (len > (size_t)(end - body)) {
        bow__decode_refuse(d, field, at, "length goes beyond the message's end");
        return NULL;
    }
    *ret_len = (size_t)len;
    return body;
}

/* A shorter string is copied as soon as it is noted down. */
#define STAYING_STRING_BYTES ((size_t)4 << 10)

/* Returns 0; or 1 when the string has to be copied: another holds the bytes too, or no byte is left
 * for the NUL. */
BOW__LONG_WAY static int leave_string(struct bow__decoder *d, const uint8_t *at, size_t len,
                                      char **slot)
{
    const struct bow__block *block = d->block;
    if (block == NULL || at + len == block->data + block->cap ||
        atomic_load_explicit(&block->refs, memory_order_acquire) > 1) {
        return 1;
    }
    struct bow__decode_string *string = bow__arena_alloc(d->arena, sizeof(*string));
    if (string == NULL) {
        return 1;
    }
    string->end = (uint8_t *)(uintptr_t)(at + len); /* the block is the call's own by now */
    string->next = d->strings;
    d->strings = string;
    *slot = (char *)(uintptr_t)at;
    return 0;
}

static void terminate_strings(const struct bow__decoder *d)
{
    for (const struct bow__decode_string *string = d->strings; string != NULL;
         string = string->next) {
        *string->end = 0;
    }
}

/* How many bytes at the front of an unchecked string are taken. */
static size_t prefix_without_nul(const struct bow__decoder *d, const uint8_t *at, size_t len)
{
    const uint8_t *nul = d->allow_nul || len == 0 ? NULL : memchr(at, 0, len);
    return nul != NULL ? (size_t)(nul - at) : len;
}

static const uint8_t *check_string(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                   const uint8_t *at, size_t len)
{
    size_t valid = (field->flags & BOW_DESCRIPTOR_UNCHECKED) != 0
                       ? prefix_without_nul(d, at, len)
                       : bow__utf8_prefix((struct bow_slice){at, len}, d->allow_nul);
    if (valid == len) {
        return at + len;
    }
    bool is_nul = at[valid] == 0;
    return bow__decode_refuse(d, field, at + valid, is_nul ? "NUL inside a string" : "not UTF-8");
}

static const uint8_t *read_string(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                  const uint8_t *at, char **slot)
{
    size_t len;
    at = read_len(d, field, at, &len);
    if (at == NULL) {
        return NULL;
    }
    if (len >= STAYING_STRING_BYTES && leave_string(d, at, len, slot) == 0) {
        return check_string(d, field, at, len);
    }
    char *text = bow__arena_alloc_bytes(d->arena, len + 1);
    if (text == NULL) {
        return bow__decode_no_memory(d, field, at);
    }
    text[len] = '\0';
    *slot = text;
    return bow__utf8_copy((uint8_t *)text, at, len) ? at + len : check_string(d, field, at, len);
}

/* A string whose length is known has no NUL that it would end at. */
BOW__LONG_WAY static const uint8_t *check_text(struct bow__decoder *d,
                                               const ProtobufCFieldDescriptor *field,
                                               const uint8_t *at, size_t len)
{
    size_t valid = bow__utf8_prefix((struct bow_slice){at, len}, true);
    return valid == len ? at : bow__decode_refuse(d, field, at + valid, "not UTF-8");
}

static bool is_checked_text(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & ((uint32_t)BOW_DESCRIPTOR_TEXT | BOW_DESCRIPTOR_UNCHECKED)) ==
           BOW_DESCRIPTOR_TEXT;
}

static const uint8_t *read_bytes(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                 const uint8_t *at, ProtobufCBinaryData *slot)
{
    size_t len;
    at = read_len(d, field, at, &len);
    if (at == NULL || (is_checked_text(field) && check_text(d, field, at, len) == NULL)) {
        return NULL;
    }
    slot->len = len;
    slot->data = NULL;
    if (len == 0) {
        return at;
    }
    if (d->block != NULL) {
        slot->data = (uint8_t *)(uintptr_t)at; /* the block is the call's own by now */
        return at + len;
    }
    slot->data = bow__arena_alloc_bytes(d->arena, len);
    if (slot->data == NULL) {
        return bow__decode_no_memory(d, field, at);
    }
    memcpy(slot->data, at, len);
    return at + len;
}

static void push_frame(struct bow__decoder *d, ProtobufCMessage *message, const uint8_t *end)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    d->top->message = message;
    d->top->end = end;
    d->top->guess = type->n_fields > 0 ? type->fields : &no_field;
    d->top->last = type->n_fields > 0 ? &type->fields[type->n_fields - 1] : &no_field;
    d->top->required = bow__decode_required_of(d, message);
}

/* Begin a sub-message: the loop goes on inside. One that is there already is merged into. A group
 * ends where its end tag is, at some byte of what holds it. */
static const uint8_t *enter_message(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                    const uint8_t *at, ProtobufCMessage **slot)
{
    size_t len = (size_t)(d->top->end - at);
    const uint8_t *body = is_group(field) ? at : read_len(d, field, at, &len);
    if (body == NULL) {
        return NULL;
    }
    if (d->top == d->last) {
        return bow__decode_refuse(d, field, at, "nested deeper than %zu levels",
                                  (size_t)(d->last - d->frames));
    }
    if (*slot == NULL) {
        *slot = bow__decode_new(d, field->descriptor);
        if (*slot == NULL) {
            return bow__decode_no_memory(d, field, at);
        }
    }
    const struct bow__decode_frame *parent = d->top++;
    d->top->field = field;
    d->top->index = 0;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        d->top->index = *(size_t *)at_offset(parent->message, field->quantifier_offset) - 1;
    }
    push_frame(d, *slot, body + len);
    return body;
}

/* How many of `len` bytes end a varint, eight at a time: it costs as much as reading them else. */
static size_t count_varints(const uint8_t *at, size_t len)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t n = 0;
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t ends = ~bow__wire_load64(at) >> 7 & ones; /* a 1 in each byte that is below 0x80 */
        n += (size_t)(ends * ones >> 56);                  /* their sum */
    }
    for (size_t i = 0; i < len; i++) {
        n += at[i] < 0x80;
    }
    return n;
}

/* How many numbers of `type` the `len` bytes at `at` hold. */
static size_t count_packed(ProtobufCType type, const uint8_t *at, size_t len)
{
    if (wire_types[type] == BOW__WIRE_VARINT) {
        return count_varints(at, len);
    }
    return len / bow__value_size(type);
}

/* `n` numbers from [at, end) to `to`. Returns what follows the last that could be read. */
static const uint8_t *read_numbers(ProtobufCType type, const uint8_t *at, const uint8_t *end,
                                   size_t n, char *to)
{
    size_t size = bow__value_size(type);
    if (BOW__WIRE_IS_LITTLE_ENDIAN && wire_types[type] != BOW__WIRE_VARINT) {
        memcpy(to, at, n * size); /* of fixed size, as they lie */
        return at + n * size;
    }
    for (; n > 0; n--, to += size) {
        const uint8_t *next = read_number(type, at, end, to);
        if (next == NULL) {
            break;
        }
        at = next;
    }
    return at;
}

static const uint8_t *read_packed(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                  const uint8_t *at)
{
    size_t len;
    at = read_len(d, field, at, &len);
    if (at == NULL || len == 0) {
        return at;
    }
    size_t *n = at_offset(d->top->message, field->quantifier_offset);
    char **array = at_offset(d->top->message, field->offset);
    size_t size = bow__value_size(field->type);
    size_t n_more = count_packed(field->type, at, len);
    const uint8_t *end = at + len;
    if (n_more > 0) {
        char *grown = bow__decode_reserve(d->arena, *array, *n, n_more, size);
        if (grown == NULL) {
            return bow__decode_no_memory(d, field, at);
        }
        *array = grown;
        at = read_numbers(field->type, at, end, n_more, grown + *n * size);
        *n += n_more;
    }
    return at == end ? at : bow__decode_refuse_value(d, field, at, end);
}

static inline const uint8_t *read_prefixed(struct bow__decoder *d,
                                           const ProtobufCFieldDescriptor *field, const uint8_t *at,
                                           void *slot)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        return read_string(d, field, at, slot);
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        return read_bytes(d, field, at, slot);
    }
    return enter_message(d, field, at, slot);
}

static inline const uint8_t *read_value(struct bow__decoder *d,
                                        const ProtobufCFieldDescriptor *field, const uint8_t *at,
                                        void *slot)
{
    if (wire_types[field->type] == BOW__WIRE_LEN) {
        return read_prefixed(d, field, at, slot);
    }
    const uint8_t *end = d->top->end;
    const uint8_t *next = read_number(field->type, at, end, slot);
    return next != NULL ? next : bow__decode_refuse_value(d, field, at, end);
}

static bool is_packed(const ProtobufCFieldDescriptor *field, unsigned wire_type)
{
    return wire_type == BOW__WIRE_LEN && field->label == PROTOBUF_C_LABEL_REPEATED &&
           wire_types[field->type] != BOW__WIRE_LEN;
}

static const uint8_t *read_field(struct bow__decoder *d, const uint8_t *at)
{
    struct bow__decode_frame *frame = d->top;
    uint64_t tag;
    const uint8_t *body = bow__decode_read_tag(d, at, &tag);
    if (body == NULL) {
        return NULL;
    }
    uint32_t number = (uint32_t)tag >> 3;
    unsigned wire_type = tag & 7;
    const ProtobufCFieldDescriptor *field = find_field(frame, number);
    if (field == NULL) {
        return bow__decode_unknown(d, number, wire_type, body);
    }
    guess_after(frame, field);
    if (wire_types[field->type] != wire_type) {
        if (is_packed(field, wire_type)) {
            return read_packed(d, field, body);
        }
        if (!is_group(field) || wire_type != BOW__WIRE_GROUP_START) {
            return bow__decode_unknown(d, number, wire_type, body);
        }
    }
    if (is_special(field) && is_group(field) && wire_type != BOW__WIRE_GROUP_START) {
        return bow__decode_unknown(d, number, wire_type, body);
    }
    void *slot = field->label == PROTOBUF_C_LABEL_REPEATED ? repeated_slot(d, frame, field)
                                                           : singular_slot(frame, field);
    if (slot == NULL) {
        return bow__decode_no_memory(d, field, at);
    }
    return read_value(d, field, body, slot);
}

/* All fields of all messages, until the first frame's has ended. Returns 0 or a negative errno. */
static int read_messages(struct bow__decoder *d, const uint8_t *at)
{
    for (;;) {
        while (at < d->top->end) {
            at = read_field(d, at);
            if (at == NULL) {
                return d->error;
            }
        }
        bool is_root = d->top == d->frames;
        if (!is_root || d->top->required != NULL) {
            at = bow__decode_leave(d, at);
        }
        if (at == NULL) {
            return d->error;
        }
        if (is_root) {
            return 0;
        }
        d->top--;
    }
}

static int decode_root(struct bow__decoder *d, struct bow_slice bytes,
                       ProtobufCMessage **ret_message)
{
    ProtobufCMessage *message = bow__decode_new(d, d->type);
    if (message == NULL) {
        bow__decode_no_memory(d, NULL, bytes.data);
        return d->error;
    }
    d->top->field = NULL;
    d->top->index = 0;
    push_frame(d, message, bytes.data + bytes.len);
    int rc = read_messages(d, bytes.data);
    if (rc == 0 && d->incomplete) {
        rc = bow__decode_check_required(d);
    }
    if (rc == 0) {
        *ret_message = message;
    }
    return rc;
}

static int refuse_size(struct bow__text *reason, size_t len)
{
    bow__text_printf(reason, "a message of %zu bytes is over 2 GiB - 1", len);
    return -EBADMSG;
}

int bow__decode(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                const struct bow__decode_options *options, struct bow__arena *arena,
                ProtobufCMessage **ret_message, struct bow__text *reason)
{
    static const struct bow__decode_options defaults = {NULL, 0, false};
    static const uint8_t nothing[1] = {0};
    struct bow__decode_frame frames[BOW_LIMIT_MESSAGE_DEPTH + 1];
    if (options == NULL) {
        options = &defaults;
    }
    if (bytes.len > INT32_MAX) {
        return refuse_size(reason, bytes.len);
    }
    if (bytes.data == NULL) {
        bytes.data = nothing;
    }
    if (bow__unlikely(type == &bow__raw_message__descriptor)) {
        return bow__raw_decode(bytes, options->block != NULL, arena, ret_message, reason);
    }
    struct bow__decoder d = {
        .type = type,
        .begin = bytes.data,
        .arena = arena,
        .reason = reason,
        .frames = frames,
        .block = options->block,
        .allow_nul = options->allow_nul,
    };
    size_t max_depth = options->max_depth != 0 ? options->max_depth : BOW_LIMIT_MESSAGE_DEPTH;
    if (max_depth > BOW_LIMIT_MESSAGE_DEPTH) {
        d.frames = bow__arena_alloc(arena, (max_depth + 1) * sizeof d.frames[0]);
        if (d.frames == NULL) {
            bow__decode_no_memory(&d, NULL, bytes.data);
            return d.error;
        }
    }
    d.top = d.frames;
    d.last = d.frames + max_depth;
    int rc = decode_root(&d, bytes, ret_message);
    terminate_strings(&d);
    return rc;
}
