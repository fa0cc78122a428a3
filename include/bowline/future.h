/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_FUTURE_H
#define BOWLINE_FUTURE_H

/*
 * A result that comes later. The promise is its writing end, for whoever does the
 * work; the future its reading end, for whoever waits.
 *
 *              ┌─► SUCCEEDED (a value)
 *     PENDING ─┼─► FAILED (a negative errno)      completed once; what comes second is told
 *       │      └─► CANCELLED
 *       └─► UNCANCELLABLE ─► SUCCEEDED or FAILED
 *
 * Listeners run on the future's home, a loop or an executor, one after the other in the
 * order of adding; never inside the function that adds them or completes the future.
 *
 *     struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
 *     struct bow_promise *promise;
 *     options.loop = loop;
 *     int rc = bow_promise_new(context, &options, &promise);
 *     struct bow_future *future = bow_future_ref(bow_promise_future(promise));
 *     ...
 *     rc = bow_promise_succeed(promise, value);       any thread, or bow_promise_fail()
 *     bow_promise_unref(promise);
 *
 *     rc = bow_future_wait(future, 5 * SECOND);       another thread
 *     if (rc == 0 && bow_future_error(future) == 0) { use(bow_future_value(future)); }
 *     bow_future_unref(future);
 *
 * Invariants: a future is completed at the latest when its last promise goes; its
 * value lives until the last reference to either end goes.
 */

#include <bowline/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_executor;
struct bow_future;
struct bow_promise;

/** How far a future is. */
enum bow_future_state {
    BOW_FUTURE_PENDING = 0,
    BOW_FUTURE_UNCANCELLABLE = 1, /* pending, and can't be cancelled any more */
    BOW_FUTURE_SUCCEEDED = 2,
    BOW_FUTURE_FAILED = 3,
    BOW_FUTURE_CANCELLED = 4,
};

/** Where listeners run (one of the two, or neither: then there can be none), and who frees the
 * value. */
struct bow_promise_options {
    size_t size;                                 /* sizeof this struct, set by the INIT */
    struct bow_loop *loop;                       /* its memory is kept, not its life */
    struct bow_executor *executor;               /* the same */
    void (*free_value)(void *value, void *user); /* on any thread; NULL: the value is borrowed */
    void *free_user;
};

#define BOW_PROMISE_OPTIONS_INIT BOW__INIT(struct bow_promise_options, )

/**
 * Make a promise with its future, pending. `options` NULL: no listeners, a borrowed value.
 *
 * Thread:  any
 * Owns:    shares `context`; gives `*ret_promise`, drop it with bow_promise_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options)
 */
BOW_EXPORT BOW_MUST_USE int bow_promise_new(struct bow_context *context,
                                            const struct bow_promise_options *options,
                                            struct bow_promise **ret_promise);
/** Take a reference to the writing end. Thread: any. Returns: `promise`. */
BOW_EXPORT struct bow_promise *bow_promise_ref(struct bow_promise *promise);
/** Drop a reference to the writing end; the last one fails a pending future with -EPIPE, so that
 * nobody waits for ever. NULL is allowed. Thread: any. Returns: NULL. */
BOW_EXPORT struct bow_promise *bow_promise_unref(struct bow_promise *promise);
/** The reading end, borrowed from the promise. Thread: any. */
BOW_EXPORT struct bow_future *bow_promise_future(struct bow_promise *promise);

/** Complete with a value (NULL is one). Owns: takes `value` on success. Returns: 0; -EALREADY when
 * it was completed before, in whatever way; -ECHILD (see bow_future_wait()). Thread: any. */
BOW_EXPORT int bow_promise_succeed(struct bow_promise *promise, void *value);
/** Complete with a negative errno. Returns: 0; -EALREADY; -EINVAL when `error` is not negative;
 * -ECHILD (see bow_future_wait()). Thread: any. */
BOW_EXPORT int bow_promise_fail(struct bow_promise *promise, int error);
/** From now on it can't be cancelled: the work begins. Idempotent. Returns: 0; -ECANCELED when it
 * has been cancelled: don't begin; -EALREADY when it was completed; -ECHILD (see
 * bow_future_wait()). Thread: any. */
