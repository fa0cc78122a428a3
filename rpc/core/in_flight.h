/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_IN_FLIGHT_H
#define BOWLINE_RPC_CORE_IN_FLIGHT_H

/*
 * What the peers of one server have in flight in it, together: messages that are under way or
 * wait to be read, and calls in progress with their requests. Each loop has an equal share of the
 * server's limit and counts for itself; a share of the count is each connection's.
 *
 *     share of a loop  |───── all is well ───── 3/4 ───── 7/8 ───── all
 *
 *     from 3/4 on   it is short: a crowding connection gets no new call, and no credit while none
 *                   of its messages is under way
 *     from 7/8 on   no message that is large, and none of a crowding connection
 *     all           no message that takes memory, and no new call
 *
 * A connection crowds if it has, or would have, more than its even share of those three quarters.
 * So what a few take is not missing for the others; and a message that has begun finds its room
 * reserved and its credit given, so that calls in progress can end.
 *
 * What passes in place, or is answered within the batch that brought it, is not counted, and
 * costs nothing; so what one read of a connection brings is looked at behind it.
 *
 * Design. All is the loop's but for `n_gone`: what other threads have let go of; and `is_watched`:
 * set by the loop before it looks at n_gone again, read by who has added to it. Both are
 * sequentially consistent, so that either the loop sees what is gone or the other thread that it
 * has to wake the loop.
 */

#include "base/text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bow__in_flight {
    size_t max_bytes; /* this loop's share */
    size_t n_bytes;
    bool is_short;
    uint32_t n_shares;
    size_t server_max_bytes; /* for texts */
    uint64_t *n_refused;     /* a counter of its owner's */
    /** A shortage began or ended. */
    void (*on_turn)(struct bow__in_flight *in_flight);
    atomic_size_t n_gone;
    atomic_bool is_watched;
};

/** One connection's. */
struct bow__in_flight_share {
    struct bow__in_flight *in_flight;
    size_t n_messages; /* bytes of messages under way or waiting */
    size_t n_calls;    /* bytes of calls in progress */
};

void bow__in_flight_share_init(struct bow__in_flight_share *share,
                               struct bow__in_flight *in_flight);
/** The connection goes, and what is left with it; what is given back later is not counted. */
void bow__in_flight_share_fini(struct bow__in_flight_share *share);

/** Whether there is room for `n` bytes; else that is counted as refused. */
bool bow__in_flight_has_room(struct bow__in_flight_share *share, size_t n);

/** What of `n` bytes of memory counts: one message alone is let in, whatever it takes decoded. */
static inline size_t bow__in_flight_clip(const struct bow__in_flight_share *share, size_t n)
{
    size_t max = share != NULL ? share->in_flight->max_bytes / 2 : SIZE_MAX;

    return n < max ? n : max;
}

/** A message of `n` bytes comes in, or has to wait. Returns as has_room(). NULL, of a client, has
 * room for all. */
bool bow__in_flight_take_message(struct bow__in_flight_share *share, size_t n);
void bow__in_flight_give_message(struct bow__in_flight_share *share, size_t n);

/** A call has outlived the batch that brought it, or its request has come. */
void bow__in_flight_take_call(struct bow__in_flight_share *share, size_t n);
void bow__in_flight_give_call(struct bow__in_flight_share *share, size_t n);

/** What a handler holds on to though its connection has done with it; likewise. */
void bow__in_flight_keep(struct bow__in_flight *in_flight, size_t n);
/** It has let go. Returns whether the loop has to bow__in_flight_look(). Thread: any. */
bool bow__in_flight_let_go(struct bow__in_flight *in_flight, size_t n);
void bow__in_flight_look(struct bow__in_flight *in_flight);

/** Whether a new call of the connection is to be refused. */
bool bow__in_flight_refuses_call(const struct bow__in_flight_share *share);

/** bow__in_flight_withholds() when it is short. */
bool bow__in_flight_is_crowding(const struct bow__in_flight_share *share);
/** Whether the connection gets no credit for more messages, none being under way. */
static inline bool bow__in_flight_withholds(const struct bow__in_flight_share *share)
{
    return share != NULL && share->in_flight->is_short && bow__in_flight_is_crowding(share);
}

/** "… in flight …; max_bytes_in_flight (N)". */
void bow__in_flight_describe(const struct bow__in_flight *in_flight, struct bow__text *text);

#endif
