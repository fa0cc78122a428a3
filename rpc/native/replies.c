/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server sends to answer a call: RESPONSE and STATUS.
 */

#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

static int say_headers(struct bow__native *session, struct bow__native_stream *stream,
                       struct bow__header_entries entries)
{
    struct bow__native_metadata metadata;

    if (bow__native_metadata_take(session, &entries, &metadata) < 0) {
        struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED,
                                 .message = "out of memory for the reply's metadata"};
        return bow__native_refuse(session, stream, &why);
    }
    if (metadata.list.n > 0) {
        session->base.events->on_headers(session->base.owner, stream->id, stream->user,
                                         &metadata.list);
    }
    bow__native_metadata_give(session, &metadata);
    return 0;
}

static int refuse_response(struct bow__native *session, struct bow__native_stream *stream,
                           size_t n_block, const struct bow__header_entries *entries)
{
    struct bow__text text;
    struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED, .message = text.bytes};

    bow__native_describe_header(session, n_block, entries, &text);
    return bow__native_refuse(session, stream, &why);
}

/* The call has ended on the other side, which need not hear of it. */
static void refuse_status(struct bow__native *session, struct bow__native_stream *stream,
                          size_t n_block, const struct bow__header_entries *entries)
{
    struct bow__text text;
    struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED, .message = text.bytes};

    bow__native_describe_header(session, n_block, entries, &text);
    stream->peer_ended = true;
    stream->peer_done = true;
    bow__native_stream_end(session, stream);
    bow__session_end_own(&session->base, stream->id, stream->user, &why);
}

ssize_t bow__native_take_response(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n)
{
    struct bow__header_response header;
    struct bow__header_error error;
    bool is_too_large = false;
    struct bow__native_stream *stream = bow__native_stream_find(session, frame->stream);

    if (stream == NULL) {
        return bow__native_take_late(session, frame, 0);
    }
    if (stream->responded) {
        return bow__native_break_at(session, frame, "must be the first frame of an answer");
    }
    if (bow__header_response_decode((struct bow_slice){body, n}, &header, &error) < 0) {
        return bow__native_break_block(session, frame, &error);
    }
    int rc = bow__native_check_header(session, frame, n, &header.entries, &is_too_large);
    if (rc < 0) {
        return rc;
    }
    stream->responded = true;
    stream->in_encoding = (uint8_t)bow__header_encoding_of(header.encoding);
    rc = is_too_large ? refuse_response(session, stream, n, &header.entries)
                      : say_headers(session, stream, header.entries);
    return rc < 0 ? rc : (ssize_t)frame->length;
}

/* Against the block that it is to be kept for. */
static int keep_status(struct bow__native *session, struct bow__native_stream *stream,
                       struct bow_slice block)
{
    stream->status_block = bow__block_new(session->base.context, block.len);
    if (stream->status_block == NULL) {
        return -ENOMEM;
    }
    if (block.len > 0) {
        memcpy(stream->status_block->data, block.data, block.len);
    }
    stream->status_len = block.len;
    return 0;
}

static ssize_t end_with_message(struct bow__native *session, struct bow__native_stream *stream,
                                const struct bow__frame *frame, struct bow_slice block,
                                const struct bow__header_status *wire, size_t n, size_t len)
{
    const uint8_t *bytes = block.data + block.len;

    if (wire->encoding.len > 0) {
        stream->in_encoding = (uint8_t)bow__header_encoding_of(wire->encoding);
    }
    if (len > n && keep_status(session, stream, block) < 0) {
        struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED,
                                 .message = "out of memory for the reply's status"};
        session->n_body_left = len;
        return bow__native_refuse(session, stream, &why);
    }
    ssize_t used = bow__native_take_whole_message(session, stream, frame, bytes, n, len);
    if (used >= 0 && len <= n && stream->open) {
        bow__native_end_call(session, stream, wire);
    }
    return used;
}

static int check_status(struct bow__native *session, const struct bow__frame *frame,
                        const struct bow__native_stream *stream,
                        const struct bow__header_status *wire)
{
    if ((frame->flags & BOW__FRAME_END) == 0) {
        return bow__native_break_at(session, frame, "flag END is missing");
    }
    if (stream->peer_ended) {
        return bow__native_break_at(session, frame, "came after END");
    }
    if (!stream->assembling) {
        return 0;
    }
    if (wire->code == BOW_OK || (frame->flags & BOW__FRAME_HAS_MESSAGE) != 0) {
        return bow__native_break_at(session, frame, "ends the call inside a message");
    }
    return 0;
}

ssize_t bow__native_take_status(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n)
{
    struct bow_slice block;
    struct bow__header_status wire;
    struct bow__header_error error;
    bool is_too_large = false;

    ssize_t used = bow__native_take_block(session, frame, body, n, &block);
    if (used < 0) {
        return used;
    }
    size_t len = frame->length - (size_t)used;
    int rc = bow__native_check_flags(session, frame, len);
    if (rc < 0) {
        return rc;
    }
    struct bow__native_stream *stream = bow__native_stream_find(session, frame->stream);
    if (stream == NULL) {
        return bow__native_take_late(session, frame, len);
    }
    if (bow__header_status_decode(block, &wire, &error) < 0) {
        return bow__native_break_block(session, frame, &error);
    }
    rc = check_status(session, frame, stream, &wire);
    if (rc == 0) {
        rc = bow__native_check_header(session, frame, block.len, &wire.entries, &is_too_large);
    }
    if (rc == 0) {
        rc = bow__native_receive_credit_spend(session, frame, stream, len);
    }
    if (rc < 0) {
        return rc;
    }
    if (is_too_large) {
        refuse_status(session, stream, block.len, &wire.entries);
        session->target = NULL;
        session->n_body_left = len;
        return used;
    }
    if ((frame->flags & BOW__FRAME_HAS_MESSAGE) == 0) {
        bow__native_end_call(session, stream, &wire);
        return used;
    }
    ssize_t used_message =
        end_with_message(session, stream, frame, block, &wire, n - (size_t)used, len);
    return used_message < 0 ? used_message : used + used_message;
}
