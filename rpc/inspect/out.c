/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Text and JSON, in pieces, to a function that takes them; peers' bytes escaped. */
#include "rpc/inspect/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bow__out_init(struct bow__out *out, int (*put)(const char *text, size_t len, void *user),
                   void *user)
{
    out->put = put;
    out->user = user;
    out->error = 0;
    out->n = 0;
    out->has_before = false;
}

static void flush(struct bow__out *out)
{
    if (out->n > 0 && out->error == 0) {
        out->error = out->put(out->bytes, out->n, out->user);
    }
    out->n = 0;
}

int bow__out_end(struct bow__out *out)
{
    flush(out);
    return out->error;
}

void bow__out_bytes(struct bow__out *out, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t room = sizeof(out->bytes) - out->n;
        size_t n = len < room ? len : room;
        memcpy(out->bytes + out->n, bytes, n);
        out->n += n;
        bytes += n;
        len -= n;
        if (out->n == sizeof(out->bytes)) {
            flush(out);
        }
    }
}

static void put_text(struct bow__out *out, const char *text)
{
    bow__out_bytes(out, text, strlen(text));
}

void bow__out_printf(struct bow__out *out, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len > 0) {
        bow__out_bytes(out, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
    }
}

void bow__out_escaped(struct bow__out *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c >= ' ' && c < 0x7f && c != '\\') {
            bow__out_bytes(out, at, 1);
        } else {
            bow__out_printf(out, "\\x%02x", c);
        }
    }
}

void bow__out_seconds(struct bow__out *out, uint64_t ns)
{
    bow__out_printf(out, "%" PRIu64 ".%03" PRIu64 " s", ns / 1000000000u, ns / 1000000u % 1000u);
}

static void put_string(struct bow__out *out, const char *text)
{
    put_text(out, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < ' ' || c >= 0x7f || c == '<' || c == '>' || c == '&') {
            /* The last three for who puts it into a page against our advice. */
            bow__out_printf(out, "\\u%04x", c);
        } else if (c == '"' || c == '\\') {
            bow__out_printf(out, "\\%c", c);
        } else {
            bow__out_bytes(out, at, 1);
        }
    }
    put_text(out, "\"");
}

static void begin(struct bow__out *out, const char *name)
{
    if (out->has_before) {
        put_text(out, ",");
    }
    if (name != NULL) {
        put_string(out, name);
        put_text(out, ":");
    }
    out->has_before = true;
}

void bow__out_open(struct bow__out *out, const char *name, char bracket)
{
    begin(out, name);
    bow__out_bytes(out, &bracket, 1);
    out->has_before = false;
}

void bow__out_close(struct bow__out *out, char bracket)
{
    bow__out_bytes(out, &bracket, 1);
    out->has_before = true;
}

void bow__out_string(struct bow__out *out, const char *name, const char *text)
{
    if (text == NULL) {
        bow__out_null(out, name);
        return;
    }
    begin(out, name);
    put_string(out, text);
}

void bow__out_number(struct bow__out *out, const char *name, uint64_t number)
{
    begin(out, name);
    bow__out_printf(out, "%" PRIu64, number);
}

void bow__out_bool(struct bow__out *out, const char *name, bool value)
{
    begin(out, name);
    put_text(out, value ? "true" : "false");
}

void bow__out_null(struct bow__out *out, const char *name)
{
    begin(out, name);
    put_text(out, "null");
}
