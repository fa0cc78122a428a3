/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INSPECT_GATHER_H
#define BOWLINE_RPC_INSPECT_GATHER_H

/*
 * Snapshots of several loops, each taken on its loop by a task and joined. Who asks waits on its
 * thread, or hears of it on a loop; neither for longer than it says, since a loop may be held for
 * ever: its part is then missing.
 *
 *     new ──► add, for each loop ──► wait, or start ──► (on_done) ──► read parts ──► unref
 *
 * Design. Counted: who asks has one reference, and each task one until it has run.
 *
 *     refs       relaxed up, acquire-release down
 *     taken      of a part: release by its task, when its snapshot is whole; acquire by who reads
 *     n_left     parts whose tasks have not run; under the lock
 *     done_task  posted by the task that takes the last away, if somebody waits on a loop
 *
 * A snapshot that comes too late is freed with the last reference, and seen by nobody.
 */

#include "rpc/inspect/snapshot.h"
#include "transport/loop/loop.h"

#include <bowline/timer.h>
#include <pthread.h>
#include <stdatomic.h>

struct bow__gather;

/** Who is asked, on each loop: `source` is what it has there. */
struct bow__gather_ops {
    bool is_client; /* peers are those that are called */
    /** What the source stands in is to stay until release(). Thread: that of who asks. */
    void (*hold)(void *source);
    /** Copy what there is. Loop. */
    void (*fill)(void *source, struct bow__snapshot *snapshot);
    /** Thread: the loop's, or that of who asks. */
    void (*release)(void *source);
};

struct bow__gather_part {
    struct bow__gather *gather;
    struct bow_loop *loop; /* its memory is held */
    void *source;
    struct bow_task task;
    struct bow__snapshot snapshot;
    atomic_bool taken;
    bool has_ended; /* the loop takes no tasks any more */
};

struct bow__gather {
    struct bow_context *context;
    const struct bow__gather_ops *ops;
    atomic_uint refs;
    pthread_mutex_t lock;
    pthread_cond_t joined;
    uint32_t n_left;
    struct bow_loop *home; /* of on_done; NULL: nobody waits on a loop */
    struct bow_timer timer;
    struct bow_task done_task;
    void (*on_done)(struct bow__gather *gather,
                    void *user); /* NULL once it was told or cancelled */
    void *user;
    uint64_t asked_ns;
    uint64_t waited_ns; /* when it is read */
    uint32_t n_parts;
    uint32_t cap_parts;
    struct bow__gather_part parts[];
};

/** Returns 0, -ENOMEM, or what making a lock failed with. Gives `*ret_gather`. */
int bow__gather_new(struct bow_context *context, const struct bow__gather_ops *ops,
                    uint32_t max_parts, const struct bow__snapshot_limits *limits,
                    struct bow__gather **ret_gather);
/** One more loop to ask. */
void bow__gather_add(struct bow__gather *gather, struct bow_loop *loop, void *source);

/** Ask, and wait for at most `timeout_ns`. A loop whose thread this is is asked in place. Thread:
 * any. */
void bow__gather_wait(struct bow__gather *gather, uint64_t timeout_ns);

/** Ask, and call `on_done` once on `home`, never from inside, when all have answered or after
 * `timeout_ns`. Thread: that of `home`. */
void bow__gather_start(struct bow__gather *gather, struct bow_loop *home, uint64_t timeout_ns,
                       void (*on_done)(struct bow__gather *gather, void *user), void *user);
/** Drop the reference of who asks; on_done does not come any more. NULL is allowed. Thread: that of
 * `home`, if it was started, else any. */
void bow__gather_unref(struct bow__gather *gather);

/** Whether the snapshot of the part may be read. */
static inline bool bow__gather_is_taken(const struct bow__gather_part *part)
{
    return atomic_load_explicit(&part->taken, memory_order_acquire);
}

#endif
