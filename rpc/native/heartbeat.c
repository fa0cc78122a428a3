/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Time, as PINGs tell it: whether the peer is alive, and how long a round trip takes. After how
 * long: heartbeat_ns, whose default is in server.c and client_options.c.
 *
 * Any byte received says that it lives; a PING asks when there was none for a while. Nothing is
 * counted while the host does not read, for then silence is ours, nor while the PING waits behind
 * bytes of ours that are on their way: a slow path is no dead peer. A connection that nobody
 * attends is not asked while it has no call.
 *
 * The round trip is measured when credit is given for much, once a second at most.
 */

#include "base/clock.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>

#define SECOND_NS UINT64_C(1000000000)

/* A PING that was sent is awaited to its end, though the calls it was sent for are over. */
static bool is_unattended(const struct bow__native *session)
{
    return session->base.n_streams == 0 && !session->doubted &&
           (session->peer.unattended || (session->unattended && !session->ping_is_out));
}

static bool is_asleep(const struct bow__native *session)
{
    return session->heartbeat_ns == BOW_NEVER || !session->reading || is_unattended(session);
}

/* When the peer lets us send the next one. */
static uint64_t allowed_time(const struct bow__native *session)
{
    uint64_t us = session->peer.min_ping_interval_us;
    uint64_t interval =
        us < BOW_LIMIT_PING_INTERVAL_NS / 1000 ? us * 1000 : BOW_LIMIT_PING_INTERVAL_NS;

    return session->last_ping_ns == 0 ? 0 : bow__time_add(session->last_ping_ns, interval);
}

static bool may_ping(const struct bow__native *session)
{
    return session->now_ns >= allowed_time(session);
}

static void put_ping(struct bow__native *session)
{
    session->last_ping_ns = session->now_ns;
    session->ping_sent_ns = session->now_ns;
    (void)bow__native_put_ping(session, 0, ++session->n_pings);
}

static uint64_t ping_time(const struct bow__native *session)
{
    uint64_t silent = bow__time_add(session->last_byte_ns, session->heartbeat_ns);
    uint64_t allowed = allowed_time(session);

    return allowed > silent ? allowed : silent;
}

static uint64_t lost_time(const struct bow__native *session)
{
    return bow__time_add(session->asked_ns, session->heartbeat_timeout_ns);
}

uint64_t bow__native_next_time(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);

    if (session->broken) {
        return BOW_NEVER;
    }
    if (session->out_of_memory || session->ready_due || session->retire_due) {
        return 0;
    }
    if (is_asleep(session)) {
        return BOW_NEVER;
    }
    if (session->ping_is_out) {
        return session->ping_moved ? 0 : lost_time(session);
    }
    return ping_time(session);
}

static int lose_peer(struct bow__native *session)
{
    session->base.heartbeats_lost++;
    bow__native_break(session, BOW_UNAVAILABLE,
                      "heartbeat: no byte from the peer within %llu ms of a PING "
                      "(heartbeat_timeout_ns)",
                      (unsigned long long)(session->heartbeat_timeout_ns / 1000000));
    session->broken_rc = -ETIMEDOUT;
    return session->broken_rc;
}

static void ask(struct bow__native *session)
{
    session->ping_is_out = true;
    session->asked_ns = session->now_ns;
    session->n_before_ping = session->out.n_bytes;
    session->ping_moved = false;
    session->base.heartbeats_sent++;
    put_ping(session);
}

int bow__native_heartbeat(struct bow__native *session)
{
    if (is_asleep(session)) {
        return 0;
    }
    if (session->ping_is_out) {
        if (session->ping_moved) {
            session->ping_moved = false;
            session->asked_ns = session->now_ns;
        }
        return session->now_ns >= lost_time(session) ? lose_peer(session) : 0;
    }
    if (session->now_ns < ping_time(session)) {
        return 0;
    }
    /* It has been quiet for long enough to give back what a burst needed. */
    bow__native_streams_trim(session);
    ask(session);
    return 0;
}

bool bow__native_doubt(struct bow__session *base, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    session->now_ns = now_ns;
    if (session->broken || session->heartbeat_ns == BOW_NEVER || !session->reading) {
        return false;
    }
    if (!session->ping_is_out) {
        if (now_ns < ping_time(session)) {
            return false;
        }
        ask(session);
    }
    session->doubted = true;
    return true;
}

/* A quick sample is the path; a slow one may have queued behind what the peer had to send. */
static void learn(struct bow__native *session, uint64_t sample_ns)
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

void bow__native_heartbeat_answered(struct bow__native *session, uint64_t opaque)
{
    session->ready_due |= session->doubted;
    session->doubted = false;
    if (opaque == session->n_pings && session->ping_sent_ns != 0) {
        learn(session, session->now_ns - session->ping_sent_ns);
        session->ping_sent_ns = 0;
    }
}

void bow__native_heartbeat_sent(struct bow__native *session, size_t n)
{
    if (!session->ping_is_out || session->n_before_ping == 0 || n == 0) {
        return;
    }
    session->n_before_ping -= n < session->n_before_ping ? n : session->n_before_ping;
    session->ping_moved = true;
}

void bow__native_set_reading(struct bow__session *base, bool reading, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    if (reading && !session->reading) {
        session->last_byte_ns = now_ns;
        session->asked_ns = now_ns;
    }
    session->reading = reading;
}

/* How long the path is. */

/* The clock is right inside feed only. */
void bow__native_heartbeat_probe(struct bow__native *session)
{
    bool known = session->path_rtt_ns != 0 && session->now_ns - session->asked_path_ns < SECOND_NS;

    session->probe_due = false;
    if (known || session->base.n_streams == 0 || session->ping_sent_ns != 0 || !may_ping(session)) {
        return;
    }
    session->asked_path_ns = session->now_ns;
    put_ping(session);
}
