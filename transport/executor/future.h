/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_EXECUTOR_FUTURE_H
#define BOWLINE_TRANSPORT_EXECUTOR_FUTURE_H

/*
 * A future and its promise from inside, for what stands on them.
 *
 * Design
 *
 * `mutex` guards every field without a word of its own, in the process that first took it (lock()
 * in future.c, base/claim.h): in one that was forked from that it may be held for ever. `state` is
 * also read without it: stored with release after `value` and `error`, loaded with acquire by
 * whoever then reads them. `refs` and `promise_refs`: relaxed up, acq_rel down; all `promise_refs`
 * together hold one of `refs`.
 *
 * One task, `notify`, runs the listeners; it is posted by whoever finds `is_notifying` false
 * with something to tell, and posts itself again when more has come. So listeners never
 * run side by side and keep their order, even on an executor with many threads. It holds
 * a reference while it is posted or runs.
 */

#include "transport/executor/event_executor.h"
#include "transport/loop/loop.h"

#include <bowline/future.h>
#include <pthread.h>
#include <stdatomic.h>

struct bow_future {
    struct bow_context *context;
    atomic_uint refs;
    atomic_uint promise_refs;
    atomic_int state;
    void *value;
    int error;
    void (*free_value)(void *value, void *user);
    void *free_user;
    struct bow__event_executor home;   /* where listeners run */
    struct bow__event_executor worker; /* where the work runs, when that is known; held */

    atomic_int used_by; /* the process that first took the mutex; 0: none has yet */
    pthread_mutex_t mutex;
    pthread_cond_t done;

    struct bow_future_listener *listeners;
    struct bow_future_listener **listeners_end;
    uint64_t n_reports; /* so far; a listener has seen those up to its `seen` */
    uint64_t progress;
    uint64_t total;
    bool is_notifying;
    struct bow_future_listener *running; /* one of its functions runs, on `running_on` */
    pthread_t running_on;
    struct bow_task notify;
};

/* The two ends are one object. */
struct bow_promise {
    struct bow_future future;
    struct bow__loop_ending ending; /* of the loop that keeps it, see loop_terminated.c */
};

static inline bool bow__future_is_done(const struct bow_future *future)
{
    return atomic_load_explicit(&future->state, memory_order_acquire) >= BOW_FUTURE_SUCCEEDED;
}

/** The work runs there, so nobody may wait there. Before anybody else knows the future. */
void bow__promise_set_worker(struct bow_promise *promise, const struct bow__event_executor *worker);

#endif
