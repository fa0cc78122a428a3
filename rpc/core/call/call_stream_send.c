/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages out of a streaming call: encoded by who sends, in place when that is on the loop and
 * the session has room, else held until the loop hands them over. How the call ends is in
 * call_stream_answer.c.
 */

#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/message/payload.h"

#include <errno.h>
#include <string.h>

/* A payload up to this size costs less to copy than to send as a piece of its own. */
#define COPIED_PAYLOAD_BYTES ((size_t)1 << 10)

/* What a held message counts for: empty ones take memory too. */
static size_t weight(const struct bow__queued_message *held)
{
    return sizeof(*held) + held->len;
}

static bool sends_many(const struct bow_call *call)
{
    return call->stream != NULL && (call->method->flags & BOW_METHOD_SERVER_STREAMING) != 0;
}

static size_t waiting(const struct bow__call_stream *stream)
{
    return atomic_load_explicit(&stream->n_waiting, memory_order_relaxed);
}

bool bow_call_is_writable(const struct bow_call *call)
{
    return sends_many(call) && !bow__call_stream_is_over(call) &&
           waiting(call->stream) < BOW_STREAM_WRITABLE_BYTES;
}

static int refusal(const struct bow_call *call)
{
    if (!sends_many(call)) {
        return -EINVAL;
    }
    if (bow__call_stream_is_over(call)) {
        return -ECANCELED;
    }
    return waiting(call->stream) < BOW_STREAM_WRITABLE_BYTES ? 0 : -EAGAIN;
}

/* On the loop: to the session */

/* `n_handed` was posted, and is the session's now: one step, so that it is seen as a whole. */
static void settle(struct bow_call *call, size_t n_handed)
{
    struct bow__call_stream *stream = call->stream;
    size_t n = 0;

    if (call->session != NULL) {
        n = call->session->ops->queued(call->session, call->key);
    }
    size_t change = n - stream->n_counted - n_handed; /* modulo 2^N when it is less */
    stream->n_counted = n;
    size_t before =
        change == 0 ? waiting(stream)
                    : atomic_fetch_add_explicit(&stream->n_waiting, change, memory_order_relaxed);
    if (before >= BOW_STREAM_WRITABLE_BYTES && before + change < BOW_STREAM_WRITABLE_BYTES) {
        stream->writable_due = true;
    }
}

void bow__call_stream_settle(struct bow_call *call)
{
    settle(call, 0);
}

/* Of a message: the function that this runs in is one of the call's. */
static void settle_later(struct bow_call *call, size_t n_bytes)
{
    bow__call_stream_settle(call);
    call->ops->sent(call, n_bytes);
    if (call->stream->writable_due) {
        bow__call_stream_defer(call);
    }
}

static int as_seen_outside(int rc)
{
    return rc == -ENOENT ? -ECANCELED : rc;
}

/* Initial metadata goes before the first message. */
static int begin(struct bow_call *call)
{
    int rc = bow__call_respond(call);

    if (rc == 0) {
        atomic_store_explicit(&call->stream->began, true, memory_order_relaxed);
    }
    return as_seen_outside(rc);
}

/* Returns 1 when the message is to go as it is. After begin(). */
static int send_packed(struct bow_call *call, struct bow_slice bytes, uint32_t flags,
                       size_t *ret_len)
{
    if (call->encoding == BOW__ENCODING_IDENTITY) {
        return 1;
    }
    return bow__compression_send(call->compression, call->session, call->key,
                                 (enum bow__encoding)call->encoding, flags, bytes, ret_len);
}

/* Returns 0 when the session has the held bytes now. */
static int send_held(struct bow_call *call, struct bow__queued_message *held, uint32_t flags)
{
    int rc = call->session->ops->send(call->session, call->key, flags,
                                      bow__queued_message_block(held), held->offset, held->len);

    if (rc == 0) {
        bow__queued_message_given(held);
    }
    return rc;
}

int bow__call_stream_hand_over(struct bow_call *call, struct bow__queued_message *held,
                               uint32_t flags, size_t *ret_len)
{
    size_t len = held->len;
    int rc = begin(call);

    if (rc < 0) {
        return rc;
    }
    bow__intercept_sent(call->intercepted, bow__queued_message_bytes(held), len);
    rc = bow__compression_send_queued(call->compression, call->session, call->key,
                                      (enum bow__encoding)call->encoding, flags, held, &len);
    if (rc == 0) {
        bow__queued_message_free(held);
    } else if (rc > 0) {
        rc = send_held(call, held, flags);
    }
    *ret_len = len;
    return as_seen_outside(rc);
}

