/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_LOOP_H
#define BOWLINE_LOOP_H

/*
 * An event loop: one thread, one poller, its queues. It belongs to a thread of
 * its own (started lazily, by the first work given from outside) or to its
 * owner, who runs it (bow_loop_run) or drives it turn by turn from another loop
 * (bow_loop_fd, bow_loop_run_once).
 *
 *     NOT_STARTED ──► STARTED ──► SHUTTING_DOWN ──► SHUTDOWN ──► TERMINATED
 *
 * One turn: wait for I/O → ready channels → tasks → tail tasks → shutdown check.
 *
 * Invariants: callbacks of a loop run on its thread only; none runs inside the
 * function that asked for it; every accepted task runs once or is handed to
 * the rejection handler.
 *
 * A poller that fails, or that keeps returning early with nothing, is replaced by a
 * new one with the same registrations. An error that repeats at once is not met by
 * spinning: I/O rests for a second while tasks and timers go on, and the loop says
 * that it is not healthy (<bowline/loop_stats.h>).
 *
 * fork(): a loop belongs to the process that first ran it. In a child its functions return -ECHILD
 * at once, and bow_loop_unref() forgets it, for what it has is the parent's too. One that was only
 * made and set up runs in the child, and in the parent, but not in both when bow_loop_fd() was
 * called before. A child forked in a callback does not return from it: exec() or _exit().
 *
 *     struct bow_loop *loop;
 *     int rc = bow_loop_new(context, NULL, &loop);
 *     rc = bow_loop_execute(loop, "greet", greet, NULL);     its thread starts with this
 *     bow_loop_unref(loop);                                  shuts it down, and waits
 */

#include <bowline/context.h>
#include <bowline/loop_stats.h>
#include <bowline/system.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_loop;

/** Where a loop (or an executor) is in its life; it never goes back. */
enum bow_loop_state {
    BOW_LOOP_NOT_STARTED = 0,
    BOW_LOOP_STARTED = 1,
    BOW_LOOP_SHUTTING_DOWN = 2,
    BOW_LOOP_SHUTDOWN = 3,   /* no new task is accepted */
    BOW_LOOP_TERMINATED = 4, /* nothing runs any more */
};

/** A task: 0, or a negative errno, which is logged with the task's name and hurts no other task. */
typedef int (*bow_task_fn)(void *user);

/**
 * An intrusive task: posting it never allocates. The memory is the caller's and
 * is free again when `fn` starts. Set with bow_task_init().
 */
struct bow_task {
    bow_task_fn fn;        /* public, read-only while posted */
    void *user;            /* public, read-only while posted */
    const char *name;      /* public, for logs */
    struct bow_task *next; /* private */
    uintptr_t flags;       /* private */
};

/** Set up a task for posting. `name` must live as long as it is posted. Thread: any. */
static inline void bow_task_init(struct bow_task *task, const char *name, bow_task_fn fn,
                                 void *user)
{
    task->fn = fn;
    task->user = user;
    task->name = name;
    task->next = (struct bow_task *)0;
    task->flags = 0;
}

/** Receives what the program gave the loop, was accepted and can't run any more, or was refused.
 * Thread: the poster's or the loop's. */
typedef void (*bow_loop_rejected_fn)(struct bow_loop *loop, const char *name, bow_task_fn fn,
                                     void *task_user, void *user);

/** Which thread a loop runs on. */
enum bow_loop_thread {
    BOW_LOOP_OWN_THREAD = 0, /* a thread of its own, started lazily */
    BOW_LOOP_OWNER = 1,      /* the thread that calls bow_loop_run() or bow_loop_run_once() */
};

/** How one turn waits for I/O. */
enum bow_loop_select {
    BOW_LOOP_SELECT = 0,    /* block in the poller until I/O, a wake-up or the next timer */
    BOW_LOOP_CONTINUE = 1,  /* go round without polling */
    BOW_LOOP_BUSY_WAIT = 2, /* poll without blocking */
};

/** Replaces the strategy; asked once a turn, with tasks pending or not. Thread: loop. */
typedef enum bow_loop_select (*bow_loop_select_fn)(struct bow_loop *loop, bool tasks_pending,
                                                   void *user);

/** Told of a task, handler or timer that held the loop longer than max_hold_ns, once it has let
 * go. `held` is borrowed. Thread: loop. */
typedef void (*bow_loop_held_fn)(struct bow_loop *loop, const struct bow_loop_held *held,
                                 void *user);

