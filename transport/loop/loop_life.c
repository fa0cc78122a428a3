/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The states of a loop: who runs it, how it starts, how it ends.
 *
 *     NOT_STARTED ─start─► STARTED ─shutdown─► SHUTTING_DOWN ─► SHUTDOWN ─► TERMINATED
 *                                              quiet, closing   last tasks
 *
 * A loop with a thread of its own that never started goes from the first to the
 * last state at once, on the thread that shuts it down: there is nothing to run.
 *
 * Starting and shutting down exclude each other by the mutex; the thread itself
 * begins by taking it, so it sees everything its starter wrote. Waiting for the end
 * uses the real monotonic clock: it waits for real threads, whatever the table's
 * clock says.
 */

#include "base/clock.h"
#include "transport/loop/condition.h"
#include "transport/loop/loop_core.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static bool advance(struct bow_loop *loop, enum bow_loop_state from, enum bow_loop_state to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong_explicit(&loop->state, &expected, (int)to,
                                                   memory_order_release, memory_order_relaxed);
}

static void set_owner(struct bow_loop *loop)
{
    atomic_store_explicit(&loop->owner, (uintptr_t)pthread_self(), memory_order_relaxed);
}

static void wake(struct bow_loop *loop)
{
    loop->system->wake_signal(loop->system->user, loop->wake_watch.fd);
}

/* Starting */

static void thread_main(void *argument)
{
    struct bow_loop *loop = argument;

    pthread_mutex_lock(&loop->mutex);
    pthread_mutex_unlock(&loop->mutex);
    set_owner(loop);
    while (!bow__loop_turn(loop, BOW_NEVER)) {
    }
    if (loop->is_abandoned) {
        loop->system->thread_detach(loop->system->user, loop->thread);
        bow__loop_release(loop);
    }
}

static int start_locked(struct bow_loop *loop)
{
    struct bow_thread_options options = {
        .stack_bytes = loop->options.stack_bytes,
        .cpu = loop->options.cpu,
    };

    int rc = bow__loop_claim(loop);
    if (rc < 0) {
        return rc;
    }
    memcpy(options.name, loop->name, sizeof(options.name));
    rc = loop->system->thread_start(loop->system->user, &options, thread_main, loop, &loop->thread);
    if (rc == 0) {
        advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_STARTED);
    }
    return rc;
}

int bow__loop_start(struct bow_loop *loop)
{
    int rc = 0;

    if (loop->options.thread == BOW_LOOP_OWNER) {
        return 0;
    }
    pthread_mutex_lock(&loop->mutex);
    if (bow__loop_state(loop) == BOW_LOOP_NOT_STARTED) {
        rc = start_locked(loop);
    }
    pthread_mutex_unlock(&loop->mutex);
    return rc;
}

int bow__loop_prepare(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    int rc = bow__loop_start(loop);
    return rc == 0 && bow__loop_state(loop) >= BOW_LOOP_SHUTTING_DOWN ? -ESHUTDOWN : rc;
}

/* Running by the owner */

void bow__loop_settle(struct bow_loop *loop)
{
    set_owner(loop);
    advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_STARTED);
}

static int enter(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (loop->options.thread != BOW_LOOP_OWNER) {
        return -EINVAL;
    }
    if (atomic_exchange_explicit(&loop->running, true, memory_order_acquire)) {
        return -EBUSY;
    }
    int rc = bow__loop_claim(loop);
    if (rc < 0) {
        atomic_store_explicit(&loop->running, false, memory_order_release);
        return rc;
    }
    bow__loop_hold(loop);
    if (bow__loop_state(loop) != BOW_LOOP_TERMINATED) {
        bow__loop_settle(loop);
    }
    return 0;
}

static void leave(struct bow_loop *loop)
{
    bool is_abandoned = loop->is_abandoned;

    atomic_store_explicit(&loop->running, false, memory_order_release);
    if (is_abandoned) {
        bow__loop_release(loop);
    }
    bow__loop_release(loop);
}

int bow_loop_run(struct bow_loop *loop)
{
    int rc = enter(loop);
    if (rc < 0) {
        return rc;
    }
    /* A callback may have forked, and returned in the child as well. */
    while (bow__loop_state(loop) != BOW_LOOP_TERMINATED && rc == 0) {
        bow__loop_turn(loop, BOW_NEVER);
        rc = bow__loop_is_foreign(loop) ? -ECHILD : 0;
    }
    leave(loop);
    return rc;
}

