/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Frames out of the messages that wait on their streams, cut when the connection is
 * drained: one frame of each stream in turn, as long as there is credit, and few at
 * a time, so that what is encoded in place meanwhile does not queue behind a large
 * message. The bytes stay in their block, but for small ones; only headers are written.
 */

#include "rpc/native/send.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* A message up to this size is copied: a piece of its own would cost more. */
#define COPY_BYTES ((size_t)1 << 10)
/* One turn of a stream; and while there are large messages alone, as the peer allows. */
#define FRAME_BYTES ((size_t)16 << 10)
#define QUIET_FRAME_BYTES BOW_LIMIT_FRAME_BYTES
/* A frame header, and the announced length or the header block of a STATUS. */
#define PREFIX_BYTES (BOW__FRAME_HEADER_BYTES + BOW__NATIVE_REPLY_BLOCK_BYTES)

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* `n_prefix` bytes and a piece of a block, or neither: half a frame would be the end of the
 * connection. */
static int put_piece(struct bow__native *session, const uint8_t *prefix, size_t n_prefix,
                     struct bow__block *block, size_t offset, size_t n)
{
    size_t n_copied = n <= COPY_BYTES ? n : 0;
    size_t cap = 0;

    uint8_t *at =
        bow__outbuf_reserve(&session->out, n_prefix + n_copied + BOW__OUTBUF_PIECE_BYTES, &cap);
    if (at == NULL) {
        return -ENOMEM;
    }
    memcpy(at, prefix, n_prefix);
    if (n_copied > 0) {
        memcpy(at + n_prefix, block->data + offset, n_copied);
    }
    bow__outbuf_commit(&session->out, n_prefix + n_copied);
    return n > n_copied ? bow__outbuf_append_block(&session->out, block, offset, n) : 0;
}

