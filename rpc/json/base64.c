/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Base64, four characters for three bytes. */
#include "rpc/json/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *write_four(char *to, uint32_t bits)
{
    to[0] = alphabet[bits >> 18];
    to[1] = alphabet[bits >> 12 & 63];
    to[2] = alphabet[bits >> 6 & 63];
    to[3] = alphabet[bits & 63];
    return to + 4;
}

char *bow__base64_write(char *to, struct bow_slice bytes)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.len;

    for (; left >= 3; left -= 3, at += 3) {
        to = write_four(to, (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]);
    }
    if (left > 0) {
        uint32_t second = left > 1 ? at[1] : 0;
        to = write_four(to, (uint32_t)at[0] << 16 | second << 8);
        to[-1] = '=';
        if (left == 1) {
            to[-2] = '=';
        }
    }
    return to;
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

size_t bow__base64_read(uint8_t *to, struct bow_slice text)
{
    const uint8_t *at = text.data;
    size_t left = text.len;
    uint8_t *begin = to;

    if (left % 4 == 0 && left > 0 && at[left - 1] == '=') { /* padding fills up the last four */
        left -= at[left - 2] == '=' ? 2 : 1;
    }
    for (; left >= 4; left -= 4, at += 4) {
        uint8_t a = values[at[0]], b = values[at[1]], c = values[at[2]], d = values[at[3]];
        if (((a | b | c | d) & 0x80) != 0) {
            return SIZE_MAX;
        }
        *to++ = (uint8_t)(a << 2 | b >> 4);
        *to++ = (uint8_t)(b << 4 | c >> 2);
        *to++ = (uint8_t)(c << 6 | d);
    }
    if (left == 0) {
        return (size_t)(to - begin);
    }
    uint8_t a = values[at[0]], b = left > 1 ? values[at[1]] : NO, c = left > 2 ? values[at[2]] : 0;
    if (((a | b | c) & 0x80) != 0) {
        return SIZE_MAX;
    }
    *to++ = (uint8_t)(a << 2 | b >> 4);
    if (left > 2) {
        *to++ = (uint8_t)(b << 4 | c >> 2);
    }
    return (size_t)(to - begin);
}