int bow__call_stream_put_in_place(struct bow_call *call, const ProtobufCMessage *message,
                                  uint32_t flags, size_t *ret_len, struct bow__text *reason)
{
    const struct bow__session_ops *ops = call->session->ops;
    size_t cap = 0;

    int rc = begin(call);
    if (rc < 0) {
        return rc;
    }
    uint8_t *room = ops->reserve(call->session, call->key, flags, &cap);
    if (room == NULL) {
        return 1;
    }
    ssize_t n = bow__encode(message, room, cap, reason);
    if (n < 0) {
        return n == -ENOBUFS ? 1 : -EINVAL;
    }
    *ret_len = (size_t)n;
    bow__intercept_sent(call->intercepted, room, *ret_len);
    rc = send_packed(call, (struct bow_slice){room, (size_t)n}, flags, ret_len);
    if (rc > 0) {
        rc = ops->commit(call->session, call->key, flags, (size_t)n);
    }
    return as_seen_outside(rc);
}

/* In order; what cannot be sent any more is dropped. */
static int send_all(struct bow_call *call, struct bow__message_queue *taken)
{
    struct bow__queued_message *held;
    size_t n_handed = 0;
    size_t n_bytes = 0;
    int rc = 0;

    while (rc == 0 && (held = bow__message_queue_pop(taken)) != NULL) {
        size_t len = 0;
        n_handed += weight(held);
        rc = bow__call_stream_hand_over(call, held, 0, &len);
        n_bytes += len;
        if (rc < 0) {
            bow__queued_message_free(held);
        }
    }
    bow__message_queue_clear(taken);
    settle(call, n_handed);
    call->ops->sent(call, n_bytes);
    return rc;
}

/* Returns whether the handler's answer was posted behind them. */
static bool take_posted(struct bow__call_stream *stream, struct bow__message_queue *ret_taken)
{
    pthread_mutex_lock(&stream->lock);
    *ret_taken = stream->posted;
    stream->posted = (struct bow__message_queue){NULL, NULL};
    bool is_answered = stream->answer_posted;
    stream->answer_posted = false;
    pthread_mutex_unlock(&stream->lock);
    return is_answered;
}

int bow__call_stream_take_posted(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;
    struct bow__message_queue taken;
    int rc = 0;

    bool is_answered = take_posted(stream, &taken);
    if (call->session == NULL) {
        bow__message_queue_clear(&taken);
        return is_answered ? -ECANCELED : 0;
    }
    if (taken.first != NULL) {
        rc = send_all(call, &taken);
    }
    /* What was accepted cannot be left out. */
    if (rc == -ENOMEM || rc == -EMSGSIZE) {
        bow__call_stream_refuse_unsent(call, rc);
        return rc;
    }
    return is_answered ? bow__call_stream_answer(call) : 0;
}

void bow__call_stream_flush(struct bow_call *call)
{
    if (atomic_load(&call->stream->task_posted)) {
        (void)bow__call_stream_take_posted(call);
    }
}

/* On the loop: what programs send */

static int send_block_here(struct bow_call *call, struct bow__queued_message *held)
{
    size_t len = 0;
    int rc = bow__call_stream_hand_over(call, held, 0, &len);

    if (rc < 0) {
        bow__queued_message_free(held);
        return rc;
    }
    settle_later(call, len);
    return 0;
}

/* What other threads have posted comes first, and may leave no room, or end the call. */
static int prepare_here(struct bow_call *call)
{
    bow__call_stream_flush(call);
    if (call->stream->writable_due) {
        bow__call_stream_defer(call);
    }
    return call->session != NULL ? refusal(call) : -ECANCELED;
}

static int send_here(struct bow_call *call, const ProtobufCMessage *message)
{
    struct bow__queued_message *held = NULL;
    size_t len = 0;

    int rc = prepare_here(call);
    if (rc < 0) {
        return rc;
    }
    rc = bow__call_stream_put_in_place(call, message, 0, &len, NULL);
    if (rc == 0) {
        settle_later(call, len);
    }
    if (rc <= 0) {
        return rc;
    }
    rc = bow__call_stream_encode(call, message, &held, NULL);
    return rc < 0 ? rc : send_block_here(call, held);
}

