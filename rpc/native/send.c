/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls and messages out. A message of moderate size with credit at hand is
 * encoded where its frame lies in the output:
 *
 *     reserve ──► [frame header | header block | message ...]  ──► commit fills the header in
 *
 * Any other waits in its block on its stream; cut.c makes frames of it.
 */

#include "rpc/native/send.h"
#include "rpc/core/wire.h"

#include "base/clock.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* A number that a request header may get beside its path: tag and varint. */
#define METHOD_FIELD_BYTES ((size_t)6)

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
    };

    if (wire.details.len > BOW_LIMIT_HEADER_BYTES ||
        bow__header_status_size(&wire) > BOW_LIMIT_HEADER_BYTES) {
        wire.details.len = 0;
    }
    return wire;
}

/* The body of a STATUS without a message: varint and header block. */
static size_t status_body_size(const struct bow__header_status *wire)
{
    size_t n = bow__header_status_size(wire);

    return bow__wire_varint_size(n) + n;
}

static void encode_status_body(uint8_t *to, const struct bow__header_status *wire)
{
    to = bow__wire_write_varint(to, bow__header_status_size(wire));
    bow__header_status_encode(to, wire);
}

int bow__native_put_status(struct bow__native *session, uint64_t id,
                           const struct bow_status *status)
{
    struct bow__header_status wire = bow__native_wire_of(status);
    struct bow__frame frame = {
        .length = (uint32_t)status_body_size(&wire),
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
    encode_status_body(at + BOW__FRAME_HEADER_BYTES, &wire);
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

static bool make_room(struct bow__native *session, const struct bow__native_stream *stream,
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

uint8_t *bow__native_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                             size_t *ret_cap)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__native_room *room = &session->room;

    if (stream == NULL || stream->out_ended || stream->queue != NULL) {
        return NULL;
    }
    if (room->key != key || room->type != BOW__FRAME_REQUEST) {
        /* A STATUS that is OK has an empty header block: one byte, its length. */
        bool is_reply = base->server && (flags & BOW__SEND_END) != 0;
        room->key = 0;
        if (!make_room(session, stream, is_reply ? BOW__FRAME_STATUS : BOW__FRAME_MESSAGE,
                       BOW__FRAME_HEADER_BYTES + (is_reply ? 1 : 0))) {
            return NULL;
        }
        room->at[BOW__FRAME_HEADER_BYTES] = 0;
    }
    if (room->cap == 0) {
        return NULL;
    }
    *ret_cap = room->cap;
    return room->at + room->n_prefix;
}

/* The call is on its way: what it binds is bound. */
static void put_room(struct bow__native *session, uint8_t flags, size_t len)
{
    struct bow__native_room *room = &session->room;
    struct bow__frame frame = {
        .length = (uint32_t)(room->n_prefix - BOW__FRAME_HEADER_BYTES + len),
        .type = (uint8_t)room->type,
        .flags = flags,
        .stream = room->key,
    };

    bow__frame_encode(room->at, &frame);
    room->key = 0;
    session->new_binding = 0;
    bow__outbuf_commit(&session->out, room->n_prefix + len);
}

int bow__native_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL) {
        return -ENOENT;
    }
    assert(session->room.key == key && len <= session->room.cap);
    put_room(session, (uint8_t)(flags_of(flags) | BOW__FRAME_HAS_MESSAGE), len);
    spend(session, stream, len);
    if ((flags & BOW__SEND_END) != 0) {
        end_out(session, stream);
    }
    return 0;
}

/* Calls of the client. */

static bool takes_calls(const struct bow__native *session)
{
    return !session->base.server && !session->broken && !session->peer_leaves &&
           session->drain == BOW__NATIVE_SERVING && session->next_id <= BOW__FRAME_STREAM_MAX;
}

bool bow__native_can_open(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);

    return takes_calls(session) && base->n_streams < session->peer.max_calls;
}

/* By the number that the path is bound to, binding one where that is possible. */
static void name_method(struct bow__native *session, const struct bow__request_head *head,
                        struct bow__header_request *request)
{
    if (head->path_key == 0) {
        return;
    }
    uintptr_t number = (uintptr_t)bow__map_get(&session->numbers, head->path_key);
    if (number != 0) {
        request->method = (uint32_t)number;
        request->path.len = 0;
        return;
    }
    number = session->n_bound + 1;
    if (session->n_bound >= session->peer.max_bound_methods ||
        bow__map_put(&session->numbers, head->path_key, (void *)number) < 0) {
        return;
    }
    session->n_bound++;
    session->new_binding = head->path_key;
    request->method = (uint32_t)number;
}

static void unbind_new(struct bow__native *session)
{
    if (session->new_binding != 0) {
        bow__map_remove(&session->numbers, session->new_binding);
        session->n_bound--;
        session->new_binding = 0;
    }
}

static struct bow__header_request request_of(const struct bow__request_head *head)
{
    uint64_t ns = head->time_left_ns;

