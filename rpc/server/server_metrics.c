/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server counts, over all of its workers.
 */

#include "base/refuse.h"
#include "rpc/server/server_state.h"
#include <bowline/metrics.h>

#include <errno.h>
#include <string.h>

int bow_server_metrics(const struct bow_server *server, struct bow_metrics *metrics)
{
    struct bow_metrics sum = BOW_METRICS_INIT;

    if (metrics->size < sizeof(metrics->size) || metrics->size > sizeof(sum)) {
        return bow__refuse(server->context, -EINVAL,
                           "bow_server_metrics: begin with BOW_METRICS_INIT");
    }
    sum.size = metrics->size;
    for (uint32_t i = 0; i < server->n_workers; i++) {
        bow__counters_add(&server->workers[i]->counters, &sum);
    }
    sum.reloads = atomic_load_explicit(&server->n_reloads, memory_order_relaxed);
    sum.reloads_failed = atomic_load_explicit(&server->n_reloads_failed, memory_order_relaxed);
    memcpy(metrics, &sum, metrics->size);
    return 0;
}

void bow_server_each_method(const struct bow_server *server, bow_method_metrics_fn fn, void *user)
{
    for (uint32_t index = 0; index <= server->registry.n_methods; index++) {
        const struct bow__registered_method *entry = bow__registry_at(&server->registry, index);
        struct bow_method_metrics sum = {.path = entry != NULL ? entry->method->path : "*"};
        for (uint32_t i = 0; i < server->n_workers; i++) {
            bow__counters_add_method(&server->workers[i]->counters, index, &sum);
        }
        fn(&sum, user);
    }
}
