/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_STREAM_STATE_H
#define BOWLINE_RPC_CLIENT_STREAM_STATE_H

/*
 * A client's streaming call from inside. It is a struct bow__client_call like any other,
 * with this beside it, which lives as long as somebody has a reference:
 *
 *     stream.c          opening, references, cancelling, the end, the task
 *     stream_send.c     messages out
 *     stream_receive.c  messages in, delivered to callbacks
 *     stream_block.c    the blocking style
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
 *     n_waiting        bytes in `posted` and `out`. Less of them is a release, more an acquire: who
 *                      finds them gone finds them in n_unsent
 *     n_unsent         relaxed: bytes that the session had when the loop looked last; more than
 *                      there are now only costs a look
 *     blocked          set by who sends, before it posts; cleared by the loop, which looks at it
 *                      after it has taken what was posted: none stays set without a later look
 *     asks             what for the task was posted: or-ed with release, taken with acquire
 *     task_posted      exchanged; the one who finds it false posts the task, with a reference
 */

#include "rpc/client/client_state.h"
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
    struct bow_loop *loop;       /* another */
    struct bow_client *client;   /* there until `closed`, as seen under the lock */
    const struct bow_method *method;
    const void *events; /* NULL: the blocking style */
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
    atomic_size_t n_waiting;
    atomic_size_t n_unsent;
    atomic_size_t n_taken; /* bytes of messages taken elsewhere, whose credit is to go back */
    atomic_uint asks;
    atomic_bool task_posted;
    struct bow_task task;

    struct bow__client_call *call; /* NULL once it has ended */
    struct bow__message_queue out;
    size_t n_sent;     /* messages that the session has had */
    size_t n_received; /* and that came */
    bool end_sent;
    bool paused;

    struct bow__compression compression; /* the blocking style's, which inflates on any thread */
    struct bow__arena arena;             /* of the message being delivered, or received last */
    _Alignas(16) uint8_t slab[BOW__STREAM_SLAB_BYTES];
};

static inline bool bow__stream_is_blocking(const struct bow_stream *stream)
{
    return stream->events == NULL;
}

static inline bool bow__method_sends_many(const struct bow_method *method)
{
    return (method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
}

static inline bool bow__method_receives_many(const struct bow_method *method)
{
    return (method->flags & BOW_METHOD_SERVER_STREAMING) != 0;
}

/* stream.c */

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

/* stream_send.c: on the loop, but for what <bowline/stream.h> says */

/** Directly after the session's open(): the first message, or the call's beginning. Returns as
 * those. */
int bow__stream_begin(struct bow_stream *stream, struct bow__session *session, uint64_t key);
/** The call is open now. */
void bow__stream_opened(struct bow_stream *stream);
/** Send what waits, if the call is open. */
void bow__stream_flush(struct bow_stream *stream);
/** Say that the stream is writable again, if it is. */
void bow__stream_check_writable(struct bow_stream *stream);
/** Nothing is sent any more. */
void bow__stream_seal(struct bow_stream *stream);
/** Whether all that was sent can be sent again. */
bool bow__stream_may_retry(const struct bow_stream *stream);
/** The call goes back to the queue. */
void bow__stream_rewind(struct bow_stream *stream);

/* stream_receive.c: on the loop, but for decoding */

/** The server's initial metadata has come, before any message. */
void bow__stream_take_headers(struct bow_stream *stream, const struct bow_metadata *initial);
/** Deliver `message`, or let it wait. Its credit goes back when it has been taken. */
void bow__stream_take_message(struct bow_stream *stream, struct bow__message *message);
/** Deliver what waits, unless paused. */
void bow__stream_deliver(struct bow_stream *stream);
/** Give credit back for what was taken elsewhere. */
void bow__stream_return_credit(struct bow_stream *stream);
/** Whether messages wait, which the call's end comes after. */
bool bow__stream_has_waiting(struct bow_stream *stream);
/** Decode a message that waited into the stream's arena; it is freed. Returns as bow__decode(),
 * with the reason. Thread: the one that receives. */
int bow__stream_decode_held(struct bow_stream *stream, struct bow__queued_message *held,
                            ProtobufCMessage **ret_message, struct bow__text *reason);

#endif
