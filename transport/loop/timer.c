/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Intrusive timers on the loop's heap, and which of them fire: after a long turn, or in a process
 * that was stopped, some wait until what is ready has been read. Knows nothing of scheduled tasks,
 * which are built on these.
 *
 * Invariant: a timer armed while timers fire gets a key not below the loop's time
 * and a later sequence number, so it stands behind all that are due now and waits
 * for the next turn: a timer that re-arms itself with no delay starves nobody.
 */

#include "base/clock.h"
#include "transport/loop/loop_internal.h"

#include <assert.h>
#include <bowline/timer.h>

void bow_timer_init(struct bow_timer *timer, struct bow_loop *loop, bow_timer_fn fn, void *user)
{
    *timer = (struct bow_timer){.fn = fn, .user = user, .loop = loop};
}

static void arm(struct bow_timer *timer, uint64_t deadline_ns)
{
    struct bow_loop *loop = timer->loop;

    assert(bow__loop_may_touch(loop));
    if (bow__heap_node_is_in(&timer->node)) {
        bow__heap_remove(&loop->timers, &timer->node);
    }
    /* Nothing fires any more, and nobody would take it out of the heap. */
    if (bow__loop_state(loop) == BOW_LOOP_TERMINATED) {
        return;
    }
    bow__heap_insert(&loop->timers, &timer->node, deadline_ns);
    bow__loop_rearm(loop);
}

void bow_timer_start(struct bow_timer *timer, uint64_t delay_ns)
{
    arm(timer, bow__time_add(bow_loop_now(timer->loop), delay_ns));
}

void bow_timer_start_at(struct bow_timer *timer, uint64_t deadline_ns)
{
    if (deadline_ns == BOW_NEVER) {
        bow_timer_stop(timer);
        return;
    }
    uint64_t now = bow_loop_now(timer->loop);
    arm(timer, deadline_ns > now ? deadline_ns : now);
}

void bow_timer_stop(struct bow_timer *timer)
{
    assert(bow__loop_may_touch(timer->loop));
    if (bow__heap_node_is_in(&timer->node)) {
        bow__heap_remove(&timer->loop->timers, &timer->node);
        bow__loop_rearm(timer->loop);
    }
}

bool bow_timer_is_armed(const struct bow_timer *timer)
{
    return bow__heap_node_is_in(&timer->node);
}

static void fire(struct bow_loop *loop, struct bow_timer *timer)
{
    struct bow__watchdog watchdog;

    bow__watchdog_begin(&watchdog, loop, "timer", NULL, (uintptr_t)timer->fn);
    timer->fn(timer, timer->user);
    bow__watchdog_end(&watchdog);
}

/* One that comes due later than this after the poll has looked waits for the next one: a turn that
 * took long, or a process that was stopped, has bytes unread that a timer is not to judge
 * without. */
#define AFTER_LOOK_NS UINT64_C(1000000)

void bow__loop_fire_timers(struct bow_loop *loop)
{
    const uint64_t now = loop->now_ns;
    const uint64_t limit = bow__time_min(now, bow__time_add(loop->looked_ns, AFTER_LOOK_NS));
    const uint64_t first_new = loop->timers.next_seq;
    struct bow__heap_node *node;
    uint64_t n = 0;

    while ((node = bow__heap_min(&loop->timers)) != NULL && node->key <= limit &&
           node->seq < first_new) {
        struct bow_timer *timer = BOW__CONTAINER(node, struct bow_timer, node);
        if (n == 0) {
            bow__loop_note_lag(loop, now - node->key);
        }
        bow__heap_remove(&loop->timers, node);
        n++;
        fire(loop, timer);
    }
    loop->has_timer_waiting = node != NULL && node->key <= now && node->key > limit;
    bow__count(&loop->counters.timers_fired, n);
}

void bow__loop_drop_timers(struct bow_loop *loop)
{
    struct bow__heap_node *node;

    while ((node = bow__heap_min(&loop->timers)) != NULL) {
        bow__heap_remove(&loop->timers, node);
    }
}
