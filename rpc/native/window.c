/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How large windows are. A window bounds what is sent in a round trip, so it grows
 * for a reader that empties all of it in little more than one: then it, and nothing
 * else, held the sender back. How long a round trip takes is asked by a PING when credit is
 * given for much, once a second at most.
 *
 * Windows only grow, for what was promised can't be taken back; all that one
 * connection's streams have grown by is bounded, for a peer may make them grow
 * and then fill them while nobody reads.
 */

#include "rpc/native/send.h"

#include <bowline/limits.h>

#define SECOND_NS UINT64_C(1000000000)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is on the way is what small messages beside it queue behind, so a window is no more than the
 * path holds at a gigabyte a second: on a short one it stays as it is. */
static uint64_t limit_of(const struct bow__native *session, size_t max)
{
    return min_u64(max, session->path_rtt_ns);
}

/* Whether a window's worth was spent in no more than two round trips. Looks at one stretch of time
 * after the other; one that is too long for that is given up. */
static bool is_too_small(const struct bow__native *session, struct bow__native_window *window,
                         uint32_t credit)
{
    uint64_t n_spent = window->n_granted - credit;
    uint64_t elapsed_ns = session->now_ns - window->since_ns;
    bool slow = elapsed_ns > 2 * session->path_rtt_ns;

    if (!slow && n_spent - window->n_spent_since < window->size) {
        return false;
    }
    window->since_ns = session->now_ns;
    window->n_spent_since = n_spent;
    return !slow;
}

static uint32_t grow(struct bow__native *session, struct bow__native_window *window,
                     uint32_t credit, size_t max)
{
    if (session->path_rtt_ns == 0 || !is_too_small(session, window, credit)) {
        return 0;
    }
    uint64_t size = min_u64(2 * (uint64_t)window->size, limit_of(session, max));
    uint32_t more = size > window->size ? (uint32_t)(size - window->size) : 0;
    window->size += more;
    return more;
}

uint32_t bow__native_window_grow_stream(struct bow__native *session,
                                        struct bow__native_stream *stream)
{
    size_t size = stream->window.size;
    size_t room = BOW_LIMIT_GROWN_WINDOWS_BYTES - session->n_grown;
    size_t max = BOW_LIMIT_STREAM_WINDOW_BYTES;

    uint32_t more =
        grow(session, &stream->window, stream->receive_credit, min_u64(max, size + room));
    session->n_grown += more;
    return more;
}

uint32_t bow__native_window_grow_connection(struct bow__native *session)
{
    return grow(session, &session->window, session->receive_credit,
                BOW_LIMIT_CONNECTION_WINDOW_BYTES);
}

/* How long the path is. */

/* The clock is right inside feed only. */
void bow__native_window_probe(struct bow__native *session)
{
    bool known = session->path_rtt_ns != 0 && session->now_ns - session->asked_path_ns < SECOND_NS;

    session->probe_due = false;
    if (known || session->base.n_streams == 0 || session->ping_sent_ns != 0 ||
        !bow__native_may_ping(session)) {
        return;
    }
    session->asked_path_ns = session->now_ns;
    (void)bow__native_put_ping(session);
}

/* A quick sample is the path; a slow one may have queued behind what the peer had to send. */
void bow__native_window_learn(struct bow__native *session, uint64_t sample_ns)
{
    uint64_t known_ns = session->path_rtt_ns;

    /* 0 says that it is not known. */
    sample_ns = sample_ns > 0 ? sample_ns : 1;
    session->base.rtt_ns = sample_ns;
    if (known_ns == 0 || sample_ns <= known_ns) {
        session->path_rtt_ns = sample_ns;
        return;
    }
    session->path_rtt_ns += (sample_ns - known_ns) / 8;
}
