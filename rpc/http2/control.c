/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What concerns the connection and no stream: settings, floods, going away.
 *
 * A server leaves as gRPC's do: GOAWAY with the highest id there is and a PING;
 * its ACK tells that the client has read the GOAWAY. Calls that it had begun by then may come
 * behind the ACK, so there are more PINGs until none does; then GOAWAY with the last id taken,
 * which also says why, for nghttp2's first one cannot.
 */

#include "base/alloc.h"
#include "rpc/http2/internal.h"

#include <errno.h>
#include <string.h>

static const uint8_t drain_ping[8] = {'b', 'o', 'w', 'd', 'r', 'a', 'i', 'n'};

int bow__http2_submit_settings(struct bow__http2_session *session)
{
    nghttp2_settings_entry entries[BOW__HTTP2_SETTINGS_SAID] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)BOW__HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, (uint32_t)BOW_LIMIT_FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)session->max_header_bytes},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    size_t n = 4;

    if (session->base.server) {
        entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                                BOW__HTTP2_STREAMS_TAKEN};
        entries[n++] = (nghttp2_settings_entry){BOW__HTTP2_SETTINGS_PINGS, 1};
    } else if (session->unattended) {
        entries[n++] = (nghttp2_settings_entry){BOW__HTTP2_SETTINGS_UNATTENDED, 1};
    }
    int rv = nghttp2_submit_settings(session->ng, NGHTTP2_FLAG_NONE, entries, n);
    if (rv < 0) {
        return rv;
    }
    return nghttp2_session_set_local_window_size(session->ng, NGHTTP2_FLAG_NONE, 0,
                                                 BOW__HTTP2_CONNECTION_WINDOW);
}

/* nghttp2 sends the number that it goes by. */
void bow__http2_say_max_calls(const struct bow__http2_session *session, uint8_t *frame, size_t n)
{
    const size_t entry_bytes = 6;

    for (size_t at = 9; at + entry_bytes <= n; at += entry_bytes) {
        if (frame[at] == 0 && frame[at + 1] == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) {
            frame[at + 2] = (uint8_t)(session->max_calls >> 24);
            frame[at + 3] = (uint8_t)(session->max_calls >> 16);
            frame[at + 4] = (uint8_t)(session->max_calls >> 8);
            frame[at + 5] = (uint8_t)session->max_calls;
        }
    }
}

uint32_t bow__http2_max_streams(const struct bow__http2_session *session)
{
    if (!session->has_settings) {
        return BOW__HTTP2_STREAMS_AT_FIRST;
    }
    return nghttp2_session_get_remote_settings(session->ng,
                                               NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool bow__http2_can_open(const struct bow__session *base)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    return !session->broken && !session->is_leaving && !session->has_peer_goaway &&
           !session->are_ids_used_up && (session->has_settings || !session->needs_settings) &&
           session->n_live < bow__http2_max_streams(session);
}

void bow__http2_on_settings(struct bow__http2_session *session, const nghttp2_settings *frame)
{
    struct bow__session *base = &session->base;
    bool is_first = !session->has_settings;

    if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
        session->is_acknowledged = true;
        return;
    }
    bow__http2_count(session, &session->settings, BOW_LIMIT_SETTINGS_PER_SECOND, "SETTINGS",
                     "BOW_LIMIT_SETTINGS_PER_SECOND");
    for (size_t i = 0; i < frame->niv; i++) {
        if (frame->iv[i].settings_id == BOW__HTTP2_SETTINGS_UNATTENDED) {
            base->is_peer_unattended = frame->iv[i].value == 1;
        }
        if (frame->iv[i].settings_id == BOW__HTTP2_SETTINGS_PINGS) {
            session->may_ping = frame->iv[i].value == 1;
        }
    }
    session->has_settings = true;
    if (is_first) {
        session->is_ready_wanted = false;
        base->events->on_ready(base->owner);
    }
    if (!base->server && !bow__http2_can_open(base)) {
        session->is_ready_wanted = true;
    }
}

