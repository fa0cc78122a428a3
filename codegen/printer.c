/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Growing text, templates, and C's spelling of strings and comments.
 */

#include "codegen/printer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAP ((size_t)4096)

void printer_init(struct printer *printer, struct memory *memory)
{
    *printer = (struct printer){.memory = memory};
}

static void reserve(struct printer *printer, size_t len)
{
    if (len <= printer->cap - printer->len) {
        return;
    }
    size_t cap = printer->cap > 0 ? printer->cap : FIRST_CAP;
    while (cap - printer->len < len) {
        cap *= 2;
    }
    char *bytes = memory_alloc(printer->memory, cap);
    if (printer->len > 0) {
        memcpy(bytes, printer->bytes, printer->len);
    }
    printer->bytes = bytes;
    printer->cap = cap;
}

static void put_bytes(struct printer *printer, const char *bytes, size_t len)
{
    if (len == 0) {
        return;
    }
    reserve(printer, len);
    memcpy(printer->bytes + printer->len, bytes, len);
    printer->len += len;
}

void printer_text(struct printer *printer, const char *text)
{
    put_bytes(printer, text, strlen(text));
}

void printer_vprintf(struct printer *printer, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len > 0) {
        /* vsnprintf writes a NUL, which the next text overwrites */
        reserve(printer, (size_t)len + 1);
        vsnprintf(printer->bytes + printer->len, (size_t)len + 1, format, args);
        printer->len += (size_t)len;
    }
}

void printer_printf(struct printer *printer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printer_vprintf(printer, format, args);
    va_end(args);
}

static const char *value_of(const struct printer_var *vars, const char *name, size_t len)
{
    for (; vars->name != NULL; vars++) {
        if (strlen(vars->name) == len && memcmp(vars->name, name, len) == 0) {
            return vars->value;
        }
    }
    assert(false && "a template names a variable that is not given");
    return "";
}

void printer_template(struct printer *printer, const struct printer_var *vars, const char *text)
{
    const char *open = strchr(text, '$');

    while (open != NULL) {
        const char *name = open + 1;
        const char *close = strchr(name, '$');
        assert(close != NULL);
        put_bytes(printer, text, (size_t)(open - text));
        printer_text(printer, value_of(vars, name, (size_t)(close - name)));
        text = close + 1;
        open = strchr(text, '$');
    }
    printer_text(printer, text);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '?';
}

void printer_string_bytes(struct printer *printer, const char *bytes, size_t len)
{
    printer_text(printer, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (is_plain(c)) {
            put_bytes(printer, &bytes[i], 1);
        } else {
            /* three digits always, so that a digit after it is not taken for one of its own */
            printer_printf(printer, "\\%03o", c);
        }
    }
    printer_text(printer, "\"");
}

void printer_string(struct printer *printer, const char *text)
{
    printer_string_bytes(printer, text, strlen(text));
}

/* The length of a UTF-8 control at `text` that makes what follows read in another order than it
 * stands in (U+202A to U+202E, U+2066 to U+2069), which compilers warn of; 0 for anything else. */
static size_t direction_len(const char *text, size_t len)
{
    const unsigned char *c = (const unsigned char *)text;

    if (len < 3 || c[0] != 0xE2) {
        return 0;
    }
    bool turns = (c[1] == 0x80 && c[2] >= 0xAA && c[2] <= 0xAE) ||
                 (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9);
    return turns ? 3 : 0;
}

static void comment_line(struct printer *printer, const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t skipped = direction_len(line + i, len - i);
        if (skipped > 0) {
            i += skipped - 1;
            continue;
        }
        put_bytes(printer, &line[i], 1);
        bool ends = line[i] == '*' && i + 1 < len && line[i + 1] == '/';
        bool begins = line[i] == '/' && i + 1 < len && line[i + 1] == '*';
        bool escapes = line[i] == '?' && i > 0 && line[i - 1] == '?' && i + 1 < len &&
                       line[i + 1] == '/'; /* a trigraph, which before a line's end is warned of */
        if (ends || begins || escapes) {
            printer_text(printer, " ");
        }
    }
}

void printer_comment_text(struct printer *printer, const char *text)
{
    comment_line(printer, text, strlen(text));
}

static size_t trimmed_len(const char *line, size_t len)
{
    while (len > 0 && strchr(" \t\r", line[len - 1]) != NULL) {
        len--;
    }
    return len;
}

/* Up to the end of the line, or of `text`. */
static size_t line_len(const char *text)
{
    return strcspn(text, "\n");
}

void printer_comment(struct printer *printer, const char *indent, const char *text)
{
    while (*text != '\0') {
        size_t whole = line_len(text);
        size_t len = trimmed_len(text, whole);
        printer_text(printer, indent);
        printer_text(printer, " *");
        if (len > 0 && text[0] != ' ') {
            printer_text(printer, " ");
        }
        comment_line(printer, text, len);
        printer_text(printer, "\n");
        text += whole + (text[whole] == '\n');
    }
}

char *printer_finish(struct printer *printer)
{
    return memory_dup(printer->memory, printer->bytes, printer->len);
}
