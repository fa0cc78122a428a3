/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The connection's own frames: SETTINGS, WINDOW, PING, GOAWAY.
 *
 * How a server drains: GOAWAY with the highest id there is tells the client to
 * begin no more calls, while those on their way are still taken; the PING behind it
 * comes back when the client has seen it; GOAWAY with the last id taken then says
 * which calls are served. A client that leaves just says so.
 */

#include "rpc/core/header_limit.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* The opaque word of the PING of a drain; all others count from 1. */
#define DRAIN_PING UINT64_MAX

/* SETTINGS. */

int bow__native_put_opening(struct bow__native *session)
{
    static const uint8_t preface[] = BOW__FRAME_PREFACE;
    uint8_t body[64];
    struct bow__frame frame = {.type = BOW__FRAME_SETTINGS};

    if (bow__outbuf_append(&session->out, preface, sizeof(preface)) < 0) {
        return -ENOMEM;
    }
    frame.length = (uint32_t)bow__header_settings_size(&session->own);
    bow__header_settings_encode(body, &session->own);
    return bow__native_put_frame(session, &frame, body);
}

static int check_windows(struct bow__native *session, const struct bow__frame *frame,
                         const struct bow__header_settings *settings)
{
    if (settings->stream_window_bytes > BOW__NATIVE_WINDOW_MAX) {
        return bow__native_break_at(session, frame, "stream_window_bytes is %u, above 2^31 - 1",
                                    settings->stream_window_bytes);
    }
    if (settings->connection_window_bytes > BOW__NATIVE_WINDOW_MAX) {
        return bow__native_break_at(session, frame, "connection_window_bytes is %u, above 2^31 - 1",
                                    settings->connection_window_bytes);
    }
    return 0;
}

/* Calls may have begun under the windows that hold before SETTINGS. */
static void raise_windows(struct bow__native *session, const struct bow__header_settings *settings)
{
    uint32_t more = settings->stream_window_bytes - session->peer.stream_window_bytes;

    session->send_credit +=
        settings->connection_window_bytes - session->peer.connection_window_bytes;
    for (struct bow__link *link = session->streams.next; link != &session->streams;
         link = link->next) {
        struct bow__native_stream *stream = BOW__CONTAINER(link, struct bow__native_stream, link);
        stream->send_credit += more;
        bow__native_schedule_sender(session, stream);
    }
}

/* Of a header block, and of the metadata in it: no more than the peer takes, and than fits one
 * frame of it behind its length. */
static uint32_t max_sent_header(const struct bow__header_settings *settings)
{
    const uint32_t n_around = 16;
    uint32_t max = (uint32_t)bow__header_limit_to_send(settings->max_header_bytes);

    return max < settings->max_frame_bytes - n_around ? max : settings->max_frame_bytes - n_around;
}

ssize_t bow__native_take_settings(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n)
{
    struct bow__header_settings settings;
    struct bow__header_error error;

    if (session->settings_seen) {
        return bow__native_break_at(session, frame, "came twice");
    }
    if (bow__header_settings_decode((struct bow_slice){body, n}, &settings, &error) < 0) {
        return bow__native_break_block(session, frame, &error);
    }
    int rc = check_windows(session, frame, &settings);
    if (rc < 0) {
        return rc;
    }
    raise_windows(session, &settings);
    session->peer = settings;
    session->peer.max_header_bytes = max_sent_header(&settings);
    session->base.is_peer_unattended = settings.unattended;
    session->settings_seen = true;
    session->base.events->on_ready(session->base.owner);
    return (ssize_t)frame->length;
}

/* WINDOW. */

static int add_credit(struct bow__native *session, const struct bow__frame *frame, uint32_t *credit,
                      uint32_t more)
{
    if (more > BOW__NATIVE_WINDOW_MAX || *credit > BOW__NATIVE_WINDOW_MAX - more) {
        return bow__native_break_at(
            session, frame, "%u bytes raise the credit of %u above 2^31 - 1", more, *credit);
    }
    *credit += more;
    return 0;
}

ssize_t bow__native_take_window(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n)
{
    uint32_t more = bow__get_u32(body);

    (void)n;
    if (more == 0) {
        return bow__native_break_at(session, frame, "grants 0 bytes");
    }
    if (frame->stream == 0) {
        int rc = add_credit(session, frame, &session->send_credit, more);
        return rc < 0 ? rc : (ssize_t)frame->length;
    }
    struct bow__native_stream *stream = bow__native_stream_find(session, frame->stream);
    if (stream == NULL) {
        return bow__native_take_late(session, frame, 0);
    }
    int rc = add_credit(session, frame, &stream->send_credit, more);
    if (rc < 0) {
        return rc;
    }
    bow__native_credit_came(session, stream);
    return (ssize_t)frame->length;
}

