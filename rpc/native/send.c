/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Frames out. Those without credit are put down at once; a message of moderate size
 * with credit at hand is encoded where its frame lies in the output:
 *
 *     reserve ──► [frame header | header block | message ...]  ──► commit fills the header in
 *
 * Any other waits on its stream, in queue.c.
 */

#include "rpc/native/send.h"
#include "rpc/core/codec/wire.h"
#include "rpc/core/metadata.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Frames without credit. */

int bow__native_put_frame(struct bow__native *session, const struct bow__frame *frame,
                          const void *body)
{
    size_t n = BOW__FRAME_HEADER_BYTES + frame->length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        session->out_of_memory = true;
        return -ENOMEM;
    }
    bow__frame_encode(at, frame);
    if (frame->length > 0) {
        memcpy(at + BOW__FRAME_HEADER_BYTES, body, frame->length);
    }
    bow__outbuf_commit(&session->out, n);
    return 0;
}

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

/* The front of `text` that fits and ends with a whole character. */
static struct bow_slice cut_text(struct bow_slice text, size_t max)
{
    if (text.len > max) {
        text.len = max;
        while (text.len > 0 && (text.data[text.len] & 0xC0) == 0x80) {
            text.len--;
        }
    }
    return text;
}

struct bow__header_status bow__native_wire_of(const struct bow_status *status)
{
    struct bow__header_status wire = {
        .code = (uint32_t)status->code,
        .message = cut_text(slice_of(status->message), BOW_LIMIT_STATUS_MESSAGE_BYTES),
        .details = status->details,
        .not_processed = status->not_processed,
        .retry_after_us = status->retry_after_ns / 1000 + (status->retry_after_ns % 1000 > 0),
        .metadata = status->metadata,
    };

    if (bow__metadata_bytes(&wire.metadata) > BOW_LIMIT_HEADER_BYTES) {
        wire.metadata.n = 0;
    }
    if (wire.details.len > BOW_LIMIT_HEADER_BYTES ||
        bow__header_status_size(&wire) > BOW_LIMIT_HEADER_BYTES) {
        wire.details.len = 0;
    }
    if (bow__header_status_size(&wire) > BOW_LIMIT_HEADER_BYTES) {
        wire.metadata.n = 0;
    }
    return wire;
}

size_t bow__native_status_body_size(const struct bow__header_status *wire)
{
    size_t n = bow__header_status_size(wire);

    return bow__wire_varint_size(n) + n;
}

void bow__native_encode_status_body(uint8_t *to, const struct bow__header_status *wire)
{
    to = bow__wire_write_varint(to, bow__header_status_size(wire));
    bow__header_status_encode(to, wire);
}

int bow__native_put_status(struct bow__native *session, uint64_t id,
                           const struct bow_status *status)
{
    struct bow__header_status wire = bow__native_wire_of(status);
    struct bow__frame frame = {
        .length = (uint32_t)bow__native_status_body_size(&wire),
        .type = BOW__FRAME_STATUS,
        .flags = BOW__FRAME_END,
        .stream = id,
    };
    size_t n = BOW__FRAME_HEADER_BYTES + frame.length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        return -ENOMEM;
    }
    bow__frame_encode(at, &frame);
    bow__native_encode_status_body(at + BOW__FRAME_HEADER_BYTES, &wire);
    bow__outbuf_commit(&session->out, n);
    return 0;
}

/* Room in the output. */

void bow__native_drop_room(struct bow__native *session)
{
    if (session->room.key != 0) {
        session->room.key = 0;
        bow__outbuf_commit(&session->out, 0);
    }
}

bool bow__native_make_room(struct bow__native *session, const struct bow__native_stream *stream,
                           enum bow__frame_type type, size_t n_prefix)
{
    size_t want = min_size(n_prefix + BOW__IN_PLACE_BYTES, BOW__CHUNK_BYTES / 2);
    size_t cap = 0;

    uint8_t *at = bow__outbuf_reserve(&session->out, want, &cap);
    if (at == NULL) {
        return false;
    }
    size_t n_body = session->peer.max_frame_bytes - (n_prefix - BOW__FRAME_HEADER_BYTES);
    size_t credit = min_size(stream->send_credit, session->send_credit);
    credit = credit < BOW__FRAME_MESSAGE_COST ? 0 : credit;
    session->room = (struct bow__native_room){
        .key = stream->id,
        .at = at,
        .n_prefix = n_prefix,
        .cap = min_size(min_size(want - n_prefix, n_body), credit),
        .type = type,
    };
    if (session->out.n_bytes >= BOW__NATIVE_IN_PLACE_AHEAD_BYTES) {
        session->room.cap = 0;
    }
    return true;
}

static void spend(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    stream->send_credit -= (uint32_t)n;
    session->send_credit -= (uint32_t)n;
}

/* Our side has ended with what was just put out. */
static void end_out(struct bow__native *session, struct bow__native_stream *stream)
{
    stream->out_ended = true;
    if (session->base.server) {
        bow__native_stream_end(session, stream);
    }
}

static uint8_t flags_of(uint32_t flags)
{
    return (uint8_t)(((flags & BOW__SEND_END) != 0 ? BOW__FRAME_END : 0) |
                     ((flags & BOW__SEND_COMPRESSED) != 0 ? BOW__FRAME_COMPRESSED : 0));
}

static bool make_message_room(struct bow__native *session, struct bow__native_stream *stream,
                              uint32_t flags)
{
    uint8_t block[BOW__NATIVE_REPLY_BLOCK_BYTES] = {0};
    bool is_reply = session->base.server && (flags & BOW__SEND_END) != 0;

    bow__native_drop_room(session);
    if (!is_reply) {
        return session->out.n_bytes < BOW__NATIVE_AHEAD_BYTES &&
               (!stream->response_due || bow__native_put_due_response(session, stream) == 0) &&
               bow__native_make_room(session, stream, BOW__FRAME_MESSAGE, BOW__FRAME_HEADER_BYTES);
    }
    size_t n_block = bow__native_reply_block(stream, block);
    if (!bow__native_make_room(session, stream, BOW__FRAME_STATUS,
                               BOW__FRAME_HEADER_BYTES + n_block)) {
        return false;
    }
    /* All of it, for a size that is known is one store; the message comes over the rest. */
    memcpy(session->room.at + BOW__FRAME_HEADER_BYTES, block, sizeof(block));
    return true;
}

uint8_t *bow__native_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                             size_t *ret_cap)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__native_room *room = &session->room;

    if (stream == NULL || stream->out_ended || stream->queue != NULL || stream->overfull) {
        return NULL;
    }
    bool is_request = room->key == key && room->type == BOW__FRAME_REQUEST;
    if (!is_request && !make_message_room(session, stream, flags)) {
        return NULL;
    }
    if (room->cap == 0) {
        return NULL;
    }
    *ret_cap = room->cap;
    return room->at + room->n_prefix;
}

int bow__native_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL) {
        return -ENOENT;
    }
    assert(session->room.key == key && len <= session->room.cap);
    bow__native_put_room(session, (uint8_t)(flags_of(flags) | BOW__FRAME_HAS_MESSAGE), len);
    spend(session, stream, bow__frame_cost(true, len));
    bow__native_note_message(session, len);
    if ((flags & BOW__SEND_END) != 0) {
        end_out(session, stream);
    }
    return 0;
}
