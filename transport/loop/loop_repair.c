/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a loop does about a poller that fails, or that keeps returning early with
 * nothing: it opens another one, registers everything there, and lets the old one
 * go. An error that repeats at once is not met by spinning: polling rests for a
 * second, while tasks, timers and wake-ups go on without the poller. The first wait
 * after an error is a short one, so that a loop without work is not called
 * unhealthy for as long as it sleeps.
 */

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/loop/loop_internal.h"

#include <errno.h>

#define REST_NS UINT64_C(1000000000)

/* Said at the 1st, 2nd, 4th, 8th … time, so that a broken poller does not fill the log. */
static bool is_worth_a_line(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

void bow__loop_log_poller(struct bow_loop *loop, const char *what, int error)
{
    struct bow__text text;

    loop->n_poller_errors++;
    if (!is_worth_a_line(loop->n_poller_errors)) {
        return;
    }
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(loop->context, BOW_LOG_ERROR, "loop %s: %s failed: %s", loop->name, what, text.bytes);
}

/* Registering anew */

static void register_all(struct bow_loop *loop, struct bow_poller *fresh, struct bow__link *lost)
{
    struct bow__link all;
    struct bow__link *link;

    bow__list_init(&all);
    bow__list_move(&all, &loop->watches);
    while ((link = bow__list_pop_front(&all)) != NULL) {
        struct bow__watch *watch = BOW__CONTAINER(link, struct bow__watch, link);
        int rc = 0;
        if (watch->events != 0 && watch->source == NULL) {
            rc = loop->system->poller->add(fresh, watch->fd, watch->events, watch);
        }
        if (rc < 0) {
            watch->lost_error = rc;
            watch->events = 0;
        }
        bow__list_push_back(rc < 0 ? lost : &loop->watches, link);
    }
}

/* Their owners may do anything from here: the new poller is in place. */
static void tell_lost(struct bow_loop *loop, struct bow__link *lost)
{
    struct bow__link *link;

    while ((link = bow__list_pop_front(lost)) != NULL) {
        struct bow__watch *watch = BOW__CONTAINER(link, struct bow__watch, link);
        bow__list_push_back(&loop->watches, link);
        bow__loop_log_poller(loop, "registering with a new poller", watch->lost_error);
        if (watch->ops->on_lost != NULL) {
            watch->ops->on_lost(watch, watch->lost_error);
        }
    }
}

/* The old poller stays as the one that the owner polls, with nothing in it but the new one. */
static void keep_fd_poller(struct bow_loop *loop)
{
    const struct bow_poller_ops *ops = loop->system->poller;
    struct bow__link *link = loop->watches.next;

    for (; link != &loop->watches; link = link->next) {
        const struct bow__watch *watch = BOW__CONTAINER(link, struct bow__watch, link);
        if (watch->events != 0 && watch->source == NULL) {
            (void)ops->remove(loop->poller, watch->fd);
        }
    }
    (void)ops->remove(loop->poller, loop->wake_watch.fd);
    (void)ops->arm(loop->poller, BOW_NEVER);
    loop->fd_poller = loop->poller;
}

static void retire_poller(struct bow_loop *loop)
{
    const struct bow_poller_ops *ops = loop->system->poller;

    if (loop->has_fd && loop->fd_poller == NULL) {
        keep_fd_poller(loop);
        return;
    }
    if (loop->fd_poller != NULL) {
        (void)ops->remove(loop->fd_poller, ops->fd(loop->poller));
    }
    ops->close(loop->poller);
}

static int open_fresh(struct bow_loop *loop, struct bow_poller **ret_fresh)
{
    const struct bow_poller_ops *ops = loop->system->poller;
    struct bow_poller *fresh = NULL;

    int rc = ops->open(loop->system->user, &fresh);
    if (rc < 0) {
        return rc;
    }
    rc = ops->add(fresh, loop->wake_watch.fd, BOW_POLL_IN, &loop->wake_watch);
    if (rc < 0) {
        ops->close(fresh);
        return rc;
    }
    *ret_fresh = fresh;
    return 0;
}

int bow__loop_replace_poller(struct bow_loop *loop)
{
    struct bow_poller *fresh = NULL;
    struct bow__link lost;

    int rc = open_fresh(loop, &fresh);
    if (rc < 0) {
        return rc;
    }
    retire_poller(loop);
    bow__list_init(&lost);
    register_all(loop, fresh, &lost);
    loop->poller = fresh;
    loop->armed_at_ns = 0;
    if (loop->fd_poller != NULL) {
        const struct bow_poller_ops *ops = loop->system->poller;
        rc = ops->add(loop->fd_poller, ops->fd(fresh), BOW_POLL_IN, loop);
        if (rc < 0) {
            bow__loop_log_poller(loop, "keeping the loop's descriptor", rc);
        }
    }
    tell_lost(loop, &lost);
    return 0;
}

static void rebuild(struct bow_loop *loop)
{
    int rc = bow__loop_replace_poller(loop);
    if (rc < 0) {
        bow__loop_log_poller(loop, "opening a new poller", rc);
        return;
    }
    bow__count(&loop->counters.rebuilds, 1);
}

/* Errors in a row */

static void set_healthy(struct bow_loop *loop, bool healthy)
{
    atomic_store_explicit(&loop->is_healthy, healthy, memory_order_relaxed);
}

static void on_error(struct bow_loop *loop)
{
    loop->n_errors_in_row++;
    if (loop->n_errors_in_row >= 2) {
        loop->rest_until_ns = bow__time_add(loop->now_ns, REST_NS);
        bow__count(&loop->counters.pauses, 1);
        set_healthy(loop, false);
    }
}

static void on_good_poll(struct bow_loop *loop)
{
    loop->n_early = 0;
    if (loop->n_errors_in_row > 0) {
        loop->n_errors_in_row = 0;
        loop->is_failing = false;
        set_healthy(loop, true);
    }
}

static void on_failed(struct bow_loop *loop, int error)
{
    loop->is_failing = true;
    bow__count(&loop->counters.failed_polls, 1);
    bow__loop_log_poller(loop, "polling", error);
    rebuild(loop);
    on_error(loop);
}

static void on_early(struct bow_loop *loop)
{
    if (loop->options.max_early_polls == 0 || ++loop->n_early < loop->options.max_early_polls) {
        return;
    }
    bow__log(loop->context, BOW_LOG_WARNING,
             "loop %s: the poller returned early %u times in a row; replacing it", loop->name,
             (unsigned)loop->n_early);
    loop->n_early = 0;
    rebuild(loop);
    on_error(loop);
}

void bow__loop_judge_poll(struct bow_loop *loop, int n, uint64_t until_ns)
{
    /* A signal only ends the wait; the next one is computed from the clock. */
    if (n == -EINTR) {
        return;
    }
    if (n < 0) {
        on_failed(loop, n);
        return;
    }
    bool has_waited = until_ns > 0;
    if (n > 0 || (has_waited && loop->now_ns >= until_ns)) {
        on_good_poll(loop);
    } else if (has_waited) {
        on_early(loop);
    } else if (loop->is_failing) {
        on_good_poll(loop); /* it said nothing of waiting, but it did not fail */
    }
}

/* Resting */

bool bow__loop_is_resting(struct bow_loop *loop)
{
    if (loop->rest_until_ns == BOW_NEVER) {
        return false;
    }
    if (bow__loop_update_now(loop) < loop->rest_until_ns) {
        return true;
    }
    loop->rest_until_ns = BOW_NEVER;
    return false;
}

void bow__loop_rest(struct bow_loop *loop, uint64_t until_ns)
{
    const struct bow_system *system = loop->system;

    if (until_ns <= loop->now_ns || bow__loop_has_work(loop) ||
        !bow__inbox_sleep(&loop->inbox, until_ns)) {
        return;
    }
    system->wake_wait(system->user, loop->wake_watch.fd, until_ns - loop->now_ns);
    bow__inbox_awake(&loop->inbox);
    /* No event will tell of it; the tasks are looked for after this. */
    system->wake_drain(system->user, loop->wake_watch.fd);
    bow__loop_update_now(loop);
}

bool bow_loop_is_healthy(const struct bow_loop *loop)
{
    return atomic_load_explicit(&loop->is_healthy, memory_order_relaxed);
}
