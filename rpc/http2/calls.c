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

static struct bow__http2_session *session_of(struct bow__session *base)
{
    return (struct bow__http2_session *)base;
}

/* What the request says until it is submitted. Returns 0 or -ENOMEM. */
static int keep_head(struct bow__http2_session *session, struct bow__http2_stream *stream,
                     const struct bow__request_head *head)
{
    memcpy(stream->path, head->path.data, head->path.len);
    stream->time_left_ns = head->time_left_ns;
    stream->previous_attempts = head->previous_attempts;
    stream->encoding = head->encoding;
    return bow__http2_fields_new(session, &head->metadata, &stream->fields);
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
    int rc =
        bow__http2_check_header(session, session->authority_size + head->path.len, &head->metadata);
    if (rc < 0) {
        return rc;
    }
    struct bow__http2_stream *stream = bow__http2_stream_new(session, head->path.len);
    if (stream == NULL) {
        return -ENOMEM;
    }
    stream->user = user;
    rc = keep_head(session, stream, head);
    if (rc == 0) {
        rc = bow__http2_stream_open(session, stream, session->next_key);
    }
    if (rc < 0) {
        bow__http2_stream_free(session, stream);
        return rc;
    }
    session->next_key++;
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
    bow__http2_queue_clear(session, stream);
}
