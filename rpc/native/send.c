/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages into frames. One of moderate size, with credit at hand, is encoded where its frame lies
 * in the output:
 *
 *     reserve ──► [frame header | header block | message ...]  ──► commit fills the header in
 *
 * Any other waits on its stream (queue.c) and is sent in fragments when the connection is
 * drained: one frame of each stream in turn, as long as there is credit, and few at
 * a time, so that what is encoded in place meanwhile does not queue behind a large
 * message. The bytes stay in their block, but for small ones; only headers are written.
 *
 * An answer's messages are preceded by RESPONSE, when there is something to say.
 * An encoding alone is held back until it is known whether the one reply travels
 * inside its STATUS, whose header names it as well.
 */

#include "rpc/core/header_limit.h"
#include "rpc/core/metadata.h"
#include "rpc/native/internal.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* The block of a reply that travels inside its STATUS, with its length. */
#define REPLY_BLOCK_BYTES ((size_t)8)
/* A message up to this size is copied: a piece of its own would cost more. */
#define COPY_BYTES ((size_t)1 << 10)
/* One turn of a stream while there are large messages alone: as the peer allows. */
#define QUIET_FRAME_BYTES BOW_LIMIT_FRAME_BYTES
/* A frame header, and the announced length or the header block of a STATUS. */
#define PREFIX_BYTES (BOW__FRAME_HEADER_BYTES + REPLY_BLOCK_BYTES)

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What precedes the messages of an answer. */

static int put_response(struct bow__native *session, struct bow__native_stream *stream,
                        const struct bow__header_response *header)
{
    struct bow__frame frame = {
        .length = (uint32_t)bow__header_response_size(header),
        .type = BOW__FRAME_RESPONSE,
        .stream = stream->id,
    };
    size_t n = BOW__FRAME_HEADER_BYTES + frame.length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        return -ENOMEM;
    }
    bow__frame_encode(at, &frame);
    session->n_moved++;
    bow__header_response_encode(at + BOW__FRAME_HEADER_BYTES, header);
    bow__outbuf_commit(&session->out, n);
    stream->response_due = false;
    return 0;
}

static struct bow_slice encoding_name(const struct bow__native_stream *stream)
{
    return bow__header_encoding_name((enum bow__encoding)stream->out_encoding);
}

int bow__native_respond(struct bow__session *base, uint64_t key,
                        const struct bow_metadata *metadata, enum bow__encoding encoding)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__header_response header = {
        .metadata = *metadata,
        .encoding = bow__header_encoding_name(encoding),
    };

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    assert(base->server && stream->queue == NULL);
    size_t n_header = max_size(bow__metadata_bytes(metadata), bow__header_response_size(&header));
    if (n_header > session->peer.max_header_bytes) {
        return bow__header_limit_refuse(base, n_header, session->peer.max_header_bytes);
    }
    int rc = metadata->n > 0 ? put_response(session, stream, &header) : 0;
    if (rc < 0) {
        return rc;
    }
    stream->out_encoding = (uint8_t)encoding;
    stream->response_due = metadata->n == 0 && encoding != BOW__ENCODING_IDENTITY;
    return 0;
}

int bow__native_check_trailing(struct bow__session *base, const struct bow_metadata *metadata)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__header_status wire = {.metadata = *metadata};
    size_t n = max_size(bow__metadata_bytes(metadata), bow__header_status_size(&wire));

    if (n <= session->peer.max_header_bytes) {
        return 0;
    }
    int rc = bow__header_limit_refuse(base, n, session->peer.max_header_bytes);
    base->excess.is_trailing = true;
    return rc;
}

static int put_due_response(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__header_response header = {.encoding = encoding_name(stream)};

    return put_response(session, stream, &header);
}

static size_t due_block(const struct bow__native_stream *stream, uint8_t *to)
{
    struct bow__header_status status = {.encoding = encoding_name(stream)};

    size_t n = bow__header_status_size(&status);
    *to = (uint8_t)n;
    bow__header_status_encode(to + 1, &status);
    return n + 1;
}

/* Length and header block of a STATUS with the one reply inside. Returns the size. */
static size_t reply_block(const struct bow__native_stream *stream, uint8_t *to)
{
    if (stream->response_due) {
        return due_block(stream, to);
    }
    /* OK is an empty block: its length alone. */
    *to = 0;
    return 1;
}

