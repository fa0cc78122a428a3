/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SUBMIT_H
#define BOWLINE_SUBMIT_H

/*
 * Work that gives a value back: submitted to a loop or an executor, its result comes
 * through a future. Several at once are waited for until all are done, or one has
 * succeeded.
 *
 *     struct bow_future *future;
 *     int rc = bow_executor_submit(executor, "report", make_report, order, NULL, &future);
 *     ...
 *     rc = bow_future_wait(future, 5 * SECOND);       on another thread; or listen to it
 *     if (rc == -ETIMEDOUT) {
 *         bow_future_cancel(future);                  it does not begin any more, or says -EBUSY
 *     }
 *     bow_future_unref(future);
 *
 * Whoever cancels a future whose work has not begun may free what the work would have
 * used; once it runs, only when the future is done.
 */

#include <bowline/executor.h>
#include <bowline/future.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Work: 0 with `*ret_value` (NULL before), or a negative errno. */
typedef int (*bow_work_fn)(void *user, void **ret_value);

/**
 * Run `fn(user)` on the executor. The queue is bounded as for the execute functions;
 * the rejection handler is not asked. `options` say where listeners run (NULL or neither: there)
 * and who frees the value; `name` must live for ever.
 *
 * Thread:  any
 * Owns:    gives `*ret_future`, drop it with bow_future_unref()
 * Returns: 0; -EAGAIN when max_pending_tasks wait; -ESHUTDOWN; -ENOMEM; -EINVAL (options); what
 *          starting a thread failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_submit(struct bow_executor *executor, const char *name,
                                                bow_work_fn fn, void *user,
                                                const struct bow_promise_options *options,
                                                struct bow_future **ret_future);
/** Run `fn(user)` on the loop. Otherwise as bow_executor_submit(). */
BOW_EXPORT BOW_MUST_USE int bow_loop_submit(struct bow_loop *loop, const char *name, bow_work_fn fn,
                                            void *user, const struct bow_promise_options *options,
                                            struct bow_future **ret_future);

/** One of several pieces of work. */
struct bow_invocation {
    const char *name;                   /* public; must live for ever */
    bow_work_fn fn;                     /* public */
    void *user;                         /* public */
    struct bow_promise_options promise; /* public: BOW_PROMISE_OPTIONS_INIT and more */
    struct bow_future *future;          /* given; drop it with bow_future_unref() */
};

/**
 * Submit all and wait until each is done, at most `timeout_ns` (BOW_NEVER: for ever). What has
 * not begun by then is cancelled; what runs goes on, so wait for its future before its `user` goes.
 *
 * Thread:  any but those of the executor
 * Owns:    gives the `n` futures when it returns 0 or -ETIMEDOUT
 * Returns: 0: all are done, in whatever way; -ETIMEDOUT; -EDEADLK; or what submitting one of them
 *          failed with: then those before it were cancelled, or awaited when they ran already
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_invoke_all(struct bow_executor *executor,
                                                    struct bow_invocation *invocations, size_t n,
                                                    uint64_t timeout_ns);
/** The same on a loop. Thread: any but the loop's. */
BOW_EXPORT BOW_MUST_USE int bow_loop_invoke_all(struct bow_loop *loop,
                                                struct bow_invocation *invocations, size_t n,
                                                uint64_t timeout_ns);

/**
 * Submit all and wait until one has succeeded: `*ret_winner` is its index. The others are cancelled
 * as by bow_executor_invoke_all().
 *
 * Thread:  any but those of the executor
 * Owns:    gives the `n` futures unless submitting or the arguments failed
 * Returns: 0; -ETIMEDOUT (the futures are given); what the last of them failed with when all did
 *          (the futures are given, `invocations[0].future` is not NULL); -EDEADLK; -EINVAL (no
 *          invocation); or what submitting one failed with (all `future` are NULL)
 */
BOW_EXPORT BOW_MUST_USE int bow_executor_invoke_any(struct bow_executor *executor,
                                                    struct bow_invocation *invocations, size_t n,
                                                    uint64_t timeout_ns, size_t *ret_winner);
/** The same on a loop. Thread: any but the loop's. */
BOW_EXPORT BOW_MUST_USE int bow_loop_invoke_any(struct bow_loop *loop,
                                                struct bow_invocation *invocations, size_t n,
                                                uint64_t timeout_ns, size_t *ret_winner);

#ifdef __cplusplus
}
#endif
#endif