static uint32_t clip_u32(size_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

struct cut {
    uint8_t prefix[PREFIX_BYTES];
    size_t n_prefix;
    size_t n; /* bytes of the message */
    uint32_t cost;
    bool last;
    bool ends_call; /* a reply that fits is inside its STATUS */
};

static size_t room_in_frame(const struct bow__native *session,
                            const struct bow__native_stream *stream)
{
    size_t turn = bow__native_is_quiet(session) ? QUIET_FRAME_BYTES : FRAME_BYTES;
    size_t n = min_size(turn, session->peer.max_frame_bytes - 4);

    return min_size(n, min_size(stream->send_credit, session->send_credit));
}

static struct cut plan_cut(const struct bow__native *session,
                           const struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *message = stream->queue;
    struct cut cut = {.n = min_size(message->n_left, room_in_frame(session, stream))};
    struct bow__frame frame = {.type = BOW__FRAME_MESSAGE, .stream = stream->id};
    size_t n_before = 0;

    cut.last = cut.n == message->n_left;
    cut.cost = (uint32_t)bow__frame_cost(!message->begun, cut.n);
    if (!message->begun) {
        frame.flags |= BOW__FRAME_HAS_MESSAGE;
        frame.flags |= (message->flags & BOW__SEND_COMPRESSED) != 0 ? BOW__FRAME_COMPRESSED : 0;
    }
    if (!cut.last) {
        frame.flags |= BOW__FRAME_MORE;
    } else if ((message->flags & BOW__SEND_END) != 0) {
        cut.ends_call = session->base.server && !message->begun;
        frame.flags |= !session->base.server || cut.ends_call ? BOW__FRAME_END : 0;
    }
    if (cut.ends_call) {
        frame.type = BOW__FRAME_STATUS;
        n_before = bow__native_reply_block(stream, cut.prefix + BOW__FRAME_HEADER_BYTES);
    } else if (!message->begun && !cut.last) {
        bow__put_u32(cut.prefix + BOW__FRAME_HEADER_BYTES, clip_u32(message->n_left));
        n_before = 4;
    }
    frame.length = (uint32_t)(n_before + cut.n);
    cut.n_prefix = BOW__FRAME_HEADER_BYTES + n_before;
    bow__frame_encode(cut.prefix, &frame);
    return cut;
}

/* The status that waits behind the last message. */
static int cut_status(struct bow__native *session, struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *status = stream->queue;
    struct bow__frame frame = {
        .length = (uint32_t)status->n_left,
        .type = BOW__FRAME_STATUS,
        .flags = BOW__FRAME_END,
        .stream = stream->id,
    };
    int rc = bow__native_put_frame(session, &frame, status->block->data);
    bow__native_stream_end(session, stream);
    return rc;
}

/* A message has been cut to its end; a reply's STATUS did not fit beside it. */
static int end_message(struct bow__native *session, struct bow__native_stream *stream,
                       const struct cut *cut)
{
    bool ends = (stream->queue->flags & BOW__SEND_END) != 0;

    bow__native_outgoing_pop(session, stream);
    if (stream->queue != NULL && stream->queue->is_status) {
        return cut_status(session, stream);
    }
    if (!ends || !session->base.server) {
        return 0;
    }
    int rc = 0;
    if (!cut->ends_call) {
        static const struct bow_status ok = BOW_STATUS_OK_INIT;
        rc = bow__native_put_status(session, stream->id, &ok);
        session->out_of_memory |= rc < 0;
    }
    bow__native_stream_end(session, stream);
    return rc;
}

static int cut_frame(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__native_outgoing *message = stream->queue;
    struct cut cut = plan_cut(session, stream);

    bool due = stream->response_due && !cut.ends_call;
    int rc = due ? bow__native_put_due_response(session, stream) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = put_piece(session, cut.prefix, cut.n_prefix, message->block, message->offset, cut.n);
    if (rc < 0) {
        return rc;
    }
    message->begun = true;
    message->offset += cut.n;
    message->n_left -= cut.n;
    bow__native_dequeued(session, stream, cut.cost);
    stream->send_credit -= cut.cost;
    session->send_credit -= cut.cost;
    return cut.last ? end_message(session, stream, &cut) : 0;
}

/* One turn of the stream whose turn it is. False when nothing can be cut now. */
static bool cut_next(struct bow__native *session)
{
    struct bow__link *link = session->senders.next;

    if (link == &session->senders) {
        return false;
    }
    struct bow__native_stream *stream = BOW__CONTAINER(link, struct bow__native_stream, send_link);
    if (session->send_credit < bow__native_needed_credit(stream->queue)) {
        return false;
    }
    uint64_t id = stream->id;
    bow__list_remove(link);
    if (cut_frame(session, stream) < 0) {
        /* With nothing on its way out, nothing would bring another try. */
        session->out_of_memory |= session->out.n_bytes == 0;
        if (bow__native_stream_find(session, id) != NULL) {
            bow__list_push_front(&session->senders, link);
        }
        return false;
    }
    if (bow__native_stream_find(session, id) != NULL) {
        bow__native_wake_sender(session, stream);
    }
    return true;
}

/* Of a socket that did not take all, less is asked at once: what is encoded in place meanwhile
 * queues behind it. */
static size_t ahead_bytes(const struct bow__native *session)
{
    return bow__native_is_quiet(session) && !session->is_behind ? BOW__NATIVE_QUIET_AHEAD_BYTES
                                                                : BOW__NATIVE_AHEAD_BYTES;
}

int bow__native_drain(struct bow__session *base, struct iovec *pieces, int max)
{
    struct bow__native *session = bow__native_of(base);

    bow__native_drop_room(session);
    while (!session->broken && session->out.n_bytes < ahead_bytes(session) && cut_next(session)) {
    }
    return bow__outbuf_drain(&session->out, pieces, max);
}

void bow__native_sent(struct bow__session *base, size_t n)
{
    struct bow__native *session = bow__native_of(base);

    bow__native_drop_room(session);
    bow__outbuf_sent(&session->out, n);
    session->is_behind = session->out.n_bytes > 0;
    session->unsent_id = session->next_id;
    bow__native_heartbeat_sent(session, n);
}
