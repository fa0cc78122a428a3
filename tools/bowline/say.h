/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_SAY_H
#define BOWLINE_TOOLS_BOWLINE_SAY_H

/*
 * What the tool says beside its results: one line on standard error for what went wrong, with what
 * to do; colours where a terminal shows them; and the numbers it exits with.
 */

#include <bowline/status.h>
#include <stdbool.h>
#include <stdio.h>

/** Exit codes; man bowline(1) has them. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,      /* a file, memory, an answer that cannot be shown */
    EXIT_USAGE = 2,       /* the command line, or the data on it */
    EXIT_NOT_SERVING = 4, /* bowline health: the server answers, and does not serve */
    EXIT_STATUS = 64,     /* + the call's status code */
};

/** "bowline: ..." on standard error. Returns: `code`. */
int say_failed(int code, const char *format, ...) BOW_PRINTF(2, 3);

/** Write what a peer said: control characters, and what is not UTF-8, are escaped, so that a
 * terminal is not led by it. */
void say_text(FILE *file, const char *text);

/** The exit code of a call's status. */
static inline int exit_of(enum bow_code code)
{
    return code == BOW_OK ? EXIT_OK : EXIT_STATUS + (int)code;
}

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW };

/** The sequence that begins a colour on `file`, or "": only on a terminal, without NO_COLOR. */
const char *colour_on(FILE *file, enum colour colour);
/** The one that ends it. */
const char *colour_off(FILE *file);

/** Write a JSON string with its quotes; controls are escaped, also those that JSON would let be. */
void say_json_string(FILE *file, const char *text, size_t len);

#endif
