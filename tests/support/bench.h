/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_BENCH_H
#define BOWLINE_TESTS_SUPPORT_BENCH_H

/*
 * What tests of handlers have in common: an embedded channel with the handlers that the
 * test brings and a probe behind them, and a log that is remembered.
 *
 *     struct bench bench;
 *     bench_prepare(&bench);
 *     bench.handlers[0] = &idle.handler;
 *     bench_open(&bench);
 *     bench_feed(&bench, "ping");
 *     bench_assert_output(&bench, "pong");
 *     bench_end(&bench);                  asserts that nothing is left
 */

#include "tests/support/net.h"

#include <bowline/embedded.h>

#define BENCH_MAX_HANDLERS 4

struct bench {
    struct loops t;
    struct probe probe;                               /* keeps what it consumes */
    struct bow_handler *handlers[BENCH_MAX_HANDLERS]; /* head first */
    struct bow_embedded_options options;
    struct bow_embedded *embedded;
    struct bow_channel *channel;
};

void bench_prepare(struct bench *bench);
void bench_open(struct bench *bench);
void bench_end(struct bench *bench);

void bench_feed(struct bench *bench, const char *text);
void bench_feed_bytes(struct bench *bench, const void *bytes, size_t len);
/** Exactly that is the output; takes it. */
void bench_assert_output(struct bench *bench, const char *text);
/** All that the probe has consumed so far. */
void bench_assert_read(struct bench *bench, const char *text);
void bench_run(struct bench *bench);
void bench_advance(struct bench *bench, uint64_t by_ns);

/** A probe's on_read that writes everything back. */
size_t bench_echo(struct probe *probe, const struct bow_buf *bytes);

#endif
