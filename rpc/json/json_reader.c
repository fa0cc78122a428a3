/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The grammar of JSON (RFC 8259), to the letter. Knows nothing of messages, but for reasons. */
#include "rpc/json/json_reader.h"
#include "base/hints.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/codec/wire.h"
#include "rpc/json/json_bytes.h"
#include <stdio.h>

/* Reasons */

/* Line and column, from 1 on; the column in characters, which begin with other bytes than 10xxxxxx.
 */
static void say_position(struct bow__json_reader *r, const uint8_t *at)
{
    size_t line = 1, column = 1;

    for (const uint8_t *c = r->begin; c < at; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else {
            column += (*c & 0xc0) != 0x80;
        }
    }
    bow__text_printf(&r->reason, " at %zu:%zu: ", line, column);
}

bool bow__json_refuse(struct bow__json_reader *r, const uint8_t *at, const char *what, ...)
{
    va_list args;

    if (r->error != 0) { /* the first reason counts */
        return false;
    }
    r->error = -EBADMSG;
    bow__json_path_append(&r->path, &r->reason);
    say_position(r, at);
    va_start(args, what);
    bow__text_vprintf(&r->reason, what, args);
    va_end(args);
    return false;
}

bool bow__json_refuse_next(struct bow__json_reader *r, const char *what)
{
    return bow__json_peek(r) == '\0' && r->at == r->end
               ? bow__json_refuse(r, r->at, "the text ends where %s is needed", what)
               : bow__json_refuse(r, r->at, "%s is needed", what);
}

bool bow__json_no_memory(struct bow__json_reader *r)
{
    bow__json_refuse(r, r->at, "no memory: %zu bytes used of the at most %zu of the arena",
                     r->arena->used, r->arena->max_bytes);
    r->error = -ENOMEM;
    return false;
}

bool bow__json_too_deep(struct bow__json_reader *r)
{
    return bow__json_refuse(r, r->at, "nested deeper than %zu levels", r->path.max_depth);
}

/* Words and punctuation */

bool bow__json_take_word(struct bow__json_reader *r, const char *word)
{
    size_t len = strlen(word);

    if (bow__json_peek(r) != word[0] || (size_t)(r->end - r->at) < len ||
        memcmp(r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

bool bow__json_has_next(struct bow__json_reader *r, char bracket)
{
    if (bow__json_take(r, ',')) {
        return true;
    }
    if (!bow__json_take(r, bracket)) {
        bow__json_refuse_next(r, bracket == '}' ? "',' or '}'" : "',' or ']'");
    }
    return false;
}

bool bow__json_read_name(struct bow__json_reader *r, struct bow_slice *ret_name)
{
    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "a name in quotation marks");
    }
    return bow__json_read_text(r, ret_name) &&
           (bow__json_take(r, ':') || bow__json_refuse_next(r, "':'"));
}

/* Strings */

/* A string as it stands in the text, without its quotation marks. */
struct raw {
    struct bow_slice text;
    bool has_escapes;
};

static size_t first_special(uint64_t specials)
{
    return BOW__WIRE_IS_LITTLE_ENDIAN ? (size_t)__builtin_ctzll(specials) / 8
                                      : (size_t)__builtin_clzll(specials) / 8;
}

/* Where the run of plain characters from `at` on ends; their bits are added to `*all`. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end, uint64_t *all)
{
    while (end - at >= 8) {
        uint64_t word = bow__json_load(at), specials = bow__json_specials(word);
        *all |= word;
        if (specials != 0) {
            return at + first_special(specials);
        }
        at += 8;
    }
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\') {
        *all |= *at++;
    }
    return at;
}

static bool find_raw(struct bow__json_reader *r, struct raw *ret_raw)
{
    const uint8_t *begin = r->at + 1, *at = begin;
    uint64_t all = 0;

    ret_raw->has_escapes = false;
    for (;;) {
        at = plain_end(at, r->end, &all);
        if (at < r->end && *at == '"') {
            break;
        }
        if (at >= r->end || (*at == '\\' && r->end - at < 2)) {
            return bow__json_refuse(r, r->at, "a string without an end");
        }
        if (*at != '\\') {
            return bow__json_refuse(r, at, "a control character, which has to be escaped");
        }
        ret_raw->has_escapes = true;
        at += 2;
    }
    ret_raw->text = (struct bow_slice){begin, (size_t)(at - begin)};
    if ((all & BOW__JSON_HIGHS) != 0) { /* maybe of what stands behind it */
        size_t n_good = bow__utf8_prefix(ret_raw->text, true);
        if (n_good < ret_raw->text.len) {
            return bow__json_refuse(r, begin + n_good, "not UTF-8");
        }
    }
    return true;
}

static int32_t hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The unit that four digits at `at` are; -1 when they are none. */
static int32_t utf16_unit(const uint8_t *at, const uint8_t *end)
{
    int32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        int32_t digit = at + i < end ? hex_digit(at[i]) : -1;
        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The character of a \u escape, whose digits begin at `*at`; -1 when it is none. */
static int32_t escaped_character(const uint8_t **at, const uint8_t *end)
{
    int32_t high = utf16_unit(*at, end);

    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff)) {
        return -1;
    }
    *at += 4;
    if (high < 0xd800 || high > 0xdbff) {
        return high;
    }
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') {
        return -1;
    }
    int32_t low = utf16_unit(*at + 2, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return -1;
    }
    *at += 6;
    return 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
}

