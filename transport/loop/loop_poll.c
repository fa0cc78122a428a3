/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long a turn waits, and the wait: the strategy, the spin before a sleep, the
 * nearest deadline, the batch of events; up to when I/O has been looked at; and when a quiet loop
 * gives memory back. Knows nothing of what the events mean.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "transport/loop/loop_internal.h"

#include <errno.h>

/* A batch this large takes longer to handle than another poll costs. */
#define MAX_EVENTS 8192

/* A loop without events for that long gives half of its idle chunks back, and again. */
#define IDLE_NS UINT64_C(1000000000)

/* How often the context is asked to give back what was freed, while there is some. */
#define TRIM_NS UINT64_C(500000000)

/* After an error the first wait is short: what it tells is whether the poller works again. */
#define PROBE_NS UINT64_C(1000000)

/* When the shutdown check wants to be asked again; BOW_NEVER while nobody has shut down. */
static uint64_t shutdown_due(struct bow_loop *loop)
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

static uint64_t next_due(struct bow_loop *loop)
{
    uint64_t due = bow__time_min(bow__loop_next_timer(loop), shutdown_due(loop));
    return bow__time_min(due, loop->rest_until_ns);
}

static enum bow_loop_select choose(struct bow_loop *loop, bool pending)
{
    if (loop->options.select == NULL) {
        return pending ? BOW_LOOP_BUSY_WAIT : loop->options.strategy;
    }
    enum bow_loop_select choice = loop->options.select(loop, pending, loop->options.select_user);
    return choice == BOW_LOOP_SELECT && pending ? BOW_LOOP_BUSY_WAIT : choice;
}

/* Whether the next batch will be larger. */
static bool grow_batch(struct bow_loop *loop)
{
    size_t old_size = (size_t)loop->events_cap * sizeof(*loop->events);

    if (loop->events_cap >= MAX_EVENTS) {
        return false;
    }
    struct bow_poll_event *events =
        bow__resize(loop->context, loop->events, old_size, 2 * old_size);
    if (events == NULL) {
        return false;
    }
    loop->events = events;
    loop->events_cap *= 2;
    return true;
}

/*
 * Up to when it is known that what was ready has been seen. A wait that a signal ended saw nothing,
 * and one whose batch is full left something out, for which the next has room. One that returns
 * late, in a process that was stopped, say, looked when it was to end.
 */
static uint64_t looked_until(struct bow_loop *loop, int n, uint64_t began_ns, uint64_t until_ns)
{
    if (n == -EINTR || (n == loop->events_cap && grow_batch(loop))) {
        return loop->looked_ns;
    }
    if (n < 0) {
        return loop->now_ns; /* nobody knows; timers go on */
    }
    return until_ns > 0 ? bow__time_min(until_ns, loop->now_ns) : began_ns;
}

/* `until_ns` 0: do not wait. */
static void poll_until(struct bow_loop *loop, uint64_t until_ns)
{
    uint64_t began_ns = loop->now_ns;
    uint64_t timeout_ns = until_ns > 0 ? bow__time_left(until_ns, loop->now_ns) : 0;
    int n = loop->system->poller->wait(loop->poller, loop->events, loop->events_cap, timeout_ns);

    if (timeout_ns > 0 && loop->has_fd) {
        loop->armed_at_ns = 0; /* a poller may sleep by the very timer that arm() sets */
    }
    bow__loop_update_now(loop);
    bow__loop_end_turn_time(loop);
    loop->looked_ns = looked_until(loop, n, began_ns, until_ns);
    bow__count(&loop->counters.polls, 1);
    loop->n_events = n > 0 ? n : 0;
    bow__loop_judge_poll(loop, n, until_ns);
    if (n > 0) {
        loop->last_events_ns = loop->now_ns;
        bow__count(&loop->counters.events, (uint64_t)n);
    }
}

/* Polls without blocking until `end_ns`; true when there is something to do. */
static bool spin_until(struct bow_loop *loop, uint64_t end_ns)
{
    do {
        poll_until(loop, 0);
        if (loop->n_events > 0 || !bow__inbox_is_empty(&loop->inbox) ||
            loop->rest_until_ns != BOW_NEVER) {
            return true;
        }
    } while (loop->now_ns < end_ns);
    return false;
}

