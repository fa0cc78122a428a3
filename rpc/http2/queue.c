/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait on their streams until nghttp2 asks for them, how much may wait, and who is
 * told that less does. Knows nothing of windows: what may leave is nghttp2's business.
 */

#include "base/alloc.h"
#include "rpc/http2/internal.h"

#include <errno.h>

static size_t bytes_of(const struct bow__http2_outgoing *outgoing)
{
    return outgoing->len + sizeof(outgoing->prefix) - outgoing->n_prefix_framed;
}

/* `writables` has the streams that were high and are low now. */
static void update_writable(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (stream->n_queued >= BOW__STREAM_HIGH_BYTES) {
        stream->was_high = true;
    }
    if (!stream->was_high) {
        return;
    }
    bool is_writable =
        stream->open && !stream->local_ended && stream->n_queued <= BOW__STREAM_LOW_BYTES;
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

    return stream != NULL ? stream->n_queued : 0;
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
    struct bow__http2_outgoing *outgoing = bow__alloc(session->base.context, sizeof(*outgoing));
    if (outgoing == NULL) {
        return -ENOMEM;
    }
    *outgoing = *what;
    bow__list_push_back(&stream->queue, &outgoing->queue_link);
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
    bow__http2_dequeued(session, stream, bytes_of(outgoing));
    bow__list_remove(&outgoing->queue_link);
    bow__free(session->base.context, outgoing, sizeof(*outgoing));
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

/*
 * A server's backlog: what all streams of a connection wait with for a peer that does not take it.
 * Long before it is full the server stops to read or takes no more calls; what comes for it
 * all the same, from calls that were taken before, is dropped, and its call ends with an
 * error, which is small.
 */

bool bow__http2_backlog_is_full(const struct bow__http2_session *session, size_t len)
{
    /* One message may be of any size. */
    return session->base.server && session->n_queued > 0 &&
           session->n_queued + len > BOW_LIMIT_QUEUED_REPLY_BYTES;
}

struct bow_status bow__http2_backlog_reason(const struct bow__http2_session *session,
                                            struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(text,
                     "the reply was dropped, for %zu bytes of others wait on this connection; "
                     "BOW_LIMIT_QUEUED_REPLY_BYTES (%zu)",
                     session->n_queued, BOW_LIMIT_QUEUED_REPLY_BYTES);
    return (struct bow_status){.code = BOW_RESOURCE_EXHAUSTED, .message = text->bytes};
}
