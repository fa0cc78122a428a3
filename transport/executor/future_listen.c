/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Listeners of a future: told of progress and of the end on the future's home, in
 * order, by one task. Knows nothing of who completes it. The design stands in future.h.
 */

#include "transport/executor/future.h"

#include <errno.h>

static int run_notify(void *user);

void bow__future_init_listeners(struct bow_future *future)
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

bool bow__future_must_notify_locked(struct bow_future *future)
{
    if (future->is_notifying || !has_news(future)) {
        return false;
    }
    future->is_notifying = true;
    return true;
}

/* Telling */

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
    bool must_notify = bow__future_must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        bow__future_notify(future);
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

void bow__future_notify(struct bow_future *future)
{
    if (post_notify(future) < 0) {
        bow__event_executor_reject(&future->home, future->notify.name, tell, future);
    }
}

/* Adding and removing */

int bow_future_listen(struct bow_future *future, struct bow_future_listener *listener)
{
    if (bow__event_executor_is_nowhere(&future->home)) {
        return -EINVAL;
    }
    pthread_mutex_lock(&future->mutex);
    listener->seen = 0;
    push_locked(future, listener);
    bool must_notify = bow__future_must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    int rc = must_notify ? post_notify(future) : 0;
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
    pthread_mutex_lock(&future->mutex);
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
        return -EINVAL;
    }
    pthread_mutex_lock(&future->mutex);
    if (bow__future_is_done(future)) {
        pthread_mutex_unlock(&future->mutex);
        return -EALREADY;
    }
    future->progress = progress;
    future->total = total;
    future->n_reports++;
    bool must_notify = bow__future_must_notify_locked(future);
    pthread_mutex_unlock(&future->mutex);
    if (must_notify) {
        bow__future_notify(future);
    }
    return 0;
}
