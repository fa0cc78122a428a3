/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The streams of a connection, what waits on them, and how they end by an error of their own.
 * Structs of ended streams are reused, so that calls of a busy connection allocate nothing; a
 * stream that ends while a frame is taken is reused only after it, for who takes it may hold it.
 */

#include "base/alloc.h"
#include "base/hints.h"
#include "rpc/native/internal.h"

#include <errno.h>

/* As many as are in flight on a busy connection; more is a burst's and goes back. */
#define MAX_IDLE_STREAMS ((size_t)128)
#define MAX_IDLE_OUTGOING ((size_t)32)

static struct bow__native_stream *take_struct(struct bow__native *session)
{
    struct bow__link *link = bow__list_pop_front(&session->idle);

    if (link == NULL) {
        return bow__alloc(session->base.context, sizeof(struct bow__native_stream));
    }
    session->n_idle--;
    return BOW__CONTAINER(link, struct bow__native_stream, link);
}

static void give_struct(struct bow__native *session, struct bow__native_stream *stream)
{
    if (session->n_idle >= MAX_IDLE_STREAMS) {
        bow__free(session->base.context, stream, sizeof(*stream));
        return;
    }
    /* The one used last is in the cache. */
    bow__list_push_front(&session->idle, &stream->link);
    session->n_idle++;
}

/* A stream comes to the map when it is not the last one any more: most end before that. */
static int map_last(struct bow__native *session)
{
    struct bow__native_stream *last = session->last;

    if (last == NULL || last->mapped) {
        return 0;
    }
    int rc = bow__map_put(&session->by_id, last->id, last);
    last->mapped = rc == 0;
    return rc;
}

struct bow__native_stream *bow__native_stream_new(struct bow__native *session, uint64_t id,
                                                  void *user)
{
    struct bow__native_stream *stream = map_last(session) < 0 ? NULL : take_struct(session);

    if (stream == NULL) {
        return NULL;
    }
    bow__zero_struct(stream, sizeof(*stream));
    stream->id = id;
    stream->user = user;
    stream->open = true;
    stream->overdue_ns = BOW_NEVER;
    stream->send_credit = session->peer.stream_window_bytes;
    stream->receive_credit = session->own.stream_window_bytes;
    stream->window.size = session->own.stream_window_bytes;
    stream->window.n_granted = session->own.stream_window_bytes;
    bow__list_init(&stream->send_link);
    bow__list_push_back(&session->streams, &stream->link);
    session->base.n_streams++;
    session->highest_id = id;
    session->last = stream;
    return stream;
}

struct bow__native_stream *bow__native_stream_search(struct bow__native *session, uint64_t id)
{
    const struct bow__native_stream *last = session->last;
    struct bow__native_stream *stream = bow__map_get(&session->by_id, id);

    if (stream != NULL && (last == NULL || last->mapped)) {
        session->last = stream;
    }
    return stream;
}

const struct bow__native_stream *bow__native_stream_peek(const struct bow__native *session,
                                                         uint64_t id)
{
    const struct bow__native_stream *last = session->last;

    return last != NULL && last->id == id ? last : bow__map_get(&session->by_id, id);
}

void bow__native_stream_give_reserved(struct bow__native *session,
                                      struct bow__native_stream *stream)
{
    bow__in_flight_give_message(session->base.in_flight, stream->n_reserved);
    stream->n_reserved = 0;
}

/* What has arrived of the message that is being assembled. */
static void drop_message(struct bow__native *session, struct bow__native_stream *stream)
{
    session->n_missing -= bow__native_stream_missing(stream);
    stream->assembling = false;
    stream->block = bow__block_unref(stream->block);
    bow__native_stream_give_reserved(session, stream);
    bow__native_release_buffered(session, stream->n_arrived);
    stream->n_arrived = 0;
}

/* Beside its messages, that a peer may have sent to a call before it heard of its end: credit, as
 * it comes back in quarters, END and CANCEL; or RESPONSE and STATUS. */
#define LATE_FRAMES 6u

void bow__native_expect_late(struct bow__native *session, uint64_t overdue_ns)
{
    bow__frames_expect(&session->late_frames_due, LATE_FRAMES);
    if (overdue_ns != BOW_NEVER) {
        bow__frames_expect(&session->cancels_due, 1);
    }
}

void bow__native_stream_end(struct bow__native *session, struct bow__native_stream *stream)
{
    /* A client that could open no call because of this one is told. */
    if (!session->base.server && session->base.n_streams == session->peer.max_calls) {
        session->ready_due = true;
    }
    if (!stream->peer_ended) {
        session->late_credit += stream->receive_credit;
    }
    if (!stream->peer_done) {
        bow__native_expect_late(session, stream->overdue_ns);
    }
    session->n_queued -= stream->n_queued;
    if (stream->queue != NULL) {
        session->n_begun -= stream->queue->n_announced;
    }
    session->n_grown -= stream->window.size - session->own.stream_window_bytes;
    stream->open = false;
    if (stream->mapped) {
        bow__map_remove(&session->by_id, stream->id);
    }
    bow__list_remove(&stream->link);
    bow__list_remove(&stream->send_link);
    if (stream->was_high) {
        bow__list_remove(&stream->writable_link);
    }
    session->base.n_streams--;
    if (session->last == stream) {
        session->last = NULL;
    }
    if (session->target == stream) {
        session->target = NULL;
    }
    if (stream->assembling) {
        drop_message(session, stream);
    }
    if (stream->n_unread + stream->n_overhead > 0) {
        bow__native_release_buffered(session, stream->n_unread + stream->n_overhead);
    }
    while (stream->queue != NULL) {
        bow__native_outgoing_pop(session, stream);
    }
    if (stream->status_block != NULL) {
        stream->status_block = bow__block_unref(stream->status_block);
    }
    if (session->feeding) {
        bow__list_push_back(&session->ended, &stream->link);
        session->n_ended++;
        return;
    }
    give_struct(session, stream);
}