    /* Rounded up: what is left, be it little, is not nothing. */
    return (struct bow__header_request){
        .path = head->path,
        .has_time_left = ns != BOW_NEVER,
        .time_left_us = ns / 1000 + (ns % 1000 > 0),
    };
}

static int encode_request(struct bow__native *session, struct bow__native_stream *stream,
                          const struct bow__request_head *head)
{
    struct bow__header_request request = request_of(head);

    if (bow__header_request_size(&request) + METHOD_FIELD_BYTES > BOW_LIMIT_HEADER_BYTES) {
        return -EMSGSIZE;
    }
    name_method(session, head, &request);
    size_t n_block = bow__header_request_size(&request);
    size_t n_prefix = BOW__FRAME_HEADER_BYTES + bow__wire_varint_size(n_block) + n_block;
    if (!make_room(session, stream, BOW__FRAME_REQUEST, n_prefix)) {
        unbind_new(session);
        return -ENOMEM;
    }
    uint8_t *at = session->room.at + BOW__FRAME_HEADER_BYTES;
    bow__header_request_encode(bow__wire_write_varint(at, n_block), &request);
    return 0;
}

int bow__native_open(struct bow__session *base, const struct bow__request_head *head, void *stream,
                     uint64_t *ret_key)
{
    struct bow__native *session = bow__native_of(base);

    if (!takes_calls(session)) {
        return -EPIPE;
    }
    if (base->n_streams >= session->peer.max_calls) {
        return -EAGAIN;
    }
    bow__native_drop_room(session);
    /* Silence while nobody attended was no sign of death. */
    if (session->unattended && base->n_streams == 0) {
        session->ping_is_out = false;
    }
    struct bow__native_stream *opened = bow__native_stream_new(session, session->next_id, stream);
    if (opened == NULL) {
        return -ENOMEM;
    }
    int rc = encode_request(session, opened, head);
    if (rc < 0) {
        bow__native_stream_end(session, opened);
        return rc;
    }
    session->next_id += 2;
    session->retire_due = session->next_id > BOW__FRAME_STREAM_MAX;
    *ret_key = opened->id;
    return 0;
}

void bow__native_abandon(struct bow__session *base, uint64_t key)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    assert(stream != NULL && session->room.key == key);
    bow__native_drop_room(session);
    unbind_new(session);
    bow__native_stream_end(session, stream);
}

void bow__native_cancel(struct bow__session *base, uint64_t key, enum bow_code code)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__frame frame = {.length = 4, .type = BOW__FRAME_CANCEL, .stream = key};
    uint8_t body[4];

    if (stream == NULL) {
        return;
    }
    bow__put_u32(body, (uint32_t)code);
    (void)bow__native_put_frame(session, &frame, body);
    bow__native_stream_end(session, stream);
}

/* Messages that wait. */

void bow__native_wake_sender(struct bow__native *session, struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *first = stream->queue;

    if (first != NULL && (stream->send_credit > 0 || first->n_left == 0) &&
        bow__list_is_empty(&stream->send_link)) {
        bow__list_push_back(&session->senders, &stream->send_link);
    }
}

int bow__native_send(struct bow__session *base, uint64_t key, uint32_t flags,
                     struct bow__block *block, size_t offset, size_t len)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    struct bow__native_outgoing *outgoing = bow__native_outgoing_push(session, stream);
    if (outgoing == NULL) {
        return -ENOMEM;
    }
    outgoing->block = block;
    outgoing->offset = offset;
    outgoing->n_left = len;
    outgoing->flags = flags;
    stream->out_ended = (flags & BOW__SEND_END) != 0;
    if (session->room.key == key && session->room.type == BOW__FRAME_REQUEST) {
        put_room(session, 0, 0);
    }
    bow__native_wake_sender(session, stream);
    return 0;
}

/* Behind the messages that wait. */
static int queue_status(struct bow__native *session, struct bow__native_stream *stream,
                        const struct bow_status *status)
{
    struct bow__header_status wire = bow__native_wire_of(status);
    size_t n = status_body_size(&wire);

    struct bow__block *block = bow__block_new(session->base.context, n);
    if (block == NULL) {
        return -ENOMEM;
    }
    struct bow__native_outgoing *outgoing = bow__native_outgoing_push(session, stream);
    if (outgoing == NULL) {
        bow__block_unref(block);
        return -ENOMEM;
    }
    encode_status_body(block->data, &wire);
    outgoing->block = block;
    outgoing->n_left = n;
    outgoing->is_status = true;
    stream->out_ended = true;
    return 0;
}

int bow__native_finish(struct bow__session *base, uint64_t key, const struct bow_status *status)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    int rc = stream->queue != NULL ? queue_status(session, stream, status)
                                   : bow__native_put_status(session, key, status);
    session->out_of_memory |= rc < 0;
    if (rc < 0 || !stream->out_ended) {
        bow__native_stream_end(session, stream);
    }
    return rc;
}
