/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spans kept for a test. */

#include "span_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct span_sink *span_sink_new(struct calls *calls)
{
    struct span_sink *sink = calloc(1, sizeof(*sink));

    assert_non_null(sink);
    sink->calls = calls;
    return sink;
}

void span_sink_free(struct span_sink *sink, int n_released)
{
    assert_int_equal(sink->n_released, n_released);
    free(sink);
}

static const char *keep(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text);
    return to;
}

static void keep_span(struct kept_span *kept, const struct bow_span *span)
{
    kept->span = *span;
    kept->span.tracestate = keep(kept->tracestate, sizeof(kept->tracestate), span->tracestate);
    kept->span.path = keep(kept->path, sizeof(kept->path), span->path);
    kept->span.peer = keep(kept->peer, sizeof(kept->peer), span->peer);
    kept->span.protocol = keep(kept->protocol, sizeof(kept->protocol), span->protocol);
    kept->span.message = keep(kept->message, sizeof(kept->message), span->message);
    for (uint32_t i = 0; i < span->n_events && i < SPAN_SINK_EVENTS; i++) {
        kept->events[i] = span->events[i];
    }
    kept->span.events = kept->events;
}

static void take(const struct bow_span *spans, size_t n, void *user)
{
    struct span_sink *sink = user;

    pthread_mutex_lock(&sink->calls->lock);
    sink->n_given++;
    for (size_t i = 0; i < n; i++, sink->n++) {
        if (sink->n < SPAN_SINK_SPANS) {
            keep_span(&sink->spans[sink->n], &spans[i]);
        }
    }
    pthread_cond_broadcast(&sink->calls->changed);
    pthread_mutex_unlock(&sink->calls->lock);
}

static void let_go(void *user)
{
    struct span_sink *sink = user;

    pthread_mutex_lock(&sink->calls->lock);
    sink->n_released++;
    pthread_mutex_unlock(&sink->calls->lock);
}

struct bow_tracer_options span_sink_options(struct span_sink *sink)
{
    struct bow_tracer_options options = BOW_TRACER_OPTIONS_INIT;

    options.context = sink->calls->context;
    options.spans = take;
    options.user = sink;
    options.release = let_go;
    return options;
}

struct bow_tracer *span_sink_trace(struct span_sink *sink, const struct bow_tracer_options *options)
{
    struct bow_tracer *tracer = NULL;

    (void)sink;
    assert_int_equal(bow_tracer_new(options, &tracer), 0);
    return tracer;
}

void span_sink_wait(struct span_sink *sink, int n)
{
    calls_wait(sink->calls, &sink->n, n);
    pthread_mutex_lock(&sink->calls->lock);
    int found = sink->n;
    pthread_mutex_unlock(&sink->calls->lock);
    assert_int_equal(found, n);
}

const struct kept_span *span_sink_find(struct span_sink *sink, enum bow_span_kind kind)
{
    const struct kept_span *found = NULL;

    for (int i = 0; i < sink->n; i++) {
        if (sink->spans[i].span.kind == kind) {
            assert_null(found);
            found = &sink->spans[i];
        }
    }
    assert_non_null(found);
    return found;
}

void span_sink_clear(struct span_sink *sink)
{
    pthread_mutex_lock(&sink->calls->lock);
    sink->n = 0;
    sink->n_given = 0;
    pthread_mutex_unlock(&sink->calls->lock);
}

void expect_child(const struct bow_span *child, const struct bow_span *parent)
{
    assert_memory_equal(child->context.trace_id, parent->context.trace_id, 16);
    assert_memory_equal(child->parent_id, parent->context.span_id, 8);
    assert_memory_not_equal(child->context.span_id, parent->context.span_id, 8);
}
