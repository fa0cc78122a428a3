/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Readiness without a descriptor; see the header. */

#include "transport/loop/readiness.h"

/* As a poller: who is interested in anything hears of these. */
#define ALWAYS ((uint32_t)(BOW_POLL_HUP | BOW_POLL_ERR))

static uint32_t wanted(const struct bow__readiness *readiness)
{
    return readiness->interest != 0
               ? readiness->ops->ready(readiness) & (readiness->interest | ALWAYS)
               : 0;
}

static void set_due(struct bow__readiness *readiness)
{
    readiness->is_due = true;
    readiness->ops->hold(readiness);
}

bool bow__readiness_must_notify(struct bow__readiness *readiness, uint32_t events)
{
    if (readiness->is_due || (wanted(readiness) & events) == 0) {
        return false;
    }
    set_due(readiness);
    return true;
}

void bow__readiness_notify(struct bow__readiness *readiness)
{
    if (bow_loop_in_loop(readiness->loop)) {
        bow__loop_defer_event(readiness->loop, &readiness->deferred);
        return;
    }
    if (bow__loop_post_event(readiness->loop, &readiness->task) == 0) {
        return;
    }
    /* The loop has ended, and with it whoever wanted to hear. */
    pthread_mutex_lock(readiness->mutex);
    readiness->is_due = false;
    pthread_mutex_unlock(readiness->mutex);
    readiness->ops->release(readiness);
}

/* Without interest nothing keeps the loop, and it may not come to the list any more. */
static int run_task(void *user)
{
    struct bow__readiness *readiness = user;

    pthread_mutex_lock(readiness->mutex);
    readiness->is_due = readiness->interest != 0;
    if (readiness->is_due) {
        bow__loop_defer_event(readiness->loop, &readiness->deferred);
    }
    bool is_over = !readiness->is_due;
    pthread_mutex_unlock(readiness->mutex);
    if (is_over) {
        readiness->ops->release(readiness);
    }
    return 0;
}

/* On the loop, with the mutex held. */
static void defer_if_ready(struct bow__readiness *readiness)
{
    if (!readiness->is_due && wanted(readiness) != 0) {
        set_due(readiness);
        bow__loop_defer_event(readiness->loop, &readiness->deferred);
    }
}

static void tell(struct bow__deferred *deferred)
{
    struct bow__readiness *readiness = BOW__CONTAINER(deferred, struct bow__readiness, deferred);

    pthread_mutex_lock(readiness->mutex);
    readiness->is_due = false;
    struct bow__watch *watch = readiness->watch;
    uint32_t events = wanted(readiness);
    pthread_mutex_unlock(readiness->mutex);
    if (events != 0) {
        bow__loop_tell(readiness->loop, watch, events);
        pthread_mutex_lock(readiness->mutex);
        defer_if_ready(readiness);
        pthread_mutex_unlock(readiness->mutex);
    }
    readiness->ops->release(readiness);
}

static void bind_to(struct bow__readiness *readiness, struct bow_loop *loop)
{
    bow__loop_hold(loop);
    readiness->loop = loop;
    bow_task_init(&readiness->task, "readiness", run_task, readiness);
}

static bool leave_list(struct bow__readiness *readiness)
{
    if (bow__list_is_empty(&readiness->deferred.link)) {
        return false;
    }
    bow__list_remove(&readiness->deferred.link);
    readiness->is_due = false;
    return true;
}

/* The first interest binds the readiness to its loop. */
static void set(struct bow__source *source, struct bow_loop *loop, struct bow__watch *watch,
                uint32_t events)
{
    struct bow__readiness *readiness = BOW__CONTAINER(source, struct bow__readiness, source);
    bool has_left = false;

    pthread_mutex_lock(readiness->mutex);
    if (readiness->loop == NULL) {
        bind_to(readiness, loop);
    }
    readiness->watch = watch;
    readiness->interest = events;
    if (events == 0) {
        has_left = leave_list(readiness); /* a task on its way will find nothing */
    }
    defer_if_ready(readiness);
    pthread_mutex_unlock(readiness->mutex);
    if (has_left) {
        readiness->ops->release(readiness);
    }
}

void bow__readiness_init(struct bow__readiness *readiness, const struct bow__readiness_ops *ops,
                         pthread_mutex_t *mutex)
{
    *readiness = (struct bow__readiness){.source = {.set = set}, .ops = ops, .mutex = mutex};
    readiness->deferred.fn = tell;
    bow__list_init(&readiness->deferred.link);
}

void bow__readiness_fini(struct bow__readiness *readiness)
{
    if (readiness->loop != NULL) {
        bow__loop_release(readiness->loop);
    }
}
