/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * nghttp2's receiving callbacks: each finds the stream and hands on. Once the
 * session is broken they make nghttp2 stop at once. Knows nothing of gRPC.
 */

#include "rpc/http2/internal.h"

static int result_of(const struct bow__http2_session *session)
{
    return session->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *frame, void *user)
{
    struct bow__http2_session *session = user;

    (void)ng;
    session->frame = *frame;
    session->frame_left = (frame->flags & NGHTTP2_FLAG_PADDED) != 0 ? SIZE_MAX : frame->length;
    if (frame->type == NGHTTP2_DATA || frame->type == NGHTTP2_HEADERS) {
        session->n_silent_pings = 0;
    }
    if (frame->type == NGHTTP2_HEADERS) {
        session->n_moved++;
    }
    return 0;
}

/* Over the limit that our SETTINGS name, be they acknowledged or not: a fault of the stream alone
 * (RFC 9113, 5.1.2), of which nothing is kept, for nobody has read whom the call is to. */
static int refuse_over_limit(struct bow__http2_session *session, int32_t id)
{
    struct bow__text text;
    struct bow_status status = {
        .code = BOW_RESOURCE_EXHAUSTED, .message = text.bytes, .not_processed = true};

    session->base.calls_refused++;
    bow__text_clear(&text);
    bow__text_printf(&text, "too many calls in flight on this connection; max_calls (%u)",
                     session->max_calls);
    bow__session_refused(&session->base, (struct bow_slice){NULL, 0}, &status, "max_calls");
    bow__http2_count(session, &session->refusals, BOW_LIMIT_REFUSED_CALLS_PER_SECOND,
                     "calls above max_calls", "BOW_LIMIT_REFUSED_CALLS_PER_SECOND");
    if (!session->broken) {
        bow__http2_expect_refused(session, id);
        bow__http2_check(session, nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, id,
                                                            NGHTTP2_REFUSED_STREAM));
    }
    return result_of(session);
}

/* A client that has not acknowledged our SETTINGS cannot know of max_calls, and HTTP/2 has it begin
 * calls nevertheless. Those above it wait for their turn behind the session. */
static uint32_t calls_taken(const struct bow__http2_session *session)
{
    bool is_early = !session->is_acknowledged && session->max_calls < BOW_LIMIT_EARLY_CALLS;

    return is_early ? BOW_LIMIT_EARLY_CALLS : session->max_calls;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->hd.stream_id);

    bow__http2_metadata_begin(session);
    if (session->web != NULL) {
        bow__http2_web_header_end(session);
    }
    if (stream != NULL) {
        stream->header.n_bytes = 0;
        return 0;
    }
    if (!session->base.server || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    if (session->n_live >= session->max_calls && session->n_live >= calls_taken(session)) {
        return refuse_over_limit(session, frame->hd.stream_id);
    }
    stream = bow__http2_stream_new(session, 0);
    if (stream == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    stream->id = frame->hd.stream_id;
    return nghttp2_session_set_stream_user_data(ng, stream->id, stream);
}

static void on_headers(struct bow__http2_session *session, const nghttp2_frame *frame)
{
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->hd.stream_id);
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (stream == NULL) {
        return;
    }
    if (!session->base.server) {
        bow__http2_on_response(session, stream, end);
        return;
    }
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        bow__http2_on_request(session, stream);
    }
    if (end) {
        bow__http2_take_end(session, stream);
    }
}

static void on_data(struct bow__http2_session *session, const nghttp2_frame_hd *frame)
{
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->stream_id);

    if (stream != NULL && (frame->flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        session->n_moved += frame->length == 0 ? 1 : 0;
        bow__http2_take_end(session, stream);
    }
}

/* A call that its server answers before its client has said all is reset by both (RFC 9113, 8.1),
 * which is no cancellation; nor is it one that a call's deadline has passed. A server has no other
 * calls to reset than ours, each once. */
