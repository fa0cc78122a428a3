/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_BOUND_H
#define BOWLINE_TRANSPORT_CHANNEL_BOUND_H

/*
 * A handler that runs on an executor, and what stands for it on the loop:
 *
 *     loop        head ─► … ─► proxy ─► … ─► tail
 *                              │   ▲
 *                   events of a│   │what the handler passes on,
 *                   strand     ▼   │by the gate
 *     executor               handler
 *
 *     bound.c        on the loop: the proxy, its removal, how much may wait
 *     bound_run.c    on the executor: the handler's callbacks, the gate
 *
 * Design
 *
 * The pipeline knows the proxy only. The user's handler is in no list: its `next` and
 * `prev` are the gate, a handler whose callbacks take what comes back to the loop, so that
 * the functions which pass events on work there as anywhere. Bytes are the exception
 * (bow__bound_fire_read), as delivering them looks at what belongs to the loop.
 *
 * Each event is a task of the strand and holds a reference to the bound, so does each
 * task for the loop; one more is the pipeline's. The bound refers to the channel, so
 * that this is there as long as the handler is. The last event of all is REMOVED.
 *
 * Removal, from any thread: `is_leaving` is set, from then on the handler sees no event;
 * bytes on their way to it are collected. The loop stops delivery and sends REMOVED; what
 * that finds goes back to the loop, which takes the proxy out and lets its successor have
 * it. When the channel closes first, REMOVED is sent as the proxy is removed.
 *
 *     atomic, or under mutex   order                              partner
 *     refs                     relaxed up, acq_rel down           each other
 *     is_leaving               acq_rel                            each other
 *     waiting_bytes, is_held,  `mutex`
 *     is_resuming
 *
 * `has_left` is the loop's; `unread` and `has_late_eof` are the strand's, until the task that
 * hands over.
 */

#include "transport/channel/channel.h"
#include "transport/executor/executor.h"
#include "transport/executor/strand.h"

#include <pthread.h>

/** Of a handler's flags, beside those of pipeline.c. */
#define BOW__HANDLER_BOUND 4u

enum bow__bound_kind {
    BOW__BOUND_ADDED,
    BOW__BOUND_ACTIVE,
    BOW__BOUND_READ,
    BOW__BOUND_READ_COMPLETE,
    BOW__BOUND_EOF,
    BOW__BOUND_WRITABLE,
    BOW__BOUND_ERROR,
    BOW__BOUND_INACTIVE,
    BOW__BOUND_REMOVED,
};

struct bow__bound;

struct bow__bound_event {
    struct bow_task task;
    struct bow__bound *bound;
    enum bow__bound_kind kind;
    int value;            /* an error, or whether it is writable */
    struct bow_buf bytes; /* counted */
};

struct bow__bound {
    struct bow_handler proxy;
    struct bow_handler_ops proxy_ops; /* those that the handler wants to hear of */
    struct bow_handler gate;
    struct bow_handler *handler;
    struct bow_channel *channel; /* referenced */
    struct bow_strand *strand;
    size_t max_bytes;
    atomic_uint refs;
    atomic_bool is_leaving;

    bool has_left; /* REMOVED was sent */

    struct bow__unread *unread; /* what the handler has not consumed */
    bool has_late_eof;          /* for the successor */

    pthread_mutex_t mutex;
    size_t waiting_bytes; /* of READ events that have not run */
    bool is_held;         /* reading pauses for that */
    bool is_resuming;     /* and goes on soon */

    struct bow__bound_event added; /* these three can't fail for want of memory */
    struct bow__bound_event inactive;
    struct bow__bound_event removed;
    struct bow_task leave_task;
    struct bow_task resume_task;
    struct bow_task hand_over_task;
};

/* For pipeline.c; `handler` has BOW__HANDLER_BOUND */

/** Its place in the pipeline. Thread: loop. */
struct bow_handler *bow__bound_proxy(struct bow_handler *handler);
/** bow_handler_fire_read() on the executor. */
size_t bow__bound_fire_read(struct bow_handler *handler, const struct bow_buf *bytes);
/** Thread: any. */
void bow__bound_remove(struct bow_handler *handler);

/* Between the two files */

/** What a READ event counts for; an empty frame is not for nothing. */
static inline size_t bow__bound_cost(const struct bow_buf *bytes)
{
    return sizeof(struct bow__bound_event) + bytes->len;
}

void bow__bound_ref(struct bow__bound *bound);
void bow__bound_unref(struct bow__bound *bound);
/** From the handler that was added. */
struct bow__bound *bow__bound_of(struct bow_handler *handler);
/** NULL: out of memory. Shares `bytes` when there are any. */
struct bow__bound_event *bow__bound_event_new(struct bow__bound *bound, enum bow__bound_kind kind,
                                              int value, const struct bow_buf *bytes);
void bow__bound_event_free(struct bow__bound_event *event);
bool bow__bound_is_leaving(const struct bow__bound *bound);
/** Post a task to the loop that holds a reference. Returns 0 or a negative errno. */
int bow__bound_post_to_loop(struct bow__bound *bound, struct bow_task *task);
/** A READ event has run: reading may go on. Thread: executor. */
void bow__bound_took(struct bow__bound *bound, size_t n);

/** What a gate is. */
extern const struct bow_handler_ops bow__bound_gate_ops;
/** An event's task on the executor, and for events that go back, on the loop. */
int bow__bound_run(void *user);
int bow__bound_run_fired(void *user);

#endif
