/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Defaults of proto2, as protoc writes them down: numbers in decimal, "inf", "nan", true and false,
 * an enum's value by its name, a string as it is, bytes with the escapes of C.
 */
#include "rpc/schema/default_value.h"
#include "rpc/json/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A number as protoc writes it is short. */
#define MAX_NUMBER 64

static void *keep(struct bow_schema *schema, const void *value, size_t size)
{
    void *kept = bow__arena_alloc(&schema->arena, size);

    return kept != NULL ? memcpy(kept, value, size) : NULL;
}

static bool is_word(struct bow_slice text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* Numbers: `word` is the text with a NUL. */

static const void *signed_default(struct bow_schema *schema, const char *word, char **end,
                                  size_t size)
{
    int64_t value = strtoll(word, end, 10);
    int32_t narrow = (int32_t)value;

    if (size == sizeof(narrow) && value != narrow) {
        errno = ERANGE;
    }
    return size == sizeof(narrow) ? keep(schema, &narrow, size) : keep(schema, &value, size);
}

static const void *unsigned_default(struct bow_schema *schema, const char *word, char **end,
                                    size_t size)
{
    uint64_t value = strtoull(word, end, 10);
    uint32_t narrow = (uint32_t)value;

    if (word[0] == '-' || (size == sizeof(narrow) && value != narrow)) {
        errno = ERANGE;
    }
    return size == sizeof(narrow) ? keep(schema, &narrow, size) : keep(schema, &value, size);
}

/* What is out of a float's range is infinite there, as for protoc. The C library reads "inf" and
 * "nan", which are no numbers of JSON, but no others: its point is the locale's. */
static const void *real_default(struct bow_schema *schema, const char *word, char **end,
                                size_t size)
{
    struct bow__decimal decimal;
    size_t n = bow__decimal_read(bow__schema_slice(word), &decimal);
    double value;
    float narrow;

    if (n > 0 && word[n] == '\0') {
        value = decimal.is_negative ? -HUGE_VAL : HUGE_VAL;
        narrow = decimal.is_negative ? -HUGE_VALF : HUGE_VALF;
        (void)bow__decimal_to_double(&decimal, &value);
        (void)bow__decimal_to_float(&decimal, &narrow);
        *end += n;
    } else {
        value = strtod(word, end);
        narrow = strtof(word, NULL);
    }
    errno = 0;
    return size == sizeof(narrow) ? keep(schema, &narrow, size) : keep(schema, &value, size);
}

static int read_number(struct bow_schema *schema, ProtobufCType type, struct bow_slice text,
                       const void **ret_default)
{
    char word[MAX_NUMBER];
    char *end = word;

    if (text.len == 0 || text.len >= sizeof(word)) {
        return -EBADMSG;
    }
    memcpy(word, text.data, text.len);
    word[text.len] = '\0';
    errno = 0;
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        *ret_default = signed_default(schema, word, &end, 4);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        *ret_default = unsigned_default(schema, word, &end, 4);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        *ret_default = unsigned_default(schema, word, &end, 8);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *ret_default = real_default(schema, word, &end, 4);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *ret_default = real_default(schema, word, &end, 8);
        break;
    default:
        *ret_default = signed_default(schema, word, &end, 8);
        break;
    }
    if (*end != '\0' || errno == ERANGE) {
        return -EBADMSG;
    }
    return *ret_default != NULL ? 0 : -ENOMEM;
}

static int read_bool(struct bow_schema *schema, struct bow_slice text, const void **ret_default)
{
    protobuf_c_boolean value = is_word(text, "true");

    if (!value && !is_word(text, "false")) {
        return -EBADMSG;
    }
    *ret_default = keep(schema, &value, sizeof(value));
    return *ret_default != NULL ? 0 : -ENOMEM;
}

static int read_enum(struct bow_schema *schema, const Bow__Schema__Enum *values,
                     struct bow_slice text, const void **ret_default)
{
    for (size_t i = 0; i < values->n_value; i++) {
        if (values->value[i]->name != NULL && is_word(text, values->value[i]->name)) {
            *ret_default = keep(schema, &values->value[i]->number, sizeof(int32_t));
            return *ret_default != NULL ? 0 : -ENOMEM;
        }
    }
    return -EBADMSG;
}

/* C sees the text before a NUL. */
static int read_string(struct bow_schema *schema, struct bow_slice text, const void **ret_default)
{
    if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        return -EBADMSG;
    }
    *ret_default =
        bow__arena_dup(&schema->arena, text.len > 0 ? (const void *)text.data : "", text.len);
    return *ret_default != NULL ? 0 : -ENOMEM;
}

/* Bytes */

static unsigned digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - (unsigned)'0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10u : 16u;
}

/* What follows a backslash at `*at`; an escape of at most `max` digits of `base`. */
static uint8_t take_digits(struct bow_slice text, size_t *at, unsigned base, size_t max)
{
    unsigned value = 0;

    for (size_t n = 0; n < max && *at < text.len && digit(text.data[*at]) < base; n++) {
        value = value * base + digit(text.data[(*at)++]);
    }
    return (uint8_t)value;
}

static uint8_t take_escape(struct bow_slice text, size_t *at)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    uint8_t c = text.data[*at];

    if (digit(c) < 8) {
        return take_digits(text, at, 8, 3);
    }
    (*at)++;
    if (c == 'x' || c == 'X') {
        return take_digits(text, at, 16, 2);
    }
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    return letter != NULL ? (uint8_t)meanings[letter - letters] : c;
}

static int read_bytes(struct bow_schema *schema, struct bow_slice text, const void **ret_default)
{
    ProtobufCBinaryData *bytes = bow__arena_alloc(&schema->arena, sizeof(*bytes));
    uint8_t *data = bow__arena_alloc_bytes(&schema->arena, text.len);
    size_t len = 0;

    if (bytes == NULL || data == NULL) {
        return -ENOMEM;
    }
    for (size_t at = 0; at < text.len;) {
        uint8_t c = text.data[at++];
        if (c == '\\' && at == text.len) {
            return -EBADMSG;
        }
        data[len++] = c == '\\' ? take_escape(text, &at) : c;
    }
    *bytes = (ProtobufCBinaryData){.len = len, .data = data};
    *ret_default = bytes;
    return 0;
}

int bow__schema_default(struct bow_schema *schema, ProtobufCType type,
                        const Bow__Schema__Enum *values, struct bow_slice text,
                        const void **ret_default)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(schema, text, ret_default);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(schema, values, text, ret_default);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(schema, text, ret_default);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(schema, text, ret_default);
    case PROTOBUF_C_TYPE_MESSAGE:
        return -EBADMSG;
    default:
        return read_number(schema, type, text, ret_default);
    }
}
