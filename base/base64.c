/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Base64, four characters for three bytes. */
#include "base/base64.h"
#include <errno.h>
#include <string.h>

/*
 * Two characters for each 12 bits. It takes 8 KiB; with a look-up for each character to write 300
 * bytes takes 2.5 times as long, and half of the JSON of a store's values is written here.
 */
/* clang-format off */
#define PAIRS_OF(a) \
    {a, 'A'}, {a, 'B'}, {a, 'C'}, {a, 'D'}, {a, 'E'}, {a, 'F'}, {a, 'G'}, {a, 'H'}, \
    {a, 'I'}, {a, 'J'}, {a, 'K'}, {a, 'L'}, {a, 'M'}, {a, 'N'}, {a, 'O'}, {a, 'P'}, \
    {a, 'Q'}, {a, 'R'}, {a, 'S'}, {a, 'T'}, {a, 'U'}, {a, 'V'}, {a, 'W'}, {a, 'X'}, \
    {a, 'Y'}, {a, 'Z'}, {a, 'a'}, {a, 'b'}, {a, 'c'}, {a, 'd'}, {a, 'e'}, {a, 'f'}, \
    {a, 'g'}, {a, 'h'}, {a, 'i'}, {a, 'j'}, {a, 'k'}, {a, 'l'}, {a, 'm'}, {a, 'n'}, \
    {a, 'o'}, {a, 'p'}, {a, 'q'}, {a, 'r'}, {a, 's'}, {a, 't'}, {a, 'u'}, {a, 'v'}, \
    {a, 'w'}, {a, 'x'}, {a, 'y'}, {a, 'z'}, {a, '0'}, {a, '1'}, {a, '2'}, {a, '3'}, \
    {a, '4'}, {a, '5'}, {a, '6'}, {a, '7'}, {a, '8'}, {a, '9'}, {a, '+'}, {a, '/'},
static const char pairs[64 * 64][2] = {
    PAIRS_OF('A') PAIRS_OF('B') PAIRS_OF('C') PAIRS_OF('D') PAIRS_OF('E') PAIRS_OF('F')
    PAIRS_OF('G') PAIRS_OF('H') PAIRS_OF('I') PAIRS_OF('J') PAIRS_OF('K') PAIRS_OF('L')
    PAIRS_OF('M') PAIRS_OF('N') PAIRS_OF('O') PAIRS_OF('P') PAIRS_OF('Q') PAIRS_OF('R')
    PAIRS_OF('S') PAIRS_OF('T') PAIRS_OF('U') PAIRS_OF('V') PAIRS_OF('W') PAIRS_OF('X')
    PAIRS_OF('Y') PAIRS_OF('Z') PAIRS_OF('a') PAIRS_OF('b') PAIRS_OF('c') PAIRS_OF('d')
    PAIRS_OF('e') PAIRS_OF('f') PAIRS_OF('g') PAIRS_OF('h') PAIRS_OF('i') PAIRS_OF('j')
    PAIRS_OF('k') PAIRS_OF('l') PAIRS_OF('m') PAIRS_OF('n') PAIRS_OF('o') PAIRS_OF('p')
    PAIRS_OF('q') PAIRS_OF('r') PAIRS_OF('s') PAIRS_OF('t') PAIRS_OF('u') PAIRS_OF('v')
    PAIRS_OF('w') PAIRS_OF('x') PAIRS_OF('y') PAIRS_OF('z') PAIRS_OF('0') PAIRS_OF('1')
    PAIRS_OF('2') PAIRS_OF('3') PAIRS_OF('4') PAIRS_OF('5') PAIRS_OF('6') PAIRS_OF('7')
    PAIRS_OF('8') PAIRS_OF('9') PAIRS_OF('+') PAIRS_OF('/')
};
/* clang-format on */

static inline void write_four(char *to, uint32_t bits)
{
    memcpy(to, pairs[bits >> 12], 2);
    memcpy(to + 2, pairs[bits & 0xfff], 2);
}

size_t bow__base64_encode(struct bow_slice bytes, char *out)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.len;
    char *to = out;

    for (; left >= 3; left -= 3, at += 3, to += 4) {
        write_four(to, (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]);
    }
    if (left > 0) {
        char last[4];

        write_four(last, (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0));
        memcpy(to, last, left + 1);
        to += left + 1;
    }
    return (size_t)(to - out);
}

size_t bow__base64_encode_padded(struct bow_slice bytes, char *out)
{
    size_t len = bow__base64_encode(bytes, out);

    while (len % 4 != 0) {
        out[len++] = '=';
    }
    return len;
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
