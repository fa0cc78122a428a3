/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_LOOP_CORE_H
#define BOWLINE_TRANSPORT_LOOP_LOOP_CORE_H

/*
 * The loop from inside, for the files that make it up and nobody else:
 *
 *     loop.c           birth, references, what it is
 *     loop_life.c      start, run, shut down, join: the states
 *     loop_turn.c      one turn, phase by phase
 *     loop_poll.c      how long to wait, and the wait
 *     loop_tasks.c     posting and running tasks
 *     loop_terminated.c    futures that tell of the end
 *     loop_watch.c     descriptors, deferred work
 *     loop_repair.c    a poller that fails
 *     loop_fork.c      whose it is after fork()
 *     loop_stats.c     what the loop tells about itself
 *     watchdog.c           who holds it
 *     timer.c, scheduled.c    on the heap
 *     inbox.c          what comes from other threads
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
};

struct bow_loop {
    struct bow__inbox inbox; /* first: written by all producers */
    char apart[64 - sizeof(struct bow__inbox) % 64];

    struct bow_context *context;
    const struct bow_system *system;
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
    struct bow_poller *facade;     /* what bow_loop_fd() stands for once the poller was replaced */
    struct bow_poll_event *events; /* the batch; doubled when it was full */
    int events_cap;
    int n_events; /* of the batch that is being handled; 0 outside of that */
    int event_at;
    int n_deregistered; /* in this batch */
    struct bow__watch wake_watch;
    uint64_t now_ns;
    uint64_t armed_at_ns; /* when the poller's descriptor becomes readable by itself */
    bool in_turn;
    bool has_fd;             /* bow_loop_fd() was asked for */
    bool is_abandoned;       /* the last reference went on the loop's own thread */
    uint64_t last_events_ns; /* for giving idle chunks back */
    uint64_t trim_at_ns;     /* of large blocks; BOW_NEVER: there are none */

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
    struct bow__link scheduled;
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
    struct bow_promise *end_promises; /* to keep when the loop has terminated */
};

static inline void bow__count(_Atomic(uint64_t) *counter, uint64_t n)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + n, memory_order_relaxed);
}

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

/* loop_life.c */

/** Start the loop's thread if it has none yet. Returns 0 or what that failed with. Thread: any. */
int bow__loop_start(struct bow_loop *loop);
/** The last reference is gone: shut down, wait, let go of the memory. */
void bow__loop_abandon(struct bow_loop *loop);
/** The shutdown check at the end of a turn. True when the loop has terminated. */
bool bow__loop_check_shutdown(struct bow_loop *loop);
/** When the shutdown check wants to be asked again; BOW_NEVER while nobody has shut down. */
uint64_t bow__loop_shutdown_due(struct bow_loop *loop);

/* loop_fork.c */

void bow__loop_note_maker(struct bow_loop *loop);
/** This process is going to run the loop, which is not foreign; nobody else does anything with it.
 * Returns 0, or what opening descriptors of its own failed with. */
int bow__loop_claim(struct bow_loop *loop);

/* loop_turn.c */

/** One turn that waits at most `max_wait_ns`. True when the loop has terminated. */
bool bow__loop_turn(struct bow_loop *loop, uint64_t max_wait_ns);

/* loop_poll.c */

/** Wait for events as the strategy says; fills the batch. */
void bow__loop_poll(struct bow_loop *loop, uint64_t max_wait_ns);
/** Outside of a turn: make the loop's descriptor say what the next turn has to do. */
void bow__loop_rearm(struct bow_loop *loop);
bool bow__loop_has_work(const struct bow_loop *loop);
/** How long the next turn would sleep. */
uint64_t bow__loop_timeout(struct bow_loop *loop);

/* loop_repair.c */

/** Put a new poller in the place of the old one, with all watches. Returns 0, or a negative errno
 * with the old one in place. */
int bow__loop_replace_poller(struct bow_loop *loop);
/** Say what the poller could not do, but not each time. */
void bow__loop_log_poller(struct bow_loop *loop, const char *what, int error);
/** After each poll: what it returned, and until when it should have waited (0: not at all). */
void bow__loop_judge_poll(struct bow_loop *loop, int n, uint64_t until_ns);
/** Whether the loop must leave its poller alone for now. */
bool bow__loop_is_resting(struct bow_loop *loop);
/** Wait without the poller, for a wake-up only. */
void bow__loop_rest(struct bow_loop *loop, uint64_t until_ns);

/* loop_stats.c */

/** Charge the time since the last mark to the phase that ends at now_ns, and begin `next`. */
void bow__loop_mark(struct bow_loop *loop, enum bow__loop_phase next);
/** All phases of the last turn have ended at now_ns. */
void bow__loop_end_turn_time(struct bow_loop *loop);
void bow__loop_note_lag(struct bow_loop *loop, uint64_t lag_ns);

/* loop_tasks.c */

/** Queue a task whose time has come. Thread: loop. */
void bow__loop_push_timed(struct bow_loop *loop, struct bow_task *task);
/** Move what other threads posted into the queue. */
void bow__loop_take_inbox(struct bow_loop *loop);
/** The same before the channels: what stands for an event of a source is run. */
void bow__loop_take_events(struct bow_loop *loop);
/** Run queued tasks for `budget_ns`, or only those present now when it is BOW_NEVER. */
void bow__loop_run_tasks(struct bow_loop *loop, uint64_t budget_ns);
void bow__loop_run_tails(struct bow_loop *loop);
/** Refuse new tasks and run what was accepted. */
void bow__loop_close_tasks(struct bow_loop *loop);

/* loop_watch.c */

/** Those that sources have found ready: part of the batch. */
void bow__loop_run_readies(struct bow_loop *loop);
void bow__loop_run_flushes(struct bow_loop *loop);
void bow__loop_run_frees(struct bow_loop *loop);
/** Register the wake-up descriptor. Returns 0 or a negative errno (nothing is open then). */
int bow__loop_open_wake(struct bow_loop *loop);
/** Hand the batch to its watches. */
void bow__loop_handle_events(struct bow_loop *loop);
/** Tell all watches that the loop closes. */
void bow__loop_close_watches(struct bow_loop *loop);

/* loop_terminated.c */

/** The loop has terminated: keep the promises that it would. Without the mutex. */
void bow__loop_tell_terminated(struct bow_loop *loop);

/* timer.c, scheduled.c */

void bow__loop_fire_timers(struct bow_loop *loop);
void bow__loop_drop_timers(struct bow_loop *loop);
uint64_t bow__loop_next_timer(const struct bow_loop *loop);
void bow__loop_cancel_scheduled(struct bow_loop *loop);

#endif
