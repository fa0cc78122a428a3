/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages into a client's stream: delivered as they come, or kept while it is paused
 * or, in the blocking style, until somebody receives them. What is kept has its credit
 * withheld, so that the server is held back.
 */

#include "rpc/client/call/stream_receive.h"
#include "rpc/client/call/call_retry.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/errors.h"

#include <errno.h>

/* Decoding */

/* Whoever receives in the blocking style does so on a thread of its own, and the client may be
 * gone.
 */
static struct bow__compression *compression_of(struct bow_stream *stream)
{
    return bow__stream_is_blocking(stream) ? &stream->compression
                                           : &stream->call->calls->compression.compression;
}

/* Those of a blocking one have seen the message when it came. */
static struct bow__intercepted *intercepted_of(const struct bow_stream *stream)
{
    return bow__stream_is_blocking(stream) ? NULL : stream->call->intercepted;
}

static int decode(struct bow_stream *stream, struct bow__message *message,
                  ProtobufCMessage **ret_message, struct bow__text *reason)
{
    struct bow__text why;

    bow__text_clear(&why);
    stream->message_compressed = message->compressed;
    int rc = bow__open_message(compression_of(stream), intercepted_of(stream), message, &why);
    if (rc == 0) {
        rc =
            bow__decode_message(stream->method->output, message, &stream->arena, ret_message, &why);
    }
    if (rc < 0) {
        bow__text_clear(reason);
        if (rc != -EACCES) { /* by an interceptor, which says what it wants to */
            bow__text_printf(reason, "a message of %s cannot be decoded: ", stream->method->path);
        }
        bow__text_printf(reason, "%s", why.bytes);
    }
    return rc;
}

int bow__stream_decode_queued(struct bow_stream *stream, struct bow__queued_message *queued,
                              ProtobufCMessage **ret_message, struct bow__text *reason)
{
    struct bow__message message = bow__queued_message_release(queued);

    int rc = decode(stream, &message, ret_message, reason);
    bow__block_unref(message.block);
    return rc;
}

static void give_up_undecodable(struct bow_stream *stream, int rc, const struct bow__text *reason)
{
    struct bow__client_call *call = stream->call;
    enum bow_code code = bow__code_from_errno(rc);
    struct bow__text text = *reason;

    if (bow__intercepted_refused(call->intercepted)) {
        code = call->intercepted->refusal.code;
    } else {
        call->calls->counters.now.undecodable_messages++;
        if (call->conn != NULL) { /* its connection may have gone before */
            bow__text_printf(&text, " (server %s)", bow_channel_peer(call->conn->channel));
        }
    }
    bow__client_call_abandon(call, BOW_CANCELLED);
    bow__client_call_fail(call, code, text.bytes);
}

/* Credit */

static void consumed(struct bow_stream *stream, size_t n)
{
    struct bow__session *session = bow__stream_session(stream);

    if (session != NULL && n > 0) {
        session->ops->consumed(session, stream->call->key, n);
        bow__conn_touch(stream->call->conn);
    }
}

void bow__stream_return_credit(struct bow_stream *stream)
{
    consumed(stream, atomic_exchange(&stream->n_taken, 0));
}

/* Delivery */

void bow__stream_take_headers(struct bow_stream *stream, const struct bow_metadata *initial)
{
    const struct bow_stream_thunks *thunks = stream->method->stream_thunks;

    if (!bow__stream_is_blocking(stream) && thunks->on_headers != NULL) {
        thunks->on_headers(stream, initial, stream->events, stream->user);
    }
}

static void emit(struct bow_stream *stream, const ProtobufCMessage *message)
{
    stream->method->stream_thunks->on_message(stream, message, stream->events, stream->user);
    bow__arena_reset(&stream->arena);
}

static void deliver_now(struct bow_stream *stream, struct bow__message *message)
{
    size_t n_bytes = message->bytes.len;
    struct bow__session *session = bow__stream_session(stream);
    ProtobufCMessage *decoded = NULL;
    struct bow__text reason;

    int rc = decode(stream, message, &decoded, &reason);
    if (session != NULL) {
        bow__session_worked(session, message, n_bytes, rc);
    }
    if (rc < 0) {
        give_up_undecodable(stream, rc, &reason);
        return;
    }
    emit(stream, decoded);
    consumed(stream, bow__consumed_bytes(n_bytes));
}

