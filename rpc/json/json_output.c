/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Room for the text, and the text of single values. */
#include "rpc/json/json_output.h"
#include "base/base64.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/json/decimal.h"
#include "rpc/json/json_bytes.h"
#include <math.h>

#define FIRST_BYTES 512u /* of a text in an arena */

/* Room */

void bow__json_output_begin(struct bow__json_output *out, struct bow__arena *arena, unsigned indent)
{
    out->arena = arena;
    out->begin = out->at = out->end = NULL;
    out->n_before = 0;
    out->left = out->left_end = NULL;
    out->indent = indent;
    out->level = 0;
    out->is_first = out->is_spilling = out->is_lost = out->no_memory = false;
}

void bow__json_output_begin_in(struct bow__json_output *out, char *text, size_t size,
                               unsigned indent)
{
    bow__json_output_begin(out, NULL, indent);
    out->begin = out->at = text;
    out->end = text + size;
}

/* Leave what stands from `begin` to `at` where it belongs, or drop it. */
static void settle(struct bow__json_output *out)
{
    size_t n = (size_t)(out->at - out->begin);

    out->n_before += n;
    if (!out->is_spilling) {
        out->left = out->at;
        out->left_end = out->end;
        return;
    }
    out->is_lost |= n > (size_t)(out->left_end - out->left);
    if (!out->is_lost) {
        memcpy(out->left, out->begin, n);
        out->left += n;
    }
}

static bool grow(struct bow__json_output *out, size_t n)
{
    size_t len = (size_t)(out->at - out->begin), size = (size_t)(out->end - out->begin), grown;

    if (__builtin_mul_overflow(size, 2, &grown)) {
        return false;
    }
    grown = grown < len + n ? len + n : grown;
    grown = grown < FIRST_BYTES ? FIRST_BYTES : grown;
    char *memory = bow__arena_alloc_bytes(out->arena, grown);
    if (memory == NULL) {
        return false;
    }
    if (len > 0) {
        memcpy(memory, out->begin, len);
    }
    out->begin = memory;
    out->at = memory + len;
    out->end = memory + grown;
    return true;
}

void bow__json_make_room(struct bow__json_output *out, size_t n)
{
    if (out->arena != NULL && !out->no_memory) {
        if (grow(out, n)) {
            return;
        }
        out->no_memory = out->is_lost = true;
    }
    settle(out);
    out->is_spilling = true;
    out->begin = out->at = out->spill;
    out->end = out->spill + sizeof out->spill;
}

size_t bow__json_output_end(struct bow__json_output *out)
{
    bow__json_put_char(out, '\0');
    if (out->arena != NULL && !out->is_lost) {
        bow__arena_give_back(out->arena, out->end, (size_t)(out->end - out->at));
        return (size_t)(out->at - out->begin) - 1;
    }
    settle(out);
    return out->n_before - 1;
}

/* Layout */

void bow__json_put_line(struct bow__json_output *out)
{
    bow__json_put_char(out, '\n');
    for (size_t left = (size_t)out->indent * out->level; left > 0;) {
        size_t n = left < BOW__JSON_SPILL_BYTES ? left : BOW__JSON_SPILL_BYTES;
        memset(bow__json_room(out, n), ' ', n);
        out->at += n;
        left -= n;
    }
}

/* Strings */

static char *escape(char *to, uint8_t c)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[] = "btn.fr"; /* from 8 on; 11 has none */

    *to++ = '\\';
    if (c == '"' || c == '\\') {
        *to++ = (char)c;
        return to;
    }
    if (c >= 8 && c <= 13 && c != 11) {
        *to++ = letters[c - 8];
        return to;
    }
    memcpy(to, "u00", 3);
    to[3] = digits[c >> 4];
    to[4] = digits[c & 15];
    return to + 5;
}

static inline char *put_one(char *to, uint8_t c)
{
    if (c < 0x20 || c == '"' || c == '\\') {
        return escape(to, c);
    }
    *to = (char)c;
    return to + 1;
}

/* At most 64 bytes, for which 6 times as many have room. Returns their bits together. */
static uint64_t put_piece(struct bow__json_output *out, const char *text, size_t len)
{
    char *to = out->at;
    uint64_t all = 0;

    while (len >= 8) {
        uint64_t word = bow__json_load(text);
        all |= word;
        memcpy(to, &word, sizeof word);
        if (bow__json_specials(word) == 0) {
            to += 8;
        } else {
            for (size_t i = 0; i < 8; i++) {
                to = put_one(to, (uint8_t)text[i]);
            }
        }
        text += 8;
        len -= 8;
    }
    for (; len > 0; len--, text++) {
        all |= (uint8_t)*text;
        to = put_one(to, (uint8_t)*text);
    }
    out->at = to;
    return all;
}

#define PIECE_BYTES ((size_t)64)

bool bow__json_put_string(struct bow__json_output *out, const char *text, size_t len)
{
    uint64_t all = 0;
    size_t n;

    bow__json_put_char(out, '"');
    for (size_t at = 0; at < len; at += n) {
        n = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;
        bow__json_room(out, 6 * PIECE_BYTES);
        all |= put_piece(out, text + at, n);
    }
    bow__json_put_char(out, '"');
    return (all & BOW__JSON_HIGHS) == 0 ||
           bow__utf8_prefix((struct bow_slice){(const uint8_t *)text, len}, true) == len;
}

#define BYTES_PIECE ((size_t)300) /* 400 characters */

void bow__json_put_bytes(struct bow__json_output *out, struct bow_slice bytes)
{
    bow__json_put_char(out, '"');
    while (bytes.len > 0) {
        size_t n = bytes.len < BYTES_PIECE ? bytes.len : BYTES_PIECE;
        char *to = bow__json_room(out, BYTES_PIECE / 3 * 4 + 4);
        out->at = to + bow__base64_encode_padded((struct bow_slice){bytes.data, n}, to);
        bytes.data += n;
        bytes.len -= n;
    }
    bow__json_put_char(out, '"');
}

/* Numbers */

void bow__json_put_u64(struct bow__json_output *out, uint64_t value)
{
    out->at = bow__decimal_write_u64(bow__json_room(out, BOW__DECIMAL_BYTES), value);
}

void bow__json_put_i64(struct bow__json_output *out, int64_t value)
{
    out->at = bow__decimal_write_i64(bow__json_room(out, BOW__DECIMAL_BYTES), value);
}

static void put_infinite(struct bow__json_output *out, double value)
{
    bow__json_put(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void bow__json_put_double(struct bow__json_output *out, double value)
{
    if (!isfinite(value)) {
        put_infinite(out, value);
        return;
    }
    out->at = bow__decimal_write_double(bow__json_room(out, BOW__DECIMAL_BYTES), value);
}

void bow__json_put_float(struct bow__json_output *out, float value)
{
    if (!isfinite(value)) {
        put_infinite(out, (double)value);
        return;
    }
    out->at = bow__decimal_write_float(bow__json_room(out, BOW__DECIMAL_BYTES), value);
}