/** What a loop is made with; begin with BOW_LOOP_OPTIONS_INIT. */
struct bow_loop_options {
    size_t size; /* sizeof this struct, set by the INIT */
    enum bow_loop_thread thread;
    const char *name;           /* thread name; copied, cut to 15 bytes; NULL: "bow-loop" */
    size_t stack_bytes;         /* 0: the system's default */
    int cpu;                    /* -1: anywhere */
    uint32_t io_ratio;          /* 1–100; 0: 50 */
    uint32_t max_pending_tasks; /* of bow_loop_execute(); 0: 65536 */
    uint32_t max_tail_tasks;    /* 0: 4096 */
    uint64_t spin_ns;           /* poll without blocking that long before sleeping; 0: never */
    bow_loop_select_fn select;  /* NULL: `strategy`, without blocking while tasks are pending */
    void *select_user;
    bow_loop_rejected_fn rejected; /* NULL: rejections are only counted and returned */
    void *rejected_user;
    /* SELECT; or BUSY_WAIT: never sleep, which takes a CPU and answers other threads in a
     * microsecond or two instead of the tens that waking a thread costs. spin_ns is between. */
    enum bow_loop_select strategy;
    uint32_t max_early_polls; /* so many polls in a row that end early with nothing rebuild the
                                 poller; 0: never */
    uint64_t max_hold_ns;     /* what holds the loop longer is logged and told to `held`; 0: nobody
                                 looks, and no clock is read for it */
    bow_loop_held_fn held;
    void *held_user;
};

#define BOW_LOOP_OPTIONS_INIT                                                                      \
    BOW__INIT(struct bow_loop_options, BOW__SET(cpu, -1) BOW__SET(max_early_polls, 512))

/**
 * Make a loop in state NOT_STARTED, with one reference. `options` NULL: the defaults.
 *
 * Thread:  any
 * Owns:    shares `context`; gives `*ret_loop`, drop it with bow_loop_unref()
 * Returns: 0; -ENOMEM; -EMFILE, -ENFILE (poller or wake-up descriptor); -EINVAL (options)
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_new(struct bow_context *context,
                                         const struct bow_loop_options *options,
                                         struct bow_loop **ret_loop);

/** Take a reference to a loop. Thread: any. Returns: `loop`. */
BOW_EXPORT struct bow_loop *bow_loop_ref(struct bow_loop *loop);

/**
 * Drop a reference to a loop. The last one shuts the loop down and frees it once it has
 * terminated: it waits for that and for its thread, so that none is in our code any more, and runs
 * an owner's loop to its end; called inside the loop that happens later. Servers, clients, streams
 * and sets on it hold no reference, only its memory. Whoever calls a function of the loop holds a
 * reference meanwhile. NULL is allowed. Thread: any. Returns: NULL.
 */
BOW_EXPORT struct bow_loop *bow_loop_unref(struct bow_loop *loop);

/** Whether the calling thread is the loop's. Thread: any, signal-safe. */
BOW_EXPORT bool bow_loop_in_loop(const struct bow_loop *loop);
/** Where it is in its life; may be behind by the time it is read. Thread: any. */
BOW_EXPORT enum bow_loop_state bow_loop_get_state(const struct bow_loop *loop);
/** The context that it was made with, borrowed. Thread: any. */
BOW_EXPORT struct bow_context *bow_loop_context(const struct bow_loop *loop);

/** The loop's clock: monotonic nanoseconds, read once a turn and after every 64 tasks; on other
 * threads and between two turns the clock itself. Thread: any. */
BOW_EXPORT uint64_t bow_loop_now(const struct bow_loop *loop);

/**
 * Post an intrusive task; it runs in this or the next turn, in the order of posting
 * per thread. Wakes the loop when it sleeps; starts its thread.
 *
 * Thread:  any
 * Owns:    keeps `task` until its `fn` starts or it is handed to the rejection handler
 * Returns: 0; -ESHUTDOWN from SHUTDOWN on (the rejection handler has run); -ECHILD after fork();
 *          what starting the thread failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_post(struct bow_loop *loop, struct bow_task *task);

/** Post without waking a sleeping loop: the task runs when the loop next wakes. Otherwise as
 * bow_loop_post(). */
BOW_EXPORT BOW_MUST_USE int bow_loop_post_lazy(struct bow_loop *loop, struct bow_task *task);

/** Have a loop that runs go round once more, and bow_loop_fd() be readable until it has: after a
 * flag was set for its owner, say. Carries no work. Thread: any, signal-safe. */
BOW_EXPORT void bow_loop_wake(struct bow_loop *loop);

/**
 * Run after the ordinary tasks of this turn (metrics flushing and the like). A tail
 * task does not keep the loop from sleeping: posted by a tail task, it runs in the next turn,
 * whenever that comes. Thread: loop. Returns: 0, -ESHUTDOWN, or -EAGAIN over max_tail_tasks.
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_post_tail(struct bow_loop *loop, struct bow_task *task);

/**
 * Run `fn(user)` on the loop; allocates a task. Returns: as bow_loop_post(); -ENOMEM; -EAGAIN when
 * max_pending_tasks wait (the rejection handler has run). `name` must live for ever. Thread: any.
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_execute(struct bow_loop *loop, const char *name,
                                             bow_task_fn fn, void *user);

/** A scheduled task made from any thread; counted: the caller's reference and the loop's. */
struct bow_scheduled;

