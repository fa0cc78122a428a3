/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that come in by a streaming call: decoded one at a time into the stream's arena, given
 * to who listens, and only then counted as consumed. Those that come while nobody listens wait, and
 * hold the client's credit back.
 */

#include "rpc/core/call_stream.h"
#include "rpc/core/decode.h"

#include <errno.h>

/* The callback may have ended the call, and with it the session's stream. */
void bow__call_stream_delivered(struct bow_call *call)
{
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

    call->ops->undecodable(call);
    bow__text_clear(&text);
    bow__text_printf(&text, "a message of %s cannot be decoded: %s", call->method->path,
                     reason->bytes);
    bow__call_stream_refuse(call, rc == -ENOMEM ? BOW_RESOURCE_EXHAUSTED : BOW_INTERNAL,
                            text.bytes);
}

/* `*block` is NULL, or holds the bytes and may be kept: it is NULL then. */
static void deliver(struct bow_call *call, struct bow_slice bytes, struct bow__block **block)
{
    struct bow__call_stream *stream = call->stream;
    struct bow__decode_options options = {0};
    struct bow__text reason;

    bow__text_clear(&reason);
    stream->arena.max_bytes = bow__decode_cap(bytes.len);
    if (*block != NULL && bow__arena_adopt(&stream->arena, *block) == 0) {
        options.block = *block;
        *block = NULL;
    }
    int rc = bow__decode(call->method->input, bytes, &options, &stream->arena, &stream->message,
                         &reason);
    if (rc < 0) {
        bow__arena_reset(&stream->arena);
        refuse_undecodable(call, rc, &reason);
        return;
    }
    stream->n_message = bytes.len;
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
    struct bow__held *held = bow__held_keep(call->arena.context, message);

    if (held == NULL) {
        bow__call_stream_refuse(call, BOW_RESOURCE_EXHAUSTED,
                                "the server has no memory for a message that has to wait");
        return;
    }
    bow__held_push(&call->stream->in, held);
}

void bow__call_stream_take(struct bow_call *call, struct bow__message *message, bool end)
{
    struct bow__call_stream *stream = call->stream;

    if (is_receiving(stream) && stream->in.first == NULL) {
        deliver(call, message->bytes, &message->block);
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
    struct bow__held *held;

    while (is_receiving(stream) && (held = bow__held_pop(&stream->in)) != NULL) {
        struct bow_slice bytes = {bow__held_bytes(held), held->len};
        struct bow__block *block = bow__block_ref(bow__held_block(held));
        bow__held_free(held);
        deliver(call, bytes, &block);
        bow__block_unref(block);
    }
}
