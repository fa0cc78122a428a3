/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a loop ends: shutdown asked for, the quiet period, hooks, the last tasks, who is told and
 * who waits. Knows nothing of who runs it.
 *
 *     SHUTTING_DOWN ─────► SHUTDOWN ─► TERMINATED
 *     quiet, closing       last tasks
 *
 * A loop with a thread of its own that never started goes from NOT_STARTED to the last state at
 * once, on the thread that shuts it down: there is nothing to run.
 *
 * Waiting for the end uses the real monotonic clock: it waits for real threads, whatever the
 * table's clock says.
 */

#include "base/clock.h"
#include "base/refuse.h"
#include "transport/loop/condition.h"
#include "transport/loop/loop_internal.h"

#include <assert.h>
#include <errno.h>

static void wake(struct bow_loop *loop)
{
    loop->system->wake_signal(loop->system->user, loop->wake_watch.fd);
}

/* Hooks */

int bow_loop_add_hook(struct bow_loop *loop, struct bow_loop_hook *hook)
{
    assert(bow__loop_may_touch(loop));
    if (bow__loop_state(loop) >= BOW_LOOP_SHUTDOWN) {
        return -ESHUTDOWN;
    }
    hook->prev = NULL;
    hook->next = loop->hooks;
    if (hook->next != NULL) {
        hook->next->prev = hook;
    }
    loop->hooks = hook;
    return 0;
}

void bow_loop_remove_hook(struct bow_loop *loop, struct bow_loop_hook *hook)
{
    assert(bow__loop_may_touch(loop));
    if (hook->prev != NULL) {
        hook->prev->next = hook->next;
    } else if (loop->hooks == hook) {
        loop->hooks = hook->next;
    }
    if (hook->next != NULL) {
        hook->next->prev = hook->prev;
    }
    hook->next = NULL;
    hook->prev = NULL;
}

/* Told of the end */

/* Without the mutex: those who are told may let the loop go. */
static void tell_terminated(struct bow_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    struct bow__loop_ending *ending = NULL;
    if (bow__loop_state(loop) == BOW_LOOP_TERMINATED) {
        ending = loop->endings;
        loop->endings = NULL;
    }
    pthread_mutex_unlock(&loop->mutex);
    while (ending != NULL) {
        struct bow__loop_ending *next = ending->next;
        ending->fn(ending);
        ending = next;
    }
}

void bow__loop_on_terminated(struct bow_loop *loop, struct bow__loop_ending *ending)
{
    pthread_mutex_lock(&loop->mutex);
    ending->next = loop->endings;
    loop->endings = ending;
    pthread_mutex_unlock(&loop->mutex);
    tell_terminated(loop); /* in case it has */
}

/* Shutting down */

static void set_terminated(struct bow_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    atomic_store_explicit(&loop->owner, 0, memory_order_relaxed);
    bow__loop_advance(loop, BOW_LOOP_SHUTDOWN, BOW_LOOP_TERMINATED);
    pthread_cond_broadcast(&loop->terminated);
    pthread_mutex_unlock(&loop->mutex);
    tell_terminated(loop);
}

/* With the mutex. Who posts to a loop that has not started waits for the mutex first, and finds the
 * inbox closed; so does who sees it in a later state. There is nothing in it. */
static void terminate_unstarted(struct bow_loop *loop)
{
    bow__inbox_close(&loop->inbox);
    bow__loop_advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_SHUTTING_DOWN);
    bow__loop_advance(loop, BOW_LOOP_SHUTTING_DOWN, BOW_LOOP_SHUTDOWN);
    bow__loop_advance(loop, BOW_LOOP_SHUTDOWN, BOW_LOOP_TERMINATED);
    pthread_cond_broadcast(&loop->terminated);
}

int bow_loop_shutdown(struct bow_loop *loop, uint64_t quiet_ns, uint64_t timeout_ns)
{
    uint64_t at_ns = bow__time_add(bow__loop_clock(loop), timeout_ns);

    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&loop->mutex);
    loop->quiet_ns = bow__time_min(loop->quiet_ns, quiet_ns);
    loop->shutdown_at_ns = bow__time_min(loop->shutdown_at_ns, at_ns);
    if (bow__loop_state(loop) == BOW_LOOP_NOT_STARTED &&
        loop->options.thread == BOW_LOOP_OWN_THREAD) {
        terminate_unstarted(loop);
    }
    if (!bow__loop_advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_SHUTTING_DOWN)) {
        bow__loop_advance(loop, BOW_LOOP_STARTED, BOW_LOOP_SHUTTING_DOWN);
    }
    pthread_mutex_unlock(&loop->mutex);
    tell_terminated(loop); /* if it never started */
    if (bow_loop_in_loop(loop)) {
        bow__loop_rearm(loop);
    } else {
        wake(loop);
    }
    return 0;
}

