/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_STREAM_H
#define BOWLINE_RPC_CLIENT_CALL_STREAM_H

/*
 * A client's streaming call from inside. It is a struct bow__client_call like any other,
 * with this beside it, which lives as long as somebody has a reference.
 *
 * What the loop does with it by itself is done by one task, posted by whoever has
 * something for it.
 *
 * Design. `call` and what stands below it belong to the loop. A message that another thread sends
 * is encoded there and put in `posted`; the loop moves it to `out` and, once the call is
 * open, hands it to the session. What threads share:
 *
 *     refs             relaxed up, acquire-release down
 *     posted, in,      under the lock
 *     the end
 *     ended,           written under the lock, so that what was put in `posted` under it came
 *     half_closed      before; read without it by the loop, and by others as a hint
 *     compresses       relaxed: each message that waits has its own
 *     n_waiting        bytes in `posted` and `out`. Less of them is a release, more an acquire: who
 *                      finds them gone finds them in n_unsent
 *     n_unsent         relaxed: bytes that the session had when the loop looked last; more than
 *                      there are now only costs a look
 *     blocked          set by who sends, before it posts; cleared by the loop, which looks at it
 *                      after it has taken what was posted: none stays set without a later look
 *     asks             what for the task was posted: or-ed with release, taken with acquire
 *     task_posted      exchanged; the one who finds it false posts the task, with a reference
 */

#include "rpc/client/call/client_call.h"
#include "rpc/core/message/message_queue.h"
#include <bowline/stream.h>

/** A message that decodes to no more than this allocates nothing. */
#define BOW__STREAM_SLAB_BYTES 1024

enum bow__stream_ask {
    BOW__STREAM_CANCEL = 1,
    BOW__STREAM_GIVE_UP = 2, /* with `failure` */
};

struct bow_stream {
    atomic_uint refs;
    struct bow_context *context; /* a reference */
    struct bow_loop *loop;       /* its memory is held */
    struct bow_client *client;   /* there until `closed`, as seen under the lock */
    const struct bow_method *method;
    struct bow_method own_method; /* of a generic call: `method` */
    char *own_path;               /* its path; else NULL */
    const void *events;           /* NULL: the blocking style */
    void *user;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bow__message_queue posted;
    struct bow__message_queue in; /* received and not taken yet */
    bool closed;                  /* `result` is there */
    bool dropping;                /* finish() wants no further message */
    struct bow_result result;     /* the blocking style's */
    struct bow__text failure;
    enum bow_code failure_code;

    atomic_bool ended;
    atomic_bool half_closed;
    atomic_bool blocked;
    _Atomic uint8_t compresses; /* an enum bow_compression, of messages to come; DEFAULT: it was
                                   opened without */
    atomic_size_t n_waiting;
    atomic_size_t n_unsent;
    atomic_size_t n_taken; /* bytes of messages taken elsewhere, whose credit is to go back */
    atomic_uint asks;
    atomic_bool task_posted;
    struct bow_task task;

    struct bow__client_call *call;  /* NULL once it has ended */
    struct bow__work_waiter waiter; /* for the turn in which what is in `in` goes on */
    struct bow__message_queue out;
    struct bow__message_queue kept; /* those of them that another attempt sends again */
    size_t kept_bytes;
    size_t n_again;    /* of `out`, those that an attempt before has sent */
    bool keeps;        /* all that is sent, for another attempt */
    size_t n_sent;     /* messages that the session has had */
    size_t n_received; /* and that came */
    bool end_sent;
    bool paused;

    bool message_compressed;             /* that came last to who receives */
    struct bow__compression compression; /* the blocking style's, which inflates on any thread */
    struct bow__arena arena;             /* of the message being delivered, or received last */
    _Alignas(16) uint8_t slab[BOW__STREAM_SLAB_BYTES];
};

static inline bool bow__stream_is_blocking(const struct bow_stream *stream)
{
    return stream->events == NULL;
}

/** Have the loop look at the stream. Thread: any. */
void bow__stream_wake(struct bow_stream *stream);
/** The same, for `ask`. */
void bow__stream_ask(struct bow_stream *stream, enum bow__stream_ask ask);
/** End the call with a failure of ours, later. Thread: any. */
void bow__stream_give_up(struct bow_stream *stream, enum bow_code code, const char *message);
/** Wake who waits for the stream, in the blocking style. */
void bow__stream_changed(struct bow_stream *stream);
/** The session of an open call, else NULL. Loop. */
struct bow__session *bow__stream_session(const struct bow_stream *stream);

#endif
