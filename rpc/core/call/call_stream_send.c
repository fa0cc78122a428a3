/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What programs send by a streaming call, from any thread: on the loop in place or behind what was
 * posted before, elsewhere posted until the loop looks.
 */

#include "rpc/core/call/call_stream_send.h"
#include "base/refuse.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/core/call/call_stream_output.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/raw.h"
#include "rpc/core/message/payload.h"
#include <bowline/generic.h>

#include <errno.h>

/* What a queued message counts for: empty ones take memory too. */
static size_t weight(const struct bow__queued_message *queued)
{
    return sizeof(struct bow__block) + sizeof(*queued) + queued->len;
}

/* Of a message: the function that this runs in is one of the call's. */
static void settle_later(struct bow_call *call, size_t n_bytes)
{
    bow__call_stream_settle(call, 0);
    call->ops->sent(call, n_bytes);
    if (call->stream->writable_due) {
        bow__call_stream_defer(call);
    }
}

/* In order; what cannot be sent any more is dropped. */
static int send_all(struct bow_call *call, struct bow__message_queue *taken)
{
    struct bow__queued_message *queued;
    size_t n_handed = 0;
    size_t n_bytes = 0;
    int rc = 0;

    while (rc == 0 && (queued = bow__message_queue_pop(taken)) != NULL) {
        size_t len = 0;
        n_handed += weight(queued);
        rc = bow__call_stream_hand_over(call, queued, 0, &len);
        n_bytes += len;
        if (rc < 0) {
            bow__queued_message_free(queued);
        }
    }
    bow__message_queue_clear(taken);
    bow__call_stream_settle(call, n_handed);
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
    if (rc == -ENOMEM || rc == -EMSGSIZE || rc == -EBADMSG) {
        bow__call_stream_refuse_unsent(call, rc);
        return rc == -EBADMSG ? -ECANCELED : rc;
    }
    return is_answered ? bow__call_stream_send_answer(call) : 0;
}

static void flush(struct bow_call *call)
{
    if (atomic_load(&call->stream->task_posted)) {
        (void)bow__call_stream_take_posted(call);
    }
}

void bow__call_stream_run(struct bow_call *call)
{
    flush(call);
    bow__call_stream_deliver_due(call);
}

void bow__call_stream_go_on(struct bow_call *call)
{
    bow_call_ref(call);
    bow__call_stream_event_done(call);
    bow__call_stream_run(call);
    bow_call_unref(call);
}

/* On the loop: what programs send */

/* Not what the client can be given: the call has failed, whatever is sent behind it. */
static int end_unsendable(struct bow_call *call)
{
    bow__call_stream_refuse_unsent(call, -EBADMSG);
    return -ECANCELED;
}

static int send_block_here(struct bow_call *call, struct bow__queued_message *queued)
{
    size_t len = 0;
    int rc = bow__call_stream_hand_over(call, queued, 0, &len);

    if (rc < 0) {
        bow__queued_message_free(queued);
        return rc == -EBADMSG ? end_unsendable(call) : rc;
    }
    settle_later(call, len);
    return 0;
}

/* What other threads have posted comes first, and may leave no room, or end the call. */
static int prepare_here(struct bow_call *call)
{
    flush(call);
    if (call->stream->writable_due) {
        bow__call_stream_defer(call);
    }
    return call->session != NULL ? bow__call_stream_check_send(call) : -ECANCELED;
}

static int send_here(struct bow_call *call, const ProtobufCMessage *message)
{
    struct bow__queued_message *queued = NULL;
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
    rc = bow__call_stream_encode(call, message, &queued, NULL);
    return rc < 0 ? rc : send_block_here(call, queued);
}

/* Returns 1 when it has to go as a block. */
static int copy_here(struct bow_call *call, struct bow_slice bytes)
{
    int rc = bow__call_stream_copy_in_place(call, bytes);

    if (rc == 0) {
        settle_later(call, bytes.len);
    }
    return rc;
}

/* From other threads */

static int reserve(struct bow__call_stream *stream, size_t n)
{
    size_t before = bow__call_stream_waiting(stream);

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

static int post(struct bow_call *call, struct bow__queued_message *queued)
{
    struct bow__call_stream *stream = call->stream;
    size_t n = weight(queued);

    int rc = reserve(stream, n);
    if (rc < 0) {
        bow__queued_message_free(queued);
        return rc;
    }
    pthread_mutex_lock(&stream->lock);
    bool is_over = bow__call_stream_is_over(call);
    if (!is_over) {
        bow__message_queue_push(&stream->posted, queued);
    }
    pthread_mutex_unlock(&stream->lock);
    if (is_over) {
        bow__queued_message_free(queued);
        return -ECANCELED;
    }
    atomic_store_explicit(&stream->began, true, memory_order_relaxed);
    return bow__call_stream_wake(call);
}

/* What programs call */

static int refuse(const struct bow_call *call, const char *why)
{
    return bow__refuse(call->arena.context, -EINVAL, "sending on a call of %s: %s",
                       call->method->path, why);
}

static int refuse_kind(const struct bow_call *call, int rc)
{
    if (rc != -EINVAL || bow__call_is_gone(call)) {
        return rc;
    }
    return refuse(call, "its server sends one message, and that is the reply");
}

static int refuse_encoding(const struct bow_call *call, const ProtobufCMessage *message)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    bow__text_printf(&reason, "the message cannot be encoded: ");
    bow__encode_explain(message, &reason);
    return refuse(call, reason.bytes);
}

static int refuse_type(const struct bow_call *call, const ProtobufCMessage *message)
{
    return bow__refuse(call->arena.context, -EINVAL,
                       "sending on a call of %s: the message is a %s, not a %s", call->method->path,
                       bow__type_name(message), call->method->output->name);
}

int bow_call_send(struct bow_call *call, const ProtobufCMessage *message)
{
    struct bow__queued_message *queued = NULL;

    int rc = bow__call_stream_check_send(call);
    if (rc < 0) {
        return refuse_kind(call, rc);
    }
    if (bow__arena_has_failed(&call->arena)) { /* the message may lack what did not fit */
        return -ENOMEM;
    }
    if (message == NULL || message->descriptor != call->method->output) {
        return refuse_type(call, message);
    }
    if (call->ops->in_loop(call)) {
        rc = send_here(call, message);
    } else {
        rc = bow__call_stream_encode(call, message, &queued, NULL);
        rc = rc < 0 ? rc : post(call, queued);
    }
    return rc != -EINVAL ? rc : refuse_encoding(call, message);
}

int bow_call_send_bytes(struct bow_call *call, struct bow_slice bytes)
{
    struct bow__raw_message raw;

    bow__raw_message_init(&raw, bytes);
    return bow_call_send(call, &raw.base);
}

int bow_call_send_payload(struct bow_call *call, struct bow_payload *payload)
{
    bool here = false;

    int rc = bow__call_stream_check_send(call);
    if (rc < 0) {
        return refuse_kind(call, rc);
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
    struct bow__queued_message *queued = bow__queued_message_share(call->arena.context, payload);
    if (queued == NULL) {
        return -ENOMEM;
    }
    queued->compression = (uint8_t)bow__call_compresses(call);
    return here ? send_block_here(call, queued) : post(call, queued);
}
