/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Our receive windows: when what came is granted anew, and how large they are.
 *
 * Bytes of the one message being assembled are granted anew at once, so that it may be larger than
 * the window. What arrives while the host holds messages it has not consumed is granted when it
 * has. The connection's is granted anew at once, but to one that holds most in a server that is
 * short, while no message of it is under way.
 *
 * A window bounds what is sent in a round trip, so it grows for a sender that uses all of it up in
 * little more than one: then it, and nothing else, held the sender back. How long a round trip
 * takes is asked by a PING when much comes in, once a second at most, and learnt from heartbeats
 * too. Windows only grow, for what was promised cannot be taken back; all that one connection's
 * streams have grown by is bounded, for a peer may make them grow and then fill them while nobody
 * reads.
 */

#include "rpc/http2/internal.h"

#define SECOND_NS UINT64_C(1000000000)

/* Granting anew */

static void grant(struct bow__http2_session *session, struct bow__http2_stream *stream, size_t n)
{
    if (n == 0 || session->broken || stream->closed || stream->remote_ended) {
        return;
    }
    bow__http2_check(session, nghttp2_session_consume_stream(session->ng, stream->id, n));
}

void bow__http2_charge(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       size_t n)
{
    if (stream->n_unread > 0) {
        stream->n_unreturned += n;
        return;
    }
    grant(session, stream, n);
}

void bow__http2_return_credit(struct bow__http2_session *session)
{
    size_t n = session->n_unreturned;

    if (n == 0 || session->broken ||
        (session->n_under_way == 0 && bow__in_flight_withholds(session->base.in_flight))) {
        return;
    }
    session->n_unreturned = 0;
    bow__http2_check(session, nghttp2_session_consume_connection(session->ng, n));
}

bool bow__http2_refill(struct bow__session *base)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    size_t before = session->n_unreturned;

    bow__http2_return_credit(session);
    return session->n_unreturned < before;
}

void bow__http2_consumed(struct bow__session *base, uint64_t key, size_t n)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || stream->n_unread == 0) {
        return;
    }
    stream->n_unread -= n < stream->n_unread ? n : stream->n_unread;
    if (stream->n_unread == 0) {
        grant(session, stream, stream->n_unreturned);
        stream->n_unreturned = 0;
    }
    bow__http2_return_credit(session);
}

/* How large they are */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether a window's worth came in no more than two round trips. Looks at one stretch of time
 * after the other; one that is too long for that is given up. */
static bool is_too_small(const struct bow__http2_session *session, struct bow__http2_window *window,
                         size_t n)
{
    bool is_slow = session->now_ns - window->since_ns > 2 * session->path_rtt_ns;

    window->n_spent += n;
    if (!is_slow && window->n_spent < window->size) {
        return false;
    }
    window->since_ns = session->now_ns;
    window->n_spent = 0;
    return !is_slow;
}

/* What is on the way is what small messages beside it queue behind, so a window is no more than
 * the path holds at a gigabyte a second: on a short one it stays as it is. */
static uint32_t growth_of(const struct bow__http2_session *session,
                          const struct bow__http2_window *window, uint64_t max)
{
    uint64_t size = min_u64(2 * (uint64_t)window->size, min_u64(max, session->path_rtt_ns));

    return size > window->size ? (uint32_t)(size - window->size) : 0;
}

static void grow(struct bow__http2_session *session, struct bow__http2_window *window, int32_t id,
                 uint32_t more)
{
    if (more == 0) {
        return;
    }
    window->size += more;
    bow__http2_check(session, nghttp2_session_set_local_window_size(session->ng, NGHTTP2_FLAG_NONE,
                                                                    id, (int32_t)window->size));
}

/* A window that was used up because nobody reads is not too small. */
static bool is_read(const struct bow__http2_stream *stream)
{
    return stream->n_unreturned < stream->window.size / 2;
}

static void grow_stream(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_window *window = &stream->window;
    size_t room = BOW_LIMIT_GROWN_WINDOWS_BYTES - session->n_grown;
    uint32_t more =
        growth_of(session, window, min_u64(BOW_LIMIT_STREAM_WINDOW_BYTES, window->size + room));

    session->n_grown += more;
    grow(session, window, stream->id, more);
}

/* In a moment in which the peer is certain to have sent something, so that gRPC's servers forgive
 * it. */
static void probe(struct bow__http2_session *session, size_t n)
{
    bool is_known =
        session->path_rtt_ns != 0 && session->now_ns - session->asked_path_ns < SECOND_NS;

    session->n_since_probe += n;
    if (is_known || session->n_since_probe < (size_t)BOW__HTTP2_STREAM_WINDOW / 2 ||
        session->asked_ns != 0) {
        return;
    }
    session->n_since_probe = 0;
    session->asked_path_ns = session->now_ns;
    session->asked_ns = session->now_ns;
    bow__http2_ping(session, NULL);
}

void bow__http2_window_spent(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             size_t n)
{
    probe(session, n);
    if (session->path_rtt_ns == 0 || session->broken) {
        return;
    }
    if (is_too_small(session, &session->window, n)) {
        grow(session, &session->window, 0,
             growth_of(session, &session->window, BOW_LIMIT_CONNECTION_WINDOW_BYTES));
    }
    if (stream != NULL && stream->open && is_too_small(session, &stream->window, n) &&
        is_read(stream)) {
        grow_stream(session, stream);
    }
}

void bow__http2_window_forget(struct bow__http2_session *session,
                              const struct bow__http2_stream *stream)
{
    session->n_grown -= stream->window.size - (uint32_t)BOW__HTTP2_STREAM_WINDOW;
}

/* A quick sample is the path; a slow one may have queued behind what the peer had to send. */
void bow__http2_window_learn(struct bow__http2_session *session)
{
    uint64_t known_ns = session->path_rtt_ns;

    if (session->asked_ns == 0) {
        return;
    }
    uint64_t sample_ns = session->now_ns - session->asked_ns;
    /* 0 says that it is not known. */
    sample_ns = sample_ns > 0 ? sample_ns : 1;
    session->asked_ns = 0;
    session->base.rtt_ns = sample_ns;
    session->path_rtt_ns =
        known_ns == 0 || sample_ns <= known_ns ? sample_ns : known_ns + (sample_ns - known_ns) / 8;
}