/* GOAWAY. */

void bow__native_goaway(struct bow__session *base, const struct bow_status *reason)
{
    struct bow__native *session = bow__native_of(base);

    if (session->drain != BOW__NATIVE_SERVING || session->broken) {
        return;
    }
    if (!base->server) {
        session->drain = BOW__NATIVE_FINAL;
        (void)bow__native_put_goaway(session, 0, reason);
        return;
    }
    session->drain = BOW__NATIVE_ANNOUNCED;
    (void)bow__native_put_goaway(session, BOW__FRAME_STREAM_MAX, reason);
    (void)bow__native_put_ping(session, 0, DRAIN_PING);
}

/* The client has seen the first GOAWAY: what it sent before has come. */
static int end_drain(struct bow__native *session)
{
    struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "the server is draining"};

    session->drain = BOW__NATIVE_FINAL;
    session->accepted_id = session->highest_id;
    return bow__native_put_goaway(session, session->accepted_id, &reason);
}

/* The youngest first, so that the walk ends at the first call that is served. */
static void end_unserved(struct bow__native *session, const struct bow_status *reason)
{
    struct bow__text text;
    struct bow_status why = {.code = BOW_UNAVAILABLE, .message = text.bytes, .not_processed = true};

    bow__text_clear(&text);
    bow__text_printf(&text, "the server took no new calls on this connection: %s: %s",
                     bow_code_name(reason->code), reason->message);
    struct bow__link *link = session->streams.prev;
    while (link != &session->streams) {
        struct bow__native_stream *stream = BOW__CONTAINER(link, struct bow__native_stream, link);
        if (stream->id <= session->peer_last_id) {
            return;
        }
        bow__native_stream_end(session, stream);
        bow__session_end_own(&session->base, stream->id, stream->user, &why);
        link = session->streams.prev;
    }
}

static int check_goaway(struct bow__native *session, const struct bow__frame *frame, uint64_t last)
{
    if (!session->peer_leaves || last <= session->peer_last_id) {
        return 0;
    }
    return bow__native_break_at(session, frame, "last stream %llu is above %llu of the one before",
                                (unsigned long long)last,
                                (unsigned long long)session->peer_last_id);
}

ssize_t bow__native_take_goaway(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n)
{
    char text[BOW__STATUS_TEXT_BYTES];
    struct bow__header_status wire;
    struct bow__header_error error;
    uint64_t last = bow__get_u48(body);

    int rc = check_goaway(session, frame, last);
    if (rc < 0) {
        return rc;
    }
    if (bow__header_status_decode((struct bow_slice){body + 6, n - 6}, &wire, &error) < 0) {
        return bow__native_break_block(session, frame, &error);
    }
    struct bow_status reason = bow__status_of_header(&wire, text);
    bool first = !session->peer_leaves;
    session->peer_leaves = true;
    session->peer_last_id = last;
    if (!session->base.server) {
        end_unserved(session, &reason);
    }
    if (first) {
        session->base.events->on_goaway(session->base.owner, &reason);
    }
    return (ssize_t)frame->length;
}

/* PING. */

void bow__native_leave(struct bow__session *base)
{
    struct bow__native *session = bow__native_of(base);

    if (session->drain == BOW__NATIVE_ANNOUNCED && !session->broken) {
        (void)end_drain(session);
    }
}

/* An answer that we asked for, or one of those that measure while calls move: no flood. */
static bool is_excused(struct bow__native *session, const struct bow__frame *frame)
{
    bool is_ack = (frame->flags & BOW__FRAME_ACK) != 0;

    return is_ack ? bow__frames_take(&session->acks_due) : bow__ping_is_excused(&session->n_moved);
}

ssize_t bow__native_take_ping(struct bow__native *session, const struct bow__frame *frame,
                              const uint8_t *body, size_t n)
{
    uint64_t opaque = bow__get_u64(body);

    (void)n;
    int rc = is_excused(session, frame)
                 ? 0
                 : bow__native_count(session, frame, &session->pings, BOW_LIMIT_PINGS_PER_SECOND,
                                     "BOW_LIMIT_PINGS_PER_SECOND");
    if (rc == 0 && (frame->flags & BOW__FRAME_ACK) != 0) {
        bow__native_heartbeat_answered(session, opaque);
    }
    if (rc == 0 && (frame->flags & BOW__FRAME_ACK) == 0) {
        rc = bow__native_put_ping(session, BOW__FRAME_ACK, opaque);
    } else if (rc == 0 && opaque == DRAIN_PING && session->drain == BOW__NATIVE_ANNOUNCED) {
        rc = end_drain(session);
    }
    return rc < 0 ? rc : (ssize_t)frame->length;
}