static size_t put_character(uint8_t *to, int32_t c)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        to[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (uint8_t)((0xf00u >> n & 0xf0u) | (uint32_t)c);
    return n;
}

/* The character of the escape at `*at`, which is moved behind it; -1 when it is none. */
static int32_t escape(const uint8_t **at, const uint8_t *end)
{
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    uint8_t c = (*at)[1]; /* find_raw() has seen it */

    *at += 2;
    if (c == 'u') {
        return escaped_character(at, end);
    }
    for (size_t i = 0; i < sizeof letters - 1; i += 2) {
        if (letters[i] == (char)c) {
            return letters[i + 1];
        }
    }
    return -1;
}

/* Write what `raw` stands for, which is not longer; `to` NULL: only look whether it is good. */
BOW__LONG_WAY static bool unescape(struct bow__json_reader *r, struct bow_slice raw, uint8_t *to,
                                   size_t *ret_len)
{
    const uint8_t *at = raw.data, *end = raw.data + raw.len;
    uint8_t character[4];
    size_t len = 0;

    while (at < end) {
        const uint8_t *begin = at;
        if (*at != '\\') {
            const uint8_t *next = memchr(at, '\\', (size_t)(end - at));
            size_t n = (size_t)((next != NULL ? next : end) - at);
            if (to != NULL) {
                memcpy(to + len, at, n);
            }
            at += n;
            len += n;
            continue;
        }
        int32_t c = escape(&at, end);
        if (c < 0) {
            return bow__json_refuse(r, begin,
                                    "no escape that JSON has, or half of a surrogate pair");
        }
        len += put_character(to != NULL ? to + len : character, c);
    }
    *ret_len = len;
    return true;
}

bool bow__json_read_text(struct bow__json_reader *r, struct bow_slice *ret_text)
{
    struct raw raw;

    if (!find_raw(r, &raw)) {
        return false;
    }
    *ret_text = raw.text;
    if (raw.has_escapes) {
        uint8_t *to = bow__arena_alloc_bytes(r->arena, raw.text.len);
        if (to == NULL) {
            return bow__json_no_memory(r);
        }
        if (!unescape(r, raw.text, to, &ret_text->len)) {
            return false;
        }
        ret_text->data = to;
    }
    r->at = raw.text.data + raw.text.len + 1;
    return true;
}

bool bow__json_read_string(struct bow__json_reader *r, char **ret_text)
{
    struct raw raw;
    size_t len;

    if (bow__json_peek(r) != '"') {
        return bow__json_refuse_next(r, "a string");
    }
    if (!find_raw(r, &raw)) {
        return false;
    }
    len = raw.text.len;
    char *to = bow__arena_alloc_bytes(r->arena, len + 1);
    if (to == NULL) {
        return bow__json_no_memory(r);
    }
    if (!raw.has_escapes) {
        memcpy(to, raw.text.data, len);
    } else if (!unescape(r, raw.text, (uint8_t *)to, &len)) {
        return false;
    } else if (memchr(to, '\0', len) != NULL) {
        return bow__json_refuse(r, r->at, "a NUL, which would end the string");
    }
    to[len] = '\0';
    *ret_text = to;
    r->at = raw.text.data + raw.text.len + 1;
    return true;
}

/* Numbers */

bool bow__json_read_number(struct bow__json_reader *r, struct bow__decimal *ret_number)
{
    char c = bow__json_peek(r);
    const uint8_t *begin = r->at;

    if (c != '"') {
        size_t len =
            bow__decimal_read((struct bow_slice){r->at, (size_t)(r->end - r->at)}, ret_number);
        if (len == 0) {
            return bow__json_refuse_next(r, "a number");
        }
        r->at += len;
        return true;
    }
    struct bow_slice text;
    if (!bow__json_read_text(r, &text)) {
        return false;
    }
    if (text.len == 0 || bow__decimal_read(text, ret_number) != text.len) {
        return bow__json_refuse(r, begin, "a number is needed");
    }
    return true;
}

/* What is ignored */

static bool skip_string(struct bow__json_reader *r)
{
    struct raw raw;
    size_t len;

    if (!find_raw(r, &raw) || (raw.has_escapes && !unescape(r, raw.text, NULL, &len))) {
        return false;
    }
    r->at = raw.text.data + raw.text.len + 1;
    return true;
}

static bool skip_members(struct bow__json_reader *r, char bracket, size_t depth)
{
    r->at++;
    if (bow__json_take(r, bracket)) {
        return true;
    }
    do {
        if (bracket == '}') {
            if (bow__json_peek(r) != '"') {
                return bow__json_refuse_next(r, "a name in quotation marks");
            }
            if (!skip_string(r)) {
                return false;
            }
            if (!bow__json_take(r, ':')) {
                return bow__json_refuse_next(r, "':'");
            }
        }
        if (!bow__json_skip(r, depth)) {
            return false;
        }
    } while (bow__json_has_next(r, bracket));
    return r->error == 0;
}

bool bow__json_skip(struct bow__json_reader *r, size_t depth)
{
    struct bow__decimal number;
    char c = bow__json_peek(r);

    if (c == '{' || c == '[') {
        if (r->path.depth + depth >= r->path.max_depth) {
            return bow__json_too_deep(r);
        }
        return skip_members(r, c == '{' ? '}' : ']', depth + 1);
    }
    if (c == '"') {
        return skip_string(r);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return bow__json_read_number(r, &number);
    }
    return bow__json_take_word(r, "null") || bow__json_take_word(r, "true") ||
           bow__json_take_word(r, "false") || bow__json_refuse_next(r, "a value");
}
