/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_AGE_H
#define BOWLINE_RPC_CONNECTION_AGE_H

/*
 * How long a connection lives that nobody ends: until no call has been on it for a
 * while, or until it is old. And how patient the end of one is that was told to end.
 *
 *     serving ──idle──► (the owner says goaway) ──► leaving ──LEAVE_NS──► last word ──►
 * closed └─────old────► (the owner says goaway) ──► leaving ─ ─ grace over: cut off ──► closed
 *
 * A peer answers a goaway within a round trip or a few, and then all is known. One that
 * does not (nobody attends to it, or it does not read) is told the last word: what
 * comes after that is not processed, which it may try elsewhere. So no call fails, and
 * none keeps a connection that the peer has forgotten. A peer that is only slow would have a
 * thousand calls refused, and a library tries each of them again once: so the last word waits
 * for LEAVE_BUSY_NS, unless there is nobody to wait for (look_for_word()).
 *
 * A call is over when its last byte has left, not when it was answered: replies that wait for
 * the peer's credit keep the connection for as long as it goes on to take of them.
 *
 * Times are looked at when the first of them is due, and then known better: a call costs a store
 * (bow__age_called) and no timer.
 */

#include "base/clock.h"
#include <bowline/context.h>
#include <stdbool.h>

/** What a connection is to do now. */
enum bow__age_event {
    BOW__AGE_NOTHING = 0,
    BOW__AGE_IDLE, /* nobody has called for idle_ns */
    BOW__AGE_OLD,  /* max_age_ns has passed */
    BOW__AGE_LAST_WORD,
    BOW__AGE_CUT,     /* close it, whatever is on it */
    BOW__AGE_STALLED, /* the same, for its peer has not taken its replies for stall_ns */
    BOW__AGE_OVER,    /* the same, for there is nothing on it */
};

/** What is still on a connection. */
struct bow__age_load {
    uint32_t n_calls;   /* that are not answered */
    size_t n_bytes;     /* of answers, that wait for the peer to give credit */
    bool is_blocked;    /* bytes stand before a full socket, whose time-out is not ours */
    bool is_unattended; /* its peer reads only while it has calls */
};

struct bow__age {
    uint64_t next_ns;  /* when bow__age_look() wants to be called */
    uint64_t quiet_ns; /* when the last call began or ended */
    uint64_t idle_ns;  /* BOW_NEVER: may be idle for ever */
    uint64_t old_ns;   /* when it is old; BOW_NEVER */
    uint64_t grace_ns; /* of calls on an old one; BOW_NEVER: until they end */
    uint64_t word_ns;  /* when the last word may be due; BOW_NEVER: not leaving */
    uint64_t busy_ns;  /* when it is for a peer that may be busy */
    uint64_t cut_ns;   /* when it is cut off */
    uint64_t stall_ns; /* how long its peer may take nothing; BOW_NEVER */
    uint64_t moved_ns; /* when it was last seen to have taken something */
    size_t n_bytes;    /* what waited for it then */
    bool is_leaving;
    bool has_left;   /* the last word was said */
    bool was_called; /* there has been a call on it */
    bool is_aged;    /* it leaves for its own sake, and nobody waits for that */
};

/** Nothing ever happens to it. */
void bow__age_init(struct bow__age *age);

/** From now on, with `max_age_ns` give or take a tenth of it, so that connections that began
 * together do not end together. BOW_NEVER: not at all. */
void bow__age_start(struct bow__age *age, struct bow_context *context, uint64_t now_ns,
                    uint64_t idle_ns, uint64_t max_age_ns, uint64_t grace_ns);

/** The connection was told to end, for whatever reason; its peer may take nothing of its replies
 * for `stall_ns`. Idempotent. */
void bow__age_leave(struct bow__age *age, uint64_t now_ns, uint64_t stall_ns);

/** Whether anything is due, while `load` is on the connection. */
enum bow__age_event bow__age_look(struct bow__age *age, uint64_t now_ns,
                                  const struct bow__age_load *load);

/** It may be idle for `idle_ns` at most. */
void bow__age_bound_idle(struct bow__age *age, uint64_t idle_ns);

/** A call has begun or ended. */
static inline void bow__age_called(struct bow__age *age, uint64_t now_ns)
{
    age->quiet_ns = now_ns;
    age->was_called = true;
}

#endif
