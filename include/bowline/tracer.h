/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRACER_H
#define BOWLINE_TRACER_H

/*
 * Distributed tracing: a tracer makes a span (<bowline/span.h>) of each call of servers and
 * clients, as an interceptor, and gives those that are sampled to whoever sends them on;
 * libbowline-otel (<bowline/otel.h>) is one that speaks OpenTelemetry's protocol.
 *
 *     client call ──► span, child of the trace context that it has, if it has one
 *                     its own context goes along as traceparent
 *     server call ──► span, child of the context that came along
 *        │            made for it: `parent` of a client's call options, from any thread
 *        └──► client call ──► span, child of the server's
 *
 * So a program passes the call it serves as options.parent of those it makes for it, and the
 * spans of all programs on the way make one tree, over both protocols. Who has a context from
 * elsewhere gives it as metadata "traceparent".
 *
 * Registered first, before other interceptors, a tracer sees what those refuse. Calls that
 * a server refuses before they begin (<bowline/interceptor.h>) have no span on its side.
 *
 * What is sampled is decided when a span begins (options.sampling); a span that is not costs its
 * ids. Spans that end within a turn of their loop are given away together at the end of
 * that turn: no lock is taken for a call.
 *
 *     bow_tracer_new ──► bow_tracer_intercept(&interceptor) ──► register ──► unref
 */

#include <bowline/span.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_call;
struct bow_context;
struct bow_interception;
struct bow_interceptor;
struct bow_tracer;

/** Takes spans that have ended, all of them borrowed. It must not block. Thread: the loop of their
 * calls; several loops at once. */
typedef void (*bow_spans_fn)(const struct bow_span *spans, size_t n, void *user);

/** Which spans are recorded. */
enum bow_sampling {
    BOW_SAMPLING_PARENT = 0, /* as the parent's was; those without a parent by `ratio` */
    BOW_SAMPLING_RATIO = 1,  /* by `ratio`, whatever the parent says */
    BOW_SAMPLING_ALWAYS = 2,
    BOW_SAMPLING_NEVER = 3, /* contexts go on all the same */
};

/** Events of one span, at most and by default. Answers streams without end. */
#define BOW_TRACER_MAX_EVENTS 1024u
#define BOW_TRACER_DEFAULT_EVENTS 32u

/** What a tracer is made with; begin with BOW_TRACER_OPTIONS_INIT. */
struct bow_tracer_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* shared; not NULL */
    enum bow_sampling sampling;
    double ratio; /* of traces, 0 to 1; the INIT sets 1. The trace id decides, so that programs with
                     one ratio agree, and what a lower one takes, a higher one has too */
    bow_spans_fn spans;          /* not NULL */
    void *user;                  /* kept until release */
    void (*release)(void *user); /* the tracer is gone; NULL: nobody wants to know. Thread: any */
    bool message_events;         /* an event for each message; retries always have one */
    uint32_t max_events;         /* of a span; 0: BOW_TRACER_DEFAULT_EVENTS */
    uint64_t (*unix_ns)(void *clock_user); /* nanoseconds since 1970; NULL: the system's clock */
    void *clock_user;
};

#define BOW_TRACER_OPTIONS_INIT BOW__INIT(struct bow_tracer_options, BOW__SET(ratio, 1.0))

/**
 * Make a tracer.
 *
 * Thread:  any
 * Owns:    gives `*ret_tracer`, drop it with bow_tracer_unref(); takes options.user on success
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no context, no `spans`, a sampling that is
 *          none, a ratio not within 0 and 1, too many events), which the context's log says
 */
BOW_EXPORT BOW_MUST_USE int bow_tracer_new(const struct bow_tracer_options *options,
                                           struct bow_tracer **ret_tracer);

/**
 * Make the interceptor by which `tracer` traces a server or a client; several may. It is for one
 * registration, and has a reference of its own: whoever does not register it after all calls its
 * release.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_tracer_intercept(struct bow_tracer *tracer,
                                     struct bow_interceptor *ret_interceptor);

/** Take one more reference. Thread: any. Returns: `tracer`. */
BOW_EXPORT struct bow_tracer *bow_tracer_ref(struct bow_tracer *tracer);
/** Drop a reference; NULL is allowed. Thread: any. */
BOW_EXPORT void bow_tracer_unref(struct bow_tracer *tracer);

/**
 * The span of a call that is being served, sampled or not: for a handler's own log lines.
 *
 * Thread:  any that holds the call
 * Returns: NULL when its server has no tracer; lives as long as the call
 */
BOW_EXPORT const struct bow_span_context *bow_span_of(const struct bow_call *call);

/**
 * The span of a call as another interceptor sees it, on a server or a client, once the tracer's
 * on_start has run: for lines of logs, exemplars of metrics.
 *
 * Returns: NULL when there is no tracer; lives until on_end has returned
 */
BOW_EXPORT const struct bow_span_context *bow_span_at(const struct bow_interception *at);

#ifdef __cplusplus
}
#endif
#endif
