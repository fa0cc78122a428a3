/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's life, which of its balancers a thread uses, and what they add up to.
 */

#include "rpc/client/client.h"
#include "base/alloc.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/address/transport_error.h"

#include <bowline/security.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A peer that goes on sending does not keep a call from its beginning. */
#define MAX_CATCH_UP_TURNS 32

/* Life */

static void destroy(struct bow_client *client)
{
    struct bow_context *context = client->config.context;
    size_t n_subchannels =
        (size_t)client->n_balancers * bow__client_config_n_subchannels(&client->config);

    if (client->own_loop != NULL && bow_loop_shutdown(client->own_loop, 0, 0) == 0) {
        (void)!bow_loop_run(client->own_loop);
    }
    for (uint32_t i = 0; i < client->n_made; i++) {
        bow__balancer_fini(&client->balancers[i]);
    }
    bow_loop_unref(client->own_loop);
    bow__interceptors_fini(&client->config.interceptors, true);
    if (client->balancers != NULL) {
        bow__free(context, client->balancers, client->n_balancers * sizeof(*client->balancers));
    }
    if (client->subchannels != NULL) {
        bow__free(context, client->subchannels, n_subchannels * sizeof(*client->subchannels));
    }
    if (client->config.options.security != NULL) {
        client->config.options.security->ops->unref(client->config.options.security);
    }
    bow__target_fini(&client->config.target, context);
    bow__retry_config_fini(&client->config.retry);
    bow__call_ids_fini(&client->ids);
    pthread_cond_destroy(&client->settled);
    pthread_mutex_destroy(&client->lock);
    bow__free(context, client, sizeof(*client));
    bow_context_unref(context);
}

/* Settling */

/* Under the lock. */
static bool is_settled(const struct bow_client *client)
{
    bool settled = client->n_closing == 0;

    for (uint32_t i = 0; i < client->n_balancers && settled; i++) {
        const struct bow__balancer *balancer = &client->balancers[i];
        settled = balancer->settled &&
                  atomic_load_explicit(&balancer->n_posted, memory_order_acquire) == 0;
    }
    return settled;
}

/* Something has ended: with the last of them a client that nobody waits for goes. Lets go of the
 * lock. */
static void unlock_settling(struct bow_client *client)
{
    bool destroys = client->free_when_settled && is_settled(client);

    client->free_when_settled = client->free_when_settled && !destroys;
    pthread_cond_broadcast(&client->settled);
    pthread_mutex_unlock(&client->lock);
    if (destroys) {
        destroy(client);
    }
}

static void on_settled(struct bow__balancer *balancer)
{
    if (atomic_load(&balancer->client->metrics_balancer) == balancer) {
        bow_timer_stop(&balancer->client->metrics_timer);
    }
    pthread_mutex_lock(&balancer->client->lock);
    balancer->settled = true;
    unlock_settling(balancer->client);
}

static void closed_one(struct bow_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->n_closing--;
    unlock_settling(client);
}

static void on_close_done(struct bow__balancer *balancer)
{
    closed_one(balancer->client);
}

/* Making */

/* The calling thread becomes the loop's. */
static int make_own_loop(struct bow_client *client)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    options.name = "bow-client";
    int rc = bow_loop_new(client->config.context, &options, &client->own_loop);
    if (rc < 0) {
        return rc;
    }
    client->config.confined = true;
    client->thread = pthread_self();
    bow__loop_settle(client->own_loop);
    return 0;
}

/* What there is of their memory; they are not set up. */
static int free_balancers(struct bow_client *client, uint32_t n)
{
    size_t n_subchannels = (size_t)n * bow__client_config_n_subchannels(&client->config);

    bow__free(client->config.context, client->subchannels,
              n_subchannels * sizeof(*client->subchannels));
    bow__free(client->config.context, client->balancers, n * sizeof(*client->balancers));
    client->subchannels = NULL;
    client->balancers = NULL;
    return -ENOMEM;
}

static int alloc_balancers(struct bow_client *client, uint32_t n)
{
    size_t n_subchannels = (size_t)n * bow__client_config_n_subchannels(&client->config);

    client->balancers = bow__alloc_array(client->config.context, n, sizeof(*client->balancers));
    if (client->balancers != NULL && n_subchannels > 0) {
        client->subchannels =
            bow__alloc_array(client->config.context, n_subchannels, sizeof(*client->subchannels));
    }
    if (client->balancers == NULL || (client->subchannels == NULL && n_subchannels > 0)) {
        return free_balancers(client, n);
    }
    return 0;
}