static bool is_due(struct bow__http2_session *session, const struct bow__http2_stream *stream)
{
    if (stream != NULL && session->now_ns >= stream->overdue_ns) {
        return true;
    }
    if (stream != NULL && stream->open) {
        return !session->base.server;
    }
    return bow__frames_take(&session->resets_due);
}

static void on_reset(struct bow__http2_session *session, int32_t id)
{
    if (!is_due(session, bow__http2_stream_of_id(session, id))) {
        bow__http2_count(session, &session->resets, BOW_LIMIT_CANCELS_PER_SECOND, "stream resets",
                         "BOW_LIMIT_CANCELS_PER_SECOND");
    }
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct bow__http2_session *session = user;

    (void)ng;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        on_headers(session, frame);
        bow__http2_metadata_end(session);
        break;
    case NGHTTP2_DATA:
        on_data(session, &frame->hd);
        break;
    case NGHTTP2_RST_STREAM:
        on_reset(session, frame->hd.stream_id);
        break;
    case NGHTTP2_SETTINGS:
        bow__http2_on_settings(session, &frame->settings);
        break;
    case NGHTTP2_PING:
        bow__http2_on_ping(session, &frame->ping);
        break;
    case NGHTTP2_GOAWAY:
        bow__http2_on_goaway(session, &frame->goaway);
        break;
    default:
        break;
    }
    return result_of(session);
}

static int on_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes,
                    size_t len, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, id);

    if (session->frame_left != SIZE_MAX) {
        session->frame_left -= len;
    }
    (void)ng;
    /* Charged to its stream from here on, or dropped. */
    session->n_unreturned += len;
    session->n_moved += len > 0 ? 1 : 0;
    bow__http2_return_credit(session);
    bow__http2_window_spent(session, stream, len);
    if (stream != NULL && stream->open && !session->broken) {
        bool last = (flags & NGHTTP2_FLAG_END_STREAM) != 0 && session->frame_left == 0;
        bow__http2_take(session, stream, (struct bow_slice){bytes, len}, last);
    } else if (stream != NULL && stream->web != NULL && !session->broken) {
        bow__http2_web_discard(session, stream, len);
    }
    /* It may have been withheld, and then a message have begun. */
    bow__http2_return_credit(session);
    /* Behind the last byte nothing is left to wait for its turn, and the frame's end would wait for
     * bytes that may never come. */
    if (!session->broken && bow__work_is_enough(&session->base.work) &&
        bytes + len != session->fed_end) {
        return NGHTTP2_ERR_PAUSE;
    }
    return result_of(session);
}

/* nghttp2 found a fault and has queued RST_STREAM, or it ends the connection. Streams that a peer
 * makes us reset are as dear as those it resets itself. */
static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream =
        frame->hd.stream_id == 0 ? NULL : bow__http2_stream_of_id(session, frame->hd.stream_id);

    (void)ng;
    bow__http2_count(session, &session->resets, BOW_LIMIT_CANCELS_PER_SECOND, "stream resets",
                     "BOW_LIMIT_CANCELS_PER_SECOND");
    if (stream != NULL) {
        bow__http2_stream_end_with(session, stream, BOW_INTERNAL,
                                   "invalid HTTP/2 frame of type %u: %s", frame->hd.type,
                                   nghttp2_strerror(error));
    }
    return result_of(session);
}

static int on_close(nghttp2_session *ng, int32_t id, uint32_t error, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, id);

    if (stream == NULL) {
        return 0;
    }
    /* nghttp2 has reset it, and told nobody: DATA that its content-length belies. */
    if (session->base.server && stream->open && !session->is_receiving) {
        bow__http2_count(session, &session->resets, BOW_LIMIT_CANCELS_PER_SECOND, "stream resets",
                         "BOW_LIMIT_CANCELS_PER_SECOND");
    }
    nghttp2_session_set_stream_user_data(ng, id, NULL);
    bow__http2_stream_closed(session, stream, error, !session->is_receiving);
    return 0;
}

void bow__http2_set_receive_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, bow__http2_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}