/* A small payload, where it is the next to be sent. Returns 1 when it has to go as a block. */
static int copy_here(struct bow_call *call, struct bow_slice bytes)
{
    const struct bow__session_ops *ops = call->session->ops;
    size_t cap = 0;

    if (bytes.len > COPIED_PAYLOAD_BYTES) {
        return 1;
    }
    int rc = begin(call);
    if (rc < 0) {
        return rc;
    }
    if (call->encoding != BOW__ENCODING_IDENTITY) {
        return 1;
    }
    uint8_t *room = ops->reserve(call->session, call->key, 0, &cap);
    if (room == NULL || cap < bytes.len) {
        return 1;
    }
    memcpy(room, bytes.data, bytes.len);
    bow__intercept_sent(call->intercepted, room, bytes.len);
    rc = ops->commit(call->session, call->key, 0, bytes.len);
    if (rc == 0) {
        settle_later(call, bytes.len);
    }
    return as_seen_outside(rc);
}

/* From other threads */

static int take_place(struct bow__call_stream *stream, size_t n)
{
    size_t before = waiting(stream);

    do {
        if (before >= BOW_STREAM_WRITABLE_BYTES) {
            return -EAGAIN;
        }
    } while (!atomic_compare_exchange_weak_explicit(&stream->n_waiting, &before, before + n,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

/* Posted, and run before anything that is posted from now on. */
static void run_posted(struct bow_call *call)
{
    atomic_store(&call->stream->task_posted, false);
    (void)bow__call_stream_take_posted(call);
    bow__call_stream_run(call);
    bow_call_unref(call);
}

int bow__call_stream_wake(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (atomic_exchange(&stream->task_posted, true)) {
        return 0;
    }
    bow_call_ref(call);
    if (call->ops->post(call, run_posted) == 0) {
        return 0;
    }
    /* The loop has shut down, and its calls have ended; what was posted goes with the call. Who
     * asks next is told as well. */
    atomic_store(&stream->task_posted, false);
    bow_call_unref(call);
    return -ECANCELED;
}

static int post(struct bow_call *call, struct bow__queued_message *held)
{
    struct bow__call_stream *stream = call->stream;
    size_t n = weight(held);

    int rc = take_place(stream, n);
    if (rc < 0) {
        bow__queued_message_free(held);
        return rc;
    }
    pthread_mutex_lock(&stream->lock);
    bool is_over = bow__call_stream_is_over(call);
    if (!is_over) {
        bow__message_queue_push(&stream->posted, held);
    }
    pthread_mutex_unlock(&stream->lock);
    if (is_over) {
        bow__queued_message_free(held);
        return -ECANCELED;
    }
    atomic_store_explicit(&stream->began, true, memory_order_relaxed);
    return bow__call_stream_wake(call);
}

/* What programs call */

int bow__call_stream_encode(struct bow_call *call, const ProtobufCMessage *message,
                            struct bow__queued_message **ret_held, struct bow__text *reason)
{
    size_t size = bow__encoded_size(message);
    size_t cap = size > 0 && size != SIZE_MAX ? size : 1; /* 1: to be told what is wrong */

    struct bow__queued_message *held = bow__queued_message_new(call->arena.context, cap);
    if (held == NULL) {
        return -ENOMEM;
    }
    ssize_t n = bow__encode(message, bow__queued_message_bytes(held), cap, reason);
    if (n < 0) {
        bow__queued_message_free(held);
        return -EINVAL;
    }
    held->len = (size_t)n;
    *ret_held = held;
    return 0;
}

int bow_call_send(struct bow_call *call, const ProtobufCMessage *message)
{
    struct bow__queued_message *held = NULL;

    int rc = refusal(call);
    if (rc < 0) {
        return rc;
    }
    if (message == NULL || message->descriptor != call->method->output) {
        return -EINVAL;
    }
    if (call->ops->in_loop(call)) {
        return send_here(call, message);
    }
    rc = bow__call_stream_encode(call, message, &held, NULL);
    return rc < 0 ? rc : post(call, held);
}

int bow_call_send_payload(struct bow_call *call, struct bow_payload *payload)
{
    bool here = false;

    int rc = refusal(call);
    if (rc < 0) {
        return rc;
    }
    if (call->ops->in_loop(call)) {
        here = true;
        rc = prepare_here(call);
        if (rc == 0) {
            rc = copy_here(call, bow__payload_bytes(payload));
        }
        if (rc <= 0) {
            return rc;
        }
    }
    struct bow__queued_message *held = bow__queued_message_share(call->arena.context, payload);
    if (held == NULL) {
        return -ENOMEM;
    }
    return here ? send_block_here(call, held) : post(call, held);
}