int bow_loop_run_once(struct bow_loop *loop, uint64_t timeout_ns)
{
    int rc = enter(loop);
    if (rc < 0) {
        return rc;
    }
    bool has_terminated = bow__loop_state(loop) == BOW_LOOP_TERMINATED;
    if (!has_terminated) {
        has_terminated = bow__loop_turn(loop, timeout_ns);
    }
    /* Nobody else has a reference left to drive it to its end with. */
    while (loop->is_abandoned && !has_terminated && !bow__loop_is_foreign(loop)) {
        has_terminated = bow__loop_turn(loop, BOW_NEVER);
    }
    leave(loop);
    return 0;
}

/* Shutting down */

static void set_terminated(struct bow_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    atomic_store_explicit(&loop->owner, 0, memory_order_relaxed);
    advance(loop, BOW_LOOP_SHUTDOWN, BOW_LOOP_TERMINATED);
    pthread_cond_broadcast(&loop->terminated);
    pthread_mutex_unlock(&loop->mutex);
    bow__loop_tell_terminated(loop);
}

static void terminate_unstarted(struct bow_loop *loop)
{
    advance(loop, BOW_LOOP_SHUTTING_DOWN, BOW_LOOP_SHUTDOWN);
    bow__inbox_close(&loop->inbox);
    advance(loop, BOW_LOOP_SHUTDOWN, BOW_LOOP_TERMINATED);
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
    if (advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_SHUTTING_DOWN) &&
        loop->options.thread == BOW_LOOP_OWN_THREAD) {
        terminate_unstarted(loop);
    }
    advance(loop, BOW_LOOP_STARTED, BOW_LOOP_SHUTTING_DOWN);
    pthread_mutex_unlock(&loop->mutex);
    bow__loop_tell_terminated(loop); /* if it never started */
    if (bow_loop_in_loop(loop)) {
        bow__loop_rearm(loop);
    } else {
        wake(loop);
    }
    return 0;
}

uint64_t bow__loop_shutdown_due(struct bow_loop *loop)
{
    if (bow__loop_state(loop) < BOW_LOOP_SHUTTING_DOWN || loop->stage == BOW__LOOP_CLOSING) {
        return BOW_NEVER;
    }
    if (loop->stage == BOW__LOOP_OPEN) {
        return 0;
    }
    pthread_mutex_lock(&loop->mutex);
    uint64_t quiet_at_ns = bow__time_add(loop->last_work_ns, loop->quiet_ns);
    uint64_t due_ns = bow__time_min(quiet_at_ns, loop->shutdown_at_ns);
    pthread_mutex_unlock(&loop->mutex);
    return due_ns;
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
    advance(loop, BOW_LOOP_SHUTTING_DOWN, BOW_LOOP_SHUTDOWN);
    bow__loop_close_tasks(loop);
    run_deferred(loop);
    bow__loop_drop_timers(loop);
    set_terminated(loop);
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
        bow__loop_cancel_scheduled(loop);
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

/* Waiting for the end */

int bow_loop_join(struct bow_loop *loop, uint64_t timeout_ns)
{
    const struct timespec deadline = bow__cond_deadline(timeout_ns);
    int rc = 0;

    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (bow_loop_in_loop(loop)) {
        return -EDEADLK;
    }
    pthread_mutex_lock(&loop->mutex);
    while (rc == 0 && bow__loop_state(loop) != BOW_LOOP_TERMINATED) {
        rc = pthread_cond_timedwait(&loop->terminated, &loop->mutex, &deadline);
    }
    pthread_mutex_unlock(&loop->mutex);
    return -rc;
}

/* The last reference */

static void drive_to_the_end(struct bow_loop *loop)
{
    while (bow__loop_state(loop) != BOW_LOOP_TERMINATED) {
        int rc = bow_loop_run_once(loop, BOW_NEVER);
        assert(rc != -EBUSY); /* whoever else runs it holds a reference */
        if (rc < 0) {
            return;
        }
    }
}

void bow__loop_abandon(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        bow__loop_forsake(loop);
        return;
    }
    bow_loop_shutdown(loop, 0, 0);
    if (bow_loop_in_loop(loop) && loop->in_turn) {
        loop->is_abandoned = true;
        return;
    }
    if (loop->options.thread == BOW_LOOP_OWNER) {
        drive_to_the_end(loop);
    } else if (loop->thread != NULL) {
        loop->system->thread_join(loop->system->user, loop->thread);
    }
    bow__loop_release(loop);
}
