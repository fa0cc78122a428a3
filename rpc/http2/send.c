/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operations that send: they open streams and queue messages on them. A
 * message encoded in place lies in the session's chunk until nghttp2 asks for
 * it; room is given only while the peer's windows would take it at once, so that
 * a peer that withholds credit cannot pin chunks.
 */

#include "base/alloc.h"
#include "rpc/http2/codes.h"
#include "rpc/http2/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define PREFIX_BYTES ((size_t)5)

/** A request's fields without path and authority, generously. */
#define REQUEST_SPARE_BYTES ((size_t)1 << 10)

/** Room below this is not worth a try. */
#define MIN_ROOM_BYTES ((size_t)64)

static struct bow__http2_session *session_of(struct bow__session *base)
{
    return (struct bow__http2_session *)base;
}

static bool fits_header_limit(const struct bow__http2_session *session, size_t path_len)
{
    size_t max =
        nghttp2_session_get_remote_settings(session->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);

    max = max < BOW_LIMIT_HEADER_BYTES ? max : BOW_LIMIT_HEADER_BYTES;
    size_t fixed = session->authority_size + REQUEST_SPARE_BYTES;
    return fixed < max && path_len <= max - fixed;
}

int bow__http2_open(struct bow__session *base, const struct bow__request_head *head, void *user,
                    uint64_t *ret_key)
{
    struct bow__http2_session *session = session_of(base);

    if (session->broken || session->is_leaving || session->has_peer_goaway ||
        session->are_ids_used_up) {
        return -EPIPE;
    }
    if (!bow__http2_can_open(base)) {
        session->is_ready_wanted = true;
        return -EAGAIN;
    }
    if (!fits_header_limit(session, head->path.len)) {
        return -EMSGSIZE;
    }
    struct bow__http2_stream *stream = bow__http2_stream_new(session, head->path.len);
    if (stream == NULL) {
        return -ENOMEM;
    }
    memcpy(stream->path, head->path.data, head->path.len);
    stream->time_left_ns = head->time_left_ns;
    stream->user = user;
    int rc = bow__http2_stream_open(session, stream, session->next_key);
    if (rc < 0) {
        bow__http2_stream_free(session, stream);
        return rc;
    }
    session->next_key++;
    if (base->n_streams == 1) {
        /* A PING that was awaited while nobody waited for more proves nothing. */
        session->pinged_ns = 0;
    }
    if (!bow__http2_can_open(base)) {
        session->is_ready_wanted = true;
    }
    *ret_key = stream->key;
    return 0;
}

void bow__http2_abandon(struct bow__session *base, uint64_t key)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream != NULL) {
        assert(stream->id == 0);
        bow__http2_stream_free(session, stream);
    }
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
        stream->n_queued > 0) {
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
    size_t n = outgoing->len + PREFIX_BYTES - outgoing->n_prefix_framed;

    stream->n_queued -= n;
    session->n_queued -= n;
    bow__list_remove(&outgoing->queue_link);
    bow__free(session->base.context, outgoing, sizeof(*outgoing));
}

void bow__http2_pop_queue(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_outgoing *first =
        BOW__CONTAINER(stream->queue.next, struct bow__http2_outgoing, queue_link);

    release(session, first);
    forget(session, stream, first);
}

void bow__http2_drop_queue(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    while (!bow__list_is_empty(&stream->queue)) {
        bow__http2_pop_queue(session, stream);
    }
}

void bow__http2_resume(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    /* It refuses when the data was not deferred, and then nothing is to be done. */
    bow__http2_check(session, nghttp2_session_resume_data(session->ng, stream->id));
}

static int start(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (!session->base.server && stream->id == 0) {
        return bow__http2_submit_request(session, stream);
    }
    if (session->base.server && !stream->has_begun) {
        return bow__http2_submit_response(session, stream);
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
                 uint32_t flags, const struct bow__http2_outgoing *what)
{
    struct bow__http2_outgoing *outgoing = bow__alloc(session->base.context, sizeof(*outgoing));
    if (outgoing == NULL) {
        return -ENOMEM;
    }
    *outgoing = *what;
    set_prefix(outgoing, flags);
    bow__list_push_back(&stream->queue, &outgoing->queue_link);
    stream->n_queued += PREFIX_BYTES + outgoing->len;
    session->n_queued += PREFIX_BYTES + outgoing->len;
    int rc = start(session, stream);
    if (rc < 0) {
        forget(session, stream, outgoing);
        return rc;
    }
    if ((flags & BOW__SEND_END) != 0) {
        stream->local_ended = true;
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

int bow__http2_send(struct bow__session *base, uint64_t key, uint32_t flags,
                    struct bow__block *block, size_t offset, size_t len)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = find_sendable(session, key, flags);

    if (stream == NULL) {
        return -ENOENT;
    }
    assert(len <= UINT32_MAX && offset <= block->cap && len <= block->cap - offset);
    return queue(session, stream, flags,
                 &(struct bow__http2_outgoing){.block = block, .offset = offset, .len = len});
}

void bow__http2_cancel(struct bow__session *base, uint64_t key, enum bow_code code)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL) {
        return;
    }
    if (!bow__http2_stream_drop(session, stream)) {
        return;
    }
    /* No DATA is pulled once the reset is queued. */
    bow__http2_stream_reset(session, stream, bow__http2_reset_of_code(code));
    bow__http2_drop_queue(session, stream);
}
