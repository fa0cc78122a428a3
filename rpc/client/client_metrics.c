/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client counts, over all of its loops: totals, the methods that it has called on any of
 * them, and all of it as text.
 */

#include "rpc/client/client_metrics.h"
#include "base/refuse.h"
#include "rpc/metrics/metrics_text.h"

#include <errno.h>
#include <string.h>

static void add_up(const struct bow_client *client, struct bow_metrics *sum)
{
    for (uint32_t i = 0; i < client->n_balancers; i++) {
        const struct bow__client_calls *calls = &client->balancers[i].calls;
        bow__counters_add(&calls->counters, sum);
        sum->calls_refused_queue += atomic_load_explicit(&calls->n_refused, memory_order_relaxed);
        sum->calls_queued += atomic_load_explicit(&calls->n_queued, memory_order_relaxed);
    }
}

int bow_client_metrics(const struct bow_client *client, struct bow_metrics *metrics)
{
    struct bow_metrics sum = BOW_METRICS_INIT;

    if (metrics->size < sizeof(metrics->size) || metrics->size > sizeof(sum)) {
        return bow__refuse(client->config.context, -EINVAL,
                           "bow_client_metrics: begin with BOW_METRICS_INIT");
    }
    sum.size = metrics->size;
    add_up(client, &sum);
    memcpy(metrics, &sum, metrics->size);
    return 0;
}

/* Methods */

struct source {
    struct bow_method_source visible; /* first */
    const struct bow_client *client;
    const char *path; /* NULL: those that are not counted by name */
};

static const struct bow__client_method *newest_of(const struct bow__client_methods *methods)
{
    return atomic_load_explicit(&methods->newest, memory_order_acquire);
}

static const struct bow__client_method *find(const struct bow__client_methods *methods,
                                             const char *path)
{
    const struct bow__client_method *at = newest_of(methods);

    while (at != NULL && strcmp(at->path, path) != 0) {
        at = at->next;
    }
    return at;
}

static void each_count(const struct bow_method_source *visible,
                       void (*visit)(const struct bow__method_counts *counts, void *user),
                       void *user)
{
    const struct source *source = (const void *)visible;

    for (uint32_t i = 0; i < source->client->n_balancers; i++) {
        const struct bow__client_methods *methods = &source->client->balancers[i].calls.methods;
        const struct bow__client_method *found =
            source->path != NULL ? find(methods, source->path) : NULL;
        if (found != NULL) {
            visit(&found->counts, user);
        } else if (source->path == NULL) {
            visit(&methods->others, user);
        }
    }
}

/* Each once, however many loops have it. */
static bool is_on_an_earlier_loop(const struct bow_client *client, uint32_t i, const char *path)
{
    bool is = false;

    for (uint32_t k = 0; k < i && !is; k++) {
        is = find(&client->balancers[k].calls.methods, path) != NULL;
    }
    return is;
}

void bow_client_each_method(const struct bow_client *client, bow_method_metrics_fn fn, void *user)
{
    struct source source = {.visible.each = each_count, .client = client};
    struct bow_method_metrics metrics;

    for (uint32_t i = 0; i < client->n_balancers; i++) {
        const struct bow__client_method *at = newest_of(&client->balancers[i].calls.methods);
        for (; at != NULL; at = at->next) {
            if (!is_on_an_earlier_loop(client, i, at->path)) {
                source.path = at->path;
                bow__method_metrics_read(at->path, &source.visible, &metrics);
                fn(&metrics, user);
            }
        }
    }
    source.path = NULL;
    bow__method_metrics_read("*", &source.visible, &metrics);
    if (metrics.started > 0 || metrics.refused[BOW_REFUSED_QUEUE] > 0) {
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
    bow_client_each_method(owner, fn, user);
}

static const struct bow_loop *loop_at(const void *owner, uint32_t i)
{
    const struct bow_client *client = owner;

    return i < client->n_balancers ? client->balancers[i].calls.loop : NULL;
}

int bow_client_metrics_text(const struct bow_client *client, enum bow_metrics_format format,
                            bow_metrics_put_fn put, void *user)
{
    const struct bow__metrics_owner owner = {
        .target = client->config.target.text,
        .owner = client,
        .totals = read_totals,
        .each_method = each_method,
        .loop = loop_at,
    };

    return bow__metrics_text_write(&owner, format, put, user);
}

/* By time */

/* Armed first, for the callback may free the client. */
static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_client *client = user;
    const struct bow_client_options *options = &client->config.options;

    bow_timer_start(timer, options->metrics_interval_ns);
    options->on_metrics(client, options->metrics_user);
}

void bow__client_metrics_start(struct bow__balancer *balancer)
{
    struct bow_client *client = balancer->client;
    const struct bow_client_options *options = &client->config.options;
    struct bow__balancer *nobody = NULL;

    if (options->on_metrics == NULL || options->metrics_interval_ns == 0 ||
        !atomic_compare_exchange_strong(&client->metrics_balancer, &nobody, balancer)) {
        return;
    }
    bow_timer_init(&client->metrics_timer, balancer->calls.loop, on_timer, client);
    bow_timer_start(&client->metrics_timer, options->metrics_interval_ns);
}
