/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Flow control: credit for message bytes that the peer may send, and how large its windows are.
 *
 * A stream's credit is topped up to its window less what the host has not
 * consumed. For the one message being assembled it is topped up further, ahead
 * of need, while no whole message lies unread: otherwise a message larger than
 * the window could never become whole. The connection's credit comes back as soon as its
 * bytes have been charged to a stream, so a stream that nobody reads costs its
 * neighbours nothing; only when the connection buffers too much is it kept back, or when it is one
 * of those that buffer most in a server that is short. Not for a message that has begun: it has its
 * place, and would wait in it for ever.
 *
 * A window bounds what is sent in a round trip, so it grows for a reader that empties all of it in
 * little more than one: then it, and nothing else, kept the sender back.
 *
 * Windows only grow, for credit that was given can't be taken back; all that one
 * connection's streams have grown by is bounded, for a peer may make them grow
 * and then fill them while nobody reads.
 */

#include "base/hints.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>

/* How large windows are. */

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

static uint32_t grow_stream(struct bow__native *session, struct bow__native_stream *stream)
{
    size_t size = stream->window.size;
    size_t room = BOW_LIMIT_GROWN_WINDOWS_BYTES - session->n_grown;
    size_t max = BOW_LIMIT_STREAM_WINDOW_BYTES;

    uint32_t more =
        grow(session, &stream->window, stream->receive_credit, (size_t)min_u64(max, size + room));
    session->n_grown += more;
    return more;
}

static uint32_t grow_connection(struct bow__native *session)
{
    return grow(session, &session->window, session->receive_credit,
                BOW_LIMIT_CONNECTION_WINDOW_BYTES);
}

/* Credit. */

#define MILLISECOND_NS UINT64_C(1000000)

/*
 * How far ahead of a large message its credit runs. What is on the way is what small messages
 * beside it queue behind, so it is no more than the path holds at half a gigabyte a second. A short
 * path gets half the window in whole frames, a long one as much as a message may have.
 */
static size_t ahead_bytes(const struct bow__native *session)
{
    uint64_t n = session->path_rtt_ns / 2;

    return n < session->max_message_bytes ? (size_t)n : session->max_message_bytes;
}

/*
 * While no small message is about, nobody queues behind a large one; then it may have as much as
 * comes in a millisecond, which is what the first small one is late by. Shared by the streams, for
 * that one queues behind all of them.
 */
static size_t quiet_bytes(const struct bow__native *session)
{
    if (!bow__native_is_quiet(session)) {
        return 0;
    }
    size_t n = session->pace.per_ms;
    n = n < BOW__NATIVE_QUIET_AHEAD_BYTES ? n : BOW__NATIVE_QUIET_AHEAD_BYTES;
    return n / (session->base.n_streams > 0 ? session->base.n_streams : 1);
}

/* Fast to rise: what came more slowly may have waited for us. */
void bow__native_pace_count(struct bow__native *session, size_t n)
{
    struct bow__native_pace *pace = &session->pace;
    uint64_t elapsed_ns = session->now_ns - pace->since_ns;

    pace->n_bytes += n;
    if (elapsed_ns < MILLISECOND_NS) {
        return;
    }
    size_t per_ms = (size_t)((uint64_t)pace->n_bytes * MILLISECOND_NS / elapsed_ns);
    pace->per_ms = per_ms > pace->per_ms ? per_ms : (per_ms + pace->per_ms) / 2;
    pace->n_bytes = 0;
    pace->since_ns = session->now_ns;
}

static int break_credit(struct bow__native *session, const struct bow__frame *frame, size_t n,
                        const char *whose, uint32_t credit)
{
    return bow__native_break_at(session, frame, "spends %zu bytes of credit, the %s has %u", n,
                                whose, credit);
}

static void put_window(struct bow__native *session, uint64_t stream, uint32_t credit)
{
    struct bow__frame frame = {.length = 4, .type = BOW__FRAME_WINDOW, .stream = stream};
    uint8_t body[4];

    bow__put_u32(body, credit);
    (void)bow__native_put_frame(session, &frame, body);
}

