/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A future and its promise: birth, references, the one completion, waiting for it.
 * Knows nothing of how listeners are told.
 */

#include "transport/executor/future.h"
#include "base/alloc.h"
#include "base/options.h"
#include "transport/loop/condition.h"

#include <errno.h>

static struct bow_promise *promise_of(struct bow_future *future)
{
    return (struct bow_promise *)(void *)future;
}

/* Birth and references */

int bow_promise_new(struct bow_context *context, const struct bow_promise_options *options,
                    struct bow_promise **ret_promise)
{
    struct bow_promise_options known = BOW_PROMISE_OPTIONS_INIT;

    int rc = options != NULL ? bow__options_read(&known, sizeof(known), options) : 0;
    if (rc < 0) {
        return rc;
    }
    if (known.loop != NULL && known.executor != NULL) {
        return -EINVAL;
    }
    struct bow_promise *promise = bow__alloc_zero(context, sizeof(*promise));
    if (promise == NULL) {
        return -ENOMEM;
    }
    struct bow_future *future = &promise->future;
    rc = bow__cond_init(&future->mutex, &future->done);
    if (rc < 0) {
        bow__free(context, promise, sizeof(*promise));
        return rc;
    }
    future->context = bow_context_ref(context);
    atomic_init(&future->refs, 1);
    atomic_init(&future->promise_refs, 1);
    atomic_init(&future->state, BOW_FUTURE_PENDING);
    future->free_value = known.free_value;
    future->free_user = known.free_user;
    future->home = (struct bow__event_executor){known.loop, known.executor};
    bow__event_executor_hold(&future->home);
    bow__future_init_listeners(future);
    *ret_promise = promise;
    return 0;
}

void bow__promise_set_worker(struct bow_promise *promise, const struct bow__event_executor *worker)
{
    promise->future.worker = *worker;
    bow__event_executor_hold(worker);
}

static void free_future(struct bow_future *future)
{
    struct bow_context *context = future->context;

    if (future->value != NULL && future->free_value != NULL) {
        future->free_value(future->value, future->free_user);
    }
    bow__event_executor_release(&future->home);
    bow__event_executor_release(&future->worker);
    bow__cond_fini(&future->mutex, &future->done);
    bow__free(context, promise_of(future), sizeof(struct bow_promise));
    bow_context_unref(context);
}

struct bow_future *bow_future_ref(struct bow_future *future)
{
    atomic_fetch_add_explicit(&future->refs, 1, memory_order_relaxed);
    return future;
}

struct bow_future *bow_future_unref(struct bow_future *future)
{
    if (future != NULL && atomic_fetch_sub_explicit(&future->refs, 1, memory_order_acq_rel) == 1) {
        free_future(future);
    }
    return NULL;
}

struct bow_promise *bow_promise_ref(struct bow_promise *promise)
{
    atomic_fetch_add_explicit(&promise->future.promise_refs, 1, memory_order_relaxed);
    return promise;
}

struct bow_promise *bow_promise_unref(struct bow_promise *promise)
{
    if (promise != NULL &&
        atomic_fetch_sub_explicit(&promise->future.promise_refs, 1, memory_order_acq_rel) == 1) {
        bow_promise_fail(promise, -EPIPE);
        bow_future_unref(&promise->future);
    }
    return NULL;
}

struct bow_future *bow_promise_future(struct bow_promise *promise)
{
    return &promise->future;
}

/* Completion */

static enum bow_future_state state_of(const struct bow_future *future)
{
    return (enum bow_future_state)atomic_load_explicit(&future->state, memory_order_acquire);
}

static void set_state(struct bow_future *future, enum bow_future_state state)
{
    atomic_store_explicit(&future->state, (int)state, memory_order_release);
}

static int complete(struct bow_future *future, enum bow_future_state state, void *value, int error)
{
    pthread_mutex_lock(&future->mutex);
    if (bow__future_is_done(future)) {
        pthread_mutex_unlock(&future->mutex);
        return -EALREADY;
    }
    if (state == BOW_FUTURE_CANCELLED && state_of(future) == BOW_FUTURE_UNCANCELLABLE) {
        pthread_mutex_unlock(&future->mutex);
        return -EBUSY;
    }
    future->value = value;
    future->error = error;
    set_state(future, state);
    pthread_cond_broadcast(&future->done);
    bool must_notify = bow__future_must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        bow__future_notify(future);
    }
    return 0;
}

int bow_promise_succeed(struct bow_promise *promise, void *value)
{
    return complete(&promise->future, BOW_FUTURE_SUCCEEDED, value, 0);
}

int bow_promise_fail(struct bow_promise *promise, int error)
{
    return error < 0 ? complete(&promise->future, BOW_FUTURE_FAILED, NULL, error) : -EINVAL;
}

int bow_future_cancel(struct bow_future *future)
{
    int rc = complete(future, BOW_FUTURE_CANCELLED, NULL, -ECANCELED);
    return rc == -EALREADY && state_of(future) == BOW_FUTURE_CANCELLED ? 0 : rc;
}

int bow_promise_set_uncancellable(struct bow_promise *promise)
{
    struct bow_future *future = &promise->future;
    int rc = 0;

    pthread_mutex_lock(&future->mutex);
    if (!bow__future_is_done(future)) {
        set_state(future, BOW_FUTURE_UNCANCELLABLE);
    } else {
        rc = state_of(future) == BOW_FUTURE_CANCELLED ? -ECANCELED : -EALREADY;
    }
    pthread_mutex_unlock(&future->mutex);
    return rc;
}

/* What can be asked */

enum bow_future_state bow_future_get_state(const struct bow_future *future)
{
    return state_of(future);
}

bool bow_future_is_done(const struct bow_future *future)
{
    return bow__future_is_done(future);
}

int bow_future_error(const struct bow_future *future)
{
    return bow__future_is_done(future) ? future->error : -EINPROGRESS;
}

void *bow_future_value(const struct bow_future *future)
{
    return bow__future_is_done(future) ? future->value : NULL;
}

/* Waiting */

int bow_future_wait(struct bow_future *future, uint64_t timeout_ns)
{
    const struct timespec deadline = bow__cond_deadline(timeout_ns);
    bool in_time = true;

    if (bow__future_is_done(future)) {
        return 0;
    }
    if (bow__event_executor_is_foreign(&future->home) ||
        bow__event_executor_is_foreign(&future->worker)) {
        return -ECHILD;
    }
    if (bow__event_executor_is_here(&future->home) ||
        bow__event_executor_is_here(&future->worker)) {
        return -EDEADLK;
    }
    pthread_mutex_lock(&future->mutex);
    while (in_time && !bow__future_is_done(future)) {
        in_time = bow__cond_wait(&future->done, &future->mutex, &deadline);
    }
    bool is_done = bow__future_is_done(future);
    pthread_mutex_unlock(&future->mutex);
    return is_done ? 0 : -ETIMEDOUT;
}
