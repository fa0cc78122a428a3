/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_COUNTERS_H
#define BOWLINE_RPC_CONNECTION_COUNTERS_H

/*
 * What one loop counts for a server or client. `now` is plain memory of the loop's;
 * a tail task copies it to `published` at most every 10 ms, and readers add up what was
 * published. `methods` are read as they are (rpc/metrics/method_counts.h).
 *
 * Design. Published words are stored and loaded relaxed: each is right by itself,
 * and nobody concludes from one to another. The gauge of unanswered calls is an atomic
 * of its own, for handlers let go of such calls on any thread.
 */

#include "rpc/metrics/method_counts.h"
#include <bowline/metrics.h>
#include <bowline/timer.h>
#include <stdatomic.h>
#include <stddef.h>

#define BOW__METRICS_OFFSET offsetof(struct bow_metrics, connections_opened)
#define BOW__N_METRICS ((sizeof(struct bow_metrics) - BOW__METRICS_OFFSET) / sizeof(uint64_t))

struct bow__counters {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_metrics now;             /* loop only */
    struct bow__method_counts *methods; /* the last one is for unknown methods */
    uint32_t n_methods;
    bool armed; /* loop only: the timer or the task is under way */
    bool posted;
    struct bow_timer timer;
    struct bow_task task;
    void (*on_published)(void *owner);
    void *owner;
    atomic_uint_fast64_t published[BOW__N_METRICS];
    atomic_uint_fast64_t n_unanswered;
};

/** Returns 0 or -ENOMEM. `on_published(owner)` runs after each publication by the task. Thread:
 * any. */
int bow__counters_init(struct bow__counters *counters, struct bow_context *context,
                       struct bow_loop *loop, uint32_t n_methods, void (*on_published)(void *owner),
                       void *owner);
void bow__counters_fini(struct bow__counters *counters);

/** Something changed: publish within 10 ms. Loop. */
void bow__counters_touch(struct bow__counters *counters);

/** Publish now, and leave the timer as it is. Loop. */
void bow__counters_show(struct bow__counters *counters);

/** Publish now and disarm the timer. Loop. */
void bow__counters_publish(struct bow__counters *counters);

/** A task of the counters is still posted: their memory must stay. Loop. */
static inline bool bow__counters_is_posted(const struct bow__counters *counters)
{
    return counters->posted;
}

/** Add what was published. Thread: any. */
void bow__counters_add(const struct bow__counters *counters, struct bow_metrics *sum);

#endif
