/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a streaming call's handler is told, one event at a time: messages, decoded into the stream's
 * arena and counted as consumed once they have been given; the client's end; that it may send
 * again; the end. Messages that come while nobody listens are queued, and hold the client's credit
 * back.
 */

#include "rpc/core/call/call_stream_events.h"
#include "base/refuse.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_stream_output.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/errors.h"

#include <assert.h>
#include <errno.h>

/* Giving one */

static bool is_listening(const struct bow__call_stream *stream)
{
    return atomic_load_explicit(&stream->listening, memory_order_relaxed);
}

static bool is_paused(const struct bow__call_stream *stream)
{
    return atomic_load_explicit(&stream->paused, memory_order_relaxed);
}

/* The callback may have ended the call, and with it the session's stream. */
static void end_message(struct bow_call *call)
{
    bow__call_stream_uncount(call);
    bow__arena_reset(&call->stream->arena);
    if (call->session != NULL) {
        call->session->ops->consumed(call->session, call->key,
                                     bow__consumed_bytes(call->stream->n_message));
        call->ops->sent(call, 0);
    }
}

void bow__call_stream_deliver_event(struct bow_call *call)
{
    const struct bow__call_stream *stream = call->stream;
    const struct bow_call_thunks *thunks = call->method->call_thunks;

    switch (stream->event) {
    case BOW__CALL_NO_EVENT:
        break;
    case BOW__CALL_MESSAGE:
        thunks->on_message(call, stream->message, stream->events, stream->user);
        break;
    case BOW__CALL_HALF_CLOSE:
        thunks->on_half_close(call, stream->events, stream->user);
        break;
    case BOW__CALL_WRITABLE:
        thunks->on_writable(call, stream->events, stream->user);
        break;
    case BOW__CALL_CLOSED:
        if (call->on_cancel != NULL && atomic_load(&call->end_code) != 0) {
            call->on_cancel(call, (enum bow_code)atomic_load(&call->end_code), call->cancel_user);
        }
        if (is_listening(stream) && thunks->on_closed != NULL) {
            thunks->on_closed(call, &stream->status, stream->events, stream->user);
        }
        break;
    }
}

static void end_event(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;
    enum bow__call_event event = stream->event;

    stream->event = BOW__CALL_NO_EVENT;
    if (event == BOW__CALL_MESSAGE) {
        end_message(call);
    }
    if (event == BOW__CALL_CLOSED) {
        call->ops->closed(call);
        bow_call_unref(call);
    }
}

/* Whether there is anybody to tell of the end; other events are given to who listens. */
static bool is_heard(const struct bow_call *call)
{
    return is_listening(call->stream) || call->on_cancel != NULL;
}

static void deliver_event(struct bow_call *call, enum bow__call_event event)
{
    struct bow__call_stream *stream = call->stream;

    stream->event = event;
    if (stream->on_executor && is_heard(call)) {
        stream->busy = true;
        if (call->ops->post_event(call) == 0) {
            return;
        }
        /* The executor has ended before its server; its calls are to end all the same. */
        stream->busy = false;
    }
    bow__call_stream_deliver_event(call);
    end_event(call);
}

/* Messages */

static void refuse_no_room(struct bow_call *call, int rc)
{
    struct bow__text text;

    bow__receive_queue_describe(&call->stream->in, rc, &text);
    bow__call_stream_refuse(call, BOW_RESOURCE_EXHAUSTED, text.bytes);
}

/* One that waits for an executor takes memory meanwhile. */
static bool count_in_flight(struct bow_call *call, size_t n)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->on_executor) {
        return true;
    }
    n = bow__in_flight_clip(stream->in.share, n);
    if (!bow__in_flight_take_message(stream->in.share, n)) {
        refuse_no_room(call, -ENOBUFS);
        return false;
    }
    stream->n_in_flight = n;
    return true;
}

static void refuse_undecodable(struct bow_call *call, int rc, const struct bow__text *reason)
{
    struct bow__text text;

    if (bow__intercepted_refused(call->intercepted)) {
        bow__call_stream_refuse(call, call->intercepted->refusal.code, reason->bytes);
        return;
    }
    call->ops->undecodable(call);
    bow__text_clear(&text);
    bow__text_printf(&text, "a message of %s cannot be decoded: %s", call->method->path,
                     reason->bytes);
    bow__call_stream_refuse(call, bow__code_from_errno(rc), text.bytes);
}

static void deliver_message(struct bow_call *call, struct bow__message *message)
{
    struct bow__call_stream *stream = call->stream;
    size_t n_bytes = message->bytes.len;
    struct bow__text reason;

    bow__text_clear(&reason);
    call->request_compressed = message->compressed;
    int rc = bow__open_message(call->compression, call->intercepted, message, &reason);
    if (rc == 0) {
        rc = bow__decode_message(call->method->input, message, &stream->arena, &stream->message,
                                 &reason);
    }
    if (call->session != NULL) {
        bow__session_worked(call->session, message, n_bytes, rc);
    }
    if (rc < 0) {
        bow__arena_reset(&stream->arena);
        refuse_undecodable(call, rc, &reason);
        return;
    }
    stream->n_message = n_bytes;
    if (!count_in_flight(call, bow__decoded_bytes(&stream->arena))) {
        return;
    }
    if (call->method->call_thunks->on_message != NULL) {
        deliver_event(call, BOW__CALL_MESSAGE);
    } else {
        end_message(call);
    }
}

