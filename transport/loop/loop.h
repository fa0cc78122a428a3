/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_LOOP_H
#define BOWLINE_TRANSPORT_LOOP_LOOP_H

/*
 * What the layers of this library see of a loop beyond its public header: its
 * receive buffer, its pool, and the registration of descriptors. All on the
 * loop's thread unless it says otherwise.
 */

#include "base/list.h"
#include "base/pool.h"
#include "base/shared.h"
#include <bowline/loop.h>

#define BOW__LOOP_RECV_BYTES ((size_t)256 << 10)

struct bow__watch;

/** What its owner does: constant, shared by all watches of a kind. */
struct bow__watch_ops {
    void (*on_events)(struct bow__watch *watch, uint32_t events); /* BOW_POLL_ bits */
    /** The loop closes: close yourself now. May be NULL. */
    void (*on_shutdown)(struct bow__watch *watch);
    /** A new poller did not take it: it is still known to the loop, with interest 0. May be NULL.
     */
    void (*on_lost)(struct bow__watch *watch, int error);
};

/** What tells of readiness in the place of a descriptor. */
struct bow__source {
    /** From now on tell `watch`, by bow__loop_tell(), while any of `events` is ready; 0: no more.
     * Thread: loop. */
    void (*set)(struct bow__source *source, struct bow_loop *loop, struct bow__watch *watch,
                uint32_t events);
};

/** A registered descriptor, or a source in its place; embedded in channels, acceptors and
 * connect attempts. */
struct bow__watch {
    const struct bow__watch_ops *ops;
    struct bow__link link; /* in the loop's list, for shutdown */
    int fd;
    struct bow__source *source; /* instead of `fd`; NULL: the poller knows it */
    uint32_t events;            /* registered interest */
    int lost_error;             /* of the loop */
};

/** Register, change interest, take out. After remove no event of this watch is delivered, also none
 * of the current batch (L17). Registering with a loop that closes is -ESHUTDOWN; unwatch() comes
 * before the descriptor is closed, and is idempotent. Interest 0 takes the descriptor out of the
 * poller, so that not even HUP and ERR are reported, and leaves it known to the loop's shutdown. */
int bow__loop_watch(struct bow_loop *loop, struct bow__watch *watch, int fd, uint32_t events);
int bow__loop_rewatch(struct bow_loop *loop, struct bow__watch *watch, uint32_t events);
void bow__loop_unwatch(struct bow_loop *loop, struct bow__watch *watch);

/** A source has found `events` ready: hand them over as those of the poller are. */
void bow__loop_tell(struct bow_loop *loop, struct bow__watch *watch, uint32_t events);

/** The receive buffer all channels of the loop read into; allocated by the first use. */
uint8_t *bow__loop_recv_buffer(struct bow_loop *loop, size_t *ret_size);
BOW__SHARED struct bow__pool *bow__loop_pool(struct bow_loop *loop);

/** bow_loop_new() over another system than the context's, which outlives the loop. */
int bow__loop_new_over(struct bow_context *context, const struct bow_system *system,
                       const struct bow_loop_options *options, struct bow_loop **ret_loop);
const struct bow_system *bow__loop_system(const struct bow_loop *loop);

/** Call `fn` at the end of the current turn's ready-channel phase or, outside of it, of the next:
 * flushes, frees. Link is the caller's, set up with bow__list_init(); adding twice is one. */
struct bow__deferred {
    struct bow__link link;
    void (*fn)(struct bow__deferred *deferred);
};
void bow__loop_defer_flush(
    struct bow_loop *loop,
    struct bow__deferred *deferred); /* after the channels, and again after the tasks */
/** The same with the ready channels of the next turn. */
void bow__loop_defer_event(struct bow_loop *loop, struct bow__deferred *deferred);
void bow__loop_defer_free(struct bow_loop *loop,
                          struct bow__deferred *deferred); /* last phase of the turn */

/**
 * Keep the loop from terminating while something of its owner's is open (a channel count). After
 * on_shutdown the loop turns until the count is 0, without a time-out. Thread: any.
 */
