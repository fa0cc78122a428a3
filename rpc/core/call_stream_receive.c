/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that come in by a streaming call: decoded one at a time into the stream's arena, given
 * to who listens, and only then counted as consumed. Those that come while nobody listens wait, and
 * hold the client's credit back.
 */

#include "rpc/core/call_stream.h"
#include "rpc/core/decode.h"

#include <errno.h>

/* After the callback, which may have ended the call, and with it the session's stream. */
static void let_go(struct bow_call *call, size_t n_bytes)
{
    bow__arena_reset(&call->stream->arena);
    if (call->session != NULL) {
        call->session->ops->consumed(call->session, call->key, bow__consumed_bytes(n_bytes));
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
    const struct bow_call_thunks *thunks = call->method->call_thunks;
    struct bow__decode_options options = {0};
    ProtobufCMessage *message = NULL;
    struct bow__text reason;

    bow__text_clear(&reason);
    stream->arena.max_bytes = bow__decode_cap(bytes.len);
    if (*block != NULL && bow__arena_adopt(&stream->arena, *block) == 0) {
        options.block = *block;
        *block = NULL;
    }
    int rc = bow__decode(call->method->input, bytes, &options, &stream->arena, &message, &reason);
    if (rc < 0) {
        bow__arena_reset(&stream->arena);
        refuse_undecodable(call, rc, &reason);
        return;
    }
    if (thunks->on_message != NULL) {
        thunks->on_message(call, message, stream->events, stream->user);
    }
    let_go(call, bytes.len);
}

static bool is_receiving(const struct bow__call_stream *stream)
{
    return stream->listening && !stream->paused && !stream->ended;
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
