/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_STREAM_H
#define BOWLINE_RPC_CORE_CALL_CALL_STREAM_H

/*
 * What a streaming call of a server has beside its struct bow_call, which names it in
 * `stream`; that is NULL for unary calls. Lowest first:
 *
 *     call_stream.c           what it has, and its end
 *     call_stream_output.c    to the session: messages, and the status that ends it
 *     call_stream_events.c    to the handler: messages, writable, the end
 *     call_stream_send.c      what programs send, from any thread; the loop's turn
 *     call_stream_answer.c    finish, reply and fail
 *
 * Design. The loop owns the session's stream, delivers all events, and alone hands
 * messages to the session. Other threads encode, put the bytes into `posted`, and post one task for
 * all that waits; what the loop itself sends goes behind what was posted before. The words of
 * struct bow_call that say who may answer a unary call (state) are not used; instead:
 *
 *     refs        relaxed up, acquire-release down; who takes the last away frees the call,
 *                 on any thread. One is the handler's until on_closed has returned, one is a
 *                 posted task's.
 *     answered    written under the lock, once: by whoever finishes, replies or fails. It
 *                 has `answer` to itself then, until `answer_posted` gives it to the loop.
 *     call->end_code   set by the loop when the call ends without the handler, before it takes the
 *                 lock to drop what was posted; who posts looks at both words under the lock,
 *                 so nothing is posted to a call that has ended.
 *     n_waiting   bytes that wait: what is in `posted`, and what the session had queued
 *                 when the loop last looked (`n_counted`). Senders add to it, by
 *                 compare-and-swap, only while it is below BOW_STREAM_WRITABLE_BYTES. The loop
 *                 alone takes from it, and so sees the step from above to below that it owes
 *                 on_writable for: whoever was told -EAGAIN read a value before that step.
 *     posted      under the lock
 *     task_posted exchanged; who finds it false posts the task
 *
 *     listening, paused
 *                 relaxed, without a partner: see below. Atomic because a compiler may read them
 *                 ahead of `busy`, and a race detector sees that
 *
 * All else is the loop's, but for a call whose handler runs on an executor: from handing an event
 * over (`busy`) until the executor has posted that it is done, what the event may touch
 * (listening, paused, events) is the executor's. That post is its own: one that was to stand
 * for several might be refused to another thread, which has nothing to do about it.
 */

#include "rpc/core/call/call.h"
#include "rpc/core/message/message_queue.h"
#include "rpc/core/message/receive_queue.h"
#include <bowline/call_stream.h>
#include <pthread.h>

/** A message that decodes to no more than this allocates nothing. */
#define BOW__CALL_STREAM_SLAB_BYTES 1024

enum bow__call_event {
    BOW__CALL_NO_EVENT = 0,
    BOW__CALL_MESSAGE,
    BOW__CALL_HALF_CLOSE,
    BOW__CALL_WRITABLE,
    BOW__CALL_CLOSED,
};

struct bow__stream_answer {
    struct bow_status status; /* its text in `memory` */
    struct bow__block *memory;
    struct bow__queued_message *reply; /* NULL: none */
};

struct bow__call_stream {
    atomic_uint refs;
    pthread_mutex_t lock;
    struct bow__message_queue posted;
    atomic_bool answered;
    bool answer_posted; /* under the lock */
    struct bow__stream_answer answer;
    atomic_size_t n_waiting;
    atomic_bool task_posted;
    atomic_bool began; /* a message was sent, so initial metadata comes too late */

    size_t n_counted;
    const void *events;
    void *user;
    struct bow__receive_queue in;
    struct bow__work_waiter waiter; /* for the turn in which what is in there goes on */
    struct bow_call *call;          /* whose stream it is */
    struct bow_status status;       /* for on_closed, once `ended` */
    struct bow__block *status_memory;
    atomic_bool listening;
    atomic_bool paused;
    bool half_closed;
    bool half_close_delivered;
    bool writable_due;
    bool ended;
    bool closed;                /* on_closed is under way, or was */
    bool on_executor;           /* events are given on an executor */
    bool busy;                  /* one is there */
    enum bow__call_event event; /* the one being given */

    ProtobufCMessage *message; /* being delivered */
    size_t n_message;          /* its bytes */
    size_t n_in_flight;        /* of them, counted as in flight: it is on an executor */
    struct bow__arena arena;   /* its memory */
    _Alignas(16) uint8_t slab[BOW__CALL_STREAM_SLAB_BYTES];
};

/** Make `call` a streaming one. Returns 0 or -ENOMEM. Loop, before invoke. */
int bow__call_stream_new(struct bow_call *call);
/** Free what the stream has; bow__call_free() calls it. */
void bow__call_stream_free(struct bow_call *call);

/* On the loop. */

/** The message on an executor is counted no more. */
void bow__call_stream_uncount(struct bow_call *call);
/** Have bow__call_stream_run() run soon. */
void bow__call_stream_defer(struct bow_call *call);
/** The call is out of its connection: nothing more goes in or out; on_closed comes. `status` has
 * been kept. */
void bow__call_stream_end(struct bow_call *call);
/** Keep `status` for on_closed; without memory it loses its text. */
void bow__call_stream_keep_status(struct bow_call *call, const struct bow_status *status);

/** The stream has ended without the handler, and is out of its connection. `status` is borrowed. */
void bow__call_stream_cancelled(struct bow_call *call, const struct bow_status *status);

/** The handler's answer, or the end, came first. Thread: any that holds a reference. */
static inline bool bow__call_stream_is_over(const struct bow_call *call)
{
    return atomic_load(&call->stream->answered) || atomic_load(&call->end_code) != 0;
}

/** Bytes that wait to be sent. Thread: any that holds a reference. */
static inline size_t bow__call_stream_waiting(const struct bow__call_stream *stream)
{
    return atomic_load_explicit(&stream->n_waiting, memory_order_relaxed);
}

#endif
