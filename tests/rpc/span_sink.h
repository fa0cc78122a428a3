/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_SPAN_SINK_H
#define BOWLINE_TESTS_RPC_SPAN_SINK_H

/*
 * Keeps the spans of a tracer, in the order in which they end: options.spans is span_sink_take(),
 * options.user one of these.
 */

#include "call_fixture.h"

#include <bowline/interceptor.h>
#include <bowline/tracer.h>

#define SPAN_SINK_SPANS 256
#define SPAN_SINK_EVENTS 16

struct kept_span {
    struct bow_span span; /* its texts and events are those below */
    char tracestate[600];
    char path[64];
    char peer[128];
    char protocol[16];
    char message[512];
    struct bow_span_event events[SPAN_SINK_EVENTS];
};

struct span_sink {
    struct calls *calls; /* under whose lock the rest is */
    int n;
    int n_given; /* how often some were given */
    int n_released;
    struct kept_span spans[SPAN_SINK_SPANS];
};

struct span_sink *span_sink_new(struct calls *calls);
/** Asserts that so many tracers have let it go. */
void span_sink_free(struct span_sink *sink, int n_released);

/** Options of a tracer whose spans it keeps. */
struct bow_tracer_options span_sink_options(struct span_sink *sink);
/** A tracer of such options. */
struct bow_tracer *span_sink_trace(struct span_sink *sink,
                                   const struct bow_tracer_options *options);

/** Wait until there are `n`, and assert that there are not more. */
void span_sink_wait(struct span_sink *sink, int n);
/** The only one of that kind, which there is. */
const struct kept_span *span_sink_find(struct span_sink *sink, enum bow_span_kind kind);
/** Forget all. */
void span_sink_clear(struct span_sink *sink);

/** Assert that `child` is a span of the trace of `parent`, and a child of it. */
void expect_child(const struct bow_span *child, const struct bow_span *parent);

#endif
