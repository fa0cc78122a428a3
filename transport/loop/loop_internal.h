/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_LOOP_INTERNAL_H
#define BOWLINE_TRANSPORT_LOOP_LOOP_INTERNAL_H

/*
 * What the files of a loop do for each other, lowest first; none uses a higher one:
 *
 *     loop_core.c      what it is, references to its memory
 *     loop_stats.c     what it tells about itself
 *     watchdog.c       who blocks it
 *     loop_repair.c    a poller that fails
 *     loop_fork.c      whose it is after fork()
 *     loop_poll.c      how long to wait, and the wait
 *     loop_watch.c     descriptors, deferred work
 *     timer.c          on the heap
 *     loop_tasks.c     running tasks
 *     loop_shutdown.c  how it ends
 *     loop_run.c       its turn, and whose thread runs it
 *     loop_post.c      posting tasks, from any thread
 *     scheduled_task.c tasks with a time
 *     loop.c           birth, the last reference
 */

#include "transport/loop/loop_core.h"

/* loop_run.c */

/** Start the loop's thread if it has none yet. Returns 0 or what that failed with. Thread: any. */
int bow__loop_start(struct bow_loop *loop);

/* loop_shutdown.c */

/** The shutdown check at the end of a turn. True when the loop has terminated. */
bool bow__loop_check_shutdown(struct bow_loop *loop);

/* loop_fork.c */

void bow__loop_note_maker(struct bow_loop *loop);
/** This process is going to run the loop, which is not foreign; nobody else does anything with it.
 * Returns 0, or what opening descriptors of its own failed with. */
int bow__loop_claim(struct bow_loop *loop);

/* loop_poll.c */

/** Wait for events as the strategy says; fills the batch. */
void bow__loop_poll(struct bow_loop *loop, uint64_t max_wait_ns);
/** Outside of a turn: make the loop's descriptor say what the next turn has to do. */
void bow__loop_rearm(struct bow_loop *loop);
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

/* timer.c */

void bow__loop_fire_timers(struct bow_loop *loop);
void bow__loop_drop_timers(struct bow_loop *loop);

#endif
