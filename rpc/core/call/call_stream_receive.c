/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that come in by a streaming call: decoded one at a time into the stream's arena, given
 * to who listens, and only then counted as consumed. Those that come while nobody listens wait, and
 * hold the client's credit back.
 */

#include "rpc/core/call/call_stream.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/errors.h"

#include <errno.h>

static void refuse_to_keep(struct bow_call *call, int rc)
{
    struct bow__text text;

    bow__receive_queue_describe(&call->stream->in, rc, &text);
    bow__call_stream_refuse(call, BOW_RESOURCE_EXHAUSTED, text.bytes);
}

/* One that waits for an executor takes memory meanwhile. */
static bool lend(struct bow_call *call, size_t n)
{
    struct bow__call_stream *stream = call->stream;

    if (!stream->on_executor) {
        return true;
    }
    n = bow__in_flight_clip(stream->in.part, n);
    if (!bow__in_flight_take_message(stream->in.part, n)) {
        refuse_to_keep(call, -ENOBUFS);
        return false;
    }
    stream->n_lent = n;
    return true;
}

void bow__call_stream_unlend(struct bow_call *call)
{
    bow__in_flight_give_message(call->stream->in.part, call->stream->n_lent);
    call->stream->n_lent = 0;
}

/* The callback may have ended the call, and with it the session's stream. */
void bow__call_stream_delivered(struct bow_call *call)
{
    bow__call_stream_unlend(call);
    bow__arena_reset(&call->stream->arena);
    if (call->session != NULL) {
        call->session->ops->consumed(call->session, call->key,
                                     bow__consumed_bytes(call->stream->n_message));
        call->ops->sent(call, 0);
    }
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

static void deliver(struct bow_call *call, struct bow__message *message)
{
    struct bow__call_stream *stream = call->stream;
    size_t n_bytes = message->bytes.len;
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = bow__open_message(call->compression, call->intercepted, message, &reason);
    if (rc == 0) {
        rc = bow__decode_message(call->method->input, message, &stream->arena, &stream->message,
                                 &reason);
    }
    if (rc < 0) {
        bow__arena_reset(&stream->arena);
        refuse_undecodable(call, rc, &reason);
        return;
    }
    stream->n_message = n_bytes;
    if (!lend(call, bow__decoded_bytes(message, &stream->arena))) {
        return;
    }
    if (call->method->call_thunks->on_message != NULL) {
        bow__call_stream_give(call, BOW__CALL_MESSAGE);
    } else {
        bow__call_stream_delivered(call);
    }
}

static bool is_receiving(const struct bow__call_stream *stream)
{
    return !stream->busy && stream->listening && !stream->paused && !stream->ended;
}

static void keep(struct bow_call *call, struct bow__message *message)
{
    int rc = bow__receive_queue_push(&call->stream->in, call->arena.context, message);

    if (rc < 0) {
        refuse_to_keep(call, rc);
    }
}

void bow__call_stream_take(struct bow_call *call, struct bow__message *message, bool end)
{
    struct bow__call_stream *stream = call->stream;

    if (is_receiving(stream) && bow__receive_queue_is_empty(&stream->in)) {
        deliver(call, message);
    } else {
        keep(call, message);
    }
    if (end) {
        bow__call_stream_half_close(call);
    }
}

void bow__call_stream_deliver(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;
    struct bow__message message;

    while (is_receiving(stream) && bow__receive_queue_pop(&stream->in, &message)) {
        deliver(call, &message);
        bow__block_unref(message.block);
    }
}
