/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a server answers: what precedes its messages, and the status that ends them, as
 * trailers or as all there is of the answer; and how either side refuses to go on with a call.
 */

#include "base/alloc.h"
#include "base/base64.h"
#include "rpc/http2/codes.h"
#include "rpc/http2/internal.h"
#include "rpc/web/grpc_text.h"
#include "rpc/web/retry_info.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* The message, cut to what we send and to what the peer says it takes. */
static struct bow_slice message_of(const struct bow_status *status, size_t room)
{
    struct bow_slice text = {(const uint8_t *)status->message, strlen(status->message)};

    text.len = bow__grpc_text_cut(text, BOW_LIMIT_STATUS_MESSAGE_BYTES);
    if (bow__grpc_percent_size(text) > room) {
        text.len = bow__grpc_text_cut(text, room / 3);
    }
    return text;
}

static uint64_t retry_after_ms(const struct bow_status *status)
{
    return status->retry_after_ns == BOW_NEVER
               ? BOW_NEVER
               : status->retry_after_ns / 1000000 + (status->retry_after_ns % 1000000 != 0);
}

/* The status's own, or when to come again; those that a handler sent stay as they are. */
static struct bow_slice details_of(const struct bow_status *status, struct bow_slice message,
                                   uint8_t memory[BOW__RETRY_INFO_BYTES])
{
    if (status->details.len > 0 || status->retry_after_ns == 0 ||
        status->retry_after_ns == BOW_NEVER || status->code == BOW_OK) {
        return status->details;
    }
    size_t len = bow__retry_info_encode(status->code, message, retry_after_ms(status), memory);
    return (struct bow_slice){memory, len};
}

/* `room` is left for the details, which are left out if they do not fit. */
static int encode_texts(struct bow__http2_session *session, const struct bow_status *status,
                        struct bow_slice message, size_t room,
                        struct bow__http2_trailers **ret_trailers)
{
    uint8_t memory[BOW__RETRY_INFO_BYTES];
    struct bow_slice details = details_of(status, message, memory);
    size_t message_size = bow__grpc_percent_size(message);

    if (details.len > room || bow__base64_size(details.len) > room) {
        details.len = 0;
    }
    size_t size = sizeof(struct bow__http2_trailers) + message_size + bow__base64_size(details.len);
    struct bow__http2_trailers *trailers = bow__alloc_zero(session->base.context, size);
    if (trailers == NULL) {
        return -ENOMEM;
    }
    trailers->size = size;
    trailers->code = status->code;
    trailers->retry_after_ms = retry_after_ms(status);
    trailers->message_len = bow__grpc_percent_encode(message, trailers->texts);
    trailers->details_len = bow__base64_encode(details, trailers->texts + message_size);
    *ret_trailers = trailers;
    return 0;
}

static bool is_plain_ok(const struct bow_status *status)
{
    return status->code == BOW_OK && status->message[0] == '\0' && status->details.len == 0 &&
           status->metadata.n == 0;
}

/* Encode the status, without metadata that does not fit; NULL stands for OK and nothing else. */
static int encode_trailers(struct bow__http2_session *session, const struct bow_status *status,
                           struct bow__http2_trailers **ret_trailers)
{
    *ret_trailers = NULL;
    if (is_plain_ok(status)) {
        return 0;
    }
    size_t room = bow__http2_header_room(session);
    struct bow_slice message = message_of(status, room);
    size_t n_metadata = bow__http2_fields_bytes(&status->metadata);
    room -= bow__grpc_percent_size(message);
    bool has_metadata = n_metadata <= room && bow__http2_fits_values(&status->metadata);
    room -= has_metadata ? n_metadata : 0;
    room = room < BOW__HTTP2_VALUE_BYTES ? room : BOW__HTTP2_VALUE_BYTES;
    int rc = encode_texts(session, status, message, room, ret_trailers);
    if (rc == 0 && has_metadata) {
        rc = bow__http2_fields_new(session, &status->metadata, &(*ret_trailers)->fields);
    }
    if (rc < 0) {
        *ret_trailers = bow__http2_trailers_free(session, *ret_trailers);
    }
    return rc;
}

/* With messages that wait, the last of them brings the trailers. Without, they need no window. */
static int end_begun(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (stream->n_queued == 0) {
        int rc = bow__http2_submit_trailers(session, stream);
        if (rc < 0) {
            return rc;
        }
    }
    bow__http2_end_local(session, stream);
    bow__http2_resume(session, stream);
    return 0;
}

int bow__http2_end_answer(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow_status *status)
{
    struct bow__http2_trailers *trailers = NULL;

    if (session->broken || stream->closed || stream->local_ended) {
        return 0;
    }
    if (stream->web != NULL) {
        return bow__http2_web_end(session, stream, status);
    }
    int rc = encode_trailers(session, status, &trailers);
    if (rc < 0) {
        return rc;
    }
    if (stream->has_begun) {
        stream->trailers = trailers;
        return end_begun(session, stream);
    }
    rc = bow__http2_submit_status(session, stream, trailers);
    bow__http2_trailers_free(session, trailers);
    stream->local_ended = rc == 0;
    return rc;
}

static int say_metadata(struct bow__http2_session *session, struct bow__http2_stream *stream,
                        const struct bow_metadata *metadata)
{
    struct bow__http2_fields *fields = NULL;

    int rc = bow__http2_fields_new(session, metadata, &fields);
    if (rc == 0) {
        rc = bow__http2_submit_response(session, stream, fields);
    }
    bow__http2_fields_free(session, fields);
    return rc;
}

