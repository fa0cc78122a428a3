/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether the peer is alive: after heartbeat_ns without a byte from it a PING
 * goes out, and with heartbeat_timeout_ns more of silence the connection is lost.
 *
 * The silence counts from when the PING has left: a slow path is no dead peer.
 *
 * gRPC's servers end connections whose clients ping often without need: they
 * forgive two PINGs between any two answers and want five minutes before each
 * further one. A client of ours keeps to that, and pings only while a call waits: for
 * its answer, for a stream slot, or to be sent. A server of ours says that it need not.
 */

#include "base/clock.h"
#include "rpc/http2/internal.h"

#include <errno.h>

#define MAX_SILENT_PINGS 2u
#define SILENT_PING_INTERVAL_NS (UINT64_C(300) * 1000000000u)

static bool is_wanted(const struct bow__http2_session *session)
{
    if (session->heartbeat_ns == BOW_NEVER || session->paused_ns != 0 || session->broken) {
        return false;
    }
    if (session->base.server && !session->base.is_peer_unattended) {
        return true;
    }
    /* A PING that was sent is awaited to its end, though the calls it was sent for are over. */
    return session->pinged_ns != 0 || session->base.n_streams > 0 || session->is_ready_wanted ||
           session->out.n_bytes > 0 || session->is_doubted;
}

/* After that long a silence, and as often as the peer puts up with. */
static uint64_t ping_time(const struct bow__http2_session *session)
{
    uint64_t due = bow__time_add(session->life_ns, session->heartbeat_ns);

    if (session->base.server || session->may_ping || session->n_silent_pings < MAX_SILENT_PINGS) {
        return due;
    }
    uint64_t allowed = bow__time_add(session->last_ping_ns, SILENT_PING_INTERVAL_NS);
    return due > allowed ? due : allowed;
}

uint64_t bow__http2_heartbeat_time(const struct bow__http2_session *session)
{
    if (!is_wanted(session)) {
        return BOW_NEVER;
    }
    if (session->pinged_ns != 0) {
        return session->has_ping_moved
                   ? 0
                   : bow__time_add(session->pinged_ns, session->heartbeat_timeout_ns);
    }
    return ping_time(session);
}

static void ask(struct bow__http2_session *session)
{
    uint64_t now = session->now_ns;

    session->base.heartbeats_sent++;
    session->n_silent_pings++;
    session->pinged_ns = now;
    session->n_before_ping = session->out.n_bytes;
    session->has_ping_moved = false;
    session->last_ping_ns = now;
    session->asked_ns = session->asked_ns == 0 ? now : session->asked_ns;
    bow__http2_ping(session, NULL);
}

void bow__http2_heartbeat(struct bow__http2_session *session)
{
    uint64_t now = session->now_ns;

    if (now < bow__http2_heartbeat_time(session)) {
        return;
    }
    if (session->pinged_ns != 0 && session->has_ping_moved) {
        session->has_ping_moved = false;
        session->pinged_ns = now;
        return;
    }
    if (session->pinged_ns != 0) {
        session->base.heartbeats_lost++;
        bow__http2_break(session, NGHTTP2_NO_ERROR, -ETIMEDOUT, BOW_UNAVAILABLE,
                         "heartbeat lost: no byte from the peer for %llu ms after a PING "
                         "(heartbeat_timeout_ns)",
                         (unsigned long long)((now - session->pinged_ns) / 1000000));
        return;
    }
    ask(session);
}

bool bow__http2_doubt(struct bow__session *base, uint64_t now_ns)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;

    session->now_ns = now_ns;
    if (session->broken || session->heartbeat_ns == BOW_NEVER || session->paused_ns != 0) {
        return false;
    }
    if (session->pinged_ns == 0) {
        if (now_ns < ping_time(session)) {
            return false;
        }
        ask(session);
    }
    session->is_doubted = !session->broken;
    return session->is_doubted;
}

void bow__http2_heartbeat_answered(struct bow__http2_session *session)
{
    session->is_ready_wanted |= session->is_doubted;
    session->is_doubted = false;
}

void bow__http2_heartbeat_sent(struct bow__http2_session *session, size_t n)
{
    if (session->pinged_ns == 0 || session->n_before_ping == 0 || n == 0) {
        return;
    }
    session->n_before_ping -= n < session->n_before_ping ? n : session->n_before_ping;
    session->has_ping_moved = true;
}

void bow__http2_set_reading(struct bow__session *base, bool reading, uint64_t now_ns)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;

    if (!reading) {
        session->paused_ns = session->paused_ns == 0 ? now_ns : session->paused_ns;
        return;
    }
    if (session->paused_ns == 0) {
        return;
    }
    uint64_t paused_for = bow__time_left(now_ns, session->paused_ns);
    session->life_ns = bow__time_add(session->life_ns, paused_for);
    if (session->pinged_ns != 0) {
        session->pinged_ns = bow__time_add(session->pinged_ns, paused_for);
    }
    session->paused_ns = 0;
}
