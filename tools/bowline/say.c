/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines of errors, colours, JSON strings. */
#include "say.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE 4096

void say_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == 0x7f) {
            fprintf(file, "\\x%02x", c);
        } else {
            fputc(c, file);
        }
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
    fputc('"', file);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            fprintf(file, "\\%c", c);
        } else if (c < ' ' || c == 0x7f) {
            fprintf(file, "\\u%04x", c);
        } else {
            fputc(c, file);
        }
    }
    fputc('"', file);
}