static bool is_receiving(const struct bow__call_stream *stream)
{
    return !stream->busy && is_listening(stream) && !is_paused(stream) && !stream->ended;
}

static void wait_turn(struct bow_call *call)
{
    bow__work_wait(&call->session->work, &call->stream->waiter);
    call->ops->sent(call, 0); /* so that its connection looks */
}

static void queue_message(struct bow_call *call, struct bow__message *message)
{
    int rc = bow__receive_queue_push(&call->stream->in, call->arena.context, message);

    if (rc < 0) {
        refuse_no_room(call, rc);
    }
}

static void deliver_queued_messages(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;
    struct bow__message message;

    while (is_receiving(stream) && !bow__receive_queue_is_empty(&stream->in)) {
        if (!bow__session_has_turn(call->session)) {
            wait_turn(call);
            return;
        }
        (void)bow__receive_queue_pop(&stream->in, &message);
        deliver_message(call, &message);
        bow__block_unref(message.block);
    }
}

/* What is due */

static void deliver_half_close(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->half_closed || stream->half_close_delivered ||
        !bow__receive_queue_is_empty(&stream->in) || stream->busy || !is_listening(stream) ||
        is_paused(stream) || stream->ended) {
        return;
    }
    stream->half_close_delivered = true;
    if (call->method->call_thunks->on_half_close != NULL) {
        deliver_event(call, BOW__CALL_HALF_CLOSE);
    }
}

/* Kept for a handler that begins to listen later: others may have been refused for it. */
static void deliver_writable(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->writable_due || stream->busy || !is_listening(stream)) {
        return;
    }
    stream->writable_due = false;
    if (!stream->ended && bow_call_is_writable(call) &&
        call->method->call_thunks->on_writable != NULL) {
        deliver_event(call, BOW__CALL_WRITABLE);
    }
}

static void deliver_closed(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (stream->ended && !stream->closed && !stream->busy) {
        stream->closed = true;
        deliver_event(call, BOW__CALL_CLOSED);
    }
}

void bow__call_stream_half_close(struct bow_call *call)
{
    call->stream->half_closed = true;
    deliver_half_close(call);
}

void bow__call_stream_writable(struct bow_call *call)
{
    bow__call_stream_settle(call, 0);
    deliver_writable(call);
}

static void take_later(struct bow_call *call, struct bow__message *message)
{
    queue_message(call, message);
    if (is_receiving(call->stream) && !bow__session_has_turn(call->session)) {
        wait_turn(call);
    }
}

void bow__call_stream_take(struct bow_call *call, struct bow__message *message, bool end)
{
    struct bow__call_stream *stream = call->stream;

    if (is_receiving(stream) && bow__receive_queue_is_empty(&stream->in) &&
        bow__session_has_turn(call->session)) {
        deliver_message(call, message);
    } else {
        take_later(call, message);
    }
    if (end) {
        bow__call_stream_half_close(call);
    }
}

void bow__call_stream_deliver_due(struct bow_call *call)
{
    deliver_queued_messages(call);
    deliver_half_close(call);
    deliver_writable(call);
    deliver_closed(call);
}

void bow__call_stream_event_done(struct bow_call *call)
{
    call->stream->busy = false;
    end_event(call);
}

/* Listening */

/* Elsewhere the loop looks when the handler, or the event, that this is asked from returns. */
static void look_later(struct bow_call *call)
{
    if (!call->stream->on_executor) {
        bow__call_stream_defer(call);
    }
}

int bow_call_listen(struct bow_call *call, const void *events, void *user)
{
    struct bow__call_stream *stream = call->stream;

    if (stream == NULL || events == NULL) {
        if (bow__call_is_gone(call)) {
            return bow__call_is_misused(call, "listened to");
        }
        return bow__refuse(call->arena.context, -EINVAL, "bow_call_listen: %s: %s",
                           call->method->path,
                           stream == NULL ? "it is a unary method" : "events is NULL");
    }
    assert(stream->on_executor || call->ops->in_loop(call));
    if (is_listening(stream)) {
        return bow__refuse(call->arena.context, -EALREADY,
                           "bow_call_listen: %s: the call has its events", call->method->path);
    }
    if (stream->closed) {
        return -ECANCELED;
    }
    atomic_store_explicit(&stream->listening, true, memory_order_relaxed);
    stream->events = events;
    stream->user = user;
    look_later(call);
    return 0;
}

void bow_call_pause(struct bow_call *call)
{
    if (call->stream != NULL) {
        assert(call->stream->on_executor || call->ops->in_loop(call));
        atomic_store_explicit(&call->stream->paused, true, memory_order_relaxed);
    }
}

void bow_call_resume(struct bow_call *call)
{
    if (call->stream != NULL && is_paused(call->stream)) {
        assert(call->stream->on_executor || call->ops->in_loop(call));
        atomic_store_explicit(&call->stream->paused, false, memory_order_relaxed);
        look_later(call);
    }
}
