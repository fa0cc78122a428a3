/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A future and its promise: birth, references, the one completion, waiting for it; listeners,
 * told of progress and of the end on the future's home, in order, by one task. The design
 * stands in future.h.
 */

#include "transport/executor/future.h"
#include "base/alloc.h"
#include "base/claim.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/loop/condition.h"

#include <errno.h>

/* Returns 0, with the mutex locked, or -ECHILD. */
static int lock(struct bow_future *future)
{
    if (!bow__claim(bow__context_process(future->context), &future->used_by)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&future->mutex);
    return 0;
}

static bool is_foreign(const struct bow_future *future)
{
    return bow__is_claimed_elsewhere(bow__context_process(future->context), &future->used_by) ||
           bow__event_executor_is_foreign(&future->home) ||
           bow__event_executor_is_foreign(&future->worker);
}

/* Listeners */

static int run_notify(void *user);
static void notify(struct bow_future *future);

static void init_listeners(struct bow_future *future)
{
    future->listeners_end = &future->listeners;
    bow_task_init(&future->notify, "future listeners", run_notify, future);
}

static void push_locked(struct bow_future *future, struct bow_future_listener *listener)
{
    listener->next = NULL;
    *future->listeners_end = listener;
    future->listeners_end = &listener->next;
}

static bool remove_locked(struct bow_future *future, const struct bow_future_listener *listener)
{
    struct bow_future_listener **link = &future->listeners;

    while (*link != NULL && *link != listener) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return false;
    }
    *link = listener->next;
    if (*link == NULL) {
        future->listeners_end = link;
    }
    return true;
}

/* The first one that has not been told of the newest report. */
static struct bow_future_listener *next_unaware(const struct bow_future *future)
{
    struct bow_future_listener *listener = future->listeners;

    while (listener != NULL &&
           (listener->on_progress == NULL || listener->seen == future->n_reports)) {
        listener = listener->next;
    }
    return listener;
}

static bool has_news(const struct bow_future *future)
{
    return bow__future_is_done(future) ? future->listeners != NULL : next_unaware(future) != NULL;
}

/* With the mutex held: whether the caller must call notify() once it is not. */
static bool must_notify_locked(struct bow_future *future)
{
    if (future->is_notifying || !has_news(future)) {
        return false;
    }
    future->is_notifying = true;
    return true;
}

static void tell_progress_locked(struct bow_future *future, struct bow_future_listener *listener)
{
    const bow_progress_fn on_progress = listener->on_progress;
    void *user = listener->user;
    const uint64_t progress = future->progress;
    const uint64_t total = future->total;

    listener->seen = future->n_reports;
    future->running = listener;
    pthread_mutex_unlock(&future->mutex);
    on_progress(future, progress, total, user);
    pthread_mutex_lock(&future->mutex);
    future->running = NULL;
}

/* The listener's memory is its owner's again before its function starts. */
static void tell_end_locked(struct bow_future *future)
{
    struct bow_future_listener *listener = future->listeners;
    const bow_future_fn fn = listener->fn;
    void *user = listener->user;

    remove_locked(future, listener);
    future->running = listener;
    pthread_mutex_unlock(&future->mutex);
    fn(future, user);
    pthread_mutex_lock(&future->mutex);
    future->running = NULL;
}

static size_t count_locked(const struct bow_future *future)
{
    size_t n = 0;

    for (const struct bow_future_listener *at = future->listeners; at != NULL; at = at->next) {
        n++;
    }
    return n;
}

/* Those present now: one that a listener adds waits for the next run. */
static void tell_locked(struct bow_future *future)
{
    struct bow_future_listener *unaware;
    size_t n = count_locked(future);

    future->running_on = pthread_self();
    for (size_t i = 0; i < n && (unaware = next_unaware(future)) != NULL; i++) {
        tell_progress_locked(future, unaware);
    }
    if (!bow__future_is_done(future)) {
        return;
    }
    for (n = count_locked(future); n > 0 && future->listeners != NULL; n--) {
        tell_end_locked(future);
    }
}

static int tell(void *user)
{
    struct bow_future *future = user;

    pthread_mutex_lock(&future->mutex);
    tell_locked(future);
    pthread_mutex_unlock(&future->mutex);
    return 0;
}

static int run_notify(void *user)
{
    struct bow_future *future = user;

    pthread_mutex_lock(&future->mutex);
    tell_locked(future);
    future->is_notifying = false;
    bool must_notify = must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        notify(future);
    }
    bow_future_unref(future);
    return 0;
}

static int post_notify(struct bow_future *future)
{
    bow_future_ref(future);
    int rc = bow__event_executor_post(&future->home, &future->notify);
    if (rc < 0) {
        pthread_mutex_lock(&future->mutex);
        future->is_notifying = false;
        pthread_mutex_unlock(&future->mutex);
        bow_future_unref(future);
    }
    return rc;
}