static void keep(struct bow_stream *stream, struct bow__message *message)
{
    struct bow__queued_message *queued = bow__queued_message_keep(stream->context, message);

    if (queued == NULL) {
        bow__client_call_abandon(stream->call, BOW_CANCELLED);
        bow__client_call_fail(stream->call, BOW_RESOURCE_EXHAUSTED,
                              "out of memory for a message that waits to be taken");
        return;
    }
    pthread_mutex_lock(&stream->lock);
    bow__message_queue_push(&stream->in, queued);
    /* All: one that waits to send would go on waiting, and the one that receives would not know. */
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static bool is_dropping(struct bow_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool dropping = stream->dropping;
    pthread_mutex_unlock(&stream->lock);
    return dropping;
}

/* Who receives inflates on a thread of its own, where no interceptor is called. */
static bool may_pass(struct bow_stream *stream, const struct bow__message *message)
{
    struct bow__intercepted *it = stream->call->intercepted;
    struct bow__text reason;

    if (it == NULL ||
        bow__intercepted_receives(it, message->bytes, message->compressed, &reason) == 0) {
        return true;
    }
    give_up_undecodable(stream, -EACCES, &reason);
    return false;
}

static void take_blocking(struct bow_stream *stream, struct bow__message *message)
{
    if (!may_pass(stream, message)) {
        return;
    }
    if (is_dropping(stream)) {
        consumed(stream, bow__consumed_bytes(message->bytes.len));
    } else {
        keep(stream, message);
    }
}

static void wait_turn(struct bow_stream *stream)
{
    struct bow__session *session = bow__stream_session(stream);

    if (session == NULL) {
        bow__stream_wake(stream);
        return;
    }
    bow__work_wait(&session->work, &stream->waiter);
    bow__conn_touch(stream->call->conn); /* so that it looks */
}

static struct bow__work *work_of(const struct bow_stream *stream, struct bow__work *late)
{
    struct bow__session *session = bow__stream_session(stream);

    return session != NULL ? &session->work : late;
}

/* As it came, for what it inflates to the client's own limit counts. */
static bool is_too_large(struct bow_stream *stream, const struct bow__message *message)
{
    size_t max = stream->call->retry->policy.max_response_bytes;
    struct bow__text text;

    if (message->bytes.len <= max) {
        return false;
    }
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "a message of %s has %zu bytes, and its service config allows %zu "
                     "(maxResponseMessageBytes)",
                     stream->method->path, message->bytes.len, max);
    bow__client_call_abandon(stream->call, BOW_CANCELLED);
    bow__client_call_fail(stream->call, BOW_RESOURCE_EXHAUSTED, text.bytes);
    return true;
}

void bow__stream_take_message(struct bow_stream *stream, struct bow__message *message)
{
    stream->n_received++;
    if (stream->call->retry != NULL) {
        bow__call_retry_commit(stream->call);
        if (is_too_large(stream, message)) {
            return;
        }
    }
    bow__client_call_count_received(stream->call, message->bytes.len);
    if (bow__stream_is_blocking(stream)) {
        take_blocking(stream, message);
    } else if (stream->paused || stream->in.first != NULL) {
        keep(stream, message);
    } else if (!bow__session_has_turn(bow__stream_session(stream))) {
        keep(stream, message);
        wait_turn(stream);
    } else {
        deliver_now(stream, message);
    }
}

bool bow__stream_has_waiting(struct bow_stream *stream)
{
    return !bow__stream_is_blocking(stream) && stream->in.first != NULL;
}

/* Returns false when that ended the call. */
static bool deliver_queued(struct bow_stream *stream, struct bow__work *work)
{
    struct bow__queued_message *queued = bow__message_queue_pop(&stream->in);
    struct bow__message message = bow__queued_message_release(queued);
    size_t n_bytes = message.bytes.len;
    ProtobufCMessage *decoded = NULL;
    struct bow__text reason;

    int rc = decode(stream, &message, &decoded, &reason);
    bow__block_unref(message.block);
    bow__message_worked(work, &message, n_bytes, rc);
    if (rc < 0) {
        give_up_undecodable(stream, rc, &reason);
        return false;
    }
    emit(stream, decoded);
    consumed(stream, bow__consumed_bytes(n_bytes));
    return true;
}

void bow__stream_deliver(struct bow_stream *stream)
{
    struct bow__client_call *call = stream->call;
    struct bow__work late = {0}; /* of messages whose connection has gone, or forgotten the call */

    if (bow__stream_is_blocking(stream)) {
        return;
    }
    while (!stream->paused && stream->in.first != NULL) {
        if (!bow__session_has_turn(bow__stream_session(stream)) || bow__work_is_enough(&late)) {
            wait_turn(stream);
            return;
        }
        if (!deliver_queued(stream, work_of(stream, &late))) {
            return;
        }
    }
    if (call->state == BOW__CLIENT_CALL_LINGERING && stream->in.first == NULL) {
        bow__client_call_complete(call, &call->failure);
    }
}

bool bow_stream_message_was_compressed(const struct bow_stream *stream)
{
    return stream->message_compressed;
}

void bow_stream_pause(struct bow_stream *stream)
{
    stream->paused = true;
}

void bow_stream_resume(struct bow_stream *stream)
{
    if (stream->paused) {
        stream->paused = false;
        if (stream->in.first != NULL) {
            bow__stream_wake(stream);
        }
    }
}
