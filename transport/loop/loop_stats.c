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

void bow__loop_end_turn_time(struct bow_loop *loop)
{
    bow__loop_mark(loop, BOW__LOOP_IDLE);
    bow__count_most(&loop->counters.max_turn_ns, loop->turn_ns);
    loop->turn_ns = 0;
}

void bow__loop_note_lag(struct bow_loop *loop, uint64_t lag_ns)
{
    atomic_store_explicit(&loop->counters.lag_ns, lag_ns, memory_order_relaxed);
    bow__count_most(&loop->counters.max_lag_ns, lag_ns);
}

uint64_t bow__loop_n_turns(const struct bow_loop *loop)
{
    return bow__counted(&loop->counters.turns);
}

/* Of what other threads posted, what was neither lazy nor signalled found the loop awake. */
static uint64_t skipped_wakeups(const struct bow_loop *loop)
{
    uint64_t posts = bow__counted(&loop->counters.posts_taken);
    uint64_t others = bow__counted(&loop->n_lazy_posts) + bow__counted(&loop->inbox.n_signals);
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
        .turns = bow__counted(&counters->turns),
        .polls = bow__counted(&counters->polls),
        .events = bow__counted(&counters->events),
        .tasks_run = bow__counted(&counters->tasks_run),
        .tasks_failed = bow__counted(&counters->tasks_failed),
        .tasks_rejected = bow__counted(&loop->n_rejected),
        .timers_fired = bow__counted(&counters->timers_fired),
        .wakeups_sent = bow__counted(&loop->inbox.n_signals),
        .wakeups_skipped = skipped_wakeups(loop),
        .pending_tasks = bow__counted(&counters->pending_tasks),
        .pending_timers = bow__counted(&counters->pending_timers),
        .channels = bow__loop_n_channels(loop),
        .pending_tails = bow__counted(&counters->pending_tails),
        .io_ns = bow__counted(&counters->io_ns),
        .task_ns = bow__counted(&counters->task_ns),
        .max_turn_ns = bow__counted(&counters->max_turn_ns),
        .lag_ns = bow__counted(&counters->lag_ns),
        .max_lag_ns = bow__counted(&counters->max_lag_ns),
        .failed_polls = bow__counted(&counters->failed_polls),
        .rebuilds = bow__counted(&counters->rebuilds),
        .pauses = bow__counted(&counters->pauses),
        .holds = bow__counted(&counters->holds),
        .max_hold_ns = bow__counted(&counters->max_hold_ns),
    };
    memcpy(stats, &now, size);
    return 0;
}
