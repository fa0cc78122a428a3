/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A text that grows. Knows nothing of what is in it. */
#include "rpc/schema/proto_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)1024)
#define BLANKS_PER_LEVEL 2

void bow__proto_text_fini(struct bow__proto_text *text)
{
    free(text->bytes);
    *text = (struct bow__proto_text){0};
}

/* Room for `n` more and a NUL. */
static bool make_room(struct bow__proto_text *text, size_t n)
{
    size_t size = text->size > 0 ? text->size : FIRST_BYTES;

    if (text->failed || n < text->size - text->len) {
        return !text->failed;
    }
    while (size - text->len <= n) {
        size *= 2;
    }
    char *bytes = realloc(text->bytes, size);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->size = size;
    return true;
}

static void put(struct bow__proto_text *text, const char *bytes, size_t n)
{
    if (make_room(text, n)) {
        memcpy(text->bytes + text->len, bytes, n);
        text->len += n;
        text->bytes[text->len] = '\0';
    }
}

void bow__proto_text_indent(struct bow__proto_text *text)
{
    for (unsigned i = 0; i < text->level * BLANKS_PER_LEVEL; i++) {
        put(text, " ", 1);
    }
}

void bow__proto_text_printf(struct bow__proto_text *text, const char *format, ...)
{
    va_list args;
    va_list again;

    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && make_room(text, (size_t)n)) {
        (void)vsnprintf(text->bytes + text->len, (size_t)n + 1, format, again);
        text->len += (size_t)n;
    }
    va_end(again);
}

void bow__proto_text_put(struct bow__proto_text *text, struct bow_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.data[i] < ' ' || bytes.data[i] == 0x7f) {
            bow__proto_text_printf(text, "\\%03o", bytes.data[i]);
        } else {
            put(text, (const char *)&bytes.data[i], 1);
        }
    }
}

void bow__proto_text_quote(struct bow__proto_text *text, struct bow_slice bytes)
{
    put(text, "\"", 1);
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.data[i];
        if (c == '"' || c == '\\') {
            bow__proto_text_printf(text, "\\%c", c);
        } else if (c == '\n') {
            put(text, "\\n", 2);
        } else if (c < ' ' || c == 0x7f) {
            bow__proto_text_printf(text, "\\%03o", c);
        } else {
            put(text, (const char *)&bytes.data[i], 1);
        }
    }
    put(text, "\"", 1);
}
