/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_LOOP_STATS_H
#define BOWLINE_LOOP_STATS_H

/*
 * What a loop tells about itself: counters, whether it is healthy, and who holds it.
 *
 * The counters are kept by the loop alone, without locks, and cost no reading of the
 * clock beyond those a turn needs anyway. Times are therefore those between the
 * readings: a poll that does not wait counts to the phase before it.
 *
 *     struct bow_loop_stats stats = {.size = sizeof(stats)};
 *     int rc = bow_loop_get_stats(loop, &stats);
 *
 * Who holds the loop is watched on request (max_hold_ns in struct bow_loop_options),
 * and reported by the loop itself, after the fact: no thread is started for it, and
 * with a simulated clock the reports are repeatable. What never lets go is never
 * reported so; for that a monitor of your own asks bow_loop_get_holder() from
 * another thread.
 */

#include <bowline/visibility.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_loop; /* <bowline/loop.h>, which comes with this header */

/** Counters since the loop was made, and gauges (marked so). Begin with `size` set, the rest zero.
 */
struct bow_loop_stats {
    size_t size; /* sizeof this struct */
    uint64_t turns;
    uint64_t polls;
    uint64_t events;
    uint64_t tasks_run;
    uint64_t tasks_failed;
    uint64_t tasks_rejected;
    uint64_t timers_fired;
    uint64_t wakeups_sent;
    uint64_t wakeups_skipped;
    uint64_t pending_tasks;  /* gauge; what other threads posted is in it from the next turn on */
    uint64_t pending_timers; /* gauge */
    uint64_t channels;       /* gauge; connections that are open, no listening sockets */
    uint64_t pending_tails;  /* gauge */
    uint64_t io_ns;          /* spent on ready channels */
    uint64_t task_ns;        /* spent on tasks and timers */
    uint64_t max_turn_ns;    /* the longest turn, its waiting not counted */
    uint64_t lag_ns;         /* by how much the last timer that fired was late */
    uint64_t max_lag_ns;
    uint64_t failed_polls;
    uint64_t rebuilds;    /* of the poller */
    uint64_t pauses;      /* of I/O, because an error repeated at once */
    uint64_t holds;       /* longer than max_hold_ns */
    uint64_t max_hold_ns; /* the longest that one held it, also if shorter; 0 without max_hold_ns */
};

/** Fill in as much of `stats` as its size allows. Thread: any; numbers of other threads' loops may
 * be a turn old. Returns: 0, or -EINVAL when the size is not a known one. */
BOW_EXPORT int bow_loop_get_stats(const struct bow_loop *loop, struct bow_loop_stats *stats);

/** False from an error that repeated at once until a poll keeps its word again. Thread: any. */
BOW_EXPORT bool bow_loop_is_healthy(const struct bow_loop *loop);

/** One that held the loop for too long. Time in callbacks inside of it is theirs, not its own. */
struct bow_loop_held {
    const char *what; /* "task", "handler", "timer", "watch" (a descriptor's events), "deferred" */
    const char *name; /* of the task or handler; NULL for those without */
    uintptr_t fn;     /* its function, for those without a name: see addr2line(1); else 0 */
    uint64_t held_ns;
};

/**
 * What holds the loop now, and since when on the clock of bow_loop_now(): for one that
 * does not return. Only with max_hold_ns.
 *
 * Thread:  any
 * Returns: the name, or "timer" and the like for those without; NULL when nothing does
 * (`*ret_since_ns` is untouched)
 */
BOW_EXPORT const char *bow_loop_get_holder(const struct bow_loop *loop, uint64_t *ret_since_ns);

#ifdef __cplusplus
}
#endif
#endif
