/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_TEXT_H
#define BOWLINE_BASE_TEXT_H

/*
 * A short text in place: error messages are built in it without allocation, and
 * cut with "..." when they are too long. Bytes of a peer are escaped.
 */

#include "base/shared.h"
#include <bowline/slice.h>
#include <bowline/visibility.h>
#include <stdarg.h>
#include <stdbool.h>

#define BOW__TEXT_BYTES 512

struct bow__text {
    size_t len; /* without the NUL */
    bool full;  /* it was cut: what is appended further is dropped */
    char bytes[BOW__TEXT_BYTES];
};

static inline void bow__text_clear(struct bow__text *text)
{
    text->len = 0;
    text->full = false;
    text->bytes[0] = '\0';
}

BOW__SHARED void bow__text_printf(struct bow__text *text, const char *format, ...)
    BOW_PRINTF(2, 3); /* appends */
BOW__SHARED void bow__text_vprintf(struct bow__text *text, const char *format, va_list args)
    BOW_PRINTF(2, 0);
/** Append at most `max` of a peer's bytes: printable ASCII as it is, the rest as \\xNN. */
BOW__SHARED void bow__text_escape(struct bow__text *text, struct bow_slice bytes, size_t max);
/** `text` without the blanks (spaces and tabs) around it. */
struct bow_slice bow__text_trim(struct bow_slice text);
/** Append the name and the description of errno `err` (positive or negative): "ECONNREFUSED
 * (Connection refused)". */
BOW__SHARED void bow__text_errno(struct bow__text *text, int err);

#endif