/* Messages in place. */

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
    uint8_t block[REPLY_BLOCK_BYTES] = {0};
    bool is_reply = session->base.server && (flags & BOW__SEND_END) != 0;

    bow__native_drop_room(session);
    if (!is_reply) {
        return session->out.n_bytes < BOW__NATIVE_AHEAD_BYTES &&
               (!stream->response_due || put_due_response(session, stream) == 0) &&
               bow__native_make_room(session, stream, BOW__FRAME_MESSAGE, BOW__FRAME_HEADER_BYTES);
    }
    size_t n_block = reply_block(stream, block);
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

    if (stream == NULL || stream->out_ended || stream->queue != NULL) {
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

/* Messages that wait. */

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

struct fragment {
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
    size_t turn = bow__native_is_quiet(session) ? QUIET_FRAME_BYTES : BOW__NATIVE_FRAME_BYTES;
    size_t n = min_size(turn, session->peer.max_frame_bytes - 4);

    return min_size(n, min_size(stream->send_credit, session->send_credit));
}

static struct fragment plan_fragment(const struct bow__native *session,
                                     const struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *message = stream->queue;
    struct fragment fragment = {.n = min_size(message->n_left, room_in_frame(session, stream))};
    struct bow__frame frame = {.type = BOW__FRAME_MESSAGE, .stream = stream->id};
    size_t n_before = 0;

    fragment.last = fragment.n == message->n_left;
    fragment.cost = (uint32_t)bow__frame_cost(!message->begun, fragment.n);
    if (!message->begun) {
        frame.flags |= BOW__FRAME_HAS_MESSAGE;
        frame.flags |= (message->flags & BOW__SEND_COMPRESSED) != 0 ? BOW__FRAME_COMPRESSED : 0;
    }
    if (!fragment.last) {
        frame.flags |= BOW__FRAME_MORE;
    } else if ((message->flags & BOW__SEND_END) != 0) {
        fragment.ends_call = session->base.server && !message->begun;
        frame.flags |= !session->base.server || fragment.ends_call ? BOW__FRAME_END : 0;
    }
    if (fragment.ends_call) {
        frame.type = BOW__FRAME_STATUS;
        n_before = reply_block(stream, fragment.prefix + BOW__FRAME_HEADER_BYTES);
    } else if (!message->begun && !fragment.last) {
        bow__put_u32(fragment.prefix + BOW__FRAME_HEADER_BYTES, clip_u32(message->n_left));
        n_before = 4;
    }
    frame.length = (uint32_t)(n_before + fragment.n);
    fragment.n_prefix = BOW__FRAME_HEADER_BYTES + n_before;
    bow__frame_encode(fragment.prefix, &frame);
    return fragment;
}

/* The status that waits behind the last message. */
static int send_status(struct bow__native *session, struct bow__native_stream *stream)
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

/* The last fragment is in the output; a reply's STATUS did not fit beside it. */
static int end_message(struct bow__native *session, struct bow__native_stream *stream,
                       const struct fragment *fragment)
{
    bool ends = (stream->queue->flags & BOW__SEND_END) != 0;

    session->n_begun -= stream->queue->n_announced;
    bow__native_outgoing_pop(session, stream);
    if (stream->queue != NULL && stream->queue->is_status) {
        return send_status(session, stream);
    }
    if (!ends || !session->base.server) {
        return 0;
    }
    int rc = 0;
    if (!fragment->ends_call) {
        static const struct bow_status ok = BOW_STATUS_OK_INIT;
        rc = bow__native_put_status(session, stream->id, &ok);
        session->out_of_memory |= rc < 0;
    }
    bow__native_stream_end(session, stream);
    return rc;
}

/* Messages that have begun are announced, and the peer holds no more of them than
 * BOW_LIMIT_BYTES_IN_FLIGHT; it refuses one above that, though it was answered. So another large
 * one begins when those before it have gone, but for one alone, of any size. Those before it may be
 * on streams that nobody reads: what its stream's credit covers, which ends without the peer's
 * doing, has room beside them. */
#define BEGUN_BYTES (BOW_LIMIT_BYTES_IN_FLIGHT / 2)
#define COVERED_BYTES (BOW_LIMIT_BYTES_IN_FLIGHT / 4)

static bool may_begin(const struct bow__native *session, const struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *message = stream->queue;
    bool is_covered = bow__frame_cost(true, message->n_left) <= stream->send_credit;
    size_t max = is_covered ? BEGUN_BYTES + COVERED_BYTES : BEGUN_BYTES;

    return message->begun || message->n_left <= BOW__NATIVE_FRAME_BYTES || session->n_begun == 0 ||
           (session->n_begun < max && message->n_left <= max - session->n_begun);
}

/* The first of those that wait with that may go on? */
static void resume_unbegun(struct bow__native *session)
{
    struct bow__link *first = session->unbegun.next;

    while (first != &session->unbegun &&
           may_begin(session, BOW__CONTAINER(first, struct bow__native_stream, send_link))) {
        bow__list_remove(first);
        bow__list_push_back(&session->senders, first);
        first = session->unbegun.next;
    }
}

static int send_fragment(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__native_outgoing *message = stream->queue;
    struct fragment fragment = plan_fragment(session, stream);

    bool due = stream->response_due && !fragment.ends_call;
    int rc = due ? put_due_response(session, stream) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = put_piece(session, fragment.prefix, fragment.n_prefix, message->block, message->offset,
                   fragment.n);
    if (rc < 0) {
        return rc;
    }
    session->n_moved++;
    if (!message->begun && !fragment.last) {
        message->n_announced = message->n_left;
        session->n_begun += message->n_announced;
    }
    message->begun = true;
    message->offset += fragment.n;
    message->n_left -= fragment.n;
    bow__native_dequeued(session, stream, fragment.cost);
    stream->send_credit -= fragment.cost;
    session->send_credit -= fragment.cost;
    return fragment.last ? end_message(session, stream, &fragment) : 0;
}

/* One turn of the stream whose turn it is. False when nothing can be sent now. */
static bool send_next(struct bow__native *session)
{
    resume_unbegun(session);
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
    if (!may_begin(session, stream)) {
        bow__list_push_back(&session->unbegun, link);
        return true;
    }
    if (send_fragment(session, stream) < 0) {
        /* With nothing on its way out, nothing would bring another try. */
        session->out_of_memory |= session->out.n_bytes == 0;
        if (bow__native_stream_find(session, id) != NULL) {
            bow__list_push_front(&session->senders, link);
        }
        return false;
    }
    if (bow__native_stream_find(session, id) != NULL) {
        bow__native_schedule_sender(session, stream);
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
    while (!session->broken && session->out.n_bytes < ahead_bytes(session) && send_next(session)) {
    }
    return bow__outbuf_drain(&session->out, pieces, max);
}
