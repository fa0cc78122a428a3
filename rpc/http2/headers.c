/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What whole header blocks of the peer mean: a call begins or is refused, an answer begins or ends.
 */

#include "base/text.h"
#include "rpc/core/header_limit.h"
#include "rpc/http2/codes.h"
#include "rpc/http2/internal.h"
#include "rpc/web/retry_info.h"

/* Of what a peer sent that cannot be read. */
#define SHOWN_BYTES 32

static void refuse_timeout(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_escape(&text, bow__http2_slice_of(stream->header.timeout), SHOWN_BYTES);
    bow__http2_stream_refuse(session, stream, BOW_INTERNAL, "grpc-timeout is malformed: \"%s\"",
                             text.bytes);
}

/* What was too large may have come before it. */
static struct bow_slice path_of(const struct bow__http2_stream *stream)
{
    return stream->header.path != NULL ? bow__http2_slice_of(stream->header.path)
                                       : (struct bow_slice){NULL, 0};
}

static void tell_refused(const struct bow__http2_session *session,
                         const struct bow__http2_stream *stream, const char *message,
                         const char *limit)
{
    struct bow_status status = {.code = BOW_RESOURCE_EXHAUSTED, .message = message};

    bow__session_refused(&session->base, path_of(stream), &status, limit);
}

static void refuse_size(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__text text;

    bow__header_limit_received(&text, session->base.server, stream->header.n_bytes,
                               session->max_header_bytes);
    if (session->base.server) {
        tell_refused(session, stream, text.bytes, "max_header_bytes");
    }
    bow__http2_stream_refuse(session, stream, BOW_RESOURCE_EXHAUSTED, "%s", text.bytes);
}

static void refuse_with_http(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const char *http_status)
{
    bow__http2_check(session, bow__http2_submit_http_error(session, stream, http_status));
}

/* Whether the request was refused. */
static bool refuse_defect(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (!stream->header.has_content_type && stream->web == NULL) {
        bow__http2_raise_defect(&stream->header, BOW__HTTP2_DEFECT_CONTENT_TYPE);
    }
    switch (stream->header.defect) {
    case BOW__HTTP2_DEFECT_NONE:
        return false;
    case BOW__HTTP2_DEFECT_METHOD:
        refuse_with_http(session, stream, "405");
        return true;
    case BOW__HTTP2_DEFECT_CONTENT_TYPE:
        refuse_with_http(session, stream, "415");
        return true;
    case BOW__HTTP2_DEFECT_TOO_LARGE:
        refuse_size(session, stream);
        return true;
    case BOW__HTTP2_DEFECT_TIMEOUT:
        refuse_timeout(session, stream);
        return true;
    }
    return false;
}

/* Returns whether the call has begun. */
static bool begin_call(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    static const struct bow_status draining = {
        .code = BOW_UNAVAILABLE,
        .message = "the server takes no new calls on this connection",
        .not_processed = true,
    };
    struct bow__session *base = &session->base;

    stream->overdue_ns = bow__overdue_time(session->base.work.came_ns, stream->header.time_left_ns);
    /* Its client has been told that such a call is not run, or is about to be. */
    if (session->has_left && stream->id > session->last_id) {
        base->requests_refused++;
        bow__session_refused(base, path_of(stream), &draining, "draining");
        bow__http2_stream_reset(session, stream, NGHTTP2_REFUSED_STREAM);
        return false;
    }
    if (!stream->header.has_content_type && session->web != NULL &&
        !bow__http2_web_begin(session, stream)) {
        return false;
    }
    if (refuse_defect(session, stream)) {
        base->requests_refused++;
        return false;
    }
    if (bow__http2_stream_open(session, stream, (uint64_t)stream->id) < 0) {
        base->requests_refused++;
        tell_refused(session, stream, "no memory for the call", "memory");
        bow__http2_stream_refuse_for_now(session, stream, "no memory for the call");
        return false;
    }
    struct bow__request_head head = {
        .path = stream->web != NULL ? stream->web->path : bow__http2_slice_of(stream->header.path),
        .time_left_ns = stream->header.time_left_ns,
        .metadata = bow__http2_metadata(session),
        .encoding = stream->header.encoding,
        .protocol = stream->web != NULL ? bow__web_protocol(stream->web) : NULL,
        .n_beside = stream->web != NULL ? bow__web_call_bytes(stream->web) : 0,
    };
    stream->user = base->events->on_open(base->owner, stream->key, &head);
    nghttp2_rcbuf_decref(stream->header.path);
    stream->header.path = NULL;
    return stream->user != NULL;
}

