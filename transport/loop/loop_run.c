/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The turn of a loop, and whose thread runs it. The turn is the order of its phases, and how
 * its time is shared between I/O and tasks; how any phase does its work it does not know.
 *
 *     NOT_STARTED ─start─► STARTED ─ turn, turn … ─► TERMINATED (loop_shutdown.c)
 *
 * Starting and shutting down exclude each other by the mutex; the thread itself begins by
 * taking it, so it sees everything its starter wrote.
 */

#include "base/refuse.h"
#include "transport/loop/loop_internal.h"

#include <errno.h>
#include <string.h>

/* Time for tasks: io_time × (100 − r)/r. At 100 all present tasks run, whatever it takes. */
static uint64_t task_budget(const struct bow_loop *loop, uint64_t io_ns)
{
    uint64_t ratio = loop->options.io_ratio;
    return ratio == 100 ? BOW_NEVER : io_ns * (100 - ratio) / ratio;
}

static void publish_gauges(struct bow_loop *loop)
{
    bow__count(&loop->counters.turns, 1);
    atomic_store_explicit(&loop->counters.pending_tasks, loop->tasks.n_tasks, memory_order_relaxed);
    atomic_store_explicit(&loop->counters.pending_timers, loop->timers.n_nodes,
                          memory_order_relaxed);
    atomic_store_explicit(&loop->counters.pending_tails, loop->tails.n_tasks, memory_order_relaxed);
}

/* The ready channels of this turn have been served. Returns what that took, when somebody needs to
 * know: the clock is read only if there is work that shares the time with them. */
static uint64_t end_io(struct bow_loop *loop, uint64_t started_ns, bool has_io)
{
    bool has_more = loop->tasks.first != NULL || bow__loop_next_timer(loop) <= loop->now_ns;

    if (!has_more) {
        return 0;
    }
    if (has_io) {
        bow__loop_update_now(loop);
    }
    bow__loop_mark(loop, BOW__LOOP_TASKS);
    return loop->now_ns - started_ns;
}

/* One turn that waits at most `max_wait_ns`. True when the loop has terminated. */
static bool run_turn(struct bow_loop *loop, uint64_t max_wait_ns)
{
    loop->in_turn = true;
    bow__inbox_awake(&loop->inbox);
    bow__loop_poll(loop, max_wait_ns);

    if (loop->n_sources > 0) {
        bow__loop_take_events(loop);
    }
    uint64_t io_started_ns = loop->now_ns;
    bool has_io = loop->n_events > 0 || !bow__list_is_empty(&loop->readies);
    loop->phase = has_io ? BOW__LOOP_IO : BOW__LOOP_IDLE;
    bow__loop_handle_events(loop);
    bow__loop_run_readies(loop);
    bow__loop_run_flushes(loop);

    bow__loop_take_inbox(loop);
    uint64_t io_ns = end_io(loop, io_started_ns, has_io);
    bow__loop_fire_timers(loop);
    bow__loop_run_tasks(loop, task_budget(loop, io_ns));
    bow__loop_run_flushes(loop);
    bow__loop_run_tails(loop);
    bow__loop_run_frees(loop);

    bool has_terminated = bow__loop_check_shutdown(loop);
    publish_gauges(loop);
    loop->in_turn = false;
    if (!has_terminated) {
        bow__loop_rearm(loop);
    }
    return has_terminated;
}

/* A thread of its own */

static void set_owner(struct bow_loop *loop)
{
    atomic_store_explicit(&loop->owner, (uintptr_t)pthread_self(), memory_order_relaxed);
}

static void thread_main(void *argument)
{
    struct bow_loop *loop = argument;

    pthread_mutex_lock(&loop->mutex);
    pthread_mutex_unlock(&loop->mutex);
    set_owner(loop);
    while (!run_turn(loop, BOW_NEVER)) {
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
        bow__loop_advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_STARTED);
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
    bow__loop_advance(loop, BOW_LOOP_NOT_STARTED, BOW_LOOP_STARTED);
}

static int enter(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (loop->options.thread != BOW_LOOP_OWNER) {
        return bow__refuse(loop->context, -EINVAL,
                           "bow_loop_run: loop %s has a thread of its own; its owner runs one that "
                           "was made with options.thread = BOW_LOOP_OWNER",
                           loop->name);
    }
    if (atomic_exchange_explicit(&loop->running, true, memory_order_acquire)) {
        return bow__refuse(loop->context, -EBUSY,
                           "bow_loop_run: loop %s is being run, by another thread or further up on "
                           "this one's stack",
                           loop->name);
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
        run_turn(loop, BOW_NEVER);
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
        has_terminated = run_turn(loop, timeout_ns);
    }
    /* Who drives a loop now and then does not hear of a timer one round late. */
    if (loop->has_timer_waiting && !has_terminated && !bow__loop_is_foreign(loop)) {
        has_terminated = run_turn(loop, 0);
    }
    /* Nobody else has a reference left to drive it to its end with. */
    while (loop->is_abandoned && !has_terminated && !bow__loop_is_foreign(loop)) {
        has_terminated = run_turn(loop, BOW_NEVER);
    }
    leave(loop);
    return 0;
}
