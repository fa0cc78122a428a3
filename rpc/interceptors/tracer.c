/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A tracer: spans of the calls that pass it as an interceptor, which of them are sampled, and what
 * travels with calls so that the next program's are their children. What a span costs while it is
 * open lies in the call's memory; where it goes: span_buffer.c.
 *
 * Design. All of it is constant once made; `refs`: relaxed up, acquire-release down.
 */

#include "base/alloc.h"
#include "base/list.h"
#include "base/options.h"
#include "base/refuse.h"
#include "rpc/core/call/generic.h"
#include "rpc/interceptors/span_buffer.h"
#include "rpc/interceptors/trace_context.h"
#include "transport/loop/loop.h"
#include <bowline/call.h>
#include <bowline/interceptor.h>
#include <bowline/loop.h>
#include <bowline/service.h>
#include <bowline/tracer.h>

#include <errno.h>
#include <string.h>

#define RANDOM_BITS 56 /* of a trace id, at its end: those that decide */
#define RETRY_EVENTS 4u
#define MESSAGE_BYTES 256u

struct bow_tracer {
    struct bow_context *context;
    struct bow_tracer_options options;
    uint64_t threshold; /* a trace is sampled whose random bits are no less */
    atomic_uint refs;
    struct bow__span_buffers buffers;
};

/* What is known of an open span, in its call's memory: zeroed until on_start. */
struct open_span {
    struct bow_span_context context;
    uint8_t parent_id[8];
    bool is_client;
    const char *tracestate;        /* NULL: none */
    struct bow_span_event *events; /* NULL: it is not sampled, or memory was short */
    uint32_t max_events;
    uint32_t n_events;
    uint32_t n_events_dropped;
    uint64_t n_of_kind[3];
    char traceparent[BOW_TRACEPARENT_BYTES];
    struct bow_metadata trace; /* what calls made for this one carry */
    struct bow_metadata_entry entries[2];
};

static const char state_key[] = "span";

static bool is_sampled(const struct open_span *span)
{
    return (span->context.flags & BOW_SPAN_SAMPLED) != 0;
}

/* Sampling */

static uint64_t threshold_of(double ratio)
{
    return (uint64_t)((1.0 - ratio) * (double)(UINT64_C(1) << RANDOM_BITS));
}

static bool is_within_ratio(const struct bow_tracer *tracer, const uint8_t trace_id[16])
{
    uint64_t random = 0;

    for (int i = 16 - RANDOM_BITS / 8; i < 16; i++) {
        random = random << 8 | trace_id[i];
    }
    return random >= tracer->threshold;
}

static bool decide(const struct bow_tracer *tracer, const struct bow_span_context *context,
                   bool has_parent)
{
    switch (tracer->options.sampling) {
    case BOW_SAMPLING_ALWAYS:
        return true;
    case BOW_SAMPLING_NEVER:
        return false;
    case BOW_SAMPLING_PARENT:
        if (has_parent) {
            return (context->flags & BOW_SPAN_SAMPLED) != 0;
        }
        break;
    case BOW_SAMPLING_RATIO:
        break;
    }
    return is_within_ratio(tracer, context->trace_id);
}

/* Beginning */

static struct bow__span_buffer *buffer_of(struct bow_tracer *tracer,
                                          const struct bow_interception *at)
{
    return bow__span_buffer_of(&tracer->buffers, bow_interception_loop(at));
}

/* Returns whether there is a parent. */
static bool begin_context(struct bow_tracer *tracer, struct bow_interception *at,
                          const struct bow_metadata *metadata, struct open_span *span)
{
    struct bow__span_buffer *buffer = buffer_of(tracer, at);
    struct bow_span_context *own = &span->context;
    bool has_parent = bow__trace_context_find(metadata, own) == 0;

    if (has_parent) {
        memcpy(span->parent_id, own->span_id, sizeof(span->parent_id));
    } else {
        bow__span_buffer_random(&tracer->buffers, buffer, own->trace_id, sizeof(own->trace_id));
        own->flags = BOW_SPAN_RANDOM;
    }
    bow__span_buffer_random(&tracer->buffers, buffer, own->span_id, sizeof(own->span_id));
    bool sampled = decide(tracer, own, has_parent);
    own->flags = (uint8_t)((own->flags & ~BOW_SPAN_SAMPLED) | (sampled ? BOW_SPAN_SAMPLED : 0));
    bow_span_context_write(own, span->traceparent);
    return has_parent;
}

static void keep_tracestate(struct bow_interception *at, const struct bow_metadata *metadata,
                            struct open_span *span)
{
    char text[BOW__TRACESTATE_BYTES];

    if (bow_metadata_find(metadata, BOW__TRACESTATE_KEY) == NULL) {
        return;
    }
    size_t len = bow__tracestate_read(metadata, text);
    char *kept = len > 0 ? bow_interception_alloc(at, len + 1) : NULL;
    if (kept != NULL) {
        memcpy(kept, text, len + 1);
        span->tracestate = kept;
    }
}

