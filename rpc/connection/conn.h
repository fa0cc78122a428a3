/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_CONN_H
#define BOWLINE_RPC_CONNECTION_CONN_H

/*
 * The last handler of a connection's pipeline, on both sides: it binds a session
 * to a channel. It lives in the channel's data, at the front of what its owner
 * (a server's worker, a client's subchannel) keeps per connection.
 *
 *     init ──► on_up ──► … ──► on_down ──► (streams end) ──► on_gone
 *
 * A server's connection has no session until the first bytes told the protocol.
 * Every operation on the session is followed by bow__conn_touch(): one flush for
 * all that a turn of the loop produced.
 */

#include "rpc/connection/age.h"
#include "rpc/connection/counters.h"
#include "rpc/core/session.h"
#include "transport/loop/loop.h"
#include <bowline/channel.h>
#include <bowline/security.h>

struct bow__conn;

struct bow__conn_ops {
    const struct bow__session_events *events; /* their owner is the conn */
    /** Fill in the limits and times of a session about to be made. */
    void (*configure)(struct bow__conn *conn, struct bow__session_options *options);
    /** The session is there. */
    void (*on_up)(struct bow__conn *conn);
    /** The connection is lost: take it out of use, its streams end next. `why` is borrowed. */
    void (*on_down)(struct bow__conn *conn, const struct bow_status *why);
    /** No call has been on it for long, or it is old: say goaway, unless there are reasons to keep
     * it. `why` lives for ever. */
    void (*on_aged)(struct bow__conn *conn, const char *why);
    /** What could be sent was; inside the session, so that its events may be given. May be NULL. */
    void (*on_settled)(struct bow__conn *conn);
    /** The session has emitted what it had to for now. May be NULL. */
    void (*on_batch_end)(struct bow__conn *conn);
    /** The last callback; the memory goes with the channel. */
    void (*on_gone)(struct bow__conn *conn);
};

struct bow__conn {
    struct bow_handler handler;
    const struct bow__conn_ops *ops;
    struct bow_context *context;
    struct bow_channel *channel;
    struct bow_loop *loop;
    struct bow__counters *counters;
    struct bow__session *session; /* NULL before detection and after the end */
    struct bow_timer timer;
    uint64_t timer_at;       /* BOW_NEVER: disarmed */
    uint64_t first_frame_at; /* server: until when the peer has to show itself; BOW_NEVER: it has */
    uint64_t write_timeout_ns; /* set by its owner */
    struct bow__age age;       /* its owner starts it */
    struct bow__deferred settle;
    struct bow_security *security; /* borrowed; NULL: none */
    uint32_t protocols;            /* server: BOW_PROTOCOL_ bits */
    const char *listening;         /* server: the address that it was accepted on; kept */
    const char *close_reason;      /* set by who closes; lives for ever */
    uint64_t heartbeats_sent;      /* of the session, counted so far */
    uint32_t n_own_streams;        /* client: of the session's, what are none of its calls */
    bool server;
    bool http2;           /* client: which protocol to speak */
    uint32_t waited_turn; /* of the loop, in which bytes waited last for the next one; wraps */
    uint64_t batch_ns;    /* the loop's time when in_session was set last */
    bool in_session;      /* feed, on_time or fail is running */
    bool touched;         /* meanwhile */
    bool inactive;        /* the channel is closed; the end waits for in_session */
    int error;            /* why, then */
    bool closing;         /* nothing more is fed */
    bool paused;          /* by either of these */
    bool rests;           /* others have their turn: rest_until */
    /* Messages that wait for their turn have the next one, before more is read; had it. */
    bool waiters_are_next;
    bool waiters_were_last;
    uint32_t n_since;    /* bytes fed since what work.came_ns tells; 0: the next come just now */
    uint64_t rest_until; /* not read until then, for what it costs; or BOW_NEVER */
    bool heard;          /* a byte has come from the peer */
    bool is_announced;   /* client: the server has said that it will close */
    bool up;
    uint32_t n_left; /* of what was fed last */
};

/** Set up in zeroed channel data and join the pipeline. In on_channel. */
void bow__conn_init(struct bow__conn *conn, struct bow_channel *channel,
                    const struct bow__conn_ops *ops, struct bow__counters *counters, bool server);

/** The session was operated on, from outside of it. */
void bow__conn_touch_now(struct bow__conn *conn);

/** The session was operated on: flush, watch its times, close when it is done; in this turn. */
static inline void bow__conn_touch(struct bow__conn *conn)
{
    if (conn->in_session) {
        conn->touched = true; /* once for all that its events do */
        return;
    }
    bow__conn_touch_now(conn);
}

/** Calls that are open on one that is up. */
static inline uint32_t bow__conn_n_calls(const struct bow__conn *conn)
{
    return conn->session->n_streams - conn->n_own_streams;
}

/** Whether what had come by `by_ns` may wait here for the connection's next turn: it is heard then,
 * or in one of the next few. */
bool bow__conn_may_hold(const struct bow__conn *conn, uint64_t by_ns);

/** Take no new calls and say so; close when those in flight have ended. */
void bow__conn_goaway(struct bow__conn *conn, const char *reason);

/** Close now, after what is queued for the peer or `timeout_ns`. `reason` lives for ever. */
void bow__conn_close(struct bow__conn *conn, const char *reason, uint64_t timeout_ns);

/** The same, after telling the peer of each call that has not ended yet that it is UNAVAILABLE.
 * Runs events; the conn may be gone afterwards. */
void bow__conn_cut(struct bow__conn *conn, const char *reason, uint64_t timeout_ns);

/** Give the peer up at once, which takes nothing any more: `why` is told to the log and the calls.
 */
void bow__conn_drop(struct bow__conn *conn, const struct bow__text *why);

/** The peer has shown that it speaks the protocol. */
static inline void bow__conn_seen(struct bow__conn *conn)
{
    conn->first_frame_at = BOW_NEVER;
}

#endif
