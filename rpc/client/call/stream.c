/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A stream's memory and references, and waking its task, from any thread. What the task does, and
 * what is sent and received, is others' business.
 */

#include "rpc/client/call/stream.h"
#include "base/alloc.h"
#include "transport/loop/condition.h"

#include <string.h>

/* Memory */

static void destroy(struct bow_stream *stream)
{
    struct bow_context *context = stream->context;

    bow__message_queue_clear(&stream->posted);
    bow__message_queue_clear(&stream->out);
    bow__message_queue_clear(&stream->kept);
    bow__message_queue_clear(&stream->in);
    bow__coders_trim(&stream->compression.coders);
    bow__arena_fini(&stream->arena);
    bow_result_fini(&stream->result);
    bow__cond_fini(&stream->lock, &stream->changed);
    bow__loop_release(stream->loop);
    if (stream->own_path != NULL) {
        bow__free(context, stream->own_path, strlen(stream->own_path) + 1);
    }
    bow__free(context, stream, sizeof(*stream));
    bow_context_unref(context);
}

struct bow_stream *bow_stream_ref(struct bow_stream *stream)
{
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
    return stream;
}

void bow_stream_unref(struct bow_stream *stream)
{
    if (stream != NULL && atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) == 1) {
        destroy(stream);
    }
}

struct bow_loop *bow_stream_loop(const struct bow_stream *stream)
{
    return stream->loop;
}

/* The task */

void bow__stream_wake(struct bow_stream *stream)
{
    if (atomic_exchange(&stream->task_posted, true)) {
        return;
    }
    bow_stream_ref(stream);
    if (bow__loop_post_internal(stream->loop, &stream->task, 0) < 0) {
        /* The loop shuts down, and ends its calls. */
        atomic_store(&stream->task_posted, false);
        bow_stream_unref(stream);
    }
}

void bow__stream_ask(struct bow_stream *stream, enum bow__stream_ask ask)
{
    atomic_fetch_or_explicit(&stream->asks, ask, memory_order_release);
    bow__stream_wake(stream);
}

void bow__stream_give_up(struct bow_stream *stream, enum bow_code code, const char *message)
{
    pthread_mutex_lock(&stream->lock);
    bool first = stream->failure.len == 0;
    if (first) {
        stream->failure_code = code;
        bow__text_printf(&stream->failure, "%s", message);
    }
    pthread_mutex_unlock(&stream->lock);
    if (first) {
        bow__stream_ask(stream, BOW__STREAM_GIVE_UP);
    }
}

void bow_stream_cancel(struct bow_stream *stream)
{
    bow__stream_ask(stream, BOW__STREAM_CANCEL);
}

void bow__stream_changed(struct bow_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

struct bow__session *bow__stream_session(const struct bow_stream *stream)
{
    const struct bow__client_call *call = stream->call;

    return call != NULL && call->state == BOW__CLIENT_CALL_OPEN ? call->conn->session : NULL;
}