static uint64_t trim_pool(struct bow_loop *loop)
{
    uint64_t due_ns = bow__time_add(loop->last_events_ns, IDLE_NS);

    if (!bow__pool_is_empty(&loop->pool) && due_ns <= loop->now_ns) {
        bow__pool_trim(&loop->pool);
        loop->last_events_ns = loop->now_ns;
        due_ns = bow__time_add(loop->now_ns, IDLE_NS);
    }
    return bow__pool_is_empty(&loop->pool) ? BOW_NEVER : due_ns;
}

/* Whatever else goes on: large blocks are rare beside small calls, and bursts beside single ones.
 */
static uint64_t trim_freed(struct bow_loop *loop)
{
    if (!bow__may_trim(loop->context)) {
        loop->trim_at_ns = BOW_NEVER;
    } else if (loop->trim_at_ns == BOW_NEVER) {
        loop->trim_at_ns = bow__time_add(loop->now_ns, TRIM_NS);
    } else if (loop->trim_at_ns <= loop->now_ns) {
        bow__trim(loop->context, loop->now_ns);
        loop->trim_at_ns = bow__time_add(loop->now_ns, TRIM_NS);
    }
    return loop->trim_at_ns;
}

/* What an owner waits for: nobody else gives back what its loop's work has freed. */
static uint64_t next_due_of_owner(struct bow_loop *loop)
{
    return bow__time_min(next_due(loop), trim_freed(loop));
}

uint64_t bow__loop_timeout(struct bow_loop *loop)
{
    return bow__loop_has_work(loop)
               ? 0
               : bow__time_left(next_due_of_owner(loop), bow__loop_clock(loop));
}

/* Returns when it wants to be asked again. */
static uint64_t trim_memory(struct bow_loop *loop)
{
    return bow__time_min(trim_pool(loop), trim_freed(loop));
}

static void sleep_for(struct bow_loop *loop, uint64_t max_wait_ns)
{
    uint64_t now = bow__loop_update_now(loop);
    uint64_t until = bow__time_min(next_due(loop), bow__time_add(now, max_wait_ns));

    bow__loop_end_turn_time(loop);
    if (loop->n_errors_in_row > 0) {
        until = bow__time_min(until, bow__time_add(now, PROBE_NS));
    }
    if (until > now && loop->options.spin_ns > 0) {
        uint64_t end = bow__time_min(until, bow__time_add(now, loop->options.spin_ns));
        if (spin_until(loop, end)) {
            trim_memory(loop);
            return;
        }
        now = loop->now_ns;
    }
    until = bow__time_min(until, trim_memory(loop));
    if (until <= now || !bow__inbox_sleep(&loop->inbox, until)) {
        poll_until(loop, 0);
        return;
    }
    poll_until(loop, until);
    bow__inbox_awake(&loop->inbox);
}

void bow__loop_poll(struct bow_loop *loop, uint64_t max_wait_ns)
{
    if (bow__loop_is_resting(loop)) {
        bow__loop_end_turn_time(loop);
        bow__loop_rest(loop,
                       bow__time_min(next_due(loop), bow__time_add(loop->now_ns, max_wait_ns)));
        loop->looked_ns = loop->now_ns;
        return;
    }
    switch (choose(loop, bow__loop_has_work(loop))) {
    case BOW_LOOP_CONTINUE:
        loop->looked_ns = bow__loop_update_now(loop);
        bow__loop_end_turn_time(loop);
        return;
    case BOW_LOOP_BUSY_WAIT:
        poll_until(loop, 0);
        trim_memory(loop);
        return;
    case BOW_LOOP_SELECT:
        break;
    }
    sleep_for(loop, max_wait_ns);
}

void bow__loop_rearm(struct bow_loop *loop)
{
    uint64_t at = 0;

    if (!loop->has_fd || loop->in_turn) {
        return;
    }
    uint64_t now = bow__loop_clock(loop);
    if (!bow__loop_has_work(loop)) {
        at = next_due_of_owner(loop);
        if (at <= now || !bow__inbox_sleep(&loop->inbox, at)) {
            at = 0;
        }
    }
    /* One that is due has fired or is about to; only a pending one need not be set again. */
    if (at == loop->armed_at_ns && at > now) {
        return;
    }
    int rc = loop->system->poller->arm(loop->poller, bow__time_left(at, now));
    loop->armed_at_ns = rc == 0 ? at : 0;
    if (rc < 0) {
        bow__loop_log_poller(loop, "arming the loop's descriptor", rc);
    }
}
