/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operations that send messages: they queue them on their streams. A
 * message encoded in place lies in the session's chunk until nghttp2 asks for
 * it; room is given only while the peer's windows would take it at once, so that
 * a peer that withholds credit cannot pin chunks.
 */

#include "rpc/http2/internal.h"

#include <assert.h>
#include <errno.h>

#define PREFIX_BYTES ((size_t)5)

/** Room below this is not worth a try. */
#define MIN_ROOM_BYTES ((size_t)64)

static struct bow__http2_session *session_of(struct bow__session *base)
{
    return (struct bow__http2_session *)base;
}

static size_t clamp_window(int32_t window)
{
    return window > 0 ? (size_t)window : 0;
}

/* Bytes that the peer would take at once, as far as we know. */
static size_t credit_of(const struct bow__http2_session *session,
                        const struct bow__http2_stream *stream)
{
    size_t connection = clamp_window(nghttp2_session_get_remote_window_size(session->ng));
    int32_t window = nghttp2_session_get_stream_remote_window_size(session->ng, stream->id);

    if (window < 0 && !stream->is_sent && !session->base.server) {
        window = (int32_t)nghttp2_session_get_remote_settings(session->ng,
                                                              NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
    }
    connection = connection > session->n_queued ? connection - session->n_queued : 0;
    size_t own = clamp_window(window);
    own = own > stream->n_queued ? own - stream->n_queued : 0;
    return own < connection ? own : connection;
}

static bool has_chunk(struct bow__http2_session *session)
{
    if (session->chunk != NULL && session->chunk_used + BOW__IN_PLACE_BYTES <= BOW__CHUNK_BYTES) {
        return true;
    }
    struct bow__block *chunk = bow__pool_get(session->out.pool);
    if (chunk == NULL) {
        return false;
    }
    bow__block_unref(session->chunk);
    session->chunk = chunk;
    session->chunk_used = 0;
    return true;
}

void bow__http2_trim_chunk(struct bow__http2_session *session)
{
    /* relaxed: chunks stay on the thread of their pool */
    if (session->chunk == NULL ||
        atomic_load_explicit(&session->chunk->refs, memory_order_relaxed) > 1) {
        return;
    }
    bow__pool_put(session->out.pool, session->chunk);
    session->chunk = NULL;
    session->chunk_used = 0;
}

uint8_t *bow__http2_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                            size_t *ret_cap)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    (void)flags;
    if (stream == NULL || session->broken || stream->closed || stream->local_ended ||
        stream->web != NULL) {
        return NULL;
    }
    size_t credit = credit_of(session, stream);
    if (credit < PREFIX_BYTES + MIN_ROOM_BYTES || !has_chunk(session)) {
        return NULL;
    }
    credit -= PREFIX_BYTES;
    *ret_cap = credit < BOW__IN_PLACE_BYTES ? credit : BOW__IN_PLACE_BYTES;
    return session->chunk->data + session->chunk_used;
}

static int start(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (!session->base.server && stream->id == 0) {
        return bow__http2_submit_request(session, stream);
    }
    if (session->base.server && !stream->has_begun) {
        return bow__http2_submit_response(session, stream, NULL);
    }
    bow__http2_resume(session, stream);
    return 0;
}

static void set_prefix(struct bow__http2_outgoing *outgoing, uint32_t flags)
{
    uint32_t len = (uint32_t)outgoing->len;

    outgoing->prefix[0] = (flags & BOW__SEND_COMPRESSED) != 0 ? 1 : 0;
    outgoing->prefix[1] = (uint8_t)(len >> 24);
    outgoing->prefix[2] = (uint8_t)(len >> 16);
    outgoing->prefix[3] = (uint8_t)(len >> 8);
    outgoing->prefix[4] = (uint8_t)len;
}

/* Takes the reference to `what->block` on success. */
static int queue(struct bow__http2_session *session, struct bow__http2_stream *stream,
                 uint32_t flags, struct bow__http2_outgoing *what)
{
    set_prefix(what, flags);
    int rc = bow__http2_queue_push(session, stream, what);
    if (rc < 0) {
        return rc;
    }
    rc = start(session, stream);
    if (rc < 0) {
        bow__http2_queue_pop_last(session, stream);
        return rc;
    }
    if ((flags & BOW__SEND_END) != 0) {
        bow__http2_end_local(session, stream);
        if (session->base.server) {
            bow__http2_stream_detach(session, stream);
        }
    }
    return 0;
}

/* NULL when the message has nowhere to go; a server's last one then ends the call all the same. */
static struct bow__http2_stream *find_sendable(struct bow__http2_session *session, uint64_t key,
                                               uint32_t flags)
{
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || stream->local_ended) {
        return NULL;
    }
    if (!session->broken && !stream->closed) {
        return stream;
    }
    if (session->base.server && (flags & BOW__SEND_END) != 0) {
        bow__http2_stream_drop(session, stream);
    }
    return NULL;
}

int bow__http2_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = find_sendable(session, key, flags);

    if (stream == NULL) {
        return -ENOENT;
    }
    assert(session->chunk != NULL && len <= BOW__CHUNK_BYTES - session->chunk_used);
    int rc = queue(session, stream, flags,
                   &(struct bow__http2_outgoing){
                       .block = bow__block_ref(session->chunk),
                       .offset = session->chunk_used,
                       .len = len,
                       .pooled = true,
                   });
    if (rc < 0) {
        bow__block_unref(session->chunk);
        return rc;
    }
    session->chunk_used += len;
    return 0;
}

static int send_web(struct bow__http2_session *session, struct bow__http2_stream *stream,
                    uint32_t flags, struct bow__block *block, size_t offset, size_t len)
{
    int rc = bow__http2_web_send(session, stream, flags, block, offset, len);

    if (rc == 0 && (flags & BOW__SEND_END) != 0) {
        bow__http2_stream_detach(session, stream);
    }
    return rc;
}

int bow__http2_send(struct bow__session *base, uint64_t key, uint32_t flags,
                    struct bow__block *block, size_t offset, size_t len)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = find_sendable(session, key, flags);

    if (stream == NULL) {
        return -ENOENT;
    }
    assert(len <= UINT32_MAX && offset <= block->cap && len <= block->cap - offset);
    if (stream->web != NULL) {
        return send_web(session, stream, flags, block, offset, len);
    }
    return queue(session, stream, flags,
                 &(struct bow__http2_outgoing){.block = block, .offset = offset, .len = len});
}

int bow__http2_half_close(struct bow__session *base, uint64_t key)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || stream->local_ended || stream->closed || session->broken) {
        return -ENOENT;
    }
    assert(!base->server && stream->id != 0);
    bow__http2_end_local(session, stream);
    bow__http2_resume(session, stream);
    return 0;
}
