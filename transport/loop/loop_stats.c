/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a loop tells about itself. The loop charges the time between two readings
 * of its clock to the phase it is in; it reads none for that.
 */

#include "base/refuse.h"
#include "transport/loop/loop_internal.h"

#include <bowline/loop_stats.h>
#include <errno.h>
#include <string.h>

void bow__loop_mark(struct bow_loop *loop, enum bow__loop_phase next)
{
    uint64_t ns = loop->now_ns - loop->mark_ns;

    if (loop->phase == BOW__LOOP_IO) {
        bow__count(&loop->counters.io_ns, ns);
        loop->turn_ns += ns;
    } else if (loop->phase == BOW__LOOP_TASKS) {
        bow__count(&loop->counters.task_ns, ns);
        loop->turn_ns += ns;
    }
    loop->mark_ns = loop->now_ns;
    loop->phase = next;
}

static void raise_to(_Atomic(uint64_t) *maximum, uint64_t value)
{
    if (value > atomic_load_explicit(maximum, memory_order_relaxed)) {
        atomic_store_explicit(maximum, value, memory_order_relaxed);
    }
}

void bow__loop_end_turn_time(struct bow_loop *loop)
{
    bow__loop_mark(loop, BOW__LOOP_IDLE);
    raise_to(&loop->counters.max_turn_ns, loop->turn_ns);
    loop->turn_ns = 0;
}

void bow__loop_note_lag(struct bow_loop *loop, uint64_t lag_ns)
{
    atomic_store_explicit(&loop->counters.lag_ns, lag_ns, memory_order_relaxed);
    raise_to(&loop->counters.max_lag_ns, lag_ns);
}

static uint64_t read_counter(const _Atomic(uint64_t) *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Of what other threads posted, what was neither lazy nor signalled found the loop awake. */
static uint64_t skipped_wakeups(const struct bow_loop *loop)
{
    uint64_t posts = read_counter(&loop->counters.posts_taken);
    uint64_t others = read_counter(&loop->n_lazy_posts) + read_counter(&loop->inbox.n_signals);
    return posts > others ? posts - others : 0;
}

int bow_loop_get_stats(const struct bow_loop *loop, struct bow_loop_stats *stats)
{
    const struct bow__loop_counters *counters = &loop->counters;
    const size_t size = stats->size;

    if (size < sizeof(size) || size > sizeof(*stats)) {
        return bow__refuse(loop->context, -EINVAL,
                           "bow_loop_get_stats: set stats->size to its size first");
    }
    struct bow_loop_stats now = {
        .size = size,
        .turns = read_counter(&counters->turns),
        .polls = read_counter(&counters->polls),
        .events = read_counter(&counters->events),
        .tasks_run = read_counter(&counters->tasks_run),
        .tasks_failed = read_counter(&counters->tasks_failed),
        .tasks_rejected = read_counter(&loop->n_rejected),
        .timers_fired = read_counter(&counters->timers_fired),
        .wakeups_sent = read_counter(&loop->inbox.n_signals),
        .wakeups_skipped = skipped_wakeups(loop),
        .pending_tasks = read_counter(&counters->pending_tasks),
        .pending_timers = read_counter(&counters->pending_timers),
        .channels = bow__loop_n_channels(loop),
        .pending_tails = read_counter(&counters->pending_tails),
        .io_ns = read_counter(&counters->io_ns),
        .task_ns = read_counter(&counters->task_ns),
        .max_turn_ns = read_counter(&counters->max_turn_ns),
        .lag_ns = read_counter(&counters->lag_ns),
        .max_lag_ns = read_counter(&counters->max_lag_ns),
        .failed_polls = read_counter(&counters->failed_polls),
        .rebuilds = read_counter(&counters->rebuilds),
        .pauses = read_counter(&counters->pauses),
        .holds = read_counter(&counters->holds),
    };
    memcpy(stats, &now, size);
    return 0;
}
