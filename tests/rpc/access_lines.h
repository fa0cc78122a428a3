/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_ACCESS_LINES_H
#define BOWLINE_TESTS_RPC_ACCESS_LINES_H

/*
 * What an access log with a callback has said: options.line is access_lines_add(), and options.user
 * one of these.
 */

#include "call_fixture.h"

struct access_lines {
    struct calls *calls; /* under whose lock the rest is */
    char text[8192];     /* a line feed after each */
    int n;
};

void access_lines_init(struct access_lines *lines, struct calls *calls);
/** A bow_access_line_fn. Thread: any. */
void access_lines_add(const char *line, size_t len, void *user);

#endif
