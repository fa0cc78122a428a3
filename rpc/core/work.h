/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_WORK_H
#define BOWLINE_RPC_CORE_WORK_H

/*
 * What a connection costs its loop beyond its bytes: a few hundred messages may inflate and decode
 * to megabytes, and one read may bring thousands of calls, frames and fields. Within a turn there
 * is a budget, after which the connection waits its turn behind others, with the bytes that it has;
 * what goes on beyond a rate waits longer. Messages that had come by then, and those that waited to
 * be read, wait with their streams. Counts bytes, which is what time is spent on, and all else by
 * the bytes that take as long: no clock, so that the same bytes are always cut at the same places.
 * Knows neither sessions nor streams.
 */

#include "base/list.h"
#include <bowline/limits.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A message makes as much at least before anything is counted: a structure's bytes. */
#define BOW__WORK_FREE_BYTES ((size_t)1 << 10)
/** And as much for each of its own bytes. */
#define BOW__WORK_FREE_FACTOR 4u
/** What else one connection's messages make in a turn of the loop, and then one more message. */
#define BOW__WORK_TURN_BYTES ((size_t)1 << 20)
/** And what else uses that up. */
#define BOW__WORK_CALL_BYTES (BOW__WORK_TURN_BYTES / BOW_LIMIT_CALLS_PER_TURN)
#define BOW__WORK_FRAME_BYTES (BOW__WORK_TURN_BYTES / BOW_LIMIT_FRAMES_PER_TURN)
#define BOW__WORK_FIELD_BYTES (BOW__WORK_TURN_BYTES / BOW_LIMIT_FIELDS_PER_TURN)
/** A reply of its own block costs so many times its bytes, for their memory may be fresh. */
#define BOW__WORK_REPLY_FACTOR 2u
/** One that can't be decoded costs so many times what it made. */
#define BOW__WORK_UNDECODABLE_FACTOR 16u

struct bow__work {
    uint64_t now_ns;   /* set by who feeds the session */
    uint64_t came_ns;  /* so is this: when it came, which is before now_ns if it has waited */
    uint64_t n_turn;   /* made since others last had their turn, beyond what is free */
    uint64_t n_excess; /* made beyond BOW_LIMIT_EXPANSION, and not over yet */
    uint64_t n_vain;   /* of that, by messages that could not be decoded; not forgiven yet */
    uint64_t sunk_ns;  /* when it last sank */
    uint64_t second_ns;
    uint32_t n_undecodable;   /* in the second since then */
    struct bow__link waiting; /* for the next turn */
};

/** Who has messages that wait for their connection's next turn. */
struct bow__work_waiter {
    struct bow__link link;
    void (*fn)(struct bow__work_waiter *waiter); /* later goes on; not from inside */
};

/** The long way of bow__work_add(). */
void bow__work_count(struct bow__work *work, size_t n_wire, size_t n_made, bool undecodable);

/** A message of `n_wire` bytes was inflated and decoded to `n_made`, or could not be, after that.
 */
static inline void bow__work_add(struct bow__work *work, size_t n_wire, size_t n_made,
                                 bool undecodable)
{
    if (undecodable || n_made > BOW__WORK_FREE_FACTOR * n_wire + BOW__WORK_FREE_BYTES) {
        bow__work_count(work, n_wire, n_made, undecodable);
    }
}

/** What takes as long as `n_bytes` would, which are a few of the above. */
static inline void bow__work_spend(struct bow__work *work, size_t n_bytes)
{
    work->n_turn += n_bytes;
}

/** Whether what was made of a message was the peer's fault and in vain: it can't be decoded, or
 * expands beyond the memory that there is for it. */
static inline bool bow__work_is_in_vain(size_t n_wire, size_t n_made, int rc)
{
    return rc == -EBADMSG || rc == -EMSGSIZE ||
           (rc == -ENOMEM && n_made > BOW_LIMIT_EXPANSION * n_wire + BOW__WORK_FREE_BYTES);
}

/** More was made in vain than BOW_LIMIT_VAIN_BYTES. */
static inline bool bow__work_is_vain(const struct bow__work *work)
{
    return work->n_vain > BOW_LIMIT_VAIN_BYTES;
}

/** That, or more were undecodable in a second than BOW_LIMIT_UNDECODABLE_PER_SECOND. */
static inline bool bow__work_is_hostile(const struct bow__work *work)
{
    return work->n_undecodable > BOW_LIMIT_UNDECODABLE_PER_SECOND || bow__work_is_vain(work);
}

/** Whether others are to have their turn first. */
static inline bool bow__work_is_enough(const struct bow__work *work)
{
    return work->n_turn >= BOW__WORK_TURN_BYTES;
}

/** `waiter` is told when the next turn comes, or when there will be none. It may wait already; who
 * ends removes its link. */
static inline void bow__work_wait(struct bow__work *work, struct bow__work_waiter *waiter)
{
    if (bow__list_is_empty(&waiter->link)) {
        bow__list_push_back(&work->waiting, &waiter->link);
    }
}

/** Others have their turn now: what was not enough is forgotten. */
static inline void bow__work_end_turn(struct bow__work *work)
{
    if (!bow__work_is_enough(work)) {
        work->n_turn = 0;
    }
}

/** Tell them all. */
void bow__work_go_on(struct bow__work *work);

/** The next turn begins, at now_ns. Returns when the connection may go on: then, or later. */
uint64_t bow__work_next_turn(struct bow__work *work);

#endif
