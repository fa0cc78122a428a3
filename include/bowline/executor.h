/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_EXECUTOR_H
#define BOWLINE_EXECUTOR_H

/*
 * An executor: threads without a poller, for work that may block. Tasks wait in one
 * queue and run on whichever thread is free, several at a time. What must run one
 * after the other goes through a strand: one per connection, account, file.
 *
 *     post ─────────────────────────► queue ─► thread 0, thread 1, …     in any order
 *     strand post ─► strand's queue ────┘      at most one task of it at a time, in order
 *
 * Threads are started by need, up to `n_threads`, and named PREFIX-NAME-N. With
 * 0 threads the executor belongs to its owner, who runs it (bow_executor_run) or
 * drives it (bow_executor_run_once). Its states are a loop's, and so is its end.
 *
 *     struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
 *     struct bow_executor *executor;
 *     options.n_threads = 8;
 *     int rc = bow_executor_new(context, &options, &executor);
 *     ...
 *     rc = bow_executor_execute(executor, "report", write_report, report);
 *     ...
 *     bow_executor_shutdown(executor, 0, 5 * SECOND);
 *     rc = bow_executor_join(executor, BOW_NEVER);
 *     bow_executor_unref(executor);
 *
 * Invariants: no task runs inside the function that was given it; every accepted
 * task runs once.
 */

#include <bowline/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_executor;

/** As many threads as the process may keep busy. */
#define BOW_EXECUTOR_CPUS UINT32_MAX

/** Receives what the program gave it and was refused. Thread: the poster's. */
typedef void (*bow_executor_rejected_fn)(struct bow_executor *executor, const char *name,
                                         bow_task_fn fn, void *task_user, void *user);

/** What an executor is made with; begin with BOW_EXECUTOR_OPTIONS_INIT. */
struct bow_executor_options {
    size_t size;                /* sizeof this struct, set by the INIT */
    uint32_t n_threads;         /* BOW_EXECUTOR_CPUS; 0: the owner drives it; at most 4096 */
    const char *prefix;         /* NULL: "bow" */
    const char *name;           /* NULL: "exec" */
    size_t stack_bytes;         /* 0: the system's default */
    uint32_t max_pending_tasks; /* of the execute functions and of submit; 0: 65536 */
    size_t max_channel_bytes;   /* waiting for one handler; over it reading pauses; 0: 256 KiB */
    bow_executor_rejected_fn rejected; /* NULL: rejections are only counted and returned */
    void *rejected_user;
};

#define BOW_EXECUTOR_OPTIONS_INIT                                                                  \
    BOW__INIT(struct bow_executor_options, BOW__SET(n_threads, BOW_EXECUTOR_CPUS))

/**
 * Make an executor in state NOT_STARTED, with one reference. No thread starts yet. `options`
 * NULL: the defaults.
 *
 * Thread:  any
 * Owns:    shares `context`; gives `*ret_executor`, drop it with bow_executor_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options)
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_new(struct bow_context *context,
                                             const struct bow_executor_options *options,
                                             struct bow_executor **ret_executor);

/** Take a reference to an executor. Thread: any. Returns: `executor`. */
BOW_EXPORT struct bow_executor *bow_executor_ref(struct bow_executor *executor);

/**
 * Drop a reference to an executor. The last one shuts it down at once, waits until what was
 * accepted has run (an owner's executor is run to its end), and frees it; called by one
 * of its tasks that happens later. NULL is allowed. Thread: any. Returns: NULL.
 */
BOW_EXPORT struct bow_executor *bow_executor_unref(struct bow_executor *executor);

/** Whether the calling thread is one of the executor's. Thread: any. */
BOW_EXPORT bool bow_executor_in_executor(const struct bow_executor *executor);
/** Where it is in its life; may be behind by the time it is read. Thread: any. */
BOW_EXPORT enum bow_loop_state bow_executor_get_state(const struct bow_executor *executor);
/** The context that it was made with, borrowed. Thread: any. */
BOW_EXPORT struct bow_context *bow_executor_context(const struct bow_executor *executor);

