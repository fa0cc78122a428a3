/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Building a short text. A cut is visible ("...") and never splits a UTF-8
 * sequence or an escape, for a status message must stay valid UTF-8. Knows
 * nothing of where the text goes.
 */

#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char dots[] = "...";
#define N_DOTS (sizeof(dots) - 1)
#define MAX_LEN ((size_t)BOW__TEXT_BYTES - 1)

/* The largest length <= `len` at which neither a UTF-8 sequence nor an escape is split. */
static size_t whole_len(const char *bytes, size_t len)
{
    while (len > 0 && ((unsigned char)bytes[len] & 0xC0) == 0x80) {
        len--;
    }
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        if (bytes[len - back] == '\\' && bytes[len - back + 1] == 'x') {
            return len - back;
        }
    }
    return len;
}

static void cut(struct bow__text *text)
{
    size_t len = whole_len(text->bytes, MAX_LEN - N_DOTS);

    memcpy(text->bytes + len, dots, sizeof(dots));
    text->len = len + N_DOTS;
    text->full = true;
}

void bow__text_vprintf(struct bow__text *text, const char *format, va_list args)
{
    size_t room = sizeof(text->bytes) - text->len;

    if (text->full) {
        return;
    }
    int len = vsnprintf(text->bytes + text->len, room, format, args);
    if (len < 0) {
        text->bytes[text->len] = '\0';
        return;
    }
    if ((size_t)len >= room) {
        cut(text);
        return;
    }
    text->len += (size_t)len;
}

void bow__text_printf(struct bow__text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    bow__text_vprintf(text, format, args);
    va_end(args);
}

void bow__text_escape(struct bow__text *text, struct bow_slice bytes, size_t max)
{
    size_t n = bytes.len < max ? bytes.len : max;

    for (size_t i = 0; i < n && !text->full; i++) {
        uint8_t byte = bytes.data[i];
        bool is_plain = byte >= 0x20 && byte < 0x7F;
        bow__text_printf(text, is_plain ? "%c" : "\\x%02x", byte);
    }
    if (n < bytes.len) {
        bow__text_printf(text, "%s", dots);
    }
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

struct bow_slice bow__text_trim(struct bow_slice text)
{
    while (text.len > 0 && is_blank(text.data[0])) {
        text = (struct bow_slice){text.data + 1, text.len - 1};
    }
    while (text.len > 0 && is_blank(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

void bow__text_errno(struct bow__text *text, int err)
{
    int number = err == INT_MIN ? INT_MAX : abs(err);
    const char *name = strerrorname_np(number);
    const char *description = strerrordesc_np(number);

    if (name == NULL || description == NULL) {
        bow__text_printf(text, "errno %d", number);
        return;
    }
    bow__text_printf(text, "%s (%s)", name, description);
}
