/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests that are not gRPC's own: their heads and bodies go to rpc/web/, and the messages that
 * come back to the host, as those of gRPC do (message.c). Knows nothing of what they look like.
 */

#include "rpc/core/header_limit.h"
#include "rpc/http2/internal.h"
#include "rpc/web/request.h"

#include <errno.h>

/** Of a body whose call is over; less than a stream's window, so that it is reached. */
#define DISCARDED_BYTES ((size_t)64 << 10)

static struct bow_slice slice_or_none(nghttp2_rcbuf *buf)
{
    return buf != NULL ? bow__http2_slice_of(buf) : (struct bow_slice){NULL, 0};
}

static struct bow_slice method_of(const struct bow__http2_web_header *header)
{
    static const uint8_t post[] = "POST";

    return header->method != NULL ? bow__http2_slice_of(header->method)
                                  : (struct bow_slice){post, sizeof(post) - 1};
}

static int make_call(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_header *header = &stream->header;
    struct bow_metadata metadata = bow__http2_metadata(session);
    struct bow__web_options options = {
        .web = session->web,
        .protocols = session->web_protocols,
        .pool = session->out.pool,
        .context = session->base.context,
        .in_flight = session->base.in_flight,
        .max_message_bytes = session->max_message_bytes,
        .encodings = session->encodings,
    };
    struct bow__web_head head = {
        .method = method_of(&session->web_header),
        .target = slice_or_none(header->path),
        .content_type = slice_or_none(session->web_header.content_type),
        .accept_encoding = slice_or_none(session->web_header.accept_encoding),
        /* They lie in the session's own chunk. */
        .entries = (struct bow_metadata_entry *)(uintptr_t)metadata.entries,
        .n_entries = metadata.n,
        .time_left_ns = header->time_left_ns,
        .encoding = header->encoding,
        .accepts = header->accepts,
    };

    int rc = bow__web_begin(&options, &head, &stream->web);
    session->metadata.n = head.n_entries;
    return rc;
}

/* Of what gRPC holds against a request that remains which holds of any. */
static void judge_anew(struct bow__http2_session *session, struct bow__http2_header *header)
{
    if (header->n_bytes > session->max_header_bytes) {
        header->defect = BOW__HTTP2_DEFECT_TOO_LARGE;
    } else if (header->timeout == NULL) {
        header->defect = BOW__HTTP2_DEFECT_NONE;
    } else {
        header->defect = BOW__HTTP2_DEFECT_TIMEOUT;
    }
}

/* In HTTP's words: what did not fit may have been what says whose client it is. */
static void refuse_size(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow_status status = {.code = BOW_RESOURCE_EXHAUSTED};
    struct bow__text text;

    bow__header_limit_received(&text, true, stream->header.n_bytes, session->max_header_bytes);
    status.message = text.bytes;
    bow__session_refused(&session->base, slice_or_none(stream->header.path), &status,
                         "max_header_bytes");
    bow__http2_check(session, bow__http2_submit_http_error(session, stream, "431"));
}

bool bow__http2_web_begin(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_header *header = &stream->header;

    judge_anew(session, header);
    if (make_call(session, stream) < 0) {
        bow__http2_stream_reset(session, stream, NGHTTP2_ENHANCE_YOUR_CALM);
        return false;
    }
    const struct bow__web_call *call = stream->web;
    if (call->kind == BOW__WEB_NONE && header->defect == BOW__HTTP2_DEFECT_TOO_LARGE) {
        session->base.requests_refused++;
        refuse_size(session, stream);
        return false;
    }
    if (bow__web_is_refused(call)) {
        session->base.requests_refused += bow__web_is_at_fault(call);
        if (bow__http2_web_refuse(session, stream) < 0) {
            bow__http2_stream_reset(session, stream, NGHTTP2_ENHANCE_YOUR_CALM);
        }
        return false;
    }
    header->time_left_ns = call->time_left_ns;
    header->encoding = call->encoding;
    header->accepts = call->accepts;
    stream->overdue_ns = bow__overdue_time(session->base.work.came_ns, call->time_left_ns);
    return true;
}

/* Bodies */

static void emit(struct bow__http2_session *session, struct bow__http2_stream *stream,
                 struct bow__message *message, bool end)
{
    struct bow__session *base = &session->base;

    bow__quiet_note(&session->small_ns, message->bytes.len, session->now_ns);
    stream->n_unread += bow__consumed_bytes(message->bytes.len);
    stream->remote_ended = stream->remote_ended || end;
    base->events->on_message(base->owner, stream->key, stream->user, message, end);
    bow__block_unref(message->block);
}

/* Whether there is more to be done: a message, or the end of the call. */
static bool deal(struct bow__http2_session *session, struct bow__http2_stream *stream, int rc,
                 struct bow__message *message, bool end, const struct bow__text *why)
{
    if (rc < 0) {
        bow__http2_stream_refuse(session, stream, stream->web->reader.code, "%s", why->bytes);
        return false;
    }
    if (rc > 0) {
        emit(session, stream, message, end);
    }
    return rc > 0;
}

/* The connection's credit depends on whether there is any. */
static void note_under_way(struct bow__http2_session *session, const struct bow__web_call *call,
                           bool was)
{
    bool is = bow__web_reader_is_under_way(&call->reader);

    session->n_under_way += is && !was ? 1u : 0u;
    session->n_under_way -= was && !is ? 1u : 0u;
}

static void grant(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    size_t n = stream->n_unreturned;

    if (stream->n_unread == 0) {
        stream->n_unreturned = 0;
        bow__http2_charge(session, stream, n);
    }
}

void bow__http2_web_take(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         struct bow_slice bytes)
{
    struct bow__message message;
    struct bow__text why;
    bool goes_on = true;

    /* Before the events, in which the host may consume it. */
    stream->n_unreturned += bytes.len;
    while (goes_on && stream->open && !session->broken) {
        bool was = bow__web_reader_is_under_way(&stream->web->reader);
        bow__text_clear(&why);
        int rc = bow__web_read(stream->web, &bytes, &message, &why);
        note_under_way(session, stream->web, was);
        goes_on = deal(session, stream, rc, &message, false, &why);
    }
    if (stream->open) {
        grant(session, stream);
    }
}

void bow__http2_web_discard(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            size_t n)
{
    size_t before = stream->n_unreturned;

    stream->n_unreturned += n;
    if (before <= DISCARDED_BYTES && stream->n_unreturned > DISCARDED_BYTES) {
        bow__http2_stream_reset(session, stream, NGHTTP2_NO_ERROR);
    }
}

void bow__http2_web_take_end(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__session *base = &session->base;
    struct bow__message message;
    struct bow__text why;
    bool was = bow__web_reader_is_under_way(&stream->web->reader);

    bow__text_clear(&why);
    int rc = bow__web_read_end(stream->web, &message, &why);
    note_under_way(session, stream->web, was);
    (void)deal(session, stream, rc, &message, true, &why);
    if (rc == 0) {
        base->events->on_half_close(base->owner, stream->key, stream->user);
    }
}
