/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What header blocks of the peer mean: each field that gRPC knows has its
 * reader, all others are skipped. The block is judged when it is whole, so that
 * the answer can say what was wrong with it.
 */

#include "base/alloc.h"
#include "base/text.h"
#include "rpc/core/compression/compress.h"
#include "rpc/core/metadata.h"
#include "rpc/http2/codes.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <errno.h>
#include <string.h>

/** A block this many times over the limit is no mistake: the connection ends. */
#define HEADER_BOMB_FACTOR 16u

/** What a client is asked to wait for which too much waits already. */
#define CROWDED_RETRY_AFTER_NS (UINT64_C(100) * 1000000)

typedef void (*read_fn)(struct bow__http2_session *session, struct bow__http2_header *header,
                        nghttp2_rcbuf *value);

struct field {
    const char *name;
    size_t len;
    read_fn read;
};

#define FIELD(name, read)                                                                          \
    {                                                                                              \
        name, sizeof(name) - 1, read                                                               \
    }

void bow__http2_header_init(struct bow__http2_header *header)
{
    *header = (struct bow__http2_header){.time_left_ns = BOW_NEVER, .grpc_status = -1};
}

static nghttp2_rcbuf *drop(nghttp2_rcbuf *buf)
{
    if (buf != NULL) {
        nghttp2_rcbuf_decref(buf);
    }
    return NULL;
}

void bow__http2_header_fini(struct bow__http2_session *session, struct bow__http2_header *header)
{
    header->path = drop(header->path);
    header->timeout = drop(header->timeout);
    header->unknown_encoding = drop(header->unknown_encoding);
    bow__free(session->base.context, header->message, header->message_size);
    bow__free(session->base.context, header->details, header->details_size);
}

static struct bow_slice slice_of(nghttp2_rcbuf *buf)
{
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(buf);
    return (struct bow_slice){vec.base, vec.len};
}

static bool is_text(struct bow_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

static void raise_defect(struct bow__http2_header *header, enum bow__http2_defect defect)
{
    header->defect = defect > header->defect ? defect : header->defect;
}

static void read_method(struct bow__http2_session *session, struct bow__http2_header *header,
                        nghttp2_rcbuf *value)
{
    (void)session;
    if (!is_text(slice_of(value), "POST")) {
        raise_defect(header, BOW__HTTP2_DEFECT_METHOD);
    }
}

static void read_path(struct bow__http2_session *session, struct bow__http2_header *header,
                      nghttp2_rcbuf *value)
{
    (void)session;
    drop(header->path);
    nghttp2_rcbuf_incref(value);
    header->path = value;
}

/* application/grpc, with +proto, with parameters, or both. */
static void read_content_type(struct bow__http2_session *session, struct bow__http2_header *header,
                              nghttp2_rcbuf *value)
{
    static const char grpc[] = "application/grpc";
    static const char proto[] = "+proto";
    struct bow_slice type = slice_of(value);
    size_t at = sizeof(grpc) - 1;

    (void)session;
    header->has_content_type = false;
    if (type.len < at || memcmp(type.data, grpc, at) != 0) {
        return;
    }
    if (type.len - at >= sizeof(proto) - 1 &&
        memcmp(type.data + at, proto, sizeof(proto) - 1) == 0) {
        at += sizeof(proto) - 1;
    }
    header->has_content_type = at == type.len || type.data[at] == ';';
}

static void read_timeout(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    (void)session;
    if (bow__grpc_timeout_decode(slice_of(value), &header->time_left_ns) == 0) {
        /* Clients write the least there is when none is left: it is positive on the wire. */
        header->time_left_ns -= header->time_left_ns == 1;
        return;
    }
    raise_defect(header, BOW__HTTP2_DEFECT_TIMEOUT);
    drop(header->timeout);
    nghttp2_rcbuf_incref(value);
    header->timeout = value;
}

static void read_encoding(struct bow__http2_session *session, struct bow__http2_header *header,
                          nghttp2_rcbuf *value)
{
    (void)session;
    header->encoding = bow__encoding_of(slice_of(value));
    if (header->encoding == BOW__ENCODING_UNKNOWN) {
        drop(header->unknown_encoding);
        nghttp2_rcbuf_incref(value);
        header->unknown_encoding = value;
    }
}

static void read_accept_encoding(struct bow__http2_session *session,
                                 struct bow__http2_header *header, nghttp2_rcbuf *value)
{
    (void)session;
    header->accepts |= bow__http2_accept_read(slice_of(value));
}

/* A decimal number that is at most `max`; -1 for anything else. */
static int64_t read_number(nghttp2_rcbuf *value, int64_t max)
{
    struct bow_slice text = slice_of(value);
    int64_t number = 0;

    if (text.len == 0) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        number = number * 10 + (text.data[i] - '0');
        if (number > max) {
            return -1;
        }
    }
    return number;
}