static void keep_events(const struct bow_tracer *tracer, struct bow_interception *at,
                        struct open_span *span)
{
    uint32_t n = tracer->options.message_events ? tracer->options.max_events
                 : span->is_client              ? RETRY_EVENTS
                                                : 0;

    if (n > 0) {
        span->events = bow_interception_alloc(at, n * sizeof(*span->events));
        span->max_events = span->events != NULL ? n : 0;
    }
}

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void pass_to_children(struct bow_interception *at, struct open_span *span)
{
    span->entries[0] =
        (struct bow_metadata_entry){BOW__TRACEPARENT_KEY, slice_of(span->traceparent)};
    span->trace = (struct bow_metadata){span->entries, 1};
    if (span->tracestate != NULL) {
        span->entries[1] =
            (struct bow_metadata_entry){BOW__TRACESTATE_KEY, slice_of(span->tracestate)};
        span->trace.n = 2;
    }
    (void)bow_interception_set_trace(at, &span->trace);
}

/* A call does not fail for the sake of its trace: without memory what it had goes along. */
static void send_along(struct bow_interception *at, const struct open_span *span)
{
    struct bow_slice state = {NULL, 0};

    if (span->tracestate != NULL) {
        state = slice_of(span->tracestate);
    }
    int rc = bow_interception_set_request(at, BOW__TRACEPARENT_KEY, slice_of(span->traceparent));
    if (rc == 0) {
        rc = bow_interception_set_request(at, BOW__TRACESTATE_KEY, state);
    }
    (void)rc;
}

static void on_start(struct bow_interception *at, void *user)
{
    struct bow_tracer *tracer = user;
    struct open_span *span = bow_interception_state(at);
    struct bow_metadata metadata = bow_interception_metadata(at);

    span->is_client = bow_interception_call(at) == NULL;
    if (begin_context(tracer, at, &metadata, span)) {
        keep_tracestate(at, &metadata, span);
    }
    if (is_sampled(span)) {
        keep_events(tracer, at, span);
    }
    if (span->is_client) {
        send_along(at, span);
    } else {
        pass_to_children(at, span);
    }
}

/* Events */

static void add_event(struct bow_interception *at, struct open_span *span,
                      enum bow_span_event_kind kind, uint64_t bytes, enum bow_code code)
{
    uint64_t number = ++span->n_of_kind[kind];

    if (!is_sampled(span)) {
        return;
    }
    if (span->n_events == span->max_events) {
        span->n_events_dropped++;
        return;
    }
    span->events[span->n_events++] = (struct bow_span_event){
        .kind = kind,
        .code = code,
        .unix_ns = bow__loop_read_clock(bow_interception_loop(at)), /* made so at the end */
        .number = number,
        .bytes = bytes,
    };
}

static void on_message(struct bow_interception *at, const struct bow_intercepted_message *message,
                       void *user)
{
    (void)user;
    add_event(at, bow_interception_state(at),
              message->sent ? BOW_SPAN_MESSAGE_SENT : BOW_SPAN_MESSAGE_RECEIVED, message->bytes.len,
              BOW_OK);
}

static void on_retry(struct bow_interception *at, const struct bow_status *status, void *user)
{
    (void)user;
    add_event(at, bow_interception_state(at), BOW_SPAN_RETRY, 0, status->code);
}

/* Ending */

static const char *cut(const char *message, char text[MESSAGE_BYTES])
{
    size_t len = strlen(message);

    if (len < MESSAGE_BYTES) {
        return message;
    }
    len = MESSAGE_BYTES - 1;
    while (len > 0 && ((uint8_t)message[len] & 0xC0) == 0x80) {
        len--; /* not within a character of UTF-8 */
    }
    memcpy(text, message, len);
    text[len] = '\0';
    return text;
}

static void on_end(struct bow_interception *at, const struct bow_intercepted_end *end, void *user)
{
    struct bow_tracer *tracer = user;
    struct open_span *open = bow_interception_state(at);
    char message[MESSAGE_BYTES];

    if (!is_sampled(open)) {
        return;
    }
    struct bow_loop *loop = bow_interception_loop(at);
    const struct bow_method *method = bow_interception_method(at);
    uint64_t now_ns = bow__loop_read_clock(loop);
    struct bow_span span = {
        .context = open->context,
        .kind = open->is_client ? BOW_SPAN_CLIENT : BOW_SPAN_SERVER,
        .code = end->status->code,
        .start_unix_ns = now_ns - end->elapsed_ns,
        .end_unix_ns = now_ns,
        .tracestate = open->tracestate != NULL ? open->tracestate : "",
        .path = method->path,
        .peer = bow_interception_peer(at),
        .protocol = bow_interception_protocol(at),
        .message = cut(end->status->message, message),
        .messages_received = end->messages_received,
        .messages_sent = end->messages_sent,
        .bytes_received = end->bytes_received,
        .bytes_sent = end->bytes_sent,
        .events = open->events,
        .n_events = open->n_events,
        .n_events_dropped = open->n_events_dropped,
        .refused = end->refused,
        .secure = bow_interception_is_secure(at),
    };
    memcpy(span.parent_id, open->parent_id, sizeof(span.parent_id));
    bow__span_buffer_put(&tracer->buffers, buffer_of(tracer, at), loop, &span,
                         bow__method_is_generic(method));
}

