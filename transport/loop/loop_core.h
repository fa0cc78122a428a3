/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_LOOP_CORE_H
#define BOWLINE_TRANSPORT_LOOP_LOOP_CORE_H

/*
 * What a loop is: its fields, its references to memory, whose thread it is. For the
 * files that make the loop up and nobody else; what each of those does for the others
 * stands in loop_internal.h. Knows nothing of how a loop runs.
 *
 * Design
 *
 * Fields belong to the loop's thread unless they say otherwise. Others read and
 * write only: the inbox (see there), `state`, `owner`, the reference counts, the
 * counters, and what `mutex` guards.
 *
 *     atomic         order                                    partner
 *     state          changed by compare-and-swap: release     loads: acquire
 *     owner          relaxed: a thread looks for itself only  none
 *     running        acquire when taken, release when left    each other
 *     refs           relaxed up, acq_rel down                 each other
 *     memory_refs    relaxed up, acq_rel down                 each other
 *     n_executes     relaxed: a bound, not a publication      none
 *     n_channels     relaxed: a gauge; at shutdown the one    none
 *                    who takes it to 0 signals
 *     n_rejected, n_lazy_posts    relaxed, statistics         none
 *     counters, is_healthy    relaxed, one writer             none
 *     used_by        relaxed: fork() itself publishes it      none
 *
 * `refs` are those of users: the last one shuts down. `memory_refs` keep the
 * memory and the descriptors, so that one who still holds a scheduled task or a
 * channel may post to a loop that has terminated, and is refused. All `refs`
 * together hold one of them.
 */

#include "base/count.h"
#include "base/heap.h"
#include "base/process.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop.h"
#include "transport/loop/watchdog.h"
#include <pthread.h>

#define BOW__LOOP_NAME_BYTES BOW_THREAD_NAME_BYTES

/* How far an orderly shutdown has come, between SHUTTING_DOWN and SHUTDOWN. */
enum bow__loop_stage {
    BOW__LOOP_OPEN = 0,
    BOW__LOOP_QUIET = 1,   /* waiting for the quiet period or the time-out */
    BOW__LOOP_CLOSING = 2, /* watches were told; waiting for the channels to be gone */
};

/* What the loop is at, for the times in its statistics. */
enum bow__loop_phase {
    BOW__LOOP_IDLE = 0,
    BOW__LOOP_IO = 1,
    BOW__LOOP_TASKS = 2,
};

enum bow__task_flags {
    BOW__TASK_POSTED = 1,
    BOW__TASK_EXECUTE = 2, /* made by bow_loop_execute(): owned by the loop */
    BOW__TASK_TIMED = 4,   /* came due: no new work, so it does not prolong a shutdown */
    BOW__TASK_EVENT = 8,   /* of a source: its time is before the ready channels */
};

/* Written by the loop's thread only, read by any. */
struct bow__loop_counters {
    _Atomic(uint64_t) turns;
    _Atomic(uint64_t) polls;
    _Atomic(uint64_t) events;
    _Atomic(uint64_t) tasks_run;
    _Atomic(uint64_t) tasks_failed;
    _Atomic(uint64_t) posts_taken; /* from other threads: each was lazy, signalled, or skipped it */
    _Atomic(uint64_t) timers_fired;
    _Atomic(uint64_t) pending_tasks;
    _Atomic(uint64_t) pending_timers;
    _Atomic(uint64_t) pending_tails;
    _Atomic(uint64_t) io_ns;
    _Atomic(uint64_t) task_ns;
    _Atomic(uint64_t) max_turn_ns;
    _Atomic(uint64_t) lag_ns;
    _Atomic(uint64_t) max_lag_ns;
    _Atomic(uint64_t) failed_polls;
    _Atomic(uint64_t) rebuilds;
    _Atomic(uint64_t) pauses;
    _Atomic(uint64_t) holds;
    _Atomic(uint64_t) max_hold_ns;
};

struct bow_loop {
    struct bow__inbox inbox; /* first: written by all producers */
    char apart[64 - sizeof(struct bow__inbox) % 64];

    struct bow_context *context;
    const struct bow_system *system;
    bool has_coarse_clock; /* the system's clock is the kernel's, of which there is a coarse one */
    struct bow_loop_options options;
    char name[BOW__LOOP_NAME_BYTES];

