/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A message as one line, in the manner of protobuf's text format. Each piece that is written fills
 * the line, and when it is full all stops: so however large a message is, the work is that of the
 * line. Knows nothing of JSON.
 */
#include <bowline/message_print.h>

#include "rpc/core/codec/message_info.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/codec/wire.h"
#include "rpc/json/decimal.h"
#include "rpc/messages/member.h"
#include "rpc/well_known/known_type.h"
#include <bowline/limits.h>
#include <bowline/well_known.h>
#include <math.h>
#include <stdbool.h>

#define ELLIPSIS "\xe2\x80\xa6"

struct line {
    char *begin;
    char *at;
    char *end;    /* of what may be written, the NUL's place */
    bool is_full; /* something did not fit */
};

static void put_message(struct line *line, const ProtobufCMessage *message, unsigned levels);

/* Text */

/* All of it or nothing, so that no character is cut. */
static void put(struct line *line, const void *text, size_t len)
{
    if (line->is_full || len > (size_t)(line->end - line->at)) {
        line->is_full = true;
        return;
    }
    memcpy(line->at, text, len);
    line->at += len;
}

static void put_text(struct line *line, const char *text)
{
    /* A name that is longer than the line is not looked at to its end. */
    put(line, text, strnlen(text, (size_t)(line->end - line->at) + 1));
}

static void put_escaped(struct line *line, uint8_t byte)
{
    static const char letters[] = "\"\"\\\\\nn\rr\tt";
    char text[4] = {'\\', (char)('0' + (byte >> 6)), (char)('0' + (byte >> 3 & 7)),
                    (char)('0' + (byte & 7))};

    for (size_t i = 0; i < sizeof letters - 1; i += 2) {
        if (letters[i] == (char)byte) {
            text[1] = letters[i + 1];
            put(line, text, 2);
            return;
        }
    }
    put(line, text, sizeof text);
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* Bytes of the character at `at` that can be shown as it is; 0: none. U+0080 to U+009F are
 * controls, too, and U+2028 and U+2029 break lines. */
static size_t shown_character(const uint8_t *at, size_t left)
{
    size_t size = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

    if (at[0] < 0xc0 || size > left ||
        bow__utf8_prefix((struct bow_slice){at, size}, false) != size) {
        return 0;
    }
    bool is_control = at[0] == 0xc2 && at[1] < 0xa0;
    bool breaks = at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9);
    return is_control || breaks ? 0 : size;
}

/* `is_text`: characters beyond ASCII are shown. */
static void put_quoted(struct line *line, const uint8_t *at, size_t len, bool is_text)
{
    put(line, "\"", 1);
    while (len > 0 && !line->is_full) {
        size_t size = is_plain(*at) ? 1 : is_text ? shown_character(at, len) : 0;
        if (size > 0) {
            put(line, at, size);
        } else {
            put_escaped(line, *at);
            size = 1;
        }
        at += size;
        len -= size;
    }
    put(line, "\"", 1);
}

static void put_string(struct line *line, const char *text)
{
    size_t most = (size_t)(line->end - line->at) + 4; /* beyond it nothing has room */

    put_quoted(line, (const uint8_t *)text, strnlen(text, most), true);
}

static void put_bytes(struct line *line, const ProtobufCFieldDescriptor *field,
                      const ProtobufCBinaryData *bytes)
{
    if (bytes->data == NULL && bytes->len > 0) {
        put_text(line, "NULL");
        return;
    }
    put_quoted(line, bytes->data, bytes->len, bow__field_is_text(field));
}

/* Numbers */

static void put_i64(struct line *line, int64_t value)
{
    char text[BOW__DECIMAL_BYTES];
    put(line, text, (size_t)(bow__decimal_write_i64(text, value) - text));
}

static void put_u64(struct line *line, uint64_t value)
{
    char text[BOW__DECIMAL_BYTES];
    put(line, text, (size_t)(bow__decimal_write_u64(text, value) - text));
}

