/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Snapshots of several loops, joined: see gather.h. Knows nothing of what is in them. */
#include "rpc/inspect/gather.h"
#include "base/alloc.h"
#include "transport/loop/condition.h"

#include <errno.h>

static size_t gather_bytes(uint32_t max_parts)
{
    return sizeof(struct bow__gather) + max_parts * sizeof(struct bow__gather_part);
}

int bow__gather_new(struct bow_context *context, const struct bow__gather_ops *ops,
                    uint32_t max_parts, const struct bow__snapshot_limits *limits,
                    struct bow__gather **ret_gather)
{
    struct bow__gather *gather = bow__alloc_zero(context, gather_bytes(max_parts));

    if (gather == NULL) {
        return -ENOMEM;
    }
    int rc = bow__cond_init(&gather->lock, &gather->joined);
    if (rc < 0) {
        bow__free(context, gather, gather_bytes(max_parts));
        return rc;
    }
    gather->context = bow_context_ref(context);
    gather->ops = ops;
    gather->cap_parts = max_parts;
    atomic_store_explicit(&gather->refs, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < max_parts; i++) {
        bow__snapshot_init(&gather->parts[i].snapshot, context, limits);
    }
    *ret_gather = gather;
    return 0;
}

static void drop(struct bow__gather *gather)
{
    struct bow_context *context = gather->context;

    if (atomic_fetch_sub_explicit(&gather->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        bow__snapshot_fini(&gather->parts[i].snapshot);
        bow__loop_release(gather->parts[i].loop);
    }
    if (gather->home != NULL) {
        bow__loop_release(gather->home);
    }
    bow__cond_fini(&gather->lock, &gather->joined);
    bow__free(context, gather, gather_bytes(gather->cap_parts));
    bow_context_unref(context);
}

void bow__gather_add(struct bow__gather *gather, struct bow_loop *loop, void *source)
{
    struct bow__gather_part *part = &gather->parts[gather->n_parts++];

    part->gather = gather;
    part->loop = loop;
    part->source = source;
    bow__loop_hold(loop);
}

/* On each loop */

static void take(struct bow__gather_part *part)
{
    part->snapshot.taken_ns = bow_loop_now(part->loop);
    part->gather->ops->fill(part->source, &part->snapshot);
    bow__snapshot_sort(&part->snapshot);
    atomic_store_explicit(&part->taken, true, memory_order_release);
}

/* One has answered, or cannot. */
static void count_down(struct bow__gather *gather)
{
    pthread_mutex_lock(&gather->lock);
    bool is_last = --gather->n_left == 0;
    struct bow_loop *home = gather->home;
    pthread_cond_broadcast(&gather->joined);
    pthread_mutex_unlock(&gather->lock);
    if (is_last && home != NULL) {
        atomic_fetch_add_explicit(&gather->refs, 1, memory_order_relaxed);
        if (bow__loop_post_internal(home, &gather->done_task, 0) < 0) {
            drop(gather); /* who waits there is told by the end of the loop */
        }
    }
}

static int take_task(void *user)
{
    struct bow__gather_part *part = user;
    struct bow__gather *gather = part->gather;

    take(part);
    gather->ops->release(part->source);
    count_down(gather);
    drop(gather);
    return 0;
}

static void ask(struct bow__gather_part *part)
{
    struct bow__gather *gather = part->gather;

    if (bow_loop_in_loop(part->loop)) {
        take(part);
        count_down(gather);
        return;
    }
    bow_task_init(&part->task, "inspect", take_task, part);
    atomic_fetch_add_explicit(&gather->refs, 1, memory_order_relaxed);
    gather->ops->hold(part->source);
    if (bow__loop_post_internal(part->loop, &part->task, 0) < 0) {
        part->has_ended = true;
        gather->ops->release(part->source);
        count_down(gather);
        drop(gather);
    }
}

static void ask_all(struct bow__gather *gather)
{
    const struct bow_system *system = bow__context_system(gather->context);

    gather->asked_ns = system->now_ns(system->user);
    gather->n_left = gather->n_parts + 1; /* none is the last before all have been asked */
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        ask(&gather->parts[i]);
    }
    count_down(gather);
}

static void note_wait(struct bow__gather *gather)
{
    const struct bow_system *system = bow__context_system(gather->context);

    gather->waited_ns = system->now_ns(system->user) - gather->asked_ns;
}

void bow__gather_wait(struct bow__gather *gather, uint64_t timeout_ns)
{
    struct timespec deadline = bow__cond_deadline(timeout_ns);
    bool waits = true;

    ask_all(gather);
    pthread_mutex_lock(&gather->lock);
    while (gather->n_left > 0 && waits) {
        waits = bow__cond_wait(&gather->joined, &gather->lock, &deadline);
    }
    pthread_mutex_unlock(&gather->lock);
    note_wait(gather);
}

/* On the loop of who asks */

static void finish(struct bow__gather *gather)
{
    void (*on_done)(struct bow__gather *, void *) = gather->on_done;

    if (on_done != NULL) {
        gather->on_done = NULL;
        bow_timer_stop(&gather->timer);
        note_wait(gather);
        on_done(gather, gather->user);
    }
}

static int done_task(void *user)
{
    struct bow__gather *gather = user;

    finish(gather);
    drop(gather);
    return 0;
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    finish(user);
}

void bow__gather_start(struct bow__gather *gather, struct bow_loop *home, uint64_t timeout_ns,
                       void (*on_done)(struct bow__gather *gather, void *user), void *user)
{
    gather->home = home;
    bow__loop_hold(home); /* the last loop may answer when who asked has long gone */
    gather->on_done = on_done;
    gather->user = user;
    bow_task_init(&gather->done_task, "inspected", done_task, gather);
    bow_timer_init(&gather->timer, home, on_timer, gather);
    bow_timer_start(&gather->timer, timeout_ns);
    ask_all(gather);
}

void bow__gather_unref(struct bow__gather *gather)
{
    if (gather == NULL) {
        return;
    }
    if (gather->on_done != NULL) {
        gather->on_done = NULL;
        bow_timer_stop(&gather->timer);
    }
    drop(gather);
}
