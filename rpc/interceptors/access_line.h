/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_ACCESS_LINE_H
#define BOWLINE_RPC_INTERCEPTORS_ACCESS_LINE_H

/*
 * One line of an access log: its form as text and as JSON, and what is done to bytes that a peer
 * chose, so that they stay within their quotes. Nothing is allocated.
 */

#include <bowline/interceptor.h>
#include <bowline/span.h>

/** Room for any line, with its line feed and a NUL. */
#define BOW__ACCESS_LINE_BYTES ((size_t)4 << 10)

struct bow__access_line {
    uint64_t unix_ns;
    const char *peer;
    const char *protocol;
    struct bow_slice path; /* a peer's bytes where the call was refused */
    const struct bow_intercepted_end *end;
    struct bow_slice id;                 /* empty: none */
    const char *refused;                 /* NULL, or the limit that kept the call from beginning: */
    uint64_t n_unlogged;                 /* then so many before it have no line */
    bool has_trace;                      /* which span it is, is said: */
    const struct bow_span_context *span; /* NULL: none */
};

/** Returns the length, without the line feed and the NUL that stand at the end. */
size_t bow__access_line_text(const struct bow__access_line *line, char *to);
size_t bow__access_line_json(const struct bow__access_line *line, char *to);

#endif