static bool may_close(struct bow_loop *loop)
{
    uint64_t now = bow__loop_update_now(loop);

    pthread_mutex_lock(&loop->mutex);
    bool is_late = now >= loop->shutdown_at_ns;
    bool is_quiet = now >= bow__time_add(loop->last_work_ns, loop->quiet_ns);
    pthread_mutex_unlock(&loop->mutex);
    return is_late || (is_quiet && !bow__loop_has_work(loop));
}

static void run_hooks(struct bow_loop *loop)
{
    struct bow_loop_hook *hook;

    while ((hook = loop->hooks) != NULL) {
        bow_loop_remove_hook(loop, hook);
        hook->fn(hook);
    }
}

static void run_deferred(struct bow_loop *loop)
{
    while (!bow__list_is_empty(&loop->flushes) || !bow__list_is_empty(&loop->frees)) {
        bow__loop_run_flushes(loop);
        bow__loop_run_frees(loop);
    }
}

static void finish(struct bow_loop *loop)
{
    run_hooks(loop);
    bow__loop_advance(loop, BOW_LOOP_SHUTTING_DOWN, BOW_LOOP_SHUTDOWN);
    bow__loop_close_tasks(loop);
    run_deferred(loop);
    bow__loop_drop_timers(loop);
    set_terminated(loop);
}

void bow__loop_on_closing(struct bow_loop *loop, struct bow__deferred *closing)
{
    bow__list_push_back(&loop->closings, &closing->link);
}

/* Each may take itself out. */
static void tell_closing(struct bow_loop *loop)
{
    struct bow__link *link = loop->closings.next;

    while (link != &loop->closings) {
        struct bow__deferred *closing = BOW__CONTAINER(link, struct bow__deferred, link);
        link = link->next;
        closing->fn(closing);
    }
}

bool bow__loop_check_shutdown(struct bow_loop *loop)
{
    if (bow__loop_state(loop) < BOW_LOOP_SHUTTING_DOWN) {
        return false;
    }
    if (loop->stage == BOW__LOOP_OPEN) {
        loop->stage = BOW__LOOP_QUIET;
        loop->last_work_ns = loop->now_ns;
    }
    if (loop->stage == BOW__LOOP_QUIET && may_close(loop)) {
        loop->stage = BOW__LOOP_CLOSING;
        tell_closing(loop);
        bow__loop_close_watches(loop);
        bow__loop_run_flushes(loop);
        bow__loop_run_frees(loop);
    }
    if (loop->stage == BOW__LOOP_CLOSING && bow__loop_n_channels(loop) == 0) {
        finish(loop);
        return true;
    }
    return false;
}

void bow__loop_count_channel(struct bow_loop *loop, int delta)
{
    uint64_t change = (uint64_t)(int64_t)delta;
    uint64_t n = atomic_fetch_add_explicit(&loop->n_channels, change, memory_order_relaxed);

    /* The loop may wait for just this; it may also be about to, so the signal is not spared. */
    if (n + change == 0 && bow__loop_state(loop) >= BOW_LOOP_SHUTTING_DOWN &&
        !bow_loop_in_loop(loop)) {
        wake(loop);
    }
}

/* Waiting for the end */

int bow_loop_join(struct bow_loop *loop, uint64_t timeout_ns)
{
    const struct timespec deadline = bow__cond_deadline(timeout_ns);
    int rc = 0;

    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (bow_loop_in_loop(loop)) {
        return bow__refuse(loop->context, -EDEADLK,
                           "bow_loop_join: on loop %s itself it would wait for ever", loop->name);
    }
    pthread_mutex_lock(&loop->mutex);
    while (rc == 0 && bow__loop_state(loop) != BOW_LOOP_TERMINATED) {
        rc = pthread_cond_timedwait(&loop->terminated, &loop->mutex, &deadline);
    }
    pthread_mutex_unlock(&loop->mutex);
    return -rc;
}
