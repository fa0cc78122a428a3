/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a server's streaming call: references, who listens, which events are due, and
 * the end. Knows neither how messages are encoded nor what they came in.
 */

#include "rpc/core/call/call_stream.h"
#include "base/alloc.h"
#include <bowline/limits.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

int bow__call_stream_new(struct bow_call *call)
{
    struct bow_context *context = call->arena.context;
    struct bow__call_stream *stream = bow__alloc(context, sizeof(*stream));

    if (stream == NULL) {
        return -ENOMEM;
    }
    memset(stream, 0, offsetof(struct bow__call_stream, slab));
    pthread_mutex_init(&stream->lock, NULL);
    atomic_init(&stream->refs, 1);
    bow__arena_init(&stream->arena, context, stream->slab, sizeof(stream->slab),
                    BOW_LIMIT_CALL_ARENA_BYTES);
    call->stream = stream;
    return 0;
}

void bow__call_stream_free(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    bow__message_queue_clear(&stream->posted);
    bow__receive_queue_clear(&stream->in);
    bow__queued_message_free(stream->answer.reply);
    bow__block_unref(stream->answer.memory);
    bow__block_unref(stream->status_memory);
    bow__arena_fini(&stream->arena);
    pthread_mutex_destroy(&stream->lock);
    bow__free(call->arena.context, stream, sizeof(*stream));
    call->stream = NULL;
}

struct bow_call *bow_call_ref(struct bow_call *call)
{
    if (call->stream != NULL) {
        atomic_fetch_add_explicit(&call->stream->refs, 1, memory_order_relaxed);
    }
    return call;
}

void bow_call_unref(struct bow_call *call)
{
    if (call->stream != NULL &&
        atomic_fetch_sub_explicit(&call->stream->refs, 1, memory_order_acq_rel) == 1) {
        bow__call_free(call);
    }
}

/* Events */

void bow__call_stream_defer(struct bow_call *call)
{
    if (!call->stream->closed) {
        call->ops->defer(call);
    }
}

void bow__call_stream_tell(struct bow_call *call)
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
        if (call->on_cancel != NULL && atomic_load(&call->why) != 0) {
            call->on_cancel(call, (enum bow_code)atomic_load(&call->why), call->cancel_user);
        }
        if (stream->listening && thunks->on_closed != NULL) {
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
        bow__call_stream_delivered(call);
    }
    if (event == BOW__CALL_CLOSED) {
        call->ops->closed(call);
        bow_call_unref(call);
    }
}

/* Whether there is anybody to tell of the end; other events are given to who listens. */
static bool is_heard(const struct bow_call *call)
{
    return call->stream->listening || call->on_cancel != NULL;
}

void bow__call_stream_give(struct bow_call *call, enum bow__call_event event)
{
    struct bow__call_stream *stream = call->stream;

    stream->event = event;
    if (stream->on_executor && is_heard(call)) {
        stream->busy = true;
        if (call->ops->give(call) == 0) {
            return;
        }
        /* The executor has ended before its server; its calls are to end all the same. */
        stream->busy = false;
    }
    bow__call_stream_tell(call);
    end_event(call);
}

static void tell_half_close(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->half_closed || stream->half_close_told ||
        !bow__receive_queue_is_empty(&stream->in) || stream->busy || !stream->listening ||
        stream->paused || stream->ended) {
        return;
    }
    stream->half_close_told = true;
    if (call->method->call_thunks->on_half_close != NULL) {
        bow__call_stream_give(call, BOW__CALL_HALF_CLOSE);
    }
}

/* Kept for a handler that begins to listen later: others may have been refused for it. */
static void tell_writable(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->writable_due || stream->busy || !stream->listening) {
        return;
    }
    stream->writable_due = false;
    if (!stream->ended && bow_call_is_writable(call) &&
        call->method->call_thunks->on_writable != NULL) {
        bow__call_stream_give(call, BOW__CALL_WRITABLE);
    }
}

static void tell_closed(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    if (stream->ended && !stream->closed && !stream->busy) {
        stream->closed = true;
        bow__call_stream_give(call, BOW__CALL_CLOSED);
    }
}

void bow__call_stream_run(struct bow_call *call)
{
    bow__call_stream_flush(call);
    bow__call_stream_deliver(call);
    tell_half_close(call);
    tell_writable(call);
    tell_closed(call);
}

void bow__call_stream_go_on(struct bow_call *call)
{
    bow_call_ref(call);
    call->stream->busy = false;
    end_event(call);
    bow__call_stream_run(call);
    bow_call_unref(call);
}

void bow__call_stream_half_close(struct bow_call *call)
{
    call->stream->half_closed = true;
    tell_half_close(call);
}

void bow__call_stream_writable(struct bow_call *call)
{
    bow__call_stream_settle(call);
    tell_writable(call);
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
        return -EINVAL;
    }
    assert(stream->on_executor || call->ops->in_loop(call));
    if (stream->listening) {
        return -EALREADY;
    }
    if (stream->closed) {
        return -ECANCELED;
    }
    stream->listening = true;
    stream->events = events;
    stream->user = user;
    look_later(call);
    return 0;
}

void bow_call_pause(struct bow_call *call)
{
    if (call->stream != NULL) {
        assert(call->stream->on_executor || call->ops->in_loop(call));
        call->stream->paused = true;
    }
}

void bow_call_resume(struct bow_call *call)
{
    if (call->stream != NULL && call->stream->paused) {
        assert(call->stream->on_executor || call->ops->in_loop(call));
        call->stream->paused = false;
        look_later(call);
    }
}

/* The end */

static uint8_t *append(uint8_t *to, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(to, bytes, len);
    }
    return to + len;
}

void bow__call_stream_keep_status(struct bow_call *call, const struct bow_status *status)
{
    struct bow__call_stream *stream = call->stream;
    const char *message = status->message != NULL ? status->message : "";
    size_t n_message = strlen(message) + 1;

    stream->status = (struct bow_status)BOW_STATUS_OK_INIT;
    stream->status.code = status->code;
    if (n_message == 1 && status->details.len == 0) {
        return;
    }
    bow__block_unref(stream->status_memory);
    stream->status_memory = bow__block_new(call->arena.context, n_message + status->details.len);
    if (stream->status_memory == NULL) {
        return;
    }
    uint8_t *bytes = stream->status_memory->data;
    uint8_t *details = append(bytes, message, n_message);
    (void)append(details, status->details.data, status->details.len);
    stream->status.message = (const char *)bytes;
    stream->status.details = (struct bow_slice){details, status->details.len};
}

void bow__call_stream_end(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;
    struct bow__child_calls *child_calls = NULL;

    call->session = NULL;
    stream->ended = true;
    call->ops->hold(call);
    pthread_mutex_lock(&stream->lock);
    bow__message_queue_clear(&stream->posted);
    pthread_mutex_unlock(&stream->lock);
    bow__receive_queue_clear(&stream->in);
    bow__call_stream_unlend(call);
    stream->in.part = NULL; /* it goes with the connection */
    child_calls = atomic_load(&call->child_calls);
    if (child_calls != NULL) {
        bow__child_calls_end(child_calls);
    }
    bow__call_stream_defer(call);
}

void bow__call_stream_lost(struct bow_call *call, const struct bow_status *status)
{
    bow__call_stream_keep_status(call, status);
    atomic_store(&call->why, (unsigned)status->code);
    bow__call_stream_end(call);
}
