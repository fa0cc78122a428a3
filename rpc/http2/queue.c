/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait on their streams until nghttp2 asks for them, and who is told that less do.
 * Knows nothing of windows: what may leave is nghttp2's business, how much may wait the host's.
 */

#include "rpc/http2/internal.h"

#include <errno.h>

static size_t bytes_of(const struct bow__http2_outgoing *outgoing)
{
    return outgoing->len + sizeof(outgoing->prefix) - outgoing->n_prefix_framed;
}

/* What a message that waits takes beside its bytes: those without any take memory, too. Of one of
 * this size or more it is less than a tenth. */
#define OUTGOING_BYTES (sizeof(struct bow__http2_outgoing) + sizeof(struct bow__block))
#define SMALL_BYTES ((size_t)1 << 10)

/* What waits on the stream, for its producer. */
static size_t waiting_of(const struct bow__http2_stream *stream)
{
    return stream->n_queued + stream->n_small * OUTGOING_BYTES;
}

/* `writables` has the streams that were high and are low now. */
static void update_writable(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (waiting_of(stream) >= BOW__STREAM_HIGH_BYTES) {
        stream->was_high = true;
    }
    if (!stream->was_high) {
        return;
    }
    bool is_writable =
        stream->open && !stream->local_ended && waiting_of(stream) <= BOW__STREAM_LOW_BYTES;
    if (!is_writable) {
        bow__list_remove(&stream->writable_link);
    } else if (bow__list_is_empty(&stream->writable_link)) {
        bow__list_push_back(&session->writables, &stream->writable_link);
    }
}

size_t bow__http2_queued(const struct bow__session *base, uint64_t key)
{
    const struct bow__http2_stream *stream =
        bow__http2_stream_find((const struct bow__http2_session *)base, key);

    return stream != NULL ? waiting_of(stream) : 0;
}

void *bow__http2_take_writable(struct bow__session *base, uint64_t *ret_key)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__link *link = bow__list_pop_front(&session->writables);

    if (link == NULL) {
        return NULL;
    }
    struct bow__http2_stream *stream =
        BOW__CONTAINER(link, struct bow__http2_stream, writable_link);
    stream->was_high = false;
    *ret_key = stream->key;
    return stream->user;
}

int bow__http2_queue_push(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow__http2_outgoing *what)
{
    struct bow__http2_outgoing *outgoing = bow__pool_alloc(session->out.pool, sizeof(*outgoing));
    if (outgoing == NULL) {
        return -ENOMEM;
    }
    *outgoing = *what;
    outgoing->n_memory =
        sizeof(*outgoing) + (what->pooled ? what->len : bow__waiting_bytes(what->block));
    bow__list_push_back(&stream->queue, &outgoing->queue_link);
    outgoing->is_small = what->len < SMALL_BYTES;
    stream->n_small += outgoing->is_small;
    session->base.n_waiting += outgoing->n_memory;
    stream->n_queued += bytes_of(outgoing);
    session->n_queued += bytes_of(outgoing);
    update_writable(session, stream);
    bow__quiet_note(&session->small_ns, outgoing->len, session->now_ns);
    return 0;
}

void bow__http2_dequeued(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         size_t n)
{
    stream->n_queued -= n;
    session->n_queued -= n;
    session->base.n_dequeued += n;
    update_writable(session, stream);
}

static void release(struct bow__http2_session *session, struct bow__http2_outgoing *outgoing)
{
    /* relaxed: chunks stay on the thread of their pool */
    if (outgoing->pooled &&
        atomic_load_explicit(&outgoing->block->refs, memory_order_relaxed) == 1) {
        bow__pool_put(session->out.pool, outgoing->block);
        return;
    }
    bow__block_unref(outgoing->block);
}

static void forget(struct bow__http2_session *session, struct bow__http2_stream *stream,
                   struct bow__http2_outgoing *outgoing)
{
    stream->n_small -= outgoing->is_small;
    session->base.n_waiting -= outgoing->n_memory;
    bow__http2_dequeued(session, stream, bytes_of(outgoing));
    bow__list_remove(&outgoing->queue_link);
    bow__pool_free(session->out.pool, outgoing, sizeof(*outgoing));
}

void bow__http2_queue_pop(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_outgoing *first =
        BOW__CONTAINER(stream->queue.next, struct bow__http2_outgoing, queue_link);

    release(session, first);
    forget(session, stream, first);
}

void bow__http2_queue_pop_last(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    forget(session, stream,
           BOW__CONTAINER(stream->queue.prev, struct bow__http2_outgoing, queue_link));
}

void bow__http2_queue_clear(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    while (!bow__list_is_empty(&stream->queue)) {
        bow__http2_queue_pop(session, stream);
    }
}

void bow__http2_end_local(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    stream->local_ended = true;
    update_writable(session, stream);
}