static void put_double(struct line *line, double value)
{
    char text[BOW__DECIMAL_BYTES];

    if (!isfinite(value)) {
        put_text(line, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    put(line, text, (size_t)(bow__decimal_write_double(text, value) - text));
}

static void put_float(struct line *line, float value)
{
    char text[BOW__DECIMAL_BYTES];

    if (!isfinite(value)) {
        put_double(line, (double)value);
        return;
    }
    put(line, text, (size_t)(bow__decimal_write_float(text, value) - text));
}

static void put_enum(struct line *line, const ProtobufCEnumDescriptor *type, int32_t number)
{
    const char *name = bow_enum_name(type, number);

    if (name != NULL) {
        put_text(line, name);
        return;
    }
    put_i64(line, number);
}

/* Fields */

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REQUIRED || bow__member_has(message, field);
}

static void put_scalar(struct line *line, const ProtobufCFieldDescriptor *field, const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        put_i64(line, *(const int32_t *)member);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        put_u64(line, *(const uint32_t *)member);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_i64(line, *(const int64_t *)member);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_u64(line, *(const uint64_t *)member);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        put_float(line, *(const float *)member);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        put_double(line, *(const double *)member);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        put_text(line, *(const protobuf_c_boolean *)member ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(line, field->descriptor, *(const int32_t *)member);
        break;
    default:
        put_bytes(line, field, member);
        break;
    }
}

static void put_blank(struct line *line)
{
    if (line->at > line->begin) {
        put(line, " ", 1);
    }
}

static void put_name(struct line *line, const ProtobufCFieldDescriptor *field)
{
    put_blank(line);
    if (field->name != NULL) {
        put_text(line, field->name);
    } else { /* the descriptor was made for size */
        put_u64(line, field->id);
    }
}

static void put_inner(struct line *line, const ProtobufCMessage *message, unsigned levels)
{
    if (message == NULL || message->descriptor == NULL) {
        put_text(line, ": NULL");
        return;
    }
    put_text(line, " {");
    put_message(line, message, levels);
    put_text(line, " }");
}

static void put_value(struct line *line, const ProtobufCFieldDescriptor *field, const void *member,
                      unsigned levels)
{
    put_name(line, field);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        put_inner(line, *(ProtobufCMessage *const *)member, levels);
        return;
    }
    put_text(line, ": ");
    if (field->type != PROTOBUF_C_TYPE_STRING) {
        put_scalar(line, field, member);
    } else if (*(const char *const *)member == NULL) {
        put_text(line, "NULL");
    } else {
        put_string(line, *(const char *const *)member);
    }
}

static void put_repeated(struct line *line, const ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field, unsigned levels)
{
    size_t n = *(const size_t *)member_at(message, field->quantifier_offset);
    const char *elements = *(const char *const *)member_at(message, field->offset);

    if (elements == NULL) {
        put_name(line, field);
        put_text(line, ": NULL");
        return;
    }
    for (size_t i = 0; i < n && !line->is_full; i++) {
        put_value(line, field, elements + i * bow__value_size(field->type), levels);
    }
}

/* What an Any holds: bytes in which a secret is not to be told from the rest. */
static bool is_content(const ProtobufCMessage *message, unsigned index)
{
    return message->descriptor->fields[index].type == PROTOBUF_C_TYPE_BYTES &&
           bow__known_type(message->descriptor) == BOW__KNOWN_ANY;
}

/* In place of bytes in which there may be a secret. */
static void put_size(struct line *line, size_t len)
{
    put_text(line, ": [");
    put_u64(line, len);
    put_text(line, " bytes]");
}

static void put_field(struct line *line, const ProtobufCMessage *message, unsigned index,
                      unsigned levels)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const ProtobufCFieldDescriptor *field = &type->fields[index];
    const struct bow_message_info *info = bow__message_info(type);

    if (!is_present(message, field)) {
        return;
    }
    if (info != NULL && index < info->n_fields &&
        (info->fields[index].flags & BOW_FIELD_SECRET) != 0) {
        put_name(line, field);
        put_text(line, ": [REDACTED]");
    } else if (is_content(message, index)) {
        put_name(line, field);
        put_size(line, ((const ProtobufCBinaryData *)member_at(message, field->offset))->len);
    } else if (bow__is_repeated(field)) {
        put_repeated(line, message, field, levels);
    } else {
        put_value(line, field, member_at(message, field->offset), levels);
    }
}

/* Whether it is a secret only a newer descriptor says. */
static void put_unknown(struct line *line, const ProtobufCMessageUnknownField *unknown)
{
    const uint8_t *data = unknown->data, *end = data + unknown->len;
    uint64_t len = 0;

    put_blank(line);
    put_u64(line, unknown->tag);
    if (unknown->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) {
        const uint8_t *content = bow__wire_read_varint(data, end, &len);
        data = content != NULL ? content : data;
    }
    put_size(line, (size_t)(end - data));
}

/* What stands between the braces. */
static void put_message(struct line *line, const ProtobufCMessage *message, unsigned levels)
{
    if (levels == 0) {
        put_text(line, " " ELLIPSIS);
        return;
    }
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields && !line->is_full; i++) {
        put_field(line, message, i, levels - 1);
    }
    for (unsigned i = 0; i < message->n_unknown_fields && !line->is_full; i++) {
        put_unknown(line, &message->unknown_fields[i]);
    }
}

/* Put the ellipsis at the end, for which whole characters give way. */
static void end_cut(struct line *line)
{
    size_t room = (size_t)(line->end - line->begin), needed = strlen(ELLIPSIS);

    if (room < needed) {
        line->at = line->begin;
        return;
    }
    while ((size_t)(line->end - line->at) < needed) {
        do {
            line->at--;
        } while (((uint8_t)*line->at & 0xc0) == 0x80);
    }
    memcpy(line->at, ELLIPSIS, needed);
    line->at += needed;
}

size_t bow_message_print(const ProtobufCMessage *message, char *text, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct line line = {.begin = text, .at = text, .end = text + size - 1};
    if (message == NULL || message->descriptor == NULL) {
        put_text(&line, "NULL");
    } else {
        put_message(&line, message, BOW_LIMIT_MESSAGE_DEPTH + 1);
    }
    if (line.is_full) {
        end_cut(&line);
    }
    *line.at = '\0';
    return (size_t)(line.at - text);
}