/** Once, or again and again. */
enum bow_schedule_kind {
    BOW_SCHEDULE_ONCE = 0,
    BOW_SCHEDULE_FIXED_RATE = 1,  /* next = previous deadline + period */
    BOW_SCHEDULE_FIXED_DELAY = 2, /* next = end of the run + period */
};

/**
 * Run `fn(user)` after `delay_ns`, and then every `period_ns`. Periodic tasks
 * end by cancel or by returning an error. Saturates when delay + now overflows.
 *
 * Thread:  any
 * Owns:    gives `*ret_scheduled` when it is not NULL; drop it with bow_scheduled_unref()
 * Returns: 0; -ENOMEM; -EINVAL (a periodic one with period 0); as bow_loop_post()
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_schedule(struct bow_loop *loop, enum bow_schedule_kind kind,
                                              uint64_t delay_ns, uint64_t period_ns,
                                              const char *name, bow_task_fn fn, void *user,
                                              struct bow_scheduled **ret_scheduled);

/**
 * Cancel a scheduled task: it will not start any more. Idempotent.
 *
 * Thread:  any
 * Returns: 0; -EBUSY when it is running now on another thread; -EALREADY when it has ended
 */
BOW_EXPORT int bow_scheduled_cancel(struct bow_scheduled *scheduled);
/** Whether it was cancelled, or its loop shut down before it ran. Thread: any. */
BOW_EXPORT bool bow_scheduled_is_cancelled(const struct bow_scheduled *scheduled);
/** Drop the reference to a scheduled task, which cancels nothing. NULL is allowed. Thread: any.
 * Returns: NULL. */
BOW_EXPORT struct bow_scheduled *bow_scheduled_unref(struct bow_scheduled *scheduled);

/**
 * Run the loop on this thread until it has terminated. Only for BOW_LOOP_OWNER.
 *
 * Returns: 0; -EBUSY when another thread runs it; -EINVAL for a loop with a thread of its own;
 *          -ECHILD after fork(); in a child also as bow_loop_new()
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_run(struct bow_loop *loop);

/** Run one turn, waiting at most `timeout_ns` for work (0: not at all; BOW_NEVER). Returns as
 * bow_loop_run(); -EBUSY also inside a callback of the loop, 0 at once when it has terminated. The
 * thread that calls it is the loop's from then on; before the first call, timers and hooks may be
 * set up by one thread. */
BOW_EXPORT BOW_MUST_USE int bow_loop_run_once(struct bow_loop *loop, uint64_t timeout_ns);

/** One descriptor that is readable when bow_loop_run_once() has I/O, a wake-up or a due timer to
 * serve; -ENOTSUP when the poller has none, -ECHILD after fork(). It is for polling only, and the
 * loop's. Thread: loop.
 */
BOW_EXPORT int bow_loop_fd(struct bow_loop *loop);

/** Nanoseconds until the next timer, or until what was freed may be given back to the system; 0
 * when tasks are pending; BOW_NEVER. Thread: loop. */
BOW_EXPORT uint64_t bow_loop_next_timeout(struct bow_loop *loop);

/**
 * Shut down: when no task came for `quiet_ns`, or after `timeout_ns` at the latest, all
 * channels are closed, timers cancelled, hooks run, and the loop terminates.
 * Idempotent: later calls may only shorten. Tasks that are already queued are run; bytes that
 * channels have queued are lost. Only posted tasks prolong it, not timers or traffic.
 *
 * A loop of its own thread that never started has terminated when this returns.
 *
 * Thread:  any
 * Returns: 0; -ECHILD after fork()
 */
BOW_EXPORT int bow_loop_shutdown(struct bow_loop *loop, uint64_t quiet_ns, uint64_t timeout_ns);

/**
 * Wait until the loop has terminated. Real time counts, whatever the context's clock says.
 *
 * Thread:  any but the loop's
 * Returns: 0; -ETIMEDOUT; -EDEADLK on the loop's own thread; -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_join(struct bow_loop *loop, uint64_t timeout_ns);

/** Runs on the loop at shutdown, after the channels were closed, newest first; embedded. */
struct bow_loop_hook {
    void (*fn)(struct bow_loop_hook *hook); /* public */
    struct bow_loop_hook *next;             /* private */
    struct bow_loop_hook *prev;             /* private */
};

/** Add a shutdown hook; remove it before its memory goes. Thread: loop. Returns: 0, -ESHUTDOWN. */
BOW_EXPORT BOW_MUST_USE int bow_loop_add_hook(struct bow_loop *loop, struct bow_loop_hook *hook);
/** Take a hook out; nothing when it is not in, or has run. Thread: loop. */
BOW_EXPORT void bow_loop_remove_hook(struct bow_loop *loop, struct bow_loop_hook *hook);

#ifdef __cplusplus
}
#endif
#endif
