/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SPAN_H
#define BOWLINE_SPAN_H

/*
 * Spans: what a trace consists of. A span is one side of one call: when it began, how it ended,
 * and which span it is a child of. Those of one request, over all the programs that it passes,
 * have one trace id.
 *
 * What travels with a call to say so is its trace context, in two entries of metadata, as the W3C
 * recommends (https://www.w3.org/TR/trace-context/):
 *
 *     traceparent   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *                   │  trace id                         span id          flags
 *                   version
 *     tracestate    vendor1=value1,vendor2=value2
 *
 * Spans are made by a tracer (<bowline/tracer.h>); here is what they are, for whoever takes them,
 * and the text of contexts.
 */

#include <bowline/slice.h>
#include <bowline/status.h>
#include <bowline/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a traceparent, of a trace id and of a span id as text, each with a NUL. */
#define BOW_TRACEPARENT_BYTES 56
#define BOW_TRACE_ID_TEXT_BYTES 33
#define BOW_SPAN_ID_TEXT_BYTES 17

/** Flags of a context. */
#define BOW_SPAN_SAMPLED 0x01u /* the span is recorded */
#define BOW_SPAN_RANDOM 0x02u  /* the last seven bytes of the trace id are random */

/** Which span of which trace. Ids of zeros are none. */
struct bow_span_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;
};

/**
 * Read a traceparent, strictly: lower-case digits, no id of zeros, and of version 00 nothing
 * behind the flags. Of later versions what 00 has is read. Flags that are not known are left out.
 *
 * Thread:  any
 * Returns: 0; -EBADMSG, and `*ret_context` is untouched
 */
BOW_EXPORT BOW_MUST_USE int bow_span_context_read(struct bow_slice traceparent,
                                                  struct bow_span_context *ret_context);
/** Write the traceparent of `context`. Thread: any. */
BOW_EXPORT void bow_span_context_write(const struct bow_span_context *context,
                                       char text[BOW_TRACEPARENT_BYTES]);
/** Write the trace id in hex, as logs have it. Thread: any. */
BOW_EXPORT void bow_trace_id_write(const struct bow_span_context *context,
                                   char text[BOW_TRACE_ID_TEXT_BYTES]);
/** Write the span id in hex. Thread: any. */
BOW_EXPORT void bow_span_id_write(const struct bow_span_context *context,
                                  char text[BOW_SPAN_ID_TEXT_BYTES]);

/** What happens within a span. */
enum bow_span_event_kind {
    BOW_SPAN_MESSAGE_SENT = 0,
    BOW_SPAN_MESSAGE_RECEIVED = 1,
    BOW_SPAN_RETRY = 2, /* the call is sent once more */
};

/** One event of a span. */
struct bow_span_event {
    enum bow_span_event_kind kind;
    enum bow_code code; /* of a retry: how the call had ended */
    uint64_t unix_ns;
    uint64_t number; /* of the kind, from 1 */
    uint64_t bytes;  /* of a message, encoded */
};

/** Which side of a call. */
enum bow_span_kind {
    BOW_SPAN_SERVER = 0,
    BOW_SPAN_CLIENT = 1,
};

/** A span that has ended, with all that it points at borrowed. Texts are UTF-8 and never NULL. */
struct bow_span {
    struct bow_span_context context;
    uint8_t parent_id[8]; /* zeros: the trace begins here */
    enum bow_span_kind kind;
    enum bow_code code;
    uint64_t start_unix_ns;
    uint64_t end_unix_ns;
    const char *tracestate; /* "" when there is none */
    const char *path;       /* "/package.Service/Method" */
    const char *peer;       /* of a server the client's address, of a client its target */
    const char *protocol;   /* "native", "grpc", "connect", "grpc-web" */
    const char *message;    /* the status's; cut */
    uint64_t messages_received;
    uint64_t messages_sent;
    uint64_t bytes_received;
    uint64_t bytes_sent;
    const struct bow_span_event *events;
    uint32_t n_events;
    uint32_t n_events_dropped; /* beyond the tracer's max_events */
    bool refused;              /* by an interceptor, before the call went on */
    bool secure;
};

#ifdef __cplusplus
}
#endif
#endif