/* Asking */

static const struct bow_span_context *context_of(const struct open_span *span)
{
    return span != NULL && span->traceparent[0] != '\0' ? &span->context : NULL;
}

const struct bow_span_context *bow_span_of(const struct bow_call *call)
{
    return context_of(bow_call_state(call, state_key));
}

const struct bow_span_context *bow_span_at(const struct bow_interception *at)
{
    return context_of(bow_interception_find(at, state_key));
}

/* Life */

static struct bow_tracer *tracer_of(struct bow__span_buffers *buffers)
{
    return BOW__CONTAINER(buffers, struct bow_tracer, buffers);
}

static void hold(struct bow__span_buffers *buffers)
{
    (void)bow_tracer_ref(tracer_of(buffers));
}

static void let_go(struct bow__span_buffers *buffers)
{
    bow_tracer_unref(tracer_of(buffers));
}

static void release(void *user)
{
    bow_tracer_unref(user);
}

void bow_tracer_intercept(struct bow_tracer *tracer, struct bow_interceptor *ret_interceptor)
{
    *ret_interceptor = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    ret_interceptor->name = "tracer";
    ret_interceptor->state_bytes = sizeof(struct open_span);
    ret_interceptor->state_key = state_key;
    ret_interceptor->on_start = on_start;
    ret_interceptor->on_message = tracer->options.message_events ? on_message : NULL;
    ret_interceptor->on_retry = on_retry;
    ret_interceptor->on_end = on_end;
    ret_interceptor->release = release;
    ret_interceptor->user = bow_tracer_ref(tracer);
}

struct bow_tracer *bow_tracer_ref(struct bow_tracer *tracer)
{
    atomic_fetch_add_explicit(&tracer->refs, 1, memory_order_relaxed);
    return tracer;
}

void bow_tracer_unref(struct bow_tracer *tracer)
{
    if (tracer == NULL || atomic_fetch_sub_explicit(&tracer->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_context *context = tracer->context;
    bow__span_buffers_fini(&tracer->buffers);
    if (tracer->options.release != NULL) {
        tracer->options.release(tracer->options.user);
    }
    bow__free(context, tracer, sizeof(*tracer));
    bow_context_unref(context);
}

static int refuse(const struct bow_tracer_options *options, const char *what)
{
    return bow__refuse(options->context, -EINVAL, "bow_tracer_new: %s", what);
}

static int check(const struct bow_tracer_options *options)
{
    if (options->context == NULL) {
        return -EINVAL;
    }
    if (options->spans == NULL) {
        return refuse(options, "set options.spans: nobody would take the spans");
    }
    if ((unsigned)options->sampling > BOW_SAMPLING_NEVER) {
        return refuse(options, "options.sampling is none of enum bow_sampling");
    }
    if (!(options->ratio >= 0 && options->ratio <= 1)) {
        return refuse(options, "options.ratio is not within 0 and 1");
    }
    return options->max_events > BOW_TRACER_MAX_EVENTS
               ? refuse(options, "options.max_events is above BOW_TRACER_MAX_EVENTS")
               : 0;
}

int bow_tracer_new(const struct bow_tracer_options *options, struct bow_tracer **ret_tracer)
{
    struct bow_tracer_options known = BOW_TRACER_OPTIONS_INIT;

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc == 0) {
        rc = check(&known);
    }
    if (rc < 0) {
        return rc;
    }
    struct bow_tracer *tracer = bow__alloc_zero(known.context, sizeof(*tracer));
    if (tracer == NULL) {
        return -ENOMEM;
    }
    tracer->context = bow_context_ref(known.context);
    tracer->options = known;
    if (known.max_events == 0) {
        tracer->options.max_events = BOW_TRACER_DEFAULT_EVENTS;
    }
    tracer->threshold = threshold_of(known.ratio);
    atomic_init(&tracer->refs, 1);
    tracer->buffers = (struct bow__span_buffers){
        .context = tracer->context,
        .spans = known.spans,
        .user = known.user,
        .unix_ns = known.unix_ns,
        .clock_user = known.clock_user,
        .hold = hold,
        .let_go = let_go,
    };
    atomic_init(&tracer->buffers.first, NULL);
    *ret_tracer = tracer;
    return 0;
}