static void leave(struct bow__http2_session *session)
{
    const char *why = session->leaving_why != NULL ? session->leaving_why : "";
    size_t len = strnlen(why, BOW__HTTP2_GOAWAY_TEXT_BYTES);

    session->has_left = true;
    session->last_id = nghttp2_session_get_last_proc_stream_id(session->ng);
    bow__http2_check(session,
                     nghttp2_submit_goaway(session->ng, NGHTTP2_FLAG_NONE, session->last_id,
                                           NGHTTP2_NO_ERROR, (const uint8_t *)why, len));
}

/* gRPC's C library writes an ACK before the calls that it has begun, and of those no more than fit
 * into one write. It tries again once what is refused: in vain, where its next connection is old
 * too before it has sent the call. So the client is asked again until no call has come between two
 * answers; not for ever, since some call on until they are told the id of a call of theirs. */
static void on_drain_answered(struct bow__http2_session *session)
{
    int32_t last_id = nghttp2_session_get_last_proc_stream_id(session->ng);
    bool is_first = session->n_drain_answers++ == 0;

    if ((!is_first && last_id == session->last_id) ||
        session->n_drain_answers == BOW__HTTP2_DRAIN_ANSWERS) {
        leave(session);
        return;
    }
    session->last_id = last_id;
    bow__http2_ping(session, drain_ping);
}

/* An answer that we asked for, or one of those with which gRPC's clients and servers measure while
 * calls move: no flood. */
static bool is_excused(struct bow__http2_session *session, bool is_ack)
{
    return is_ack ? bow__frames_take(&session->acks_due) : bow__ping_is_excused(&session->n_moved);
}

void bow__http2_on_ping(struct bow__http2_session *session, const nghttp2_ping *frame)
{
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

    if (!is_excused(session, is_ack)) {
        bow__http2_count(session, &session->pings, BOW_LIMIT_PINGS_PER_SECOND, "PINGs",
                         "BOW_LIMIT_PINGS_PER_SECOND");
    }
    if (!is_ack || session->broken) {
        return;
    }
    bow__http2_heartbeat_answered(session);
    bool is_drain = memcmp(frame->opaque_data, drain_ping, sizeof(drain_ping)) == 0;
    if (!is_drain) {
        bow__http2_window_learn(session);
    } else if (session->is_leaving && !session->has_left) {
        on_drain_answered(session);
    }
}

void bow__http2_goaway(struct bow__session *base, const struct bow_status *reason)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;

    if (session->is_leaving || session->broken) {
        return;
    }
    session->is_leaving = true;
    /* Without memory for it nobody is told why. */
    session->leaving_why = bow__dup(base->context, reason->message, strlen(reason->message));
    if (!base->server) {
        leave(session);
        return;
    }
    bow__http2_check(session, nghttp2_submit_shutdown_notice(session->ng));
}

/* nghttp2 lets a PING overtake, and its ACK would then say nothing about the GOAWAY. */
void bow__http2_goaway_sent(struct bow__http2_session *session)
{
    if (!session->base.server || !session->is_leaving || session->has_asked) {
        return;
    }
    session->has_asked = true;
    bow__http2_ping(session, drain_ping);
}

void bow__http2_leave(struct bow__session *base)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;

    if (session->is_leaving && !session->has_left && !session->broken) {
        leave(session);
    }
}

void bow__http2_on_goaway(struct bow__http2_session *session, const nghttp2_goaway *frame)
{
    struct bow__session *base = &session->base;
    struct bow__text text;

    session->has_peer_goaway = true;
    bow__http2_count(session, &session->goaways, BOW_LIMIT_GOAWAYS_PER_SECOND, "GOAWAYs",
                     "BOW_LIMIT_GOAWAYS_PER_SECOND");
    if (base->server || session->broken) {
        return;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "the peer is going away: %s",
                     nghttp2_http2_strerror(frame->error_code));
    if (frame->opaque_data_len > 0) {
        bow__text_printf(&text, ": ");
        bow__text_escape(&text, (struct bow_slice){frame->opaque_data, frame->opaque_data_len},
                         128);
    }
    struct bow_status status = {
        .code = BOW_UNAVAILABLE,
        .message = text.bytes,
        .not_processed = true,
    };
    bow__http2_streams_end(session, frame->last_stream_id, &status);
    if (!session->is_goaway_told) {
        session->is_goaway_told = true;
        status.not_processed = false;
        base->events->on_goaway(base->owner, &status);
    }
}