    atomic_int state;
    atomic_uintptr_t owner; /* pthread_self() of the loop's thread; 0: none */
    atomic_bool running;    /* a thread is in bow_loop_run() or bow_loop_run_once() */
    atomic_int used_by;     /* the process that runs it; 0: none has yet */
    int made_by;
    const struct bow__process *process; /* the context's */
    atomic_uint refs;
    atomic_uint memory_refs;
    _Atomic(uint64_t) n_executes;
    _Atomic(uint64_t) n_channels;
    _Atomic(uint64_t) n_rejected;
    _Atomic(uint64_t) n_lazy_posts;
    struct bow__loop_counters counters;
    atomic_bool is_healthy;
    _Atomic(const char *) holder; /* these two: see watchdog.c */
    _Atomic(uint64_t) held_since_ns;

    struct bow_poller *poller;
    struct bow_poller *fd_poller;  /* of bow_loop_fd(), once the poller was replaced */
    struct bow_poll_event *events; /* the batch; doubled when it was full */
    int events_cap;
    int n_events; /* of the batch that is being handled; 0 outside of that */
    int event_at;
    int n_deregistered; /* in this batch */
    struct bow__watch wake_watch;
    uint64_t now_ns;
    uint64_t looked_ns;     /* what was ready by then has been seen */
    bool has_timer_waiting; /* one is due, but not before the next poll */
    uint64_t armed_at_ns;   /* when the poller's descriptor becomes readable by itself */
    bool in_turn;
    bool has_fd;             /* bow_loop_fd() was asked for */
    bool is_abandoned;       /* the last reference went on the loop's own thread */
    uint64_t last_events_ns; /* for giving idle chunks back */
    uint64_t trim_at_ns;     /* of what was freed; BOW_NEVER: nothing waits */

    uint64_t n_poller_errors;
    uint64_t rest_until_ns; /* no polling before that; BOW_NEVER: it does not rest */
    uint32_t n_early;       /* polls in a row */
    uint32_t n_errors_in_row;
    bool is_failing; /* the last error was a failed poll */

    enum bow__loop_phase phase;
    uint64_t mark_ns; /* when the phase began, or was last charged */
    uint64_t turn_ns; /* spent in this turn so far */
    struct bow__watchdog *watchdog;
    uint64_t next_hold_log_ns;

    struct bow__task_chain tasks;
    struct bow__task_chain tails;
    struct bow__heap timers;
    struct bow__link closings; /* to be told when the loop closes */
    struct bow__link watches;
    struct bow__link readies; /* told by sources, for the next turn */
    uint32_t n_sources;       /* of watches; without one nobody looks for their tasks */
    struct bow__link flushes;
    struct bow__link frees;
    struct bow_loop_hook *hooks; /* newest first */
    struct bow__pool pool;
    uint8_t *recv_buffer;

    enum bow__loop_stage stage;
    uint64_t last_work_ns; /* when a posted task last ran, for the quiet period */

    pthread_mutex_t mutex; /* guards starting, and the four below */
    pthread_cond_t terminated;
    struct bow_thread *thread;
    uint64_t quiet_ns;
    uint64_t shutdown_at_ns;          /* when the time-out is over */
    struct bow__loop_ending *endings; /* to be told when the loop has terminated */
};

static inline enum bow_loop_state bow__loop_state(const struct bow_loop *loop)
{
    return (enum bow_loop_state)atomic_load_explicit(&loop->state, memory_order_acquire);
}

static inline uint64_t bow__loop_clock(const struct bow_loop *loop)
{
    return loop->system->now_ns(loop->system->user);
}

/** Read the clock and make it the loop's time. Thread: loop. */
static inline uint64_t bow__loop_update_now(struct bow_loop *loop)
{
    loop->now_ns = bow__loop_clock(loop);
    return loop->now_ns;
}

/** From one state to the next, if it is in the first. Thread: any. */
static inline bool bow__loop_advance(struct bow_loop *loop, enum bow_loop_state from,
                                     enum bow_loop_state to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong_explicit(&loop->state, &expected, (int)to,
                                                   memory_order_release, memory_order_relaxed);
}

/** Whether the next turn finds something to do without waiting for it. */
static inline bool bow__loop_has_work(const struct bow_loop *loop)
{
    return loop->tasks.first != NULL || !bow__list_is_empty(&loop->flushes) ||
           !bow__list_is_empty(&loop->frees) || !bow__list_is_empty(&loop->readies) ||
           !bow__inbox_is_empty(&loop->inbox);
}

/** When the next timer is due; BOW_NEVER: there is none. */
static inline uint64_t bow__loop_next_timer(const struct bow_loop *loop)
{
    const struct bow__heap_node *first = bow__heap_min(&loop->timers);
    return first != NULL ? first->key : BOW_NEVER;
}

#endif
