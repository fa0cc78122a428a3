/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * nghttp2's sending half: DATA comes from the streams' queues, as nghttp2 asks for it under the
 * peer's windows, and its frames go into the session's output. Small pieces are
 * copied next to their frame header, large ones go by reference.
 */

#include "rpc/http2/internal.h"

#include <errno.h>
#include <string.h>

/** Pieces of a block below this are copied: a reference costs an iovec of its own. */
#define COPY_BYTES ((size_t)1 << 10)

#define FRAME_HEADER_BYTES ((size_t)9)

static struct bow__http2_outgoing *first_of(struct bow__http2_stream *stream)
{
    return BOW__CONTAINER(stream->queue.next, struct bow__http2_outgoing, queue_link);
}

static int append_body(struct bow__http2_session *session, struct bow__http2_outgoing *outgoing,
                       size_t n)
{
    if (outgoing->pooled || n < COPY_BYTES) {
        return bow__outbuf_append(&session->out, outgoing->block->data + outgoing->offset, n);
    }
    return bow__outbuf_append_block(&session->out, outgoing->block, outgoing->offset, n);
}

/* Frames up to `n` bytes of the stream's first message. Returns how many, or -ENOMEM. */
static ssize_t frame_first(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           size_t n)
{
    struct bow__http2_outgoing *outgoing = first_of(stream);
    size_t n_prefix = sizeof(outgoing->prefix) - outgoing->n_prefix_framed;
    size_t n_body = 0;

    n_prefix = n_prefix < n ? n_prefix : n;
    n_body = n - n_prefix < outgoing->len ? n - n_prefix : outgoing->len;
    if (bow__outbuf_append(&session->out, outgoing->prefix + outgoing->n_prefix_framed, n_prefix) <
            0 ||
        append_body(session, outgoing, n_body) < 0) {
        return -ENOMEM;
    }
    outgoing->n_prefix_framed = (uint8_t)(outgoing->n_prefix_framed + n_prefix);
    outgoing->offset += n_body;
    outgoing->len -= n_body;
    bow__http2_dequeued(session, stream, n_prefix + n_body);
    if (outgoing->len == 0 && outgoing->n_prefix_framed == sizeof(outgoing->prefix)) {
        bow__http2_queue_pop(session, stream);
    }
    return (ssize_t)(n_prefix + n_body);
}

static int send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *header, size_t len,
                     nghttp2_data_source *source, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = source->ptr;

    (void)ng;
    (void)frame;
    ssize_t n = bow__outbuf_append(&session->out, header, FRAME_HEADER_BYTES);
    while (n >= 0 && len > 0) {
        n = frame_first(session, stream, len);
        len -= n > 0 ? (size_t)n : 0;
    }
    if (n < 0) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return session->out.n_bytes >= session->pump_bytes ? NGHTTP2_ERR_PAUSE : 0;
}

/* A server's last frame of a call. */
static void on_end_sent(struct bow__http2_session *session, int32_t id,
                        const struct bow__http2_stream *stream)
{
    bool is_early = nghttp2_session_get_stream_remote_close(session->ng, id) == 0;
    if (is_early || (stream != NULL && stream->overdue_ns != BOW_NEVER)) {
        bow__frames_expect(&session->resets_due, 1);
    }
    /* The call is over: a client that still sends is told to stop. curl and others take that for an
     * error of the answer, so theirs are told when there is much that they send (web_request.c). */
    if (is_early && (stream == NULL || stream->web == NULL || session->is_leaving)) {
        bow__http2_check(session, nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, id,
                                                            NGHTTP2_NO_ERROR));
    }
}

static void on_headers_sent(struct bow__http2_session *session, const nghttp2_frame *frame)
{
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->hd.stream_id);

    if (!session->base.server) {
        if (stream != NULL) {
            stream->is_sent = true;
        }
    } else if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        on_end_sent(session, frame->hd.stream_id, stream);
    }
}

