/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_BELL_H
#define BOWLINE_TRANSPORT_BELL_H

/*
 * Readiness without a descriptor: tells a watch on its loop, level-triggered as a
 * poller does, of what any thread has made ready. Knows nothing of what that is.
 *
 *     another thread:  lock ─ change ─ bow__bell_must_ring() ─ unlock ─ bow__bell_ring()
 *     its loop:        watch->on_events(ready & interest), with those that the poller found;
 *                      again in the next turn while it holds
 *
 * Design
 *
 * The owner's mutex guards the bell and what ops->ready() looks at, so between a look
 * that finds nothing and the interest that was noted there is no gap to lose a change in.
 * The task is posted after the mutex is let go: waking a loop is a system call. While
 * the bell is due (a task on its way, or on the loop's list) it holds its owner.
 */

#include "transport/loop.h"

#include <pthread.h>

struct bow__bell;

struct bow__bell_ops {
    /** BOW_POLL_ bits now. The mutex is held. */
    uint32_t (*ready)(const struct bow__bell *bell);
    /** Keep the owner's memory. The mutex is held. */
    void (*hold)(struct bow__bell *bell);
    /** Let it go; perhaps the end of the bell. The mutex is not held. */
    void (*release)(struct bow__bell *bell);
};

struct bow__bell {
    struct bow__source source; /* for a watch: see loop.h */
    const struct bow__bell_ops *ops;
    pthread_mutex_t *mutex; /* the owner's; guards all below */
    struct bow_loop *loop;  /* of the watch; NULL: there was none yet. Its memory is held */
    struct bow__watch *watch;
    uint32_t interest;
    bool is_due;
    struct bow_task task;         /* rung from another thread */
    struct bow__deferred present; /* on the loop's list of those that are ready */
};

void bow__bell_init(struct bow__bell *bell, const struct bow__bell_ops *ops,
                    pthread_mutex_t *mutex);
/** When nothing holds the owner any more. */
void bow__bell_fini(struct bow__bell *bell);

/** After a change that may have made any of `events` ready, with the mutex held. True: call
 * bow__bell_ring() when it is let go. */
bool bow__bell_must_ring(struct bow__bell *bell, uint32_t events);
/** Without the mutex. Thread: any. */
void bow__bell_ring(struct bow__bell *bell);

#endif