BOW_EXPORT BOW_MUST_USE int bow_promise_set_uncancellable(struct bow_promise *promise);
/**
 * Tell listeners how far the work has come; `total` 0 when it is not known. Reports that come
 * faster than the listeners' home runs are folded into the newest; none comes after the end.
 *
 * Thread:  any
 * Returns: 0; -EALREADY when it was completed; -EINVAL when `progress` is above a known total;
 *          -ECHILD (see bow_future_wait())
 */
BOW_EXPORT int bow_promise_report(struct bow_promise *promise, uint64_t progress, uint64_t total);

/** Take a reference to the reading end. Thread: any. Returns: `future`. */
BOW_EXPORT struct bow_future *bow_future_ref(struct bow_future *future);
/** Drop a reference to the reading end. NULL is allowed. Thread: any. Returns: NULL. */
BOW_EXPORT struct bow_future *bow_future_unref(struct bow_future *future);

/** How far it is; may be behind by the time it is read. Thread: any. */
BOW_EXPORT enum bow_future_state bow_future_get_state(const struct bow_future *future);
/** Whether it was completed, in whatever way. Thread: any. */
BOW_EXPORT bool bow_future_is_done(const struct bow_future *future);
/** 0 when it succeeded, what it failed with, -ECANCELED, or -EINPROGRESS while pending. Thread:
 * any. */
BOW_EXPORT int bow_future_error(const struct bow_future *future);
/** The value, borrowed from the future; NULL unless it succeeded. Thread: any. */
BOW_EXPORT void *bow_future_value(const struct bow_future *future);

/** Cancel: the work does not begin, and the future says so at once. Returns: 0, also when it was
 * cancelled before; -EBUSY when it is uncancellable; -EALREADY when it was completed; -ECHILD (see
 * bow_future_wait()). Thread: any. */
BOW_EXPORT int bow_future_cancel(struct bow_future *future);

/**
 * Wait until it is done, in whatever way. Real time counts, whatever the context's clock says.
 *
 * Thread:  any but those that the future needs: its home's, and where its work runs
 * Returns: 0; -ETIMEDOUT; -EDEADLK on such a thread, at once, unless it is done; -ECHILD after
 *          fork(), when its loop or executor is the parent's, or the future itself was used there
 *          by any function that returns this
 */
BOW_EXPORT BOW_MUST_USE int bow_future_wait(struct bow_future *future, uint64_t timeout_ns);

/** Runs once, when the future is done. Thread: the future's home. */
typedef void (*bow_future_fn)(struct bow_future *future, void *user);
/** Runs after a bow_promise_report(), before the end. Thread: the future's home. */
typedef void (*bow_progress_fn)(struct bow_future *future, uint64_t progress, uint64_t total,
                                void *user);

/** One who waits for a future without blocking. Embedded by its owner, who sets the public fields
 * and the rest to zero. */
struct bow_future_listener {
    bow_future_fn fn;                 /* public: once, when it is done */
    bow_progress_fn on_progress;      /* public; may be NULL */
    void *user;                       /* public */
    uint64_t seen;                    /* private */
    struct bow_future_listener *next; /* private */
};

/**
 * Add a listener, before or after the future is done.
 *
 * When the home has shut down before the future is done, its rejection handler gets what would
 * have run the listeners.
 *
 * Thread:  any
 * Owns:    keeps `listener` until its `fn` starts or bow_future_unlisten() takes it out, and a
 *          reference to the future while `fn` runs
 * Returns: 0; -EINVAL when the future has no home; when it is done also what posting to the home
 *          failed with (-ESHUTDOWN); -ECHILD (see bow_future_wait())
 */
BOW_EXPORT BOW_MUST_USE int bow_future_listen(struct bow_future *future,
                                              struct bow_future_listener *listener);
/** Take a listener out. Returns: 0: it will not be called; -EBUSY: one of its functions runs now on
 * another thread, none will start; -ENOENT: it is not in; -ECHILD (see bow_future_wait()). Thread:
 * any. */
BOW_EXPORT int bow_future_unlisten(struct bow_future *future, struct bow_future_listener *listener);

/**
 * A future that is done (with NULL) when `loop` has terminated: nothing runs on it any more.
 * Its listeners need another home than the loop.
 *
 * Thread:  any
 * Owns:    gives `*ret_future`, drop it with bow_future_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options); -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_loop_terminated(struct bow_loop *loop,
                                                const struct bow_promise_options *options,
                                                struct bow_future **ret_future);

#ifdef __cplusplus
}
#endif
#endif