/* Have the listeners told, on their home. */
static void notify(struct bow_future *future)
{
    if (post_notify(future) < 0) {
        bow__event_executor_reject(&future->home, future->notify.name, tell, future);
    }
}

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
        return bow__refuse_options(context, "bow_promise_new", "BOW_PROMISE_OPTIONS_INIT");
    }
    if (known.loop != NULL && known.executor != NULL) {
        return bow__refuse(context, -EINVAL,
                           "bow_promise_new: set options.loop or options.executor, not both");
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
    init_listeners(future);
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
    /* To destroy a condition is to wait for those who wait for it, and they may be the parent's. */
    if (!bow__is_claimed_elsewhere(bow__context_process(context), &future->used_by)) {
        bow__cond_fini(&future->mutex, &future->done);
    }
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
    int rc = lock(future);
    if (rc < 0) {
        return rc;
    }
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
    bool must_notify = must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        notify(future);
    }
    return 0;
}

int bow_promise_succeed(struct bow_promise *promise, void *value)
{
    return complete(&promise->future, BOW_FUTURE_SUCCEEDED, value, 0);
}

int bow_promise_fail(struct bow_promise *promise, int error)
{
    if (error >= 0) {
        return bow__refuse(promise->future.context, -EINVAL,
                           "bow_promise_fail: error is %d, and not a negative errno", error);
    }
    return complete(&promise->future, BOW_FUTURE_FAILED, NULL, error);
}

int bow_future_cancel(struct bow_future *future)
{
    int rc = complete(future, BOW_FUTURE_CANCELLED, NULL, -ECANCELED);
    return rc == -EALREADY && state_of(future) == BOW_FUTURE_CANCELLED ? 0 : rc;
}

int bow_promise_set_uncancellable(struct bow_promise *promise)
{
    struct bow_future *future = &promise->future;

    int rc = lock(future);
    if (rc < 0) {
        return rc;
    }
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
    if (is_foreign(future)) {
        return -ECHILD;
    }
    if (bow__event_executor_is_here(&future->home) ||
        bow__event_executor_is_here(&future->worker)) {
        return bow__refuse(future->context, -EDEADLK,
                           "bow_future_wait: here the work or its listeners run, so it would wait "
                           "for ever: use bow_future_listen()");
    }
    int rc = lock(future);
    if (rc < 0) {
        return rc;
    }
    while (in_time && !bow__future_is_done(future)) {
        in_time = bow__cond_wait(&future->done, &future->mutex, &deadline);
    }
    bool is_done = bow__future_is_done(future);
    pthread_mutex_unlock(&future->mutex);
    return is_done ? 0 : -ETIMEDOUT;
}

/* Adding and removing */

int bow_future_listen(struct bow_future *future, struct bow_future_listener *listener)
{
    if (bow__event_executor_is_none(&future->home)) {
        return bow__refuse(future->context, -EINVAL,
                           "bow_future_listen: the promise was made without options.loop or "
                           "options.executor, where listeners run");
    }
    int rc = is_foreign(future) ? -ECHILD : lock(future);
    if (rc < 0) {
        return rc;
    }
    listener->seen = 0;
    push_locked(future, listener);
    bool must_notify = must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    rc = must_notify ? post_notify(future) : 0;
    if (rc == 0) {
        return 0;
    }
    pthread_mutex_lock(&future->mutex);
    remove_locked(future, listener);
    bool others_wait = has_news(future);
    pthread_mutex_unlock(&future->mutex);
    if (others_wait) {
        bow__event_executor_reject(&future->home, future->notify.name, tell, future);
    }
    return rc;
}

int bow_future_unlisten(struct bow_future *future, struct bow_future_listener *listener)
{
    int rc = lock(future);
    if (rc < 0) {
        return rc;
    }
    bool was_in = remove_locked(future, listener);
    bool is_running =
        future->running == listener && !pthread_equal(future->running_on, pthread_self());
    pthread_mutex_unlock(&future->mutex);
    if (is_running) {
        return -EBUSY;
    }
    return was_in ? 0 : -ENOENT;
}

/* Progress */

int bow_promise_report(struct bow_promise *promise, uint64_t progress, uint64_t total)
{
    struct bow_future *future = &promise->future;

    if (total != 0 && progress > total) {
        return bow__refuse(future->context, -EINVAL, "bow_promise_report: progress is above total");
    }
    int rc = lock(future);
    if (rc < 0) {
        return rc;
    }
    if (bow__future_is_done(future)) {
        pthread_mutex_unlock(&future->mutex);
        return -EALREADY;
    }
    future->progress = progress;
    future->total = total;
    future->n_reports++;
    bool must_notify = must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        notify(future);
    }
    return 0;
}
