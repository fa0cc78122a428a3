/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One turn of the loop: the order of its phases, and how its time is shared
 * between I/O and tasks. Knows nothing of how any phase does its work.
 */

#include "transport/loop/loop_core.h"

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

bool bow__loop_turn(struct bow_loop *loop, uint64_t max_wait_ns)
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