/**
 * Post an intrusive task: no allocation, no bound. Tasks start in the order of posting;
 * with more than one thread they run side by side.
 *
 * Thread:  any
 * Owns:    keeps `task` until its `fn` starts
 * Returns: 0; -ESHUTDOWN from SHUTDOWN on (the rejection handler has run); -ECHILD after fork(),
 *          when the parent process has used it; what starting the first thread failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_post(struct bow_executor *executor, struct bow_task *task);

/**
 * Run `fn(user)` on the executor; allocates a task. Returns: 0; -EAGAIN when max_pending_tasks
 * wait (the rejection handler has run); -ENOMEM; as bow_executor_post(). `name` must live for
 * ever. Thread: any.
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_execute(struct bow_executor *executor, const char *name,
                                                 bow_task_fn fn, void *user);

/** A strand: its tasks run one after the other, in the order of posting, on any of the
 * executor's threads; each sees what those before it did. Counted. */
struct bow_strand;

/**
 * Make a strand of `executor`.
 *
 * Thread:  any
 * Owns:    keeps the memory of `executor`, not its life; gives `*ret_strand`, drop it with
 *          bow_strand_unref()
 * Returns: 0 or -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_strand_new(struct bow_executor *executor,
                                           struct bow_strand **ret_strand);
/** Take a reference to a strand. Thread: any. Returns: `strand`. */
BOW_EXPORT struct bow_strand *bow_strand_ref(struct bow_strand *strand);
/** Drop a reference to a strand; tasks that wait in it run all the same. NULL is allowed. Thread:
 * any. Returns: NULL. */
BOW_EXPORT struct bow_strand *bow_strand_unref(struct bow_strand *strand);

/** Post an intrusive task behind the strand's earlier ones. Otherwise as bow_executor_post(). */
BOW_EXPORT BOW_MUST_USE int bow_strand_post(struct bow_strand *strand, struct bow_task *task);
/** Run `fn(user)` behind the strand's earlier tasks. Otherwise as bow_executor_execute(). */
BOW_EXPORT BOW_MUST_USE int bow_strand_execute(struct bow_strand *strand, const char *name,
                                               bow_task_fn fn, void *user);

/**
 * Run the executor on this thread until it has terminated. Only with 0 threads.
 *
 * Returns: 0; -EBUSY when it is being run already; -EINVAL for one with threads; -ECHILD as
 *          bow_executor_post()
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_run(struct bow_executor *executor);

/** Run the tasks that wait now; with none, wait at most `timeout_ns` of real time for one. The
 * thread that calls it is the executor's from then on. Returns as bow_executor_run(); 0 at once
 * when it has terminated. */
BOW_EXPORT BOW_MUST_USE int bow_executor_run_once(struct bow_executor *executor,
                                                  uint64_t timeout_ns);

/**
 * Shut down: when no task ran for `quiet_ns`, or after `timeout_ns` at the latest, new
 * tasks are refused, those that were accepted run, and the executor terminates.
 * Idempotent: later calls may only shorten. One that never started a thread has
 * terminated when this returns.
 *
 * What was accepted is run also when the time-out is over, which only ends the time in which
 * tasks are taken (by its owner, if he runs it). Lost is what is posted later, by its tasks too
 * (-ESHUTDOWN), and a reply made here once the loop of its call has ended: end executors first.
 *
 * Thread:  any
 * Returns: 0; -ECHILD as bow_executor_post()
 */
BOW_EXPORT int bow_executor_shutdown(struct bow_executor *executor, uint64_t quiet_ns,
                                     uint64_t timeout_ns);

/** Wait until the executor has terminated. Real time counts, whatever the context's clock says.
 * Returns: 0; -ETIMEDOUT; -EDEADLK on a thread of the executor; -ECHILD as bow_executor_post().
 * Thread: any but the executor's. */
BOW_EXPORT BOW_MUST_USE int bow_executor_join(struct bow_executor *executor, uint64_t timeout_ns);

/** Counters since the executor was made, and gauges. Begin with `size` set, the rest zero. */
struct bow_executor_stats {
    size_t size; /* sizeof this struct */
    uint64_t tasks_run;
    uint64_t tasks_failed;
    uint64_t tasks_rejected;
    uint64_t pending_tasks; /* gauge */
    uint64_t threads;       /* gauge: started so far */
};

/** Fill in as much of `stats` as its size allows. Thread: any. Returns: 0, or -EINVAL when the size
 * is not a known one. */
BOW_EXPORT int bow_executor_get_stats(const struct bow_executor *executor,
                                      struct bow_executor_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
