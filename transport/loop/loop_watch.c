/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Registered descriptors and deferred work. An event leads to its watch without a
 * look-up: the poller carries the pointer. Knows nothing of what a watch guards.
 *
 * Invariant: an event of the batch whose watch was taken out is blanked, so neither
 * a new watch in the same memory nor a new descriptor of the same number gets it.
 */

#include "transport/loop/loop_internal.h"

#include <assert.h>
#include <errno.h>

/* After so many the rest of the batch is dropped: each one searches it, and it is mostly holes. */
#define MAX_DEREGISTERED 256

static void on_wake(struct bow__watch *watch, uint32_t events)
{
    struct bow_loop *loop = BOW__CONTAINER(watch, struct bow_loop, wake_watch);

    (void)events;
    loop->system->wake_drain(loop->system->user, watch->fd);
}

static const struct bow__watch_ops wake_ops = {.on_events = on_wake};

int bow__loop_open_wake(struct bow_loop *loop)
{
    const struct bow_system *system = loop->system;

    int fd = system->wake_open(system->user);
    if (fd < 0) {
        return fd;
    }
    loop->wake_watch.ops = &wake_ops;
    loop->wake_watch.fd = fd;
    int rc = system->poller->add(loop->poller, fd, BOW_POLL_IN, &loop->wake_watch);
    if (rc < 0) {
        system->close(system->user, fd);
    }
    return rc;
}

/* Interest 0 is kept out of the poller, which reports HUP and ERR even to those who ask nothing. */
static int set_interest(struct bow_loop *loop, struct bow__watch *watch, uint32_t events)
{
    const struct bow_poller_ops *poller = loop->system->poller;

    if (events == watch->events) {
        return 0;
    }
    /* The poller is the parent's too, and would hear of it no more. */
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (watch->source != NULL) {
        watch->source->set(watch->source, loop, watch, events);
        return 0;
    }
    if (events == 0) {
        return poller->remove(loop->poller, watch->fd);
    }
    if (watch->events == 0) {
        return poller->add(loop->poller, watch->fd, events, watch);
    }
    return poller->modify(loop->poller, watch->fd, events, watch);
}

static void blank_events(struct bow_loop *loop, const struct bow__watch *watch)
{
    loop->n_deregistered++;
    for (int i = loop->event_at + 1; i < loop->n_events; i++) {
        if (loop->events[i].data == watch) {
            loop->events[i].data = NULL;
        }
    }
}

int bow__loop_watch(struct bow_loop *loop, struct bow__watch *watch, int fd, uint32_t events)
{
    assert(bow__loop_may_touch(loop));
    if (loop->stage >= BOW__LOOP_CLOSING) {
        return -ESHUTDOWN;
    }
    watch->fd = fd;
    watch->events = 0;
    int rc = set_interest(loop, watch, events);
    if (rc < 0) {
        return rc;
    }
    watch->events = events;
    loop->n_sources += watch->source != NULL;
    bow__list_push_back(&loop->watches, &watch->link);
    return 0;
}

int bow__loop_rewatch(struct bow_loop *loop, struct bow__watch *watch, uint32_t events)
{
    assert(bow__loop_may_touch(loop));
    int rc = set_interest(loop, watch, events);
    if (rc < 0) {
        return rc;
    }
    watch->events = events;
    if (events == 0) {
        blank_events(loop, watch);
    }
    return 0;
}

void bow__loop_unwatch(struct bow_loop *loop, struct bow__watch *watch)
{
    assert(bow__loop_may_touch(loop));
    /* Zeroed memory is a watch that was never registered. */
    if (watch->link.next == NULL || bow__list_is_empty(&watch->link)) {
        return;
    }
    set_interest(loop, watch, 0);
    watch->events = 0;
    loop->n_sources -= watch->source != NULL;
    bow__list_remove(&watch->link);
    blank_events(loop, watch);
}

static void handle_event(struct bow_loop *loop, struct bow__watch *watch, uint32_t events)
{
    struct bow__watchdog watchdog;

    bow__watchdog_begin(&watchdog, loop, "watch", NULL, (uintptr_t)watch->ops->on_events);
    watch->ops->on_events(watch, events);
    bow__watchdog_end(&watchdog);
}

void bow__loop_tell(struct bow_loop *loop, struct bow__watch *watch, uint32_t events)
{
    bow__count(&loop->counters.events, 1);
    handle_event(loop, watch, events);
}

void bow__loop_handle_events(struct bow_loop *loop)
{
    int n = loop->n_events;

    loop->n_deregistered = 0;
    /* What is left of a batch full of holes is told again by the next poll. */
    for (loop->event_at = 0; loop->event_at < n && loop->n_deregistered < MAX_DEREGISTERED;
         loop->event_at++) {
        struct bow_poll_event *event = &loop->events[loop->event_at];
        if (event->data != NULL) {
            handle_event(loop, event->data, event->events);
        }
    }
    loop->n_events = 0;
}

void bow__loop_close_watches(struct bow_loop *loop)
{
    struct bow__link told;
    struct bow__link *link;

    bow__list_init(&told);
    while ((link = bow__list_pop_front(&loop->watches)) != NULL) {
        struct bow__watch *watch = BOW__CONTAINER(link, struct bow__watch, link);
        bow__list_push_back(&told, link);
        if (watch->ops->on_shutdown != NULL) {
            watch->ops->on_shutdown(watch);
        }
    }
    bow__list_move(&loop->watches, &told);
}

static void run_deferred(struct bow_loop *loop, struct bow__link *link)
{
    struct bow__deferred *deferred = BOW__CONTAINER(link, struct bow__deferred, link);
    struct bow__watchdog watchdog;

    bow__watchdog_begin(&watchdog, loop, "deferred", NULL, (uintptr_t)deferred->fn);
    deferred->fn(deferred);
    bow__watchdog_end(&watchdog);
}

static void defer(struct bow_loop *loop, struct bow__link *list, struct bow__deferred *deferred)
{
    assert(bow__loop_may_touch(loop));
    if (bow__list_is_empty(&deferred->link)) {
        bow__list_push_back(list, &deferred->link);
        bow__loop_rearm(loop);
    }
}

void bow__loop_defer_flush(struct bow_loop *loop, struct bow__deferred *deferred)
{
    defer(loop, &loop->flushes, deferred);
}

void bow__loop_defer_event(struct bow_loop *loop, struct bow__deferred *deferred)
{
    defer(loop, &loop->readies, deferred);
}

void bow__loop_defer_free(struct bow_loop *loop, struct bow__deferred *deferred)
{
    defer(loop, &loop->frees, deferred);
}

/* Runs what is there now: one that defers itself again waits for the next phase. */
static void run_present(struct bow_loop *loop, struct bow__link *list)
{
    struct bow__link taken;
    struct bow__link *link;

    bow__list_init(&taken);
    bow__list_move(&taken, list);
    while ((link = bow__list_pop_front(&taken)) != NULL) {
        run_deferred(loop, link);
    }
}

void bow__loop_run_readies(struct bow_loop *loop)
{
    run_present(loop, &loop->readies);
}

void bow__loop_run_flushes(struct bow_loop *loop)
{
    run_present(loop, &loop->flushes);
}

/* Runs until none is left: freeing one thing may let go of the next. */
void bow__loop_run_frees(struct bow_loop *loop)
{
    struct bow__link *link;

    while ((link = bow__list_pop_front(&loop->frees)) != NULL) {
        run_deferred(loop, link);
    }
}
