/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_SPAN_QUEUE_H
#define BOWLINE_OTEL_SPAN_QUEUE_H

/*
 * Spans that wait to be sent, bounded by their number and their memory. Loops push what they give
 * away; one loop takes it.
 *
 * Design. What is pushed at once is a parcel, one piece of memory with copies of all of it. Room is
 * reserved before it is made: `n_spans` and `n_bytes` go up first and down again when that was too
 * much (relaxed: they are counts). Parcels are pushed on a stack (release) that the taker takes
 * whole (acquire) and turns around.
 */

#include <bowline/span.h>
#include <stdatomic.h>

struct bow_context;

/** Spans copied together; its spans point into it. */
struct bow__otel_parcel {
    struct bow__otel_parcel *next;
    size_t size; /* of all of it */
    size_t n;
    struct bow_span spans[];
};

struct bow__otel_span_queue {
    struct bow_context *context;
    uint64_t max_spans;
    uint64_t max_bytes;
    atomic_uint_fast64_t n_spans; /* with those that were taken and not freed */
    atomic_uint_fast64_t n_bytes;
    _Atomic(struct bow__otel_parcel *) pushed; /* the newest first */
    struct bow__otel_parcel *first;            /* the taker's, as the next one */
    struct bow__otel_parcel **last;
};

void bow__otel_span_queue_init(struct bow__otel_span_queue *queue, struct bow_context *context,
                               uint64_t max_spans, uint64_t max_bytes);
/** Nobody pushes any more, and nothing that was taken is left. */
void bow__otel_span_queue_fini(struct bow__otel_span_queue *queue);

/** Copy `n` spans. Returns how many there are now, or 0 when there was no room for these. Thread:
 * any. */
uint64_t bow__otel_span_queue_push(struct bow__otel_span_queue *queue, const struct bow_span *spans,
                                   size_t n);

/** Take parcels, the oldest first, until they have `max_spans` or `max_bytes`, one at least; NULL
 * when there is none. The taker's thread. */
struct bow__otel_parcel *bow__otel_span_queue_take(struct bow__otel_span_queue *queue,
                                                   uint64_t max_spans, size_t max_bytes);

/** Free what was taken: its room is free again. */
void bow__otel_span_queue_free(struct bow__otel_span_queue *queue,
                               struct bow__otel_parcel *parcels);

/** How many spans there are, taken ones included. Thread: any. */
static inline uint64_t bow__otel_span_queue_count(const struct bow__otel_span_queue *queue)
{
    return atomic_load_explicit(&queue->n_spans, memory_order_relaxed);
}

#endif