static void read_http_status(struct bow__http2_session *session, struct bow__http2_header *header,
                             nghttp2_rcbuf *value)
{
    (void)session;
    header->http_status = (int)read_number(value, 999);
}

static void read_grpc_status(struct bow__http2_session *session, struct bow__http2_header *header,
                             nghttp2_rcbuf *value)
{
    int64_t number = read_number(value, BOW_UNAUTHENTICATED);

    (void)session;
    header->grpc_status = number < 0 ? BOW_UNKNOWN : (int)number;
}

static void read_message(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    struct bow_slice text = slice_of(value);
    size_t max = BOW_LIMIT_STATUS_MESSAGE_BYTES;
    size_t size = (text.len < max ? text.len : max) + 1;

    if (header->message != NULL) {
        return;
    }
    header->message = bow__alloc(session->base.context, size);
    if (header->message == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return;
    }
    header->message_size = size;
    bow__grpc_percent_decode(text, header->message, size);
}

/* Details that are no base64 are left out: the code and the message still count. */
static void read_details(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    struct bow_slice text = slice_of(value);

    if (text.len == 0 || header->details != NULL) {
        return;
    }
    header->details = bow__alloc(session->base.context, text.len);
    if (header->details == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return;
    }
    header->details_size = text.len;
    if (bow__base64_decode(text, header->details, &header->details_len) < 0) {
        header->details_len = 0;
    }
}

static void read_pushback(struct bow__http2_session *session, struct bow__http2_header *header,
                          nghttp2_rcbuf *value)
{
    int64_t ms = read_number(value, INT32_MAX);

    (void)session;
    header->retry_after_ns = ms < 0 ? 0 : (uint64_t)ms * 1000000;
}

static const struct field request_fields[] = {
    FIELD(":method", read_method),
    FIELD(":path", read_path),
    FIELD("content-type", read_content_type),
    FIELD("grpc-timeout", read_timeout),
    FIELD("grpc-encoding", read_encoding),
    FIELD("grpc-accept-encoding", read_accept_encoding),
    {NULL, 0, NULL},
};

static const struct field response_fields[] = {
    FIELD(":status", read_http_status),
    FIELD("content-type", read_content_type),
    FIELD("grpc-encoding", read_encoding),
    FIELD("grpc-accept-encoding", read_accept_encoding),
    FIELD("grpc-status", read_grpc_status),
    FIELD("grpc-message", read_message),
    FIELD("grpc-status-details-bin", read_details),
    FIELD("grpc-retry-pushback-ms", read_pushback),
    {NULL, 0, NULL},
};

static const struct field *find_field(const struct field *fields, struct bow_slice name)
{
    for (; fields->name != NULL; fields++) {
        if (fields->len == name.len && memcmp(fields->name, name.data, name.len) == 0) {
            return fields;
        }
    }
    return NULL;
}

bool bow__http2_count_field(struct bow__http2_session *session, struct bow__http2_header *header,
                            size_t n)
{
    header->n_bytes += n + BOW__METADATA_ENTRY_BYTES;
    if (header->n_bytes <= BOW_LIMIT_HEADER_BYTES) {
        return true;
    }
    raise_defect(header, BOW__HTTP2_DEFECT_TOO_LARGE);
    if (header->n_bytes > HEADER_BOMB_FACTOR * BOW_LIMIT_HEADER_BYTES) {
        bow__http2_break(session, NGHTTP2_ENHANCE_YOUR_CALM, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED,
                         "header block of more than %u times BOW_LIMIT_HEADER_BYTES (%zu)",
                         HEADER_BOMB_FACTOR, BOW_LIMIT_HEADER_BYTES);
    }
    return false;
}

static void read_field(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    const struct field *fields = session->base.server ? request_fields : response_fields;
    const struct field *field = find_field(fields, slice_of(name));

    if (field != NULL) {
        field->read(session, &stream->header, value);
        return;
    }
    bow__http2_gather(session, &stream->header, slice_of(name), slice_of(value));
}

int bow__http2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                         nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->hd.stream_id);
    size_t n_bytes = slice_of(name).len + slice_of(value).len;

    (void)ng;
    (void)flags;
    if (stream != NULL && bow__http2_count_field(session, &stream->header, n_bytes)) {
        /* A client's trailers say nothing that we know. */
        bool skip = session->base.server && frame->headers.cat != NGHTTP2_HCAT_REQUEST;
        if (!skip) {
            read_field(session, stream, name, value);
        }
    }
    return session->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static void refuse_timeout(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_escape(&text, slice_of(stream->header.timeout), 32);
    bow__http2_stream_refuse(session, stream, BOW_INTERNAL, "grpc-timeout is malformed: \"%s\"",
                             text.bytes);
}

