/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counting on the loop, and how what was counted becomes visible elsewhere.
 */

#include "rpc/connection/counters.h"
#include "base/alloc.h"

#include <errno.h>

#define PUBLISH_NS UINT64_C(10000000)

_Static_assert((sizeof(struct bow_metrics) - BOW__METRICS_OFFSET) % sizeof(uint64_t) == 0,
               "struct bow_metrics is its size and counters of 64 bits");

static int publish_task(void *user)
{
    struct bow__counters *counters = user;

    counters->posted = false;
    bow__counters_publish(counters);
    counters->on_published(counters->owner);
    return 0;
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__counters *counters = user;

    (void)timer;
    if (bow_loop_post_tail(counters->loop, &counters->task) == 0) {
        counters->posted = true;
        return;
    }
    bow__counters_publish(counters);
}

int bow__counters_init(struct bow__counters *counters, struct bow_context *context,
                       struct bow_loop *loop, uint32_t n_methods, void (*on_published)(void *owner),
                       void *owner)
{
    *counters = (struct bow__counters){
        .context = context,
        .loop = loop,
        .n_methods = n_methods,
        .on_published = on_published,
        .owner = owner,
    };
    bow_timer_init(&counters->timer, loop, on_timer, counters);
    bow_task_init(&counters->task, "publish metrics", publish_task, counters);
    if (n_methods == 0) {
        return 0;
    }
    counters->methods = bow__alloc_array(context, n_methods, sizeof(*counters->methods));
    return counters->methods != NULL ? 0 : -ENOMEM;
}

void bow__counters_fini(struct bow__counters *counters)
{
    if (counters->methods == NULL) {
        return;
    }
    for (uint32_t i = 0; i < counters->n_methods; i++) {
        bow__method_counts_fini(&counters->methods[i], counters->context);
    }
    bow__free(counters->context, counters->methods,
              counters->n_methods * sizeof(struct bow__method_counts));
    counters->methods = NULL;
}

void bow__counters_touch(struct bow__counters *counters)
{
    if (!counters->armed) {
        counters->armed = true;
        bow_timer_start(&counters->timer, PUBLISH_NS);
    }
}

void bow__counters_show(struct bow__counters *counters)
{
    const uint64_t *from = &counters->now.connections_opened;

    for (size_t i = 0; i < BOW__N_METRICS; i++) {
        atomic_store_explicit(&counters->published[i], from[i], memory_order_relaxed);
    }
}

void bow__counters_publish(struct bow__counters *counters)
{
    bow_timer_stop(&counters->timer);
    counters->armed = counters->posted;
    bow__counters_show(counters);
}

void bow__counters_add(const struct bow__counters *counters, struct bow_metrics *sum)
{
    uint64_t *to = &sum->connections_opened;

    for (size_t i = 0; i < BOW__N_METRICS; i++) {
        to[i] += atomic_load_explicit(&counters->published[i], memory_order_relaxed);
    }
    sum->calls_unanswered += atomic_load_explicit(&counters->n_unanswered, memory_order_relaxed);
}
