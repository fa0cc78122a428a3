/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_READINESS_H
#define BOWLINE_TRANSPORT_LOOP_READINESS_H

/*
 * Readiness without a descriptor: tells a watch on its loop, level-triggered as a
 * poller does, of what any thread has made ready. Knows nothing of what that is.
 *
 *     another thread:  lock, change, bow__readiness_must_notify(), unlock,
 *                      bow__readiness_notify()
 *     its loop:        watch->on_events(ready & interest), with those that the poller found;
 *                      again in the next turn while it is ready
 *
 * Design
 *
 * The owner's mutex guards the readiness and what ops->ready() looks at, so between a look
 * that finds nothing and the interest that was noted there is no gap to lose a change in.
 * The task is posted after the mutex is let go: waking a loop is a system call. While
 * the readiness is due (a task on its way, or on the loop's list) it holds its owner.
 */

#include "transport/loop/loop.h"

#include <pthread.h>

struct bow__readiness;

struct bow__readiness_ops {
    /** BOW_POLL_ bits now. The mutex is held. */
    uint32_t (*ready)(const struct bow__readiness *readiness);
    /** Keep the owner's memory. The mutex is held. */
    void (*hold)(struct bow__readiness *readiness);
    /** Let it go; perhaps the end of the readiness. The mutex is not held. */
    void (*release)(struct bow__readiness *readiness);
};

struct bow__readiness {
    struct bow__source source; /* for a watch: see loop.h */
    const struct bow__readiness_ops *ops;
    pthread_mutex_t *mutex; /* the owner's; guards all below */
    struct bow_loop *loop;  /* of the watch; NULL: there was none yet. Its memory is held */
    struct bow__watch *watch;
    uint32_t interest;
    bool is_due;
    struct bow_task task;          /* posted by another thread */
    struct bow__deferred deferred; /* on the loop's list of those that are ready */
};

void bow__readiness_init(struct bow__readiness *readiness, const struct bow__readiness_ops *ops,
                         pthread_mutex_t *mutex);
/** When nothing holds the owner any more. */
void bow__readiness_fini(struct bow__readiness *readiness);

/** After a change that may have made any of `events` ready, with the mutex held. True: call
 * bow__readiness_notify() when it is let go. */
bool bow__readiness_must_notify(struct bow__readiness *readiness, uint32_t events);
/** Without the mutex. Thread: any. */
void bow__readiness_notify(struct bow__readiness *readiness);

#endif
