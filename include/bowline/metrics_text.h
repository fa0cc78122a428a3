/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_METRICS_TEXT_H
#define BOWLINE_METRICS_TEXT_H

/*
 * All numbers of a server or client as text, in the two forms that Prometheus and what speaks its
 * language read. Names are those of gRPC's OpenTelemetry metrics where gRPC has one
 * (grpc_server_call_duration_seconds), else they begin with bowline_server_ or bowline_client_;
 * docs/metrics.md has a row for each.
 *
 *     static int put(const char *text, size_t len, void *user)
 *     {
 *         return fwrite(text, 1, len, user) == len ? 0 : -EIO;
 *     }
 *     ...
 *     int rc = bow_server_metrics_text(server, BOW_METRICS_PROMETHEUS, put, stdout);
 *
 * Of several clients in one process each says grpc_target; of several servers one after the other
 * would say the same names twice, so each needs a page of its own.
 */

#include <bowline/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the text is written, and what it is served as. */
enum bow_metrics_format {
    BOW_METRICS_PROMETHEUS = 0,  /* "text/plain; version=0.0.4; charset=utf-8" */
    BOW_METRICS_OPENMETRICS = 1, /* "application/openmetrics-text; version=1.0.0; charset=utf-8" */
};

/** The value of a Content-Type header for the format; NULL for an unknown one. Thread: any. */
BOW_EXPORT const char *bow_metrics_content_type(enum bow_metrics_format format);

/** Takes the next `len` bytes (> 0, no NUL behind them), borrowed. Returns 0, or a negative errno,
 * with which the text ends. */
typedef int (*bow_metrics_put_fn)(const char *text, size_t len, void *user);

/**
 * Write what `server` has counted, piece by piece, through `put`, before this returns. Takes no
 * memory but the stack's (some 16 KiB) and keeps no loop waiting.
 *
 * Thread:  any; `put` runs on the calling one
 * Returns: 0; -EINVAL for an unknown format; what `put` returned, if that is negative
 */
BOW_EXPORT BOW_MUST_USE int bow_server_metrics_text(const struct bow_server *server,
                                                    enum bow_metrics_format format,
                                                    bow_metrics_put_fn put, void *user);

/** The same of `client`, with the label grpc_target on each line: its options.target. */
BOW_EXPORT BOW_MUST_USE int bow_client_metrics_text(const struct bow_client *client,
                                                    enum bow_metrics_format format,
                                                    bow_metrics_put_fn put, void *user);

#ifdef __cplusplus
}
#endif
#endif