/* Unless too much is buffered, here or in the whole server. */
BOW__LONG_WAY static void give_connection_credit(struct bow__native *session)
{
    size_t n_grown = session->window.size - session->own.connection_window_bytes;

    if (session->broken || session->n_buffered + n_grown >= BOW_LIMIT_BYTES_IN_FLIGHT ||
        (session->n_missing == 0 && bow__in_flight_withholds(session->base.in_flight))) {
        return;
    }
    uint32_t more = session->n_unreturned + grow_connection(session);
    put_window(session, 0, more);
    session->receive_credit += more;
    session->window.n_granted += more;
    session->n_unreturned = 0;
    session->probe_due = true;
}

static inline void return_connection_credit(struct bow__native *session)
{
    if (session->n_unreturned >= session->window.size / 2) {
        give_connection_credit(session);
    }
}

void bow__native_return_connection_credit(struct bow__native *session)
{
    return_connection_credit(session);
}

int bow__native_receive_credit_spend(struct bow__native *session, const struct bow__frame *frame,
                                     struct bow__native_stream *stream, size_t n)
{
    n = bow__frame_cost((frame->flags & BOW__FRAME_HAS_MESSAGE) != 0, n);
    if (n > session->receive_credit) {
        return break_credit(session, frame, n, "connection", session->receive_credit);
    }
    if (stream != NULL) {
        if (n > stream->receive_credit) {
            return break_credit(session, frame, n, "stream", stream->receive_credit);
        }
        stream->receive_credit -= (uint32_t)n;
    }
    session->receive_credit -= (uint32_t)n;
    session->n_unreturned += (uint32_t)n;
    return_connection_credit(session);
    return 0;
}

bool bow__native_refill(struct bow__session *base)
{
    struct bow__native *session = bow__native_of(base);
    uint32_t before = session->receive_credit;

    return_connection_credit(session);
    return session->receive_credit > before;
}

/* Credit for a part of a frame makes one more of it. */
static size_t whole_frames(size_t n)
{
    return n - n % BOW__NATIVE_FRAME_BYTES;
}

static size_t wanted_credit(const struct bow__native *session,
                            const struct bow__native_stream *stream)
{
    size_t window = stream->window.size;
    /* Bytes that still arrive of the frame under way have been charged already. */
    size_t n_arriving = session->target == stream ? session->n_body_left : 0;
    size_t n_buffered = stream->n_unread + stream->n_overhead + stream->n_arrived + n_arriving;

    if (stream->n_unread > 0) {
        return window > n_buffered ? window - n_buffered : 0;
    }
    if (!stream->assembling || stream->n_announced <= stream->n_arrived) {
        return window;
    }
    size_t n_missing = stream->n_announced - stream->n_arrived;
    size_t ahead = ahead_bytes(session);
    size_t quiet = quiet_bytes(session);
    ahead = quiet > ahead ? quiet : ahead;
    ahead = n_missing < ahead ? n_missing : ahead;
    size_t half = whole_frames(window / 2);
    return ahead > half ? ahead : half;
}

void bow__native_return_stream_credit(struct bow__native *session,
                                      struct bow__native_stream *stream)
{
    if (stream->peer_ended) {
        return;
    }
    size_t wanted = wanted_credit(session, stream);
    /* What runs far ahead comes back in few frames. */
    size_t step = wanted > stream->window.size ? wanted / 2 : whole_frames(stream->window.size / 4);
    if (wanted < stream->receive_credit + step) {
        return;
    }
    uint32_t more = (uint32_t)wanted - stream->receive_credit;
    more += grow_stream(session, stream);
    put_window(session, stream->id, more);
    stream->receive_credit += more;
    stream->window.n_granted += more;
    session->probe_due = true;
}

void bow__native_release_buffered(struct bow__native *session, size_t n)
{
    session->n_buffered -= n;
    return_connection_credit(session);
}