void bow__native_streams_recycle(struct bow__native *session)
{
    while (session->n_idle + session->n_ended > MAX_IDLE_STREAMS) {
        struct bow__link *link = bow__list_pop_front(&session->ended);
        session->n_ended--;
        bow__free(session->base.context, BOW__CONTAINER(link, struct bow__native_stream, link),
                  sizeof(struct bow__native_stream));
    }
    bow__list_move_front(&session->idle, &session->ended);
    session->n_idle += session->n_ended;
    session->n_ended = 0;
}

static void free_idle_outgoing(struct bow__native *session)
{
    while (session->idle_outgoing != NULL) {
        struct bow__native_outgoing *outgoing = session->idle_outgoing;
        session->idle_outgoing = outgoing->next;
        bow__free(session->base.context, outgoing, sizeof(*outgoing));
    }
    session->n_idle_outgoing = 0;
}

void bow__native_streams_trim(struct bow__native *session)
{
    struct bow__link *link = bow__list_pop_front(&session->idle);

    while (link != NULL) {
        bow__free(session->base.context, BOW__CONTAINER(link, struct bow__native_stream, link),
                  sizeof(struct bow__native_stream));
        link = bow__list_pop_front(&session->idle);
    }
    session->n_idle = 0;
    free_idle_outgoing(session);
    bow__map_shrink(&session->by_id);
}

struct bow__native_outgoing *bow__native_outgoing_push(struct bow__native *session,
                                                       struct bow__native_stream *stream,
                                                       struct bow__block *block, size_t n)
{
    struct bow__native_outgoing *outgoing = session->idle_outgoing;

    if (outgoing != NULL) {
        session->idle_outgoing = outgoing->next;
        session->n_idle_outgoing--;
    } else {
        outgoing = bow__alloc(session->base.context, sizeof(*outgoing));
        if (outgoing == NULL) {
            return NULL;
        }
    }
    *outgoing = (struct bow__native_outgoing){
        .block = block,
        .n_left = n,
        .n_memory = sizeof(*outgoing) + bow__waiting_bytes(block),
    };
    session->base.n_waiting += outgoing->n_memory;
    if (stream->queue == NULL) {
        stream->queue = outgoing;
    } else {
        stream->queue_tail->next = outgoing;
    }
    stream->queue_tail = outgoing;
    return outgoing;
}

void bow__native_outgoing_pop(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__native_outgoing *outgoing = stream->queue;

    stream->queue = outgoing->next;
    session->base.n_waiting -= outgoing->n_memory;
    bow__block_unref(outgoing->block);
    if (session->n_idle_outgoing >= MAX_IDLE_OUTGOING) {
        bow__free(session->base.context, outgoing, sizeof(*outgoing));
        return;
    }
    outgoing->next = session->idle_outgoing;
    session->idle_outgoing = outgoing;
    session->n_idle_outgoing++;
}

/* Errors of a stream: calls that the session itself refuses or ends. */

int bow__native_refuse_id(struct bow__native *session, uint64_t id, const struct bow_status *why)
{
    if (bow__native_put_status(session, id, why) < 0) {
        session->out_of_memory = true;
        return -ENOMEM;
    }
    return 0;
}

static int refuse_reply(struct bow__native *session, struct bow__native_stream *stream,
                        const struct bow_status *why)
{
    struct bow__frame frame = {.length = 4, .type = BOW__FRAME_CANCEL, .stream = stream->id};
    uint8_t body[4];

    bow__put_u32(body, (uint32_t)why->code);
    int rc = bow__native_put_frame(session, &frame, body);
    bow__native_stream_end(session, stream);
    bow__session_end_own(&session->base, stream->id, stream->user, why);
    return rc;
}

/* After its own last message the host hears of a call no more. */
void bow__native_end_with_reset(struct bow__native *session, struct bow__native_stream *stream,
                                const struct bow_status *why)
{
    bool answered = stream->out_ended;

    bow__native_stream_end(session, stream);
    if (!answered) {
        session->base.events->on_reset(session->base.owner, stream->id, stream->user, why);
    }
}

int bow__native_refuse(struct bow__native *session, struct bow__native_stream *stream,
                       const struct bow_status *why)
{
    if (!session->base.server) {
        return refuse_reply(session, stream, why);
    }
    int rc = bow__native_refuse_id(session, stream->id, why);
    bow__native_end_with_reset(session, stream, why);
    return rc;
}