void bow__loop_count_channel(struct bow_loop *loop, int delta);
uint64_t bow__loop_n_channels(const struct bow_loop *loop); /* any thread */

/** Keep the memory of the loop, not its life: posting to it then says -ESHUTDOWN instead of
 * reading freed memory. Thread: any. */
void bow__loop_hold(struct bow_loop *loop);
void bow__loop_release(struct bow_loop *loop);
/** Whether it is an owner's that nobody has run so far: who waits for something on it waits for
 * ever, if he is that owner. Thread: any. */
bool bow__loop_awaits_owner(const struct bow_loop *loop);

/** Whether `time_ns` has come, told by the clock and not by the loop's time, which callbacks may
 * have left behind. Cheap while it is far. Thread: any. */
bool bow__loop_has_passed(const struct bow_loop *loop, uint64_t time_ns);
/** Its name. Thread: any. */
const char *bow__loop_name(const struct bow_loop *loop);
/** The clock itself. Thread: any. */
uint64_t bow__loop_read_clock(const struct bow_loop *loop);

/** Turns that have ended: the same number all through one. Thread: loop. */
uint64_t bow__loop_n_turns(const struct bow_loop *loop);

/** Have its thread run, if it is to have one. Returns 0, -ESHUTDOWN once it shuts down, -ECHILD, or
 * what starting the thread failed with. Thread: any. */
int bow__loop_prepare(struct bow_loop *loop);

/** For assertions of `Thread: loop`: on the loop's thread, or on nobody's yet (an owner's loop that
 * has not run). */
bool bow__loop_may_touch(const struct bow_loop *loop);

/** Call `closing` once the loop closes: what it keeps of a time to come ends now. Who is told or
 * done takes itself out of the list. Thread: loop. */
void bow__loop_on_closing(struct bow_loop *loop, struct bow__deferred *closing);

/** Who hears when the loop has terminated. */
struct bow__loop_ending {
    struct bow__loop_ending *next; /* the loop's */
    void (*fn)(struct bow__loop_ending *ending);
};
/** Call `ending` once, on any thread, when the loop has terminated; before this returns if it has.
 * Thread: any. */
void bow__loop_on_terminated(struct bow_loop *loop, struct bow__loop_ending *ending);

/* After fork(), see loop_fork.c */

/** Whether a process that this one was forked from runs the loop: nothing of it may be used here.
 * Thread: any. */
bool bow__loop_is_foreign(const struct bow_loop *loop);
/** The calling thread becomes the loop's, as by a turn, but a child process may still take it over.
 * Only for BOW_LOOP_OWNER, before anything else is done with the loop. */
void bow__loop_settle(struct bow_loop *loop);
/** Close this process's copies of a foreign loop's descriptors, if the thread that forked is the
 * loop's; all else stays as it is, for ever. */
void bow__loop_forsake(struct bow_loop *loop);

/**
 * Post a task of the library that is due at `due_ns` (0: wake the loop at once, BOW_NEVER: never
 * wake it). The rejection handler is not asked. Returns 0, -ESHUTDOWN, -ECHILD, or what starting
 * the thread failed with. Thread: any.
 */
int bow__loop_post_internal(struct bow_loop *loop, struct bow_task *task, uint64_t due_ns);

/** The same, at once, for a task of a source, which only notes (bow__loop_defer_event()): it runs
 * before the ready channels, and is no work that prolongs a shutdown. */
int bow__loop_post_event(struct bow_loop *loop, struct bow_task *task);

/**
 * The same, behind all that other threads have posted so far, also from the loop's own thread
 * (whose posts otherwise overtake what was not taken in yet).
 */
int bow__loop_post_behind(struct bow_loop *loop, struct bow_task *task);

/** Take, or give back, one of the max_pending_tasks slots. Thread: any. */
bool bow__loop_take_slot(struct bow_loop *loop);
void bow__loop_free_slot(struct bow_loop *loop);
/** Count a rejection and ask the handler. Thread: any. */
void bow__loop_reject(struct bow_loop *loop, const char *name, bow_task_fn fn, void *user);

#endif