static struct bow_loop *loop_at(const struct bow_client *client, uint32_t i)
{
    if (client->config.options.group != NULL) {
        return bow_group_get(client->config.options.group, i);
    }
    return client->config.confined ? client->own_loop : client->config.options.loop;
}

/* Returns 0 or -ENOMEM; those before it are there. */
static int make_balancer(struct bow_client *client, uint32_t i)
{
    static const struct bow__balancer_ops ops = {
        .on_settled = on_settled,
        .on_close_done = on_close_done,
    };
    size_t first = (size_t)i * bow__client_config_n_subchannels(&client->config);
    struct bow_resolver_watch *names = NULL;

    if (client->config.target.resolver != NULL &&
        bow__resolver_watch_new(&client->config, &names) < 0) {
        return -ENOMEM;
    }
    bow__balancer_init(&client->balancers[i], client, &client->config, &client->ids, &ops,
                       loop_at(client, i),
                       client->subchannels != NULL ? &client->subchannels[first] : NULL, names);
    return 0;
}

static int make_balancers(struct bow_client *client)
{
    struct bow_group *group = client->config.options.group;
    uint32_t n = group != NULL ? bow_group_size(group) : 1;
    int rc = 0;

    if (group == NULL && client->config.options.loop == NULL) {
        rc = make_own_loop(client);
        if (rc < 0) {
            return rc;
        }
    }
    rc = alloc_balancers(client, n);
    if (rc < 0) {
        return rc;
    }
    client->n_balancers = n;
    while (rc == 0 && client->n_made < n) {
        rc = make_balancer(client, client->n_made);
        client->n_made += rc == 0 ? 1 : 0;
    }
    return rc;
}

static int copy_interceptors(struct bow_client *client, const struct bow_client_options *options,
                             struct bow__text *detail)
{
    int rc = 0;

    for (size_t i = 0; i < options->n_interceptors && rc == 0; i++) {
        bow__text_clear(detail);
        rc = bow__interceptors_add(&client->config.interceptors, options->interceptors[i], detail);
    }
    client->config.options.interceptors = NULL;
    return rc;
}

