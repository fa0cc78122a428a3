/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Time-outs and percent-encoding as gRPC writes them. Knows nothing of frames and streams.
 */

#include "rpc/web/grpc_text.h"
#include "rpc/core/codec/utf8.h"

#include <bowline/system.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct unit {
    char name;
    uint64_t ns;
};

static const struct unit units[] = {
    {'n', 1},
    {'u', 1000},
    {'m', 1000000},
    {'S', 1000000000},
    {'M', UINT64_C(60) * 1000000000},
    {'H', UINT64_C(3600) * 1000000000},
};

#define N_UNITS (sizeof(units) / sizeof(units[0]))
#define MAX_DIGITS ((size_t)8)
#define MAX_VALUE UINT64_C(99999999)

static size_t write_timeout(uint64_t value, char unit, char *out)
{
    char digits[MAX_DIGITS];
    size_t n = 0;

    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++) {
        out[i] = digits[n - 1 - i];
    }
    out[n] = unit;
    return n + 1;
}

size_t bow__grpc_timeout_encode(uint64_t timeout_ns, char out[BOW__GRPC_TIMEOUT_BYTES])
{
    size_t i = 0;
    uint64_t value = timeout_ns == 0 ? 1 : timeout_ns;

    /* 2^64 ns are five million hours, so the last unit always holds it. */
    while (value > MAX_VALUE && i + 1 < N_UNITS) {
        i++;
        value = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
    }
    return write_timeout(value, units[i].name, out);
}

static const struct unit *find_unit(uint8_t name)
{
    for (size_t i = 0; i < N_UNITS; i++) {
        if ((uint8_t)units[i].name == name) {
            return &units[i];
        }
    }
    return NULL;
}

int bow__grpc_timeout_decode(struct bow_slice text, uint64_t *ret_timeout_ns)
{
    if (text.len < 2 || text.len > MAX_DIGITS + 1) {
        return -EBADMSG;
    }
    const struct unit *unit = find_unit(text.data[text.len - 1]);
    if (unit == NULL) {
        return -EBADMSG;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < text.len - 1; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -EBADMSG;
        }
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (__builtin_mul_overflow(value, unit->ns, ret_timeout_ns)) {
        *ret_timeout_ns = BOW_NEVER;
    }
    return 0;
}

/* A value that begins or ends with a blank is malformed (RFC 9113, 8.2.1). */
static bool is_plain(struct bow_slice text, size_t pos)
{
    uint8_t byte = text.data[pos];

    if (byte == ' ') {
        return pos > 0 && pos + 1 < text.len;
    }
    return byte > 0x20 && byte <= 0x7E && byte != '%';
}

size_t bow__grpc_percent_size(struct bow_slice text)
{
    size_t size = 0;

    for (size_t i = 0; i < text.len; i++) {
        size += is_plain(text, i) ? 1 : 3;
    }
    return size;
}

size_t bow__grpc_percent_encode(struct bow_slice text, char *out)
{
    static const char hex[] = "0123456789ABCDEF";
    char *at = out;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.data[i];
        if (is_plain(text, i)) {
            *at++ = (char)byte;
            continue;
        }
        *at++ = '%';
        *at++ = hex[byte >> 4];
        *at++ = hex[byte & 15];
    }
    return (size_t)(at - out);
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The byte at `*pos`, which moves behind it. */
static uint8_t percent_byte(struct bow_slice text, size_t *pos)
{
    uint8_t byte = text.data[(*pos)++];
    if (byte != '%' || text.len - *pos < 2) {
        return byte;
    }
    int high = hex_digit(text.data[*pos]);
    int low = hex_digit(text.data[*pos + 1]);
    if (high < 0 || low < 0) {
        return byte;
    }
    *pos += 2;
    return (uint8_t)(high << 4 | low);
}

static void replace_what_is_not_text(uint8_t *bytes, size_t len)
{
    size_t at = 0;

    while (at < len) {
        at += bow__utf8_prefix((struct bow_slice){bytes + at, len - at}, false);
        if (at < len) {
            bytes[at++] = '?';
        }
    }
}

size_t bow__grpc_percent_decode(struct bow_slice text, char *out, size_t cap)
{
    uint8_t *bytes = (uint8_t *)out;
    size_t pos = 0;
    size_t len = 0;

    while (pos < text.len && len < cap - 1) {
        bytes[len++] = percent_byte(text, &pos);
    }
    if (pos < text.len) {
        /* Whether the last character is whole shows only by the byte that did not fit. */
        bool splits = (percent_byte(text, &pos) & 0xC0) == 0x80;
        while (splits && len > 0) {
            splits = (bytes[--len] & 0xC0) == 0x80;
        }
    }
    replace_what_is_not_text(bytes, len);
    out[len] = '\0';
    return len;
}

size_t bow__grpc_text_cut(struct bow_slice text, size_t max)
{
    if (text.len <= max) {
        return text.len;
    }
    while (max > 0 && (text.data[max] & 0xC0) == 0x80) {
        max--;
    }
    return max;
}
