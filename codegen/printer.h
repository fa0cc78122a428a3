/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_PRINTER_H
#define BOWLINE_CODEGEN_PRINTER_H

/*
 * Text that grows: what a generated file is written into. Knows of C how a string
 * and a comment are spelled, nothing else.
 */

#include "codegen/memory.h"

struct printer {
    struct memory *memory;
    char *bytes; /* no NUL at the end */
    size_t len;
    size_t cap;
};

struct printer_var {
    const char *name; /* NULL ends the array */
    const char *value;
};

void printer_init(struct printer *printer, struct memory *memory);
void printer_text(struct printer *printer, const char *text);
void printer_printf(struct printer *printer, const char *format, ...) BOW_PRINTF(2, 3);
void printer_vprintf(struct printer *printer, const char *format, va_list args) BOW_PRINTF(2, 0);

/** Write `text` with each `$name$` replaced by the value of that variable. */
void printer_template(struct printer *printer, const struct printer_var *vars, const char *text);

/** Write `text` as a string literal: ASCII only, and free of trigraphs. */
void printer_string(struct printer *printer, const char *text);

/** The same of bytes, a NUL among them too. */
void printer_string_bytes(struct printer *printer, const char *bytes, size_t len);

/** Write the lines of a .proto comment after `indent` and " * "; what would end a C comment or
 * begin one inside it, or is a trigraph for a backslash, is broken by a space, and what would turn
 * the direction of the text is left out. */
void printer_comment(struct printer *printer, const char *indent, const char *text);

/** Write `text` into a comment, broken in the same way. */
void printer_comment_text(struct printer *printer, const char *text);

/** The text with a NUL, in the printer's memory. */
char *printer_finish(struct printer *printer);

#endif
