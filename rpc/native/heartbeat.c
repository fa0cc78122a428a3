/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Time: whether the peer is alive. Any byte received says so; a PING asks when
 * there was none for a while. Nothing is counted while the host does not read,
 * for then silence is ours, nor while the PING waits behind bytes of ours that
 * are on their way: a slow path is no dead peer. A connection that nobody attends is not asked
 * while it has no call. Knows frames by name only.
 */

#include "rpc/native/send.h"

#include "base/clock.h"

#include <errno.h>

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
    uint64_t interval = us > BOW_NEVER / 1000 ? BOW_NEVER : us * 1000;

    return session->last_ping_ns == 0 ? 0 : bow__time_add(session->last_ping_ns, interval);
}

bool bow__native_may_ping(const struct bow__native *session)
{
    return session->now_ns >= allowed_time(session);
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
    if (session->out_of_memory || session->ready_due || session->retire_due ||
        !bow__list_is_empty(&session->overfull)) {
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
    (void)bow__native_put_ping(session);
}

static int beat(struct bow__native *session)
{
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

void bow__native_heartbeat_answered(struct bow__native *session)
{
    session->ready_due |= session->doubted;
    session->doubted = false;
}

void bow__native_heartbeat_sent(struct bow__native *session, size_t n)
{
    if (!session->ping_is_out || session->n_before_ping == 0 || n == 0) {
        return;
    }
    session->n_before_ping -= n < session->n_before_ping ? n : session->n_before_ping;
    session->ping_moved = true;
}

int bow__native_on_time(struct bow__session *base, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    if (session->broken) {
        return session->broken_rc;
    }
    session->now_ns = now_ns;
    if (!is_asleep(session)) {
        int rc = beat(session);
        if (rc < 0) {
            return rc;
        }
    }
    session->feeding = true;
    return bow__native_end_feeding(session);
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
