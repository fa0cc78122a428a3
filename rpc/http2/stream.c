/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a stream, which has two owners. The host's half begins with the
 * key and ends with the last event (or an operation after which none comes);
 * nghttp2's half ends when it closes the stream. The memory goes with the later
 * of both. Knows nothing of what a stream carries.
 */

#include "rpc/http2/codes.h"
#include "rpc/http2/internal.h"

#include <stdarg.h>
#include <string.h>

struct bow__http2_stream *bow__http2_stream_new(struct bow__http2_session *session, size_t path_len)
{
    size_t size = sizeof(struct bow__http2_stream) + path_len;
    struct bow__http2_stream *stream = bow__pool_alloc(session->out.pool, size);
    if (stream == NULL) {
        return NULL;
    }
    memset(stream, 0, size);
    stream->path_len = path_len;
    stream->overdue_ns = BOW_NEVER;
    stream->window.size = (uint32_t)BOW__HTTP2_STREAM_WINDOW;
    stream->window.since_ns = session->now_ns;
    bow__http2_header_init(&stream->header);
    bow__list_init(&stream->late_link);
    bow__list_init(&stream->queue);
    bow__list_init(&stream->writable_link);
    bow__list_push_back(&session->streams, &stream->link);
    session->n_live++;
    return stream;
}

void bow__http2_incoming_give_reserved(struct bow__http2_session *session,
                                       struct bow__http2_incoming *incoming)
{
    if (incoming->is_reserved) {
        incoming->is_reserved = false;
        session->n_under_way--;
        bow__in_flight_give_message(session->base.in_flight, incoming->len);
    }
}

/* What is kept of an unfinished message. */
static void drop_incoming(struct bow__http2_session *session, struct bow__http2_incoming *incoming)
{
    incoming->block = bow__block_unref(incoming->block);
    bow__http2_incoming_give_reserved(session, incoming);
}

static void free_web(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    session->n_under_way -= bow__web_reader_is_under_way(&stream->web->reader) ? 1 : 0;
    stream->web = bow__web_call_free(stream->web);
}

void bow__http2_stream_free(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    bow__http2_stream_detach(session, stream);
    bow__http2_queue_clear(session, stream);
    bow__http2_header_fini(session, &stream->header);
    drop_incoming(session, &stream->incoming);
    if (stream->web != NULL) {
        free_web(session, stream);
    }
    bow__http2_window_forget(session, stream);
    bow__http2_fields_free(session, stream->fields);
    bow__http2_trailers_free(session, stream->trailers);
    if (!stream->closed) {
        session->n_live--;
    }
    bow__list_remove(&stream->late_link);
    bow__list_remove(&stream->link);
    bow__pool_free(session->out.pool, stream, sizeof(*stream) + stream->path_len);
}

int bow__http2_stream_open(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           uint64_t key)
{
    int rc = bow__map_put(&session->by_key, key, stream);
    if (rc < 0) {
        return rc;
    }
    stream->key = key;
    stream->open = true;
    session->base.n_streams++;
    return 0;
}

void bow__http2_stream_detach(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (!stream->open) {
        return;
    }
    stream->open = false;
    bow__http2_expect_late(session, stream);
    bow__list_remove(&stream->writable_link);
    bow__map_remove(&session->by_key, stream->key);
    session->base.n_streams--;
}

bool bow__http2_stream_drop(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    bow__http2_stream_detach(session, stream);
    if (!stream->closed && stream->id != 0) {
        return true;
    }
    bow__http2_stream_free(session, stream);
    return false;
}

void bow__http2_stream_end(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           const struct bow_status *status)
{
    struct bow__session *base = &session->base;

    if (!stream->open) {
        return;
    }
    bow__http2_stream_detach(session, stream);
    if (base->server) {
        base->events->on_reset(base->owner, stream->key, stream->user, status);
        return;
    }
    bow__session_end_own(base, stream->key, stream->user, status);
}

void bow__http2_stream_end_as_told(struct bow__http2_session *session,
                                   struct bow__http2_stream *stream,
                                   const struct bow_status *status)
{
    struct bow__session *base = &session->base;

    if (!stream->open) {
        return;
    }
    bow__http2_stream_detach(session, stream);
    base->events->on_status(base->owner, stream->key, stream->user, status);
}

static void end_with_text(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          enum bow_code code, const struct bow__text *text)
{
    struct bow_status status = {
        .code = code,
        .message = text->bytes,
        /* Nothing left nghttp2, or the peer said so. */
        .not_processed =
            !session->base.server &&
            (!stream->is_sent || (stream->closed && stream->close_error == NGHTTP2_REFUSED_STREAM)),
    };
    bow__http2_stream_end(session, stream, &status);
}

void bow__http2_stream_end_with(struct bow__http2_session *session,
                                struct bow__http2_stream *stream, enum bow_code code,
                                const char *format, ...)
{
    struct bow__text text;
    va_list args;

    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    end_with_text(session, stream, code, &text);
}

void bow__http2_stream_reset(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             uint32_t http2_error)
{
    if (session->broken || stream->closed || stream->id == 0) {
        return;
    }
    bow__http2_check(session, nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, stream->id,
                                                        http2_error));
}

static void end_by_reset(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         const char *by)
{
    uint32_t error = stream->close_error;

    if (!stream->open) { /* as nearly all are not that close */
        return;
    }
    if (!session->base.server && error == NGHTTP2_REFUSED_STREAM && session->has_peer_goaway) {
        bow__http2_stream_end_with(session, stream, BOW_UNAVAILABLE,
                                   "the peer is going away and did not take the call");
        return;
    }
    /* Whatever a client resets with, it waits no longer. */
    bow__http2_stream_end_with(
        session, stream, session->base.server ? BOW_CANCELLED : bow__http2_code_of_reset(error),
        "stream reset by %s with %s (%u)", by, nghttp2_http2_strerror(error), error);
}

void bow__http2_stream_closed(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              uint32_t http2_error, bool late)
{
    stream->closed = true;
    stream->close_error = http2_error;
    session->n_live--;
    if (stream->open && late) {
        bow__list_push_back(&session->late, &stream->late_link);
        return;
    }
    end_by_reset(session, stream,
                 session->base.server ? "the client, which gave the call up," : "the peer");
    bow__http2_stream_free(session, stream);
}

void bow__http2_streams_end_late(struct bow__http2_session *session)
{
    struct bow__link *link = NULL;

    while ((link = bow__list_pop_front(&session->late)) != NULL) {
        struct bow__http2_stream *stream =
            BOW__CONTAINER(link, struct bow__http2_stream, late_link);
        end_by_reset(session, stream, "this side");
        bow__http2_stream_free(session, stream);
    }
}

void bow__http2_streams_end(struct bow__http2_session *session, int32_t above,
                            const struct bow_status *given)
{
    struct bow__link visited;
    struct bow__link *link = NULL;

    /* Events may detach others, so each is set aside before its own. */
    bow__list_init(&visited);
    while ((link = bow__list_pop_front(&session->streams)) != NULL) {
        struct bow__http2_stream *stream = BOW__CONTAINER(link, struct bow__http2_stream, link);
        struct bow_status status = *given;
        bow__list_push_back(&visited, link);
        if (stream->id > above || !stream->is_sent) {
            status.not_processed |= !session->base.server && !stream->is_sent;
            bow__http2_stream_end(session, stream, &status);
        }
    }
    while ((link = bow__list_pop_front(&visited)) != NULL) {
        bow__list_push_back(&session->streams, link);
    }
}
