/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server sends to answer a call: RESPONSE and STATUS. A STATUS whose
 * message is still arriving keeps its header block until the message is whole.
 */

#include "rpc/core/codec/utf8.h"
#include "rpc/native/receive.h"
#include "rpc/native/send.h"

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

ssize_t bow__native_take_response(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n)
{
    struct bow__header_response header;
    struct bow__header_error error;
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
    stream->responded = true;
    stream->in_encoding = (uint8_t)bow__header_encoding_of(header.encoding);
    int rc = say_headers(session, stream, header.entries);
    return rc < 0 ? rc : (ssize_t)frame->length;
}

/* A peer's text as a string: what is not UTF-8, and NUL, becomes '?'; too much is cut. */
static void copy_text(char *to, struct bow_slice text)
{
    size_t n =
        text.len < BOW_LIMIT_STATUS_MESSAGE_BYTES ? text.len : BOW_LIMIT_STATUS_MESSAGE_BYTES;
    size_t at = 0;

    if (n > 0) {
        memcpy(to, text.data, n);
    }
    while (at < n) {
        struct bow_slice rest = {(const uint8_t *)to + at, n - at};
        at += bow__utf8_prefix(rest, false);
        if (at < n) {
            to[at++] = '?';
        }
    }
    to[n] = '\0';
}

struct bow_status bow__native_status_of(const struct bow__header_status *wire, char *text)
{
    uint64_t us = wire->retry_after_us;

    copy_text(text, wire->message);
    return (struct bow_status){
        .code = wire->code <= BOW_UNAUTHENTICATED ? (enum bow_code)wire->code : BOW_UNKNOWN,
        .message = text,
        .details = wire->details,
        .not_processed = wire->not_processed,
        .retry_after_ns = us > BOW_NEVER / 1000 ? BOW_NEVER : us * 1000,
    };
}

static void end_call(struct bow__native *session, struct bow__native_stream *stream,
                     const struct bow__header_status *wire)
{
    char text[BOW__NATIVE_STATUS_TEXT_BYTES];
    struct bow_status status = bow__native_status_of(wire, text);
    struct bow__block *block = stream->status_block;
    struct bow__native_metadata metadata;

    /* A status without its metadata is better than none. */
    (void)bow__native_metadata_take(session, &wire->entries, &metadata);
    status.metadata = metadata.list;
    /* What the status points to lives in the block. */
    stream->status_block = NULL;
    stream->peer_ended = true;
    bow__native_stream_end(session, stream);
    session->base.events->on_status(session->base.owner, stream->id, stream->user, &status);
    bow__native_metadata_give(session, &metadata);
    bow__block_unref(block);
}

void bow__native_end_with_kept_status(struct bow__native *session,
                                      struct bow__native_stream *stream)
{
    struct bow__header_status wire;
    struct bow__header_error error;
    struct bow_slice block = {stream->status_block->data, stream->status_len};

    /* It was read before, when it came. */
    (void)bow__header_status_decode(block, &wire, &error);
    end_call(session, stream, &wire);
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
        end_call(session, stream, wire);
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
        rc = bow__native_receive_credit_spend(session, frame, stream, len);
    }
    if (rc < 0) {
        return rc;
    }
    if ((frame->flags & BOW__FRAME_HAS_MESSAGE) == 0) {
        end_call(session, stream, &wire);
        return used;
    }
    ssize_t used_message =
        end_with_message(session, stream, frame, block, &wire, n - (size_t)used, len);
    return used_message < 0 ? used_message : used + used_message;
}