int bow__http2_respond(struct bow__session *base, uint64_t key, const struct bow_metadata *metadata,
                       enum bow__encoding encoding)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || stream->local_ended || stream->closed || session->broken) {
        return -ENOENT;
    }
    assert(base->server && !stream->has_begun);
    int rc = bow__http2_check_header(session, 0, metadata);
    if (rc < 0) {
        return rc;
    }
    stream->encoding = encoding;
    if (stream->web != NULL) {
        return bow__http2_web_respond(session, stream, metadata, encoding);
    }
    return metadata->n > 0 ? say_metadata(session, stream, metadata) : 0;
}

int bow__http2_check_trailing(struct bow__session *base, const struct bow_metadata *metadata)
{
    int rc = bow__http2_check_header((struct bow__http2_session *)base, 0, metadata);

    base->excess.is_trailing = rc == -EMSGSIZE;
    return rc;
}

/* Nobody waits any more, so nothing that only the client could move along may hold the end up. */
static bool drops_messages(const struct bow_status *status)
{
    return status->code == BOW_DEADLINE_EXCEEDED || status->code == BOW_CANCELLED;
}

/* Whether no end can follow without the messages that wait: of an answer whose end is in its body
 * one of them may be half sent. */
static bool is_cut_without_waiting(const struct bow__http2_stream *stream)
{
    return stream->web != NULL && stream->has_begun && stream->n_queued > 0;
}

static int finish_open(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow_status *status)
{
    /* The only way that HTTP/2 has to say so, and clients then try elsewhere by themselves. */
    if (status->not_processed && status->code == BOW_UNAVAILABLE && !stream->has_begun) {
        bow__http2_stream_reset(session, stream, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    if (drops_messages(status) && is_cut_without_waiting(stream)) {
        bow__http2_stream_reset(session, stream, NGHTTP2_CANCEL);
        return 0;
    }
    if (drops_messages(status)) {
        bow__http2_queue_clear(session, stream);
    }
    int rc = bow__http2_end_answer(session, stream, status);
    if (rc < 0) {
        bow__http2_stream_reset(session, stream, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return rc;
}

int bow__http2_finish(struct bow__session *base, uint64_t key, const struct bow_status *status)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL) {
        return -ENOENT;
    }
    /* Whatever comes of it, the host has said its last word on the call and hears no more of it. */
    if (!bow__http2_stream_drop(session, stream) || session->broken) {
        return -ENOENT;
    }
    return finish_open(session, stream, status);
}

/* Calls that the session itself ends for a fault of the peer's. */

/* The peer of a server learns the status, without the messages that wait. */
static void tell_client(struct bow__http2_session *session, struct bow__http2_stream *stream,
                        const struct bow_status *status)
{
    bool is_cut = is_cut_without_waiting(stream);

    bow__http2_queue_clear(session, stream);
    if (!is_cut && !stream->local_ended && bow__http2_end_answer(session, stream, status) == 0) {
        return;
    }
    bow__http2_stream_reset(session, stream, bow__http2_reset_of_code(status->code));
}

static void refuse(struct bow__http2_session *session, struct bow__http2_stream *stream,
                   const struct bow_status *why)
{
    if (session->base.server) {
        tell_client(session, stream, why);
    } else {
        bow__http2_stream_reset(session, stream, NGHTTP2_CANCEL);
    }
    bow__http2_stream_end_with(session, stream, why->code, "%s", why->message);
}

void bow__http2_stream_refuse(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              enum bow_code code, const char *format, ...)
{
    struct bow__text text;
    va_list args;

    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    refuse(session, stream, &(struct bow_status){.code = code, .message = text.bytes});
}

void bow__http2_stream_refuse_for_now(struct bow__http2_session *session,
                                      struct bow__http2_stream *stream, const char *format, ...)
{
    struct bow__text text;
    va_list args;

    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    refuse(session, stream,
           &(struct bow_status){.code = BOW_RESOURCE_EXHAUSTED,
                                .message = text.bytes,
                                .retry_after_ns = session->base.retry_after_ns});
}

/* The end of a connection */

/* Without memory to tell the peer nothing is said: the end of the connection, which comes next,
 * says more than a reset could. */

/* Answered, and its messages wait: the status that was to follow them is replaced. */
static void replace_trailers(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const struct bow_status *status)
{
    bow__http2_queue_clear(session, stream);
    stream->trailers = bow__http2_trailers_free(session, stream->trailers);
    if (encode_trailers(session, status, &stream->trailers) < 0 ||
        bow__http2_submit_trailers(session, stream) < 0) {
        stream->has_ended = true; /* so that those of a good end do not follow */
    }
}

static void cut_stream(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow_status *status)
{
    if (stream->closed || stream->id == 0) {
        return;
    }
    if (is_cut_without_waiting(stream)) {
        bow__http2_queue_clear(session, stream);
        bow__http2_stream_reset(session, stream, NGHTTP2_CANCEL);
    } else if (!stream->local_ended) {
        bow__http2_queue_clear(session, stream);
        (void)bow__http2_end_answer(session, stream, status);
    } else if (stream->n_queued > 0) {
        replace_trailers(session, stream, status);
    }
}

void bow__http2_cut(struct bow__session *base, const struct bow_status *status)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__link visited;
    struct bow__link *link = NULL;

    /* Events may detach others, so each is set aside before its own. */
    bow__list_init(&visited);
    while (!session->broken && (link = bow__list_pop_front(&session->streams)) != NULL) {
        struct bow__http2_stream *stream = BOW__CONTAINER(link, struct bow__http2_stream, link);
        bow__list_push_back(&visited, link);
        cut_stream(session, stream, status);
        bow__http2_stream_end(session, stream, status);
    }
    while ((link = bow__list_pop_front(&visited)) != NULL) {
        bow__list_push_back(&session->streams, link);
    }
}
