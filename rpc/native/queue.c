/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait on their streams for credit or their turn, and what ends a
 * side behind them; who waited long is told when its producer may go on. How much may wait is the
 * host's business. send.c makes frames of them.
 */

#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>

/* How much waits on a stream, and whether its producer is to be told. */

/* `writables` has the streams that were high and are low now. */
static void update_writable(struct bow__native *session, struct bow__native_stream *stream)
{
    if (stream->n_queued >= BOW__STREAM_HIGH_BYTES && !stream->was_high) {
        stream->was_high = true;
        bow__list_init(&stream->writable_link);
    }
    if (!stream->was_high) {
        return;
    }
    if (stream->out_ended || stream->n_queued > BOW__STREAM_LOW_BYTES) {
        bow__list_remove(&stream->writable_link);
    } else if (bow__list_is_empty(&stream->writable_link)) {
        bow__list_push_back(&session->writables, &stream->writable_link);
    }
}

void bow__native_dequeued(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    stream->n_queued -= n;
    session->n_queued -= n;
    session->base.n_dequeued += n;
    update_writable(session, stream);
}

size_t bow__native_queued(const struct bow__session *base, uint64_t key)
{
    const struct bow__native *session = bow__native_of_const(base);
    const struct bow__native_stream *stream = bow__native_stream_peek(session, key);
    bool ended = stream == NULL || (base->server && stream->out_ended);

    return ended ? 0 : stream->n_queued;
}

void *bow__native_take_writable(struct bow__session *base, uint64_t *ret_key)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__link *link = bow__list_pop_front(&session->writables);

    if (link == NULL) {
        return NULL;
    }
    struct bow__native_stream *stream =
        BOW__CONTAINER(link, struct bow__native_stream, writable_link);
    stream->was_high = false;
    *ret_key = stream->id;
    return stream->user;
}

/* Waiting. */

void bow__native_schedule_sender(struct bow__native *session, struct bow__native_stream *stream)
{
    const struct bow__native_outgoing *first = stream->queue;

    if (first != NULL && stream->send_credit >= bow__native_needed_credit(first) &&
        bow__list_is_empty(&stream->send_link)) {
        bow__list_push_back(&session->senders, &stream->send_link);
    }
}

/* One that has not begun, for others, may begin when its credit covers it. */
void bow__native_credit_came(struct bow__native *session, struct bow__native_stream *stream)
{
    if (stream->queue != NULL && !stream->queue->begun && !bow__list_is_empty(&session->unbegun)) {
        bow__list_remove(&stream->send_link);
    }
    bow__native_schedule_sender(session, stream);
}

int bow__native_send(struct bow__session *base, uint64_t key, uint32_t flags,
                     struct bow__block *block, size_t offset, size_t len)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    /* Messages without bytes wait in memory, too. */
    size_t cost = bow__frame_cost(true, len);

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    struct bow__native_outgoing *outgoing = bow__native_outgoing_push(session, stream, block, len);
    if (outgoing == NULL) {
        return -ENOMEM;
    }
    outgoing->offset = offset;
    outgoing->flags = flags;
    stream->out_ended = (flags & BOW__SEND_END) != 0;
    stream->n_queued += cost;
    session->n_queued += cost;
    update_writable(session, stream);
    if (session->room.key == key && session->room.type == BOW__FRAME_REQUEST) {
        bow__native_put_room(session, 0, 0);
    }
    bow__native_schedule_sender(session, stream);
    return 0;
}

/* With the last message that waits, if there is one. */
static int put_half_close(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__frame frame = {
        .type = BOW__FRAME_MESSAGE, .flags = BOW__FRAME_END, .stream = stream->id};
    uint8_t bytes[BOW__FRAME_HEADER_BYTES];

    if (stream->queue != NULL) {
        stream->queue_tail->flags |= BOW__SEND_END;
        return 0;
    }
    bow__native_drop_room(session);
    bow__frame_encode(bytes, &frame);
    return bow__outbuf_append(&session->out, bytes, sizeof(bytes));
}

int bow__native_half_close(struct bow__session *base, uint64_t key)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    int rc = put_half_close(session, stream);
    if (rc < 0) {
        return rc;
    }
    stream->out_ended = true;
    update_writable(session, stream);
    return 0;
}

/* Behind the messages that wait. */
static int queue_status(struct bow__native *session, struct bow__native_stream *stream,
                        const struct bow_status *status)
{
    struct bow__header_status wire = bow__header_of_status(status, session->peer.max_header_bytes);
    size_t n = bow__native_status_body_size(&wire);

    struct bow__block *block = bow__block_new(session->base.context, n);
    if (block == NULL) {
        return -ENOMEM;
    }
    struct bow__native_outgoing *outgoing = bow__native_outgoing_push(session, stream, block, n);
    if (outgoing == NULL) {
        bow__block_unref(block);
        return -ENOMEM;
    }
    bow__native_encode_status_body(block->data, &wire);
    outgoing->is_status = true;
    stream->n_queued += n;
    session->n_queued += n;
    stream->out_ended = true;
    update_writable(session, stream);
    return 0;
}

/* Nobody waits any more, so nothing that only the client could move along may hold the end up. */
static bool drops_messages(const struct bow_status *status)
{
    return status->code == BOW_DEADLINE_EXCEEDED || status->code == BOW_CANCELLED;
}

int bow__native_finish(struct bow__session *base, uint64_t key, const struct bow_status *status)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    bool waits = stream->queue != NULL && !drops_messages(status);
    int rc = waits ? queue_status(session, stream, status)
                   : bow__native_put_status(session, key, status);
    session->out_of_memory |= rc < 0;
    if (rc < 0 || !stream->out_ended) {
        bow__native_stream_end(session, stream);
    }
    return rc;
}
