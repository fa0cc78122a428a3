/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_INPUT_H
#define BOWLINE_TOOLS_BOWLINE_INPUT_H

/*
 * Messages from the command line, a file, or standard input: one JSON value behind the other, each
 * as long as its braces say, on a line or on several. Of standard input each is given out as soon
 * as it is there.
 */

#include <bowline/arena.h>
#include <bowline/schema.h>
#include <stdbool.h>

struct input {
    const char *name; /* "the data", the file's, "standard input" */
    int fd;           /* -1: all is in `text` */
    int stop_fd;      /* -1, or what is readable when nobody wants any more */
    char *text;
    size_t len, at;
    unsigned line; /* of `at` in all of it */
};

/** Open what is given: JSON, "@FILE", "-", or NULL: nothing. Returns EXIT_OK, or what to exit with.
 */
int input_open(struct input *input, const char *given);
void input_from_stdin(struct input *input);
void input_close(struct input *input);

/** The next value's text, which lives until the next one. False: there is none any more. */
bool input_next(struct input *input, struct bow_slice *ret_text);

/** Read a value as a message of `type`; it says what is wrong and where. */
int input_message(const struct input *input, struct bow_slice text,
                  const ProtobufCMessageDescriptor *type, const struct bow_schema *schema,
                  struct bow_arena *arena, ProtobufCMessage **ret_message);

#endif
