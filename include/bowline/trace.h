/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRACE_H
#define BOWLINE_TRACE_H

/*
 * Writes down what passes its place in the pipeline: events as words, bytes as hex
 * dump lines, sixteen a line, with their position in the stream.
 *
 *     10.0.0.1:4711 active
 *     10.0.0.1:4711 in  00000000  50 49 4e 47 0d 0a                                 |PING..|
 *     10.0.0.1:4711 out 00000000  50 4f 4e 47                                       |PONG|
 *     10.0.0.1:4711 closed: ECONNRESET (Connection reset by peer)
 *
 * In front (bow_channel_add_first) it shows what is on the wire, behind TLS the
 * clear text. It costs a pass over the bytes, and output is pulled in smaller
 * pieces; with nobody to write for (no `line`, and a log that does not show `level`)
 * next to nothing.
 */

#include <bowline/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One line without a line feed; printable ASCII only. Thread: loop. */
typedef void (*bow_trace_fn)(const char *line, void *user);

/** Where to write, and how much; what is not set is zero. */
struct bow_trace_options {
    const char *label;        /* in front of each line; borrowed; NULL: the peer */
    size_t max_bytes;         /* shown of one piece; 0: 256 */
    enum bow_log_level level; /* for the context's log; zero is BOW_LOG_ERROR, always shown */
    bow_trace_fn line;        /* in place of the log; NULL: the log */
    void *user;               /* line's */
};

#define BOW_TRACE_MAX_PIECES 8

/** The handler, embedded in what a connection has. */
struct bow_trace {
    struct bow_handler handler;       /* public: add this */
    struct bow_trace_options options; /* read-only */
    uint64_t n_in;                    /* private, as all below: bytes so far */
    uint64_t n_out;
    size_t n_shown; /* in front of what comes, and came before */
    int n_pieces;   /* pulled, and not sent yet */
    struct iovec pieces[BOW_TRACE_MAX_PIECES];
};

/** Set up a tracer. Memory is the caller's until on_removed: in the channel's own
 * (bow_channel_data) it needs no care. Copies `options`. Thread: any. */
BOW_EXPORT void bow_trace_init(struct bow_trace *trace, const struct bow_trace_options *options);

#ifdef __cplusplus
}
#endif
#endif
