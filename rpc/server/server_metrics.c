/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server counts, over all of its workers: totals, methods, text, and when that is wanted.
 */

#include "rpc/server/server_metrics.h"
#include "base/refuse.h"
#include "rpc/metrics/metrics_text.h"

#include <errno.h>
#include <string.h>

static void add_up(const struct bow_server *server, struct bow_metrics *sum)
{
    for (uint32_t i = 0; i < server->n_workers; i++) {
        bow__counters_add(&server->workers[i]->counters, sum);
    }
    sum->reloads = atomic_load_explicit(&server->n_reloads, memory_order_relaxed);
    sum->reloads_failed = atomic_load_explicit(&server->n_reloads_failed, memory_order_relaxed);
}

int bow_server_metrics(const struct bow_server *server, struct bow_metrics *metrics)
{
    struct bow_metrics sum = BOW_METRICS_INIT;

    if (metrics->size < sizeof(metrics->size) || metrics->size > sizeof(sum)) {
        return bow__refuse(server->context, -EINVAL,
                           "bow_server_metrics: begin with BOW_METRICS_INIT");
    }
    sum.size = metrics->size;
    add_up(server, &sum);
    memcpy(metrics, &sum, metrics->size);
    return 0;
}

/* Methods */

struct source {
    struct bow_method_source visible; /* first */
    const struct bow_server *server;
    uint32_t index;
};

static void each_count(const struct bow_method_source *visible,
                       void (*visit)(const struct bow__method_counts *counts, void *user),
                       void *user)
{
    const struct source *source = (const void *)visible;

    for (uint32_t i = 0; i < source->server->n_workers; i++) {
        visit(&source->server->workers[i]->counters.methods[source->index], user);
    }
}

void bow_server_each_method(const struct bow_server *server, bow_method_metrics_fn fn, void *user)
{
    struct source source = {.visible.each = each_count, .server = server};
    struct bow_method_metrics metrics;

    for (; source.index <= server->registry.n_methods; source.index++) {
        const struct bow__registered_method *entry =
            bow__registry_at(&server->registry, source.index);
        bow__method_metrics_read(entry != NULL ? entry->method->path : "*", &source.visible,
                                 &metrics);
        fn(&metrics, user);
    }
}

/* Text */

static void read_totals(const void *owner, struct bow_metrics *ret_totals)
{
    add_up(owner, ret_totals);
}

static void each_method(const void *owner, bow_method_metrics_fn fn, void *user)
{
    bow_server_each_method(owner, fn, user);
}

static const struct bow_loop *loop_at(const void *owner, uint32_t i)
{
    const struct bow_server *server = owner;

    return i < server->n_workers ? server->workers[i]->loop : NULL;
}

int bow_server_metrics_text(const struct bow_server *server, enum bow_metrics_format format,
                            bow_metrics_put_fn put, void *user)
{
    const struct bow__metrics_owner owner = {
        .owner = server,
        .totals = read_totals,
        .each_method = each_method,
        .loop = loop_at,
    };

    return bow__metrics_text_write(&owner, format, put, user);
}

/* By time */

static bool is_wanted(const struct bow_server *server)
{
    return server->options.on_metrics != NULL && server->options.metrics_interval_ns > 0;
}

/* Armed first, for the callback may stop the server. */
static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_server *server = user;

    bow_timer_start(timer, server->options.metrics_interval_ns);
    server->options.on_metrics(server, server->options.metrics_user);
}

void bow__server_metrics_start(struct bow_server *server)
{
    bow_timer_init(&server->metrics_timer, server->main, on_timer, server);
    if (is_wanted(server)) {
        bow_timer_start(&server->metrics_timer, server->options.metrics_interval_ns);
    }
}

void bow__server_metrics_stop(struct bow_server *server)
{
    bow_timer_stop(&server->metrics_timer);
}

void bow__server_metrics_last(struct bow_server *server)
{
    if (is_wanted(server)) {
        server->options.on_metrics(server, server->options.metrics_user);
    }
}
