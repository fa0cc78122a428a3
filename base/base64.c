/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Base64, four characters for three bytes. */
#include "base/base64.h"
#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t bow__base64_encode(struct bow_slice bytes, char *out)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.len;
    char *to = out;

    for (; left >= 3; left -= 3, at += 3) {
        uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
        to[0] = alphabet[bits >> 18];
        to[1] = alphabet[bits >> 12 & 63];
        to[2] = alphabet[bits >> 6 & 63];
        to[3] = alphabet[bits & 63];
        to += 4;
    }
    if (left > 0) {
        uint32_t bits = (uint32_t)at[0] << 8 | (left > 1 ? at[1] : 0u);
        *to++ = alphabet[bits >> 10];
        *to++ = alphabet[bits >> 4 & 63];
        if (left > 1) {
            *to++ = alphabet[bits << 2 & 63];
        }
    }
    return (size_t)(to - out);
}

#define NO 0xff
/* Of each character; both alphabets. */
static const uint8_t values[256] = {
#define NO4 NO, NO, NO, NO
#define NO16 NO4, NO4, NO4, NO4
#define NO128 NO16, NO16, NO16, NO16, NO16, NO16, NO16, NO16
    /* clang-format off */
    NO16, NO16,
    NO4, NO4, NO, NO, NO, 62, NO, 62, NO, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO4,
    NO, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NO, NO, NO, NO, 63,
    NO, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, NO, NO4,
    NO128
    /* clang-format on */
};

int bow__base64_decode(struct bow_slice text, uint8_t *out, size_t *ret_len)
{
    const uint8_t *at = text.data;
    size_t left = text.len;
    uint8_t *to = out;

    if (left % 4 == 0 && left > 0 && at[left - 1] == '=') { /* padding fills up the last four */
        left -= at[left - 2] == '=' ? 2 : 1;
    }
    for (; left >= 4; left -= 4, at += 4) {
        uint8_t a = values[at[0]], b = values[at[1]], c = values[at[2]], d = values[at[3]];
        if (((a | b | c | d) & 0x80) != 0) {
            return -EBADMSG;
        }
        *to++ = (uint8_t)(a << 2 | b >> 4);
        *to++ = (uint8_t)(b << 4 | c >> 2);
        *to++ = (uint8_t)(c << 6 | d);
    }
    if (left == 0) {
        *ret_len = (size_t)(to - out);
        return 0;
    }
    uint8_t a = values[at[0]], b = left > 1 ? values[at[1]] : NO, c = left > 2 ? values[at[2]] : 0;
    if (((a | b | c) & 0x80) != 0) {
        return -EBADMSG;
    }
    *to++ = (uint8_t)(a << 2 | b >> 4);
    if (left > 2) {
        *to++ = (uint8_t)(b << 4 | c >> 2);
    }
    *ret_len = (size_t)(to - out);
    return 0;
}
