/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A google.rpc.Status with a RetryInfo; knows nothing of trailers. */

#include "rpc/web/retry_info.h"
#include "rpc/core/codec/wire.h"

#include <string.h>

#define TYPE_NAME "/google.rpc.RetryInfo"
#define TYPE_URL "type.googleapis.com" TYPE_NAME

/* What the messages inside take at most; so each length is one byte. */
#define MAX_DURATION_BYTES ((size_t)17)

#define MAX_DELAY_S ((uint64_t)INT32_MAX / 1000)
#define NS_PER_S UINT64_C(1000000000)

/* Writing */

static uint8_t *put_number(uint8_t *to, uint32_t field, uint64_t value)
{
    if (value == 0) {
        return to; /* proto3's default */
    }
    to = bow__wire_write_varint(to, bow__wire_tag(field, BOW__WIRE_VARINT));
    return bow__wire_write_varint(to, value);
}

static uint8_t *put_head(uint8_t *to, uint32_t field, size_t len)
{
    to = bow__wire_write_varint(to, bow__wire_tag(field, BOW__WIRE_LEN));
    return bow__wire_write_varint(to, len);
}

static uint8_t *put_bytes(uint8_t *to, uint32_t field, const void *bytes, size_t len)
{
    to = put_head(to, field, len);
    memcpy(to, bytes, len);
    return to + len;
}

/* The Any: its type, and the RetryInfo with the Duration in it. */
static uint8_t *put_retry_info(uint8_t *to, uint64_t delay_ms)
{
    uint8_t duration[MAX_DURATION_BYTES];

    uint8_t *end = put_number(duration, 1, delay_ms / 1000);
    end = put_number(end, 2, delay_ms % 1000 * 1000000);
    size_t len = (size_t)(end - duration);
    size_t info_len = 2 + len;
    to = put_head(to, 3, 2 + strlen(TYPE_URL) + 2 + info_len);
    to = put_bytes(to, 1, TYPE_URL, strlen(TYPE_URL));
    to = put_head(to, 2, info_len);
    return put_bytes(to, 1, duration, len);
}

size_t bow__retry_info_encode(enum bow_code code, struct bow_slice message, uint64_t delay_ms,
                              uint8_t out[BOW__RETRY_INFO_BYTES])
{
    uint8_t *to = put_number(out, 1, (uint64_t)code);

    if (message.len > 0) {
        to = put_bytes(to, 2, message.data, message.len);
    }
    return (size_t)(put_retry_info(to, delay_ms) - out);
}

/* Reading */

struct field {
    uint32_t number;
    enum bow__wire_type type;
    uint64_t value;         /* of a varint */
    struct bow_slice bytes; /* of what has a length */
};

static bool take_bytes(struct bow_slice *rest, uint64_t n, struct bow_slice *ret_bytes)
{
    if (n > rest->len) {
        return false;
    }
    *ret_bytes = (struct bow_slice){rest->data, (size_t)n};
    rest->data += n;
    rest->len -= (size_t)n;
    return true;
}

static bool take_varint(struct bow_slice *rest, uint64_t *ret_value)
{
    struct bow_slice taken;

    int n = bow__wire_decode_varint(*rest, ret_value);
    return n > 0 && take_bytes(rest, (uint64_t)n, &taken);
}

/* The next field of a message; false at its end, or for what is none. */
static bool next(struct bow_slice *rest, struct field *ret_field)
{
    uint64_t tag = 0;

    *ret_field = (struct field){0};
    if (!take_varint(rest, &tag) || tag > UINT32_MAX) {
        return false;
    }
    ret_field->number = (uint32_t)tag >> 3;
    ret_field->type = (enum bow__wire_type)(tag & 7);
    switch (ret_field->type) {
    case BOW__WIRE_VARINT:
        return take_varint(rest, &ret_field->value);
    case BOW__WIRE_LEN:
        return take_varint(rest, &ret_field->value) &&
               take_bytes(rest, ret_field->value, &ret_field->bytes);
    case BOW__WIRE_FIXED64:
        return take_bytes(rest, 8, &ret_field->bytes);
    case BOW__WIRE_FIXED32:
        return take_bytes(rest, 4, &ret_field->bytes);
    case BOW__WIRE_GROUP_START:
    case BOW__WIRE_GROUP_END:
        break;
    }
    return false;
}

/* The last of the fields with that number, as protobuf says; empty when there is none. */
static struct bow_slice find_bytes(struct bow_slice message, uint32_t number)
{
    struct bow_slice found = {NULL, 0};
    struct field field;

    while (next(&message, &field)) {
        if (field.number == number && field.type == BOW__WIRE_LEN) {
            found = field.bytes;
        }
    }
    return found;
}

static uint64_t find_number(struct bow_slice message, uint32_t number)
{
    uint64_t found = 0;
    struct field field;

    while (next(&message, &field)) {
        if (field.number == number && field.type == BOW__WIRE_VARINT) {
            found = field.value;
        }
    }
    return found;
}

static bool is_retry_info(struct bow_slice any)
{
    struct bow_slice url = find_bytes(any, 1);
    size_t len = strlen(TYPE_NAME);

    return url.len >= len && memcmp(url.data + url.len - len, TYPE_NAME, len) == 0;
}

/* Negative ones are huge here. */
static uint64_t read_duration(struct bow_slice duration)
{
    uint64_t seconds = find_number(duration, 1);
    uint64_t ns = find_number(duration, 2);

    return seconds < MAX_DELAY_S && ns < NS_PER_S ? seconds * NS_PER_S + ns : 0;
}

uint64_t bow__retry_info_find(struct bow_slice status)
{
    struct field field;

    while (next(&status, &field)) {
        if (field.number == 3 && field.type == BOW__WIRE_LEN && is_retry_info(field.bytes)) {
            return read_duration(find_bytes(find_bytes(field.bytes, 2), 1));
        }
    }
    return 0;
}
