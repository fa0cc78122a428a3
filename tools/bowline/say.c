/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines of errors, colours, JSON strings. */
#include "say.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE 4096

/* The bytes of the character at `text`, when that is UTF-8 and no control, of C1 neither, which a
 * terminal may follow as it does those below a blank; else 0. `len` bytes are left. */
static size_t printable(const unsigned char *text, size_t len)
{
    static const unsigned least[] = {0, 0, 0xa0, 0x800, 0x10000};
    size_t n = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    unsigned code = text[0] & (0xffu >> (n + 1));

    if (n == 1) {
        return text[0] >= ' ' && text[0] != 0x7f ? 1 : 0;
    }
    if (text[0] < 0xc2 || text[0] > 0xf4 || n > len) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code >= least[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

void say_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t len = strlen(text);

    while (len > 0) {
        size_t n = printable(at, len);
        if (n > 0) {
            fwrite(at, 1, n, file);
        } else {
            fprintf(file, "\\x%02x", *at);
        }
        n = n > 0 ? n : 1;
        at += n;
        len -= n;
    }
}

int say_failed(int code, const char *format, ...)
{
    char line[MAX_LINE];
    va_list args;

    fflush(stdout); /* results stand before what ended them */
    fprintf(stderr, "%sbowline:%s ", colour_on(stderr, COLOUR_RED), colour_off(stderr));
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    say_text(stderr, line);
    fputc('\n', stderr);
    return code;
}

static bool has_colours(FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return (no_color == NULL || no_color[0] == '\0') && isatty(fileno(file)) &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

const char *colour_on(FILE *file, enum colour colour)
{
    static const char *const sequences[] = {"",         "\033[1m",  "\033[2m",
                                            "\033[31m", "\033[32m", "\033[33m"};

    return has_colours(file) ? sequences[colour] : "";
}

const char *colour_off(FILE *file)
{
    return has_colours(file) ? "\033[0m" : "";
}

void say_json_string(FILE *file, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', file);
    while (len > 0) {
        size_t n = printable(at, len);
        if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (n > 0) {
            fwrite(at, 1, n, file);
        } else if (*at == 0xc2 && len > 1 && (at[1] & 0xe0) == 0x80) {
            fprintf(file, "\\u%04x", at[1]); /* C1 */
            n = 2;
        } else if (*at < 0x80) {
            fprintf(file, "\\u%04x", *at);
        } else {
            fputs("\\ufffd", file); /* no UTF-8: JSON has no bytes */
        }
        n = n > 0 ? n : 1;
        at += n;
        len -= n;
    }
    fputc('"', file);
}
