/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a client's call begins and how it is given up: open, abandon, begin, cancel. A call
 * that is open and has not begun is not nghttp2's yet.
 */

#include "rpc/http2/codes.h"
#include "rpc/http2/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/** A request's fields without path and authority, generously. */
#define REQUEST_SPARE_BYTES ((size_t)1 << 10)

static struct bow__http2_session *session_of(struct bow__session *base)
{
    return (struct bow__http2_session *)base;
}

static bool fits_header_limit(const struct bow__http2_session *session, size_t n_bytes)
{
    size_t max =
        nghttp2_session_get_remote_settings(session->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);

    max = max < BOW_LIMIT_HEADER_BYTES ? max : BOW_LIMIT_HEADER_BYTES;
    size_t fixed = session->authority_size + REQUEST_SPARE_BYTES;
    return fixed < max && n_bytes <= max - fixed;
}

/* The stream that `head` opens, not in any map yet; NULL: no memory. */
static struct bow__http2_stream *new_stream(struct bow__http2_session *session,
                                            const struct bow__request_head *head)
{
    struct bow__http2_stream *stream = bow__http2_stream_new(session, head->path.len);

    if (stream == NULL) {
        return NULL;
    }
    memcpy(stream->path, head->path.data, head->path.len);
    stream->time_left_ns = head->time_left_ns;
    stream->encoding = head->encoding;
    if (bow__http2_fields_new(session, &head->metadata, &stream->fields) < 0) {
        bow__http2_stream_free(session, stream);
        return NULL;
    }
    return stream;
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
    if (!fits_header_limit(session, head->path.len + bow__http2_wire_bytes(&head->metadata))) {
        return -EMSGSIZE;
    }
    struct bow__http2_stream *stream = new_stream(session, head);
    if (stream == NULL) {
        return -ENOMEM;
    }
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

int bow__http2_begin(struct bow__session *base, uint64_t key)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || session->broken) {
        return -ENOENT;
    }
    assert(!base->server && stream->id == 0);
    return bow__http2_submit_request(session, stream);
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