/* The options are checked and whole. On failure `detail` may say more. */
static int make(const struct bow_client_options *options, struct bow_context *context,
                struct bow__text *detail, struct bow_client **ret_client)
{
    struct bow_client *client = bow__alloc_zero(context, sizeof(*client));
    if (client == NULL) {
        return -ENOMEM;
    }
    client->config.context = bow_context_ref(context);
    client->config.options = *options;
    client->config.options.target = NULL;
    client->config.options.error = NULL;
    bow__client_options_complete(&client->config.options);
    bow__call_ids_init(&client->ids, context);
    bow__interceptors_init(&client->config.interceptors, context);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->settled, NULL);
    client->config.options.server_name = NULL;
    client->config.options.authority = NULL;
    client->config.options.resolvers = NULL;
    client->config.options.dns_servers = NULL;
    client->config.options.assumed_encodings = NULL;
    client->config.assumed_encodings = bow__client_options_encodings(options);
    if (options->source != NULL) {
        snprintf(client->config.source, sizeof(client->config.source), "%s", options->source);
        client->config.options.source = client->config.source;
    }
    if (options->health_service != NULL) {
        snprintf(client->config.health_service, sizeof(client->config.health_service), "%s",
                 options->health_service);
        client->config.options.health_service = client->config.health_service;
    }
    if (options->user_agent != NULL) {
        snprintf(client->config.user_agent, sizeof(client->config.user_agent), "%s %s",
                 options->user_agent, BOW__USER_AGENT);
        client->config.options.user_agent = NULL;
    }
    if (options->security != NULL) {
        options->security->ops->ref(options->security);
    }
    client->config.options.retry = NULL;
    client->config.options.service_config = NULL;
    int rc = bow__target_init(&client->config.target, context, options);
    if (rc == 0) {
        rc = bow__retry_config_init(&client->config.retry, context, options->retry,
                                    options->service_config, detail);
    }
    if (rc == 0) {
        rc = make_balancers(client);
    }
    if (rc == 0) {
        rc = copy_interceptors(client, options, detail);
    }
    if (rc < 0) {
        bow__interceptors_fini(&client->config.interceptors, false); /* they are not ours */
        destroy(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

static int make_in_context(const struct bow_client_options *options, struct bow__text *detail,
                           struct bow_client **ret_client)
{
    struct bow_context_options defaults = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    if (options->context != NULL) {
        return make(options, options->context, detail, ret_client);
    }
    int rc = bow_context_new(&defaults, &context);
    if (rc < 0) {
        return rc;
    }
    rc = make(options, context, detail, ret_client);
    bow_context_unref(context);
    return rc;
}

int bow_client_new(const struct bow_client_options *options, struct bow_client **ret_client)
{
    struct bow_client_options known = BOW_CLIENT_OPTIONS_INIT;
    struct bow__text detail;

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return options != NULL && options->size == 0
                   ? bow__target_refuse(options, rc,
                                        "begin the options with BOW_CLIENT_OPTIONS_INIT")
                   : rc;
    }
    rc = bow__client_options_check(&known);
    if (rc < 0) {
        return rc;
    }
    bow__text_clear(&detail);
    rc = make_in_context(&known, &detail, ret_client);
    if (rc < 0) {
        (void)bow__transport_error(known.error, "making a client for", known.target, rc,
                                   detail.len > 0 ? detail.bytes : NULL);
    }
    return rc;
}

/* The end */

void bow__client_unsettle(struct bow__balancer *balancer)
{
    pthread_mutex_lock(&balancer->client->lock);
    balancer->settled = false;
    pthread_mutex_unlock(&balancer->client->lock);
}

void bow__client_unpost(struct bow__balancer *balancer)
{
    pthread_mutex_lock(&balancer->client->lock);
    atomic_fetch_sub_explicit(&balancer->n_posted, 1, memory_order_release);
    unlock_settling(balancer->client);
}

/* A loop that refuses has shut down: it has settled its balancer or is about to. */
static void close_balancers(struct bow_client *client)
{
    for (uint32_t i = 0; i < client->n_balancers; i++) {
        struct bow__balancer *balancer = &client->balancers[i];
        if (!atomic_load_explicit(&balancer->used, memory_order_acquire)) {
            continue;
        }
        pthread_mutex_lock(&client->lock);
        client->n_closing++;
        pthread_mutex_unlock(&client->lock);
        if (bow__loop_post_internal(balancer->calls.loop, &balancer->close_task, 0) < 0) {
            closed_one(client);
        }
    }
}

static void wait_until_settled(struct bow_client *client)
{
    pthread_mutex_lock(&client->lock);
    while (!is_settled(client)) {
        pthread_cond_wait(&client->settled, &client->lock);
    }
    pthread_mutex_unlock(&client->lock);
}

static void free_confined(struct bow_client *client)
{
    close_balancers(client);
    if (!client->driving) {
        bow__client_end_drive(client);
    }
}

/* The connections are the parent's, and its threads may have been anywhere. */
static void forsake(struct bow_client *client)
{
    for (uint32_t i = 0; i < client->n_balancers; i++) {
        if (bow__loop_is_foreign(client->balancers[i].calls.loop)) {
            bow__loop_forsake(client->balancers[i].calls.loop);
        }
    }
}

void bow_client_free(struct bow_client *client)
{
    if (client != NULL && bow__client_is_foreign(client)) {
        forsake(client);
        return;
    }
    if (client == NULL || atomic_exchange(&client->closing, true)) {
        return;
    }
    if (client->config.confined) {
        free_confined(client);
        return;
    }
    bool in_loops =
        bow__client_in_loops(client) || bow__loop_awaits_owner(client->balancers[0].calls.loop);
    pthread_mutex_lock(&client->lock);
    client->n_closing++; /* until all have been told */
    client->free_when_settled = in_loops;
    pthread_mutex_unlock(&client->lock);
    close_balancers(client);
    closed_one(client);
    if (!in_loops) {
        wait_until_settled(client);
        destroy(client);
    }
}

/* Confined clients */

int bow__client_drive(struct bow_client *client, uint64_t timeout_ns)
{
    client->driving = true;
    int rc = bow_loop_run_once(client->own_loop, timeout_ns);
    client->driving = false;
    return rc;
}

/* What has come to pass in it; equal when a turn had nothing to do. */
static uint64_t progress(const struct bow_loop *loop)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    return bow_loop_get_stats(loop, &stats) == 0 ? stats.events + stats.tasks_run : 0;
}

