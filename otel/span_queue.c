/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spans that wait. Design: see the header. */

#include "otel/span_queue.h"
#include "base/alloc.h"

#include <string.h>

void bow__otel_span_queue_init(struct bow__otel_span_queue *queue, struct bow_context *context,
                               uint64_t max_spans, uint64_t max_bytes)
{
    *queue = (struct bow__otel_span_queue){
        .context = context,
        .max_spans = max_spans,
        .max_bytes = max_bytes,
    };
    queue->last = &queue->first;
}

void bow__otel_span_queue_fini(struct bow__otel_span_queue *queue)
{
    struct bow__otel_parcel *left;

    while ((left = bow__otel_span_queue_take(queue, UINT64_MAX, SIZE_MAX)) != NULL) {
        bow__otel_span_queue_free(queue, left);
    }
}

/* Parcels: spans, then all events, then texts */

static size_t events_bytes(const struct bow_span *span)
{
    return span->n_events * sizeof(*span->events);
}

static size_t texts_bytes(const struct bow_span *span)
{
    return strlen(span->tracestate) + strlen(span->path) + strlen(span->peer) +
           strlen(span->protocol) + strlen(span->message) + 5;
}

static size_t size_of(const struct bow_span *spans, size_t n)
{
    size_t size = sizeof(struct bow__otel_parcel) + n * sizeof(*spans);

    for (size_t i = 0; i < n; i++) {
        size += events_bytes(&spans[i]) + texts_bytes(&spans[i]);
    }
    return size;
}

static char *copy_text(const char **text, char *to)
{
    size_t size = strlen(*text) + 1;

    memcpy(to, *text, size);
    *text = to;
    return to + size;
}

static void fill(struct bow__otel_parcel *parcel, const struct bow_span *spans, size_t n)
{
    struct bow_span_event *events = (struct bow_span_event *)(void *)&parcel->spans[n];

    for (size_t i = 0; i < n; i++) {
        struct bow_span *span = &parcel->spans[i];
        *span = spans[i];
        if (span->n_events > 0) {
            memcpy(events, spans[i].events, events_bytes(span));
        }
        span->events = events;
        events += span->n_events;
    }
    char *next = (char *)events;
    for (size_t i = 0; i < n; i++) {
        struct bow_span *span = &parcel->spans[i];
        next = copy_text(&span->tracestate, next);
        next = copy_text(&span->path, next);
        next = copy_text(&span->peer, next);
        next = copy_text(&span->protocol, next);
        next = copy_text(&span->message, next);
    }
}

/* Room */

static void give_back(struct bow__otel_span_queue *queue, size_t n, size_t size)
{
    atomic_fetch_sub_explicit(&queue->n_spans, n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&queue->n_bytes, size, memory_order_relaxed);
}

/* Returns the number of spans with these, or 0. */
static uint64_t reserve(struct bow__otel_span_queue *queue, size_t n, size_t size)
{
    uint64_t n_spans = atomic_fetch_add_explicit(&queue->n_spans, n, memory_order_relaxed) + n;
    uint64_t n_bytes =
        atomic_fetch_add_explicit(&queue->n_bytes, size, memory_order_relaxed) + size;

    if (n_spans <= queue->max_spans && n_bytes <= queue->max_bytes) {
        return n_spans;
    }
    give_back(queue, n, size);
    return 0;
}

uint64_t bow__otel_span_queue_push(struct bow__otel_span_queue *queue, const struct bow_span *spans,
                                   size_t n)
{
    size_t size = size_of(spans, n);
    uint64_t n_spans = reserve(queue, n, size);
    struct bow__otel_parcel *parcel = n_spans > 0 ? bow__alloc(queue->context, size) : NULL;

    if (parcel == NULL) {
        if (n_spans > 0) {
            give_back(queue, n, size);
        }
        return 0;
    }
    parcel->size = size;
    parcel->n = n;
    fill(parcel, spans, n);
    parcel->next = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->pushed, &parcel->next, parcel,
                                                  memory_order_release, memory_order_relaxed)) {
    }
    return n_spans;
}

/* Taking */

static void collect(struct bow__otel_span_queue *queue)
{
    struct bow__otel_parcel *newest =
        atomic_exchange_explicit(&queue->pushed, NULL, memory_order_acquire);
    struct bow__otel_parcel *oldest = NULL;
    struct bow__otel_parcel **last = newest != NULL ? &newest->next : NULL;

    while (newest != NULL) {
        struct bow__otel_parcel *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    if (oldest != NULL) {
        *queue->last = oldest;
        queue->last = last;
    }
}

struct bow__otel_parcel *bow__otel_span_queue_take(struct bow__otel_span_queue *queue,
                                                   uint64_t max_spans, size_t max_bytes)
{
    size_t n_bytes = 0;
    uint64_t n = 0;

    collect(queue);
    struct bow__otel_parcel *taken = queue->first;
    struct bow__otel_parcel **end = &queue->first;
    while (*end != NULL && n < max_spans && n_bytes < max_bytes) {
        n += (*end)->n;
        n_bytes += (*end)->size;
        end = &(*end)->next;
    }
    if (taken != NULL) {
        queue->first = *end;
        *end = NULL;
    }
    if (queue->first == NULL) {
        queue->last = &queue->first;
    }
    return taken;
}

void bow__otel_span_queue_free(struct bow__otel_span_queue *queue, struct bow__otel_parcel *parcels)
{
    while (parcels != NULL) {
        struct bow__otel_parcel *next = parcels->next;
        give_back(queue, parcels->n, parcels->size);
        bow__free(queue->context, parcels, parcels->size);
        parcels = next;
    }
}