/* gRPC's answers end with trailers, and others with their last DATA. */
static void on_data_sent(struct bow__http2_session *session, const nghttp2_frame_hd *frame)
{
    if (session->base.server && (frame->flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        on_end_sent(session, frame->stream_id, bow__http2_stream_of_id(session, frame->stream_id));
    }
}

/* Ours say NO_ERROR; with another error it is nghttp2 that ends the connection. */
static void on_goaway_sent(struct bow__http2_session *session, const nghttp2_goaway *frame)
{
    struct bow__text why;

    if (frame->error_code == NGHTTP2_NO_ERROR) {
        bow__http2_goaway_sent(session);
        return;
    }
    bow__text_clear(&why);
    bow__text_escape(&why, (struct bow_slice){frame->opaque_data, frame->opaque_data_len}, 128);
    session->has_put_goaway = true;
    if (!session->has_settings && session->n_first > 0 && !session->base.server) {
        struct bow__text first;
        bow__text_clear(&first);
        bow__text_escape(&first, (struct bow_slice){session->first, session->n_first},
                         session->n_first);
        bow__http2_break(session, frame->error_code, -EPROTO, BOW_UNAVAILABLE,
                         "the peer does not speak HTTP/2: it began with \"%s\" (%s)", first.bytes,
                         why.bytes);
        return;
    }
    bow__http2_break(session, frame->error_code, -EPROTO, BOW_INTERNAL,
                     "HTTP/2 %s by the peer: %s (near a frame of type %u on stream %d)",
                     nghttp2_http2_strerror(frame->error_code), why.bytes, session->frame.type,
                     session->frame.stream_id);
}

static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct bow__http2_session *session = user;

    (void)ng;
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
        session->n_moved++;
    }
    if (frame->hd.type == NGHTTP2_HEADERS) {
        on_headers_sent(session, frame);
    }
    if (frame->hd.type == NGHTTP2_DATA) {
        on_data_sent(session, &frame->hd);
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        on_goaway_sent(session, &frame->goaway);
    }
    return 0;
}

/* nghttp2 keeps to the windows by itself. */
static ssize_t frame_bytes(nghttp2_session *ng, uint8_t type, int32_t id, int32_t session_window,
                           int32_t stream_window, uint32_t peer_max, void *user)
{
    const struct bow__http2_session *session = user;

    (void)ng;
    (void)type;
    (void)id;
    (void)session_window;
    (void)stream_window;
    return (ssize_t)(session->frame_bytes < peer_max ? session->frame_bytes : peer_max);
}

void bow__http2_set_send_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_bytes);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
}

/* What is written and has not left is what a small message queues behind. Of a socket that did not
 * take all, less is asked at once. */
static void set_pace(struct bow__http2_session *session)
{
    bool is_quiet = session->n_queued > BOW__SMALL_MESSAGE_BYTES && bow__http2_is_quiet(session);

    session->frame_bytes = is_quiet ? BOW__HTTP2_QUIET_FRAME_BYTES : BOW__HTTP2_FRAME_BYTES;
    session->pump_bytes =
        is_quiet && !session->is_behind ? BOW__HTTP2_QUIET_PUMP_BYTES : BOW__HTTP2_PUMP_BYTES;
}

/* Our first frame is the one place where what the peer is told is not what nghttp2 thinks. */
static int put_frame(struct bow__http2_session *session, const uint8_t *bytes, size_t n)
{
    uint8_t settings[FRAME_HEADER_BYTES + BOW__HTTP2_SETTINGS_SAID * 6];

    if (session->has_begun || !session->base.server || n > sizeof(settings)) {
        return bow__outbuf_append(&session->out, bytes, n);
    }
    memcpy(settings, bytes, n);
    bow__http2_say_max_calls(session, settings, n);
    return bow__outbuf_append(&session->out, settings, n);
}

void bow__http2_pump(struct bow__http2_session *session)
{
    set_pace(session);
    while (!session->broken && session->out.n_bytes < session->pump_bytes) {
        const uint8_t *bytes = NULL;
        ssize_t n = nghttp2_session_mem_send(session->ng, &bytes);
        if (n < 0) {
            bow__http2_break(session, NGHTTP2_INTERNAL_ERROR,
                             n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO,
                             n == NGHTTP2_ERR_NOMEM ? BOW_RESOURCE_EXHAUSTED : BOW_INTERNAL,
                             "sending over HTTP/2: %s", nghttp2_strerror((int)n));
            return;
        }
        if (n == 0) {
            return;
        }
        /* nghttp2 counts the frame as sent, so it must not be lost. */
        if (put_frame(session, bytes, (size_t)n) < 0) {
            bow__http2_check(session, NGHTTP2_ERR_NOMEM);
            return;
        }
        session->has_begun = true;
    }
}