/* What was too large may have come before it. */
static struct bow_slice path_of(const struct bow__http2_stream *stream)
{
    return stream->header.path != NULL ? slice_of(stream->header.path)
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

    bow__text_clear(&text);
    bow__text_printf(&text, "header of %zu bytes exceeds BOW_LIMIT_HEADER_BYTES (%zu)",
                     stream->header.n_bytes, BOW_LIMIT_HEADER_BYTES);
    if (session->base.server) {
        tell_refused(session, stream, text.bytes, "BOW_LIMIT_HEADER_BYTES");
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
    if (!stream->header.has_content_type) {
        raise_defect(&stream->header, BOW__HTTP2_DEFECT_CONTENT_TYPE);
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

/* As the native protocol does: the call may come again. */
static void refuse_crowded(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__text text;
    struct bow_status status = {
        .code = BOW_RESOURCE_EXHAUSTED,
        .message = text.bytes,
        .not_processed = true,
        .retry_after_ns = CROWDED_RETRY_AFTER_NS,
    };

    session->base.calls_refused++;
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "too much waits for the client of this connection; half of "
                     "BOW_LIMIT_QUEUED_REPLY_BYTES (%zu)",
                     BOW_LIMIT_QUEUED_REPLY_BYTES / 2);
    bow__session_refused(&session->base, path_of(stream), &status, "BOW_LIMIT_QUEUED_REPLY_BYTES");
    if (bow__http2_end_answer(session, stream, &status) < 0) {
        bow__http2_stream_reset(session, stream, NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

void bow__http2_on_request(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    static const struct bow_status draining = {
        .code = BOW_UNAVAILABLE,
        .message = "the server takes no new calls on this connection",
        .not_processed = true,
    };
    struct bow__session *base = &session->base;

    /* Its client has been told that such a call is not run, or is about to be. */
    if (session->has_left && stream->id > session->last_id) {
        bow__session_refused(base, path_of(stream), &draining, "draining");
        bow__http2_stream_reset(session, stream, NGHTTP2_REFUSED_STREAM);
        return;
    }
    if (refuse_defect(session, stream)) {
        return;
    }
    if (session->n_queued >= BOW_LIMIT_QUEUED_REPLY_BYTES / 2) {
        refuse_crowded(session, stream);
        return;
    }
    if (bow__http2_stream_open(session, stream, (uint64_t)stream->id) < 0) {
        tell_refused(session, stream, "no memory for the call", "memory");
        bow__http2_stream_refuse(session, stream, BOW_RESOURCE_EXHAUSTED, "no memory for the call");
        return;
    }
    struct bow__request_head head = {
        .path = slice_of(stream->header.path),
        .time_left_ns = stream->header.time_left_ns,
        .metadata = bow__http2_gathered(session),
        .encoding = stream->header.encoding,
    };
    stream->user = base->events->on_open(base->owner, stream->key, &head);
    stream->header.path = drop(stream->header.path);
}

/* A client's call that ended by what its peer sent: it need not send on. */
static void end_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         const struct bow_status *status)
{
    stream->remote_ended = true;
    if (nghttp2_session_get_stream_local_close(session->ng, stream->id) == 0) {
        session->resets_due++;
        bow__http2_stream_reset(session, stream, NGHTTP2_NO_ERROR);
    }
    bow__http2_stream_end(session, stream, status);
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
    end_response(session, stream,
                 &(struct bow_status){
                     .code = bow__http2_code_of_http_status(header->http_status),
                     .message = text.bytes,
                 });
}

static void end_by_grpc_status(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    const struct bow__http2_header *header = &stream->header;
    struct bow_status status = {
        .code = (enum bow_code)header->grpc_status,
        .message = header->message != NULL ? header->message : "",
        .details = {header->details, header->details_len},
        .retry_after_ns = header->retry_after_ns,
        .metadata = bow__http2_gathered(session),
    };

    if (status.code == BOW_OK && bow__http2_is_mid_message(stream)) {
        status.code = BOW_INTERNAL;
        status.message = "the answer ended inside a message";
    }
    end_response(session, stream, &status);
}

static void emit_headers(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__session *base = &session->base;
    struct bow_metadata metadata = bow__http2_gathered(session);

    if (metadata.n > 0) {
        base->events->on_headers(base->owner, stream->key, stream->user, &metadata);
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
    session->peer_encodings |= header->accepts;
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
