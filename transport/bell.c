/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Readiness without a descriptor; see the header. */

#include "transport/bell.h"

/* As a poller: who is interested in anything hears of these. */
#define ALWAYS ((uint32_t)(BOW_POLL_HUP | BOW_POLL_ERR))

static uint32_t wanted(const struct bow__bell *bell)
{
    return bell->interest != 0 ? bell->ops->ready(bell) & (bell->interest | ALWAYS) : 0;
}

static void set_due(struct bow__bell *bell)
{
    bell->is_due = true;
    bell->ops->hold(bell);
}

bool bow__bell_must_ring(struct bow__bell *bell, uint32_t events)
{
    if (bell->is_due || (wanted(bell) & events) == 0) {
        return false;
    }
    set_due(bell);
    return true;
}

void bow__bell_ring(struct bow__bell *bell)
{
    if (bow_loop_in_loop(bell->loop)) {
        bow__loop_defer_event(bell->loop, &bell->present);
        return;
    }
    if (bow__loop_post_event(bell->loop, &bell->task) == 0) {
        return;
    }
    /* The loop has ended, and with it whoever wanted to hear. */
    pthread_mutex_lock(bell->mutex);
    bell->is_due = false;
    pthread_mutex_unlock(bell->mutex);
    bell->ops->release(bell);
}

/* Without interest nothing keeps the loop, and it may not come to the list any more. */
static int run_task(void *user)
{
    struct bow__bell *bell = user;

    pthread_mutex_lock(bell->mutex);
    bell->is_due = bell->interest != 0;
    if (bell->is_due) {
        bow__loop_defer_event(bell->loop, &bell->present);
    }
    bool is_over = !bell->is_due;
    pthread_mutex_unlock(bell->mutex);
    if (is_over) {
        bell->ops->release(bell);
    }
    return 0;
}

/* On the loop, with the mutex held. */
static void again_if_ready(struct bow__bell *bell)
{
    if (!bell->is_due && wanted(bell) != 0) {
        set_due(bell);
        bow__loop_defer_event(bell->loop, &bell->present);
    }
}

static void tell(struct bow__deferred *present)
{
    struct bow__bell *bell = BOW__CONTAINER(present, struct bow__bell, present);

    pthread_mutex_lock(bell->mutex);
    bell->is_due = false;
    struct bow__watch *watch = bell->watch;
    uint32_t events = wanted(bell);
    pthread_mutex_unlock(bell->mutex);
    if (events != 0) {
        bow__loop_tell(bell->loop, watch, events);
        pthread_mutex_lock(bell->mutex);
        again_if_ready(bell);
        pthread_mutex_unlock(bell->mutex);
    }
    bell->ops->release(bell);
}

static void bind_to(struct bow__bell *bell, struct bow_loop *loop)
{
    bow__loop_hold(loop);
    bell->loop = loop;
    bow_task_init(&bell->task, "bell", run_task, bell);
}

static bool leave_list(struct bow__bell *bell)
{
    if (bow__list_is_empty(&bell->present.link)) {
        return false;
    }
    bow__list_remove(&bell->present.link);
    bell->is_due = false;
    return true;
}

/* The first interest binds the bell to its loop. */
static void set(struct bow__source *source, struct bow_loop *loop, struct bow__watch *watch,
                uint32_t events)
{
    struct bow__bell *bell = BOW__CONTAINER(source, struct bow__bell, source);
    bool has_left = false;

    pthread_mutex_lock(bell->mutex);
    if (bell->loop == NULL) {
        bind_to(bell, loop);
    }
    bell->watch = watch;
    bell->interest = events;
    if (events == 0) {
        has_left = leave_list(bell); /* a task on its way will find nothing */
    }
    again_if_ready(bell);
    pthread_mutex_unlock(bell->mutex);
    if (has_left) {
        bell->ops->release(bell);
    }
}

void bow__bell_init(struct bow__bell *bell, const struct bow__bell_ops *ops, pthread_mutex_t *mutex)
{
    *bell = (struct bow__bell){.source = {.set = set}, .ops = ops, .mutex = mutex};
    bell->present.fn = tell;
    bow__list_init(&bell->present.link);
}

void bow__bell_fini(struct bow__bell *bell)
{
    if (bell->loop != NULL) {
        bow__loop_release(bell->loop);
    }
}
