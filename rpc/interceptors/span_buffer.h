/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_SPAN_BUFFER_H
#define BOWLINE_RPC_INTERCEPTORS_SPAN_BUFFER_H

/*
 * A loop's part of a tracer: random ids, and the spans that have ended in this turn, until they are
 * given away at its end, or when there is no room for another. Knows no calls.
 *
 * Design. A tracer has a list of them that only grows; each belongs to one loop at a time, which
 * alone reads and writes what is in it. `loop` says whose it is: set by that loop, cleared by it
 * when it shuts down, so that another loop may take the buffer (release; the taker's exchange
 * acquires). A loop finds its own by comparing, for which relaxed will do: no other loop writes its
 * address. The buffer is the tracer's and, while the hook is set, the loop's: `refs` says who is
 * left (acquire-release down), and neither outlives the other's part.
 */

#include "base/arena.h"
#include <bowline/loop.h>
#include <bowline/tracer.h>
#include <stdatomic.h>

/** Spans that are given away at once. */
#define BOW__SPAN_BUFFER_SPANS 64u

struct bow__span_buffer;

/** Who is given spans, and all buffers of a tracer. */
struct bow__span_buffers {
    struct bow_context *context;
    bow_spans_fn spans;
    void *user;
    uint64_t (*unix_ns)(void *clock_user);
    void *clock_user;
    void (*hold)(struct bow__span_buffers *buffers); /* for a flush that is posted */
    void (*let_go)(struct bow__span_buffers *buffers);
    _Atomic(struct bow__span_buffer *) first;
};

/** Nothing calls any more, and no flush is posted. */
void bow__span_buffers_fini(struct bow__span_buffers *buffers);

/** The buffer of `loop`; NULL when it is shutting down, or there is no memory for one. Loop. */
struct bow__span_buffer *bow__span_buffer_of(struct bow__span_buffers *buffers,
                                             struct bow_loop *loop);

/** Fill with random bytes, which are not all zero; `buffer` NULL: as the system has them. */
void bow__span_buffer_random(struct bow__span_buffers *buffers, struct bow__span_buffer *buffer,
                             uint8_t *bytes, size_t len);

/** Give away a copy of `span` later in this turn; `buffer` NULL: now. Its times are those of the
 * loop's clock, and are made those of the calendar; of its events likewise. `has_own_path`: the
 * path goes with the call. Loop. */
void bow__span_buffer_put(struct bow__span_buffers *buffers, struct bow__span_buffer *buffer,
                          struct bow_loop *loop, struct bow_span *span, bool has_own_path);

#endif
