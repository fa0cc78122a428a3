/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Scheduled tasks: made and cancelled on any thread, timed by the loop. Built on
 * intrusive timers; knows nothing of the heap.
 *
 * Design
 *
 *     PENDING ──► RUNNING ──► DONE            once, or a periodic one that failed
 *        │  ▲        │ │
 *        │  └────────┘ └──► CANCELLED         periodic: back to PENDING, unless cancelled meanwhile
 *        └───────────────► CANCELLED
 *
 * `state` changes by compare-and-swap (acq_rel, failure acquire; partner: itself),
 * so between the loop that wants to start it and a thread that cancels it one
 * wins, and the canceller knows which. Everything else belongs to the loop.
 * A thread that schedules posts `registration`, one that cancels posts `removal`,
 * each at most once; if the removal comes first it finds nothing, and the registration
 * then finds CANCELLED. Both are part of the object, so nothing more is
 * allocated and nothing stays behind.
 *
 * References (relaxed up, acq_rel down): the maker's; the loop's, until the task
 * has ended; the removal's while it is posted.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/refuse.h"
#include "transport/loop/loop_internal.h"

#include <bowline/timer.h>
#include <errno.h>

enum scheduled_state {
    PENDING = 0,
    RUNNING = 1,
    DONE = 2,
    CANCELLED = 3,
};

struct bow_scheduled {
    struct bow_loop *loop; /* held */
    atomic_uint refs;
    atomic_int state;
    enum bow_schedule_kind kind;
    uint64_t deadline_ns;
    uint64_t period_ns;
    const char *name;
    bow_task_fn fn;
    void *user;
    struct bow_timer timer;
    struct bow_task task; /* in the ordinary queue once it is due */
    struct bow_task registration;
    struct bow_task removal;
    struct bow__deferred closing; /* in the loop's list while it has not ended */
};

