/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_BACKLOG_H
#define BOWLINE_RPC_SERVER_DISPATCH_BACKLOG_H

/*
 * What waits to be sent to the peers of one server, and when there is so much of it that no further
 * call is begun. What a handler has answered is never thrown away for it: calls that come
 * meanwhile wait before their handlers. Each loop has an equal share of the server's limit and
 * counts for itself; a share of the count is each connection's. Reading stops earlier where what
 * waits does not leave: is_clogged() of the sessions.
 *
 *     a connection   |── free ──| 1/8 ── full if the calls that its handlers have would take it ──|
 *                                        to BOW_LIMIT_QUEUED_REPLY_BYTES, or it is there
 *     share of a loop  |───── all is well ───── 3/4 ───── all
 *
 *     from 3/4 on   it is short, until 5/8: a connection that has more than its even part of those
 *                   three quarters is full, and ends if its peer takes nothing of that any more
 *     all           each connection is full for which anything waits
 *
 * A call may wait only while something else waits that its peer can take, so it waits for nobody
 * but its peer. Counted when a batch of calls has come and when what could be sent was; so a
 * connection goes beyond a mark by what the calls of one read answer at once.
 */

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bow__backlog {
    size_t max_bytes; /* this loop's share */
    size_t n_bytes;
    size_t look_bytes; /* what a connection has waiting when it is worth a look */
    uint32_t n_shares;
    bool is_short;
    /** A shortage began or ended. */
    void (*on_turn)(struct bow__backlog *backlog);
};

/** One connection's. */
struct bow__backlog_share {
    struct bow__backlog *backlog;
    size_t n_bytes;           /* memory of what waits to be sent */
    size_t n_dequeued;        /* the session's, when it was counted last */
    uint64_t taken_ns;        /* when the peer was seen to take something */
    size_t reply_bytes;       /* of those that handlers took their time for: what one is, of late */
    uint32_t n_calls;         /* that handlers have, and answer once, and did not at once */
    uint32_t n_streams;       /* that handlers have, and have outlived their batch */
    struct bow__link waiting; /* calls that wait before their handlers, oldest first */
    size_t n_waiting_bytes;   /* what those take */
};

void bow__backlog_init(struct bow__backlog *backlog, size_t max_bytes,
                       void (*on_turn)(struct bow__backlog *backlog));

void bow__backlog_share_init(struct bow__backlog_share *share, struct bow__backlog *backlog);
/** The connection goes, with what waits for it. */
void bow__backlog_share_fini(struct bow__backlog_share *share);

/** So much waits now, and so many bytes went on their way so far. */
void bow__backlog_count(struct bow__backlog_share *share, size_t n_bytes, size_t n_dequeued,
                        uint64_t now_ns);

/** A handler that took its time has answered with so many bytes. */
void bow__backlog_note_reply(struct bow__backlog_share *share, size_t n_bytes);

/** Whether the connection is to begin no further call. */
bool bow__backlog_is_full(const struct bow__backlog_share *share);

/** Whether the connection has too much of what the loop is short of, and its peer has taken nothing
 * for BOW_LIMIT_UNTAKEN_NS. */
bool bow__backlog_is_stuck(const struct bow__backlog_share *share, uint64_t now_ns);

#endif
