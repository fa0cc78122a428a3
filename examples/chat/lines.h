/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_CHAT_LINES_H
#define BOWLINE_EXAMPLES_CHAT_LINES_H

/*
 * A handler that cuts inbound bytes into lines. Each is delivered with its line
 * feed to the next handler's on_read, which must consume it all. A line longer than
 * `max_bytes` is on_error(-EMSGSIZE), and the channel closes.
 */

#include <bowline/handler.h>

struct lines {
    struct bow_handler handler; /* add this */
    size_t max_bytes;           /* with the line feed */
};

void lines_init(struct lines *lines, size_t max_bytes);

#endif