static bool change(struct bow_scheduled *scheduled, enum scheduled_state from,
                   enum scheduled_state to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong_explicit(&scheduled->state, &expected, (int)to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

static enum scheduled_state state_of(const struct bow_scheduled *scheduled)
{
    return (enum scheduled_state)atomic_load_explicit(&scheduled->state, memory_order_acquire);
}

struct bow_scheduled *bow_scheduled_unref(struct bow_scheduled *scheduled)
{
    if (scheduled != NULL &&
        atomic_fetch_sub_explicit(&scheduled->refs, 1, memory_order_acq_rel) == 1) {
        struct bow_loop *loop = scheduled->loop;
        bow__free(loop->context, scheduled, sizeof(*scheduled));
        bow__loop_release(loop);
    }
    return NULL;
}

/* It is in no queue and no heap, and never will be again. */
static void end(struct bow_scheduled *scheduled)
{
    bow__list_remove(&scheduled->closing.link);
    bow_scheduled_unref(scheduled);
}

static void arm(struct bow_scheduled *scheduled)
{
    if (scheduled->loop->stage >= BOW__LOOP_CLOSING) {
        change(scheduled, PENDING, CANCELLED);
    }
    if (state_of(scheduled) == CANCELLED) {
        end(scheduled);
        return;
    }
    /* One that never comes due stands in the heap all the same, for its cancel to find. */
    if (scheduled->deadline_ns == BOW_NEVER) {
        bow_timer_start(&scheduled->timer, BOW_NEVER);
        return;
    }
    bow_timer_start_at(&scheduled->timer, scheduled->deadline_ns);
}

static void set_next_deadline(struct bow_scheduled *scheduled)
{
    uint64_t from = scheduled->kind == BOW_SCHEDULE_FIXED_RATE
                        ? scheduled->deadline_ns
                        : bow__loop_update_now(scheduled->loop);
    scheduled->deadline_ns = bow__time_add(from, scheduled->period_ns);
}

static int run(void *user)
{
    struct bow_scheduled *scheduled = user;

    bow__loop_free_slot(scheduled->loop);
    if (!change(scheduled, PENDING, RUNNING)) {
        end(scheduled);
        return 0;
    }
    int rc = scheduled->fn(scheduled->user);
    if (scheduled->kind == BOW_SCHEDULE_ONCE || rc < 0) {
        change(scheduled, RUNNING, DONE);
        end(scheduled);
        return rc;
    }
    set_next_deadline(scheduled);
    change(scheduled, RUNNING, PENDING);
    arm(scheduled);
    return rc;
}

/* Into the ordinary queue, or the next turn's when that is full (L33). */
static void on_due(struct bow_timer *timer, void *user)
{
    struct bow_scheduled *scheduled = user;

    if (!bow__loop_take_slot(scheduled->loop)) {
        bow_timer_start(timer, 0);
        return;
    }
    bow__loop_push_timed(scheduled->loop, &scheduled->task);
}

static int register_on_loop(void *user)
{
    struct bow_scheduled *scheduled = user;

    bow__loop_on_closing(scheduled->loop, &scheduled->closing);
    arm(scheduled);
    return 0;
}

static int remove_on_loop(void *user)
{
    struct bow_scheduled *scheduled = user;

    /* Armed: nobody else will end it. Otherwise its registration or its run does. */
    if (bow_timer_is_armed(&scheduled->timer)) {
        bow_timer_stop(&scheduled->timer);
        end(scheduled);
    }
    bow_scheduled_unref(scheduled);
    return 0;
}

static void remove_later(struct bow_scheduled *scheduled)
{
    atomic_fetch_add_explicit(&scheduled->refs, 1, memory_order_relaxed);
    if (bow_loop_in_loop(scheduled->loop)) {
        remove_on_loop(scheduled);
        return;
    }
    /* A loop that takes no tasks any more has ended all of its own already. */
    if (bow__loop_post_internal(scheduled->loop, &scheduled->removal, 0) < 0) {
        bow_scheduled_unref(scheduled);
    }
}

int bow_scheduled_cancel(struct bow_scheduled *scheduled)
{
    if (change(scheduled, PENDING, CANCELLED)) {
        remove_later(scheduled);
        return 0;
    }
    if (state_of(scheduled) == CANCELLED) {
        return 0;
    }
    bool is_inside = bow_loop_in_loop(scheduled->loop);
    if (scheduled->kind != BOW_SCHEDULE_ONCE && change(scheduled, RUNNING, CANCELLED)) {
        return is_inside ? 0 : -EBUSY;
    }
    return !is_inside && state_of(scheduled) == RUNNING ? -EBUSY : -EALREADY;
}

bool bow_scheduled_is_cancelled(const struct bow_scheduled *scheduled)
{
    return state_of(scheduled) == CANCELLED;
}

/* One that is due already stands in the ordinary queue, and runs. */
static void on_closing(struct bow__deferred *closing)
{
    struct bow_scheduled *scheduled = BOW__CONTAINER(closing, struct bow_scheduled, closing);

    if (bow_timer_is_armed(&scheduled->timer)) {
        change(scheduled, PENDING, CANCELLED);
        bow_timer_stop(&scheduled->timer);
        end(scheduled);
    }
}

static struct bow_scheduled *make(struct bow_loop *loop, const char *name, bow_task_fn fn,
                                  void *user, unsigned refs)
{
    struct bow_scheduled *scheduled = bow__alloc_zero(loop->context, sizeof(*scheduled));
    if (scheduled == NULL) {
        return NULL;
    }
    scheduled->loop = loop;
    scheduled->name = name;
    scheduled->fn = fn;
    scheduled->user = user;
    atomic_init(&scheduled->refs, refs);
    atomic_init(&scheduled->state, PENDING);
    bow_timer_init(&scheduled->timer, loop, on_due, scheduled);
    bow_task_init(&scheduled->task, name, run, scheduled);
    bow_task_init(&scheduled->registration, name, register_on_loop, scheduled);
    bow_task_init(&scheduled->removal, name, remove_on_loop, scheduled);
    bow__list_init(&scheduled->closing.link);
    scheduled->closing.fn = on_closing;
    bow__loop_hold(loop);
    return scheduled;
}

static int submit(struct bow_scheduled *scheduled)
{
    struct bow_loop *loop = scheduled->loop;

    if (!bow_loop_in_loop(loop)) {
        return bow__loop_post_internal(loop, &scheduled->registration, scheduled->deadline_ns);
    }
    if (loop->stage >= BOW__LOOP_CLOSING) {
        return -ESHUTDOWN;
    }
    register_on_loop(scheduled);
    return 0;
}

int bow_loop_schedule(struct bow_loop *loop, enum bow_schedule_kind kind, uint64_t delay_ns,
                      uint64_t period_ns, const char *name, bow_task_fn fn, void *user,
                      struct bow_scheduled **ret_scheduled)
{
    if (kind > BOW_SCHEDULE_FIXED_DELAY || (kind != BOW_SCHEDULE_ONCE && period_ns == 0)) {
        return bow__refuse(loop->context, -EINVAL, "bow_loop_schedule: task %s: %s", name,
                           kind > BOW_SCHEDULE_FIXED_DELAY
                               ? "kind is none of enum bow_schedule_kind"
                               : "period_ns is 0, and kind says that it is periodic");
    }
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    struct bow_scheduled *scheduled = make(loop, name, fn, user, ret_scheduled != NULL ? 2 : 1);
    if (scheduled == NULL) {
        return -ENOMEM;
    }
    scheduled->kind = kind;
    scheduled->period_ns = period_ns;
    scheduled->deadline_ns = bow__time_add(bow_loop_now(loop), delay_ns);
    int rc = submit(scheduled);
    if (rc < 0) {
        bow__free(loop->context, scheduled, sizeof(*scheduled));
        bow__loop_release(loop);
        return rc;
    }
    if (ret_scheduled != NULL) {
        *ret_scheduled = scheduled;
    }
    return 0;
}
