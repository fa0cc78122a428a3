/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a streaming call: what it has beside the call, and its end. Knows neither what goes
 * in nor what goes out.
 */

#include "rpc/core/call/call_stream.h"
#include "base/alloc.h"
#include "rpc/core/call/generic.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

static void on_turn(struct bow__work_waiter *waiter)
{
    bow__call_stream_defer(BOW__CONTAINER(waiter, struct bow__call_stream, waiter)->call);
}

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
    stream->waiter.fn = on_turn;
    bow__list_init(&stream->waiter.link);
    stream->call = call;
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
    if (bow__method_is_generic(call->method)) {
        call->method = &bow__generic_method; /* its own goes with its memory */
    }
}

void bow__call_stream_defer(struct bow_call *call)
{
    if (!call->stream->closed) {
        call->ops->defer(call);
    }
}

/* The end */

void bow__call_stream_uncount(struct bow_call *call)
{
    bow__in_flight_give_message(call->stream->in.share, call->stream->n_in_flight);
    call->stream->n_in_flight = 0;
}

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
    bow__list_remove(&stream->waiter.link);
    stream->ended = true;
    call->ops->hold(call);
    pthread_mutex_lock(&stream->lock);
    bow__message_queue_clear(&stream->posted);
    pthread_mutex_unlock(&stream->lock);
    bow__receive_queue_clear(&stream->in);
    bow__call_stream_uncount(call);
    stream->in.share = NULL; /* it goes with the connection */
    child_calls = atomic_load(&call->child_calls);
    if (child_calls != NULL) {
        bow__child_calls_end(child_calls);
    }
    bow__call_stream_defer(call);
}

void bow__call_stream_cancelled(struct bow_call *call, const struct bow_status *status)
{
    bow__call_stream_keep_status(call, status);
    atomic_store(&call->end_code, (unsigned)status->code);
    bow__call_stream_end(call);
}