int bow__client_catch_up(struct bow_client *client)
{
    uint64_t before;
    int rc = 0;
    int n_turns = 0;

    if (!client->config.confined || client->driving) {
        return 0;
    }
    /* A turn reads so much and no more, and the end of a connection may stand behind that. */
    client->balancers[0].subchannels.catching_up = true;
    do {
        before = progress(client->own_loop);
        rc = bow__client_drive(client, 0);
    } while (rc == 0 && ++n_turns < MAX_CATCH_UP_TURNS && progress(client->own_loop) != before);
    client->balancers[0].subchannels.catching_up = false;
    return rc;
}

/* The counters are shown here, for their timer does not fire while nobody drives the loop. */
void bow__client_end_drive(struct bow_client *client)
{
    bow__counters_show(&client->balancers[0].calls.counters);
    if (!atomic_load(&client->closing)) {
        return;
    }
    while (!is_settled(client) && bow__client_drive(client, BOW_NEVER) == 0) {
    }
    destroy(client);
}

int bow_client_poll(struct bow_client *client, uint64_t timeout_ns)
{
    const char *why = !client->config.confined
                          ? "its client is not confined: its loops are run by others"
                      : !pthread_equal(client->thread, pthread_self()) ? BOW__CONFINED_TEXT
                      : client->driving ? "not inside a callback of its client"
                                        : NULL;
    if (why != NULL) {
        return bow__refuse(client->config.context, -EINVAL, "bow_client_poll: %s", why);
    }
    int rc = bow__client_drive(client, timeout_ns);
    bow__client_end_drive(client);
    return rc;
}

/* Balancers and threads */

bool bow__client_is_foreign(const struct bow_client *client)
{
    for (uint32_t i = 0; i < client->n_balancers; i++) {
        const struct bow__balancer *balancer = &client->balancers[i];
        if (atomic_load_explicit(&balancer->used, memory_order_relaxed) &&
            bow__loop_is_foreign(balancer->calls.loop)) {
            return true;
        }
    }
    return false;
}

bool bow__client_in_loops(const struct bow_client *client)
{
    if (client->config.options.group != NULL) {
        return bow_group_current(client->config.options.group) != NULL;
    }
    return bow_loop_in_loop(client->balancers[0].calls.loop);
}

static struct bow__balancer *choose_balancer(struct bow_client *client)
{
    if (client->n_balancers == 1) {
        return &client->balancers[0];
    }
    const struct bow_loop *current = bow_group_current(client->config.options.group);
    for (uint32_t i = 0; current != NULL && i < client->n_balancers; i++) {
        if (client->balancers[i].calls.loop == current) {
            return &client->balancers[i];
        }
    }
    /* Any mapping that stays the same for a thread; the low bits of its address are alike. */
    uint64_t hash = (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9E3779B97F4A7C15);
    return &client->balancers[(hash >> 32) % client->n_balancers];
}

struct bow__balancer *bow__client_balancer(struct bow_client *client)
{
    if (client->config.confined && !pthread_equal(client->thread, pthread_self())) {
        return NULL;
    }
    struct bow__balancer *balancer = choose_balancer(client);
    if (!atomic_load_explicit(&balancer->used, memory_order_acquire)) {
        atomic_store_explicit(&balancer->used, true, memory_order_release);
    }
    return balancer;
}

const char *bow_client_target(const struct bow_client *client)
{
    return client->config.target.text;
}

enum bow_client_state bow_client_get_state(const struct bow_client *client)
{
    static const int ranks[] = {
        [BOW_CLIENT_IDLE] = 1,     [BOW_CLIENT_CONNECTING] = 3,
        [BOW_CLIENT_READY] = 4,    [BOW_CLIENT_TRANSIENT_FAILURE] = 2,
        [BOW_CLIENT_SHUTDOWN] = 0,
    };
    enum bow_client_state best = BOW_CLIENT_SHUTDOWN;

    for (uint32_t i = 0; i < client->n_balancers && !atomic_load(&client->closing); i++) {
        int state = atomic_load_explicit(&client->balancers[i].shown_state, memory_order_relaxed);
        if (ranks[state] > ranks[best]) {
            best = (enum bow_client_state)state;
        }
    }
    return best;
}