void bow__http2_on_request(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (!begin_call(session, stream)) {
        bow__work_spend(&session->base.work, BOW__WORK_CALL_BYTES);
    }
}

/* A client's call has ended by what its peer sent: it need not send on. The peer may have sent a
 * reset behind that, also when all was said by now that it had not heard yet. */
static void stop_sending(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    stream->remote_ended = true;
    bow__frames_expect(&session->resets_due, 1);
    if (nghttp2_session_get_stream_local_close(session->ng, stream->id) == 0) {
        bow__http2_stream_reset(session, stream, NGHTTP2_NO_ERROR);
    }
}

static void end_by_http_status(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    const struct bow__http2_header *header = &stream->header;
    struct bow__text text;

    bow__text_clear(&text);
    if (header->http_status == 200) {
        bow__text_printf(&text, header->has_content_type
                                    ? "the answer has no grpc-status"
                                    : "the answer's content-type is not application/grpc");
    } else {
        bow__text_printf(&text, "HTTP status %d without grpc-status", header->http_status);
    }
    stop_sending(session, stream);
    bow__http2_stream_end(session, stream,
                          &(struct bow_status){
                              .code = bow__http2_code_of_http_status(header->http_status),
                              .message = text.bytes,
                          });
}

/* Servers of other makes say it in one of two places. */
static uint64_t retry_after_ns(const struct bow__http2_header *header)
{
    struct bow_slice details = {header->details, header->details_len};
    bool asks = !header->has_pushback && details.len > 0;

    return asks ? bow__retry_info_find(details) : header->retry_after_ns;
}

static void describe_unusable(const struct bow__http2_header *header, struct bow__text *text)
{
    const char *message = header->message != NULL ? header->message : "";

    bow__text_clear(text);
    bow__text_printf(text, "the answer's grpc-status \"");
    bow__text_escape(text, bow__http2_slice_of(header->unusable_status), SHOWN_BYTES);
    bow__text_printf(text, "\" is none of gRPC's%s%s", *message != '\0' ? ": " : "", message);
}

/* What was assumed may be what the server has not: some say UNIMPLEMENTED then, and not what they
 * have. */
static void assume_nothing(struct bow__http2_session *session)
{
    if (session->assumes_encodings) {
        session->peer_encodings = 1u << BOW__ENCODING_IDENTITY;
        session->assumes_encodings = false;
    }
}

static void end_by_grpc_status(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    const struct bow__http2_header *header = &stream->header;
    struct bow__text text;
    struct bow_status status = {
        .code = (enum bow_code)header->grpc_status,
        .message = header->message != NULL ? header->message : "",
        .details = {header->details, header->details_len},
        .retry_after_ns = retry_after_ns(header),
        .metadata = bow__http2_metadata(session),
    };

    if (status.code == BOW_UNIMPLEMENTED) {
        assume_nothing(session);
    }
    stop_sending(session, stream);
    if (header->unusable_status != NULL) {
        describe_unusable(header, &text);
        status.message = text.bytes;
        bow__http2_stream_end(session, stream, &status);
    } else if (status.code == BOW_OK && bow__http2_is_mid_message(stream)) {
        status.code = BOW_INTERNAL;
        status.message = "the answer ended inside a message";
        bow__http2_stream_end(session, stream, &status);
    } else {
        bow__http2_stream_end_as_told(session, stream, &status);
    }
}

static void emit_headers(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__session *base = &session->base;
    struct bow_metadata metadata = bow__http2_metadata(session);

    if (metadata.n > 0) {
        base->events->on_headers(base->owner, stream->key, stream->user, &metadata);
    }
}

static void learn_encodings(struct bow__http2_session *session, uint32_t accepts)
{
    if (accepts != 0) {
        session->peer_encodings = accepts | 1u << BOW__ENCODING_IDENTITY;
        session->assumes_encodings = false;
    }
}

void bow__http2_on_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            bool end)
{
    const struct bow__http2_header *header = &stream->header;

    if (!stream->open) {
        return;
    }
    if (header->defect == BOW__HTTP2_DEFECT_TOO_LARGE) {
        refuse_size(session, stream);
        return;
    }
    learn_encodings(session, header->accepts);
    if (end && header->grpc_status >= 0) {
        end_by_grpc_status(session, stream);
        return;
    }
    bool is_interim = header->http_status >= 100 && header->http_status < 200;
    if (is_interim && !end) {
        return;
    }
    if (end || header->http_status != 200 || !header->has_content_type) {
        end_by_http_status(session, stream);
        return;
    }
    emit_headers(session, stream);
}
