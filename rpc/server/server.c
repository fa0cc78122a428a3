/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's options, services and end, and what it tells about itself.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "rpc/server/executor_dispatch.h"
#include "rpc/server/server_state.h"
#include "transport/address/transport_error.h"
#include <bowline/limits.h>
#include <bowline/metrics.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#define SECONDS(n) (UINT64_C(1000000000) * (n))

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static void set_limits(struct bow_server *server)
{
    const struct bow_server_options *options = &server->options;

    server->limits = (struct bow__worker_limits){
        .max_deadline_ns = or_default(options->max_deadline_ns, SECONDS(60)),
        .heartbeat_ns = or_default(options->heartbeat_ns, SECONDS(60)),
        .heartbeat_timeout_ns = or_default(options->heartbeat_timeout_ns, SECONDS(20)),
        .first_frame_timeout_ns =
            or_default(options->first_frame_timeout_ns, BOW_LIMIT_FIRST_FRAME_NS),
        .max_message_bytes =
            options->max_message_bytes > 0 ? options->max_message_bytes : BOW_LIMIT_MESSAGE_BYTES,
        .max_calls = options->max_calls > 0 ? options->max_calls : BOW_LIMIT_CALLS_IN_FLIGHT,
        .max_connections =
            options->max_connections > 0 ? options->max_connections : BOW_LIMIT_CONNECTIONS,
        .write_timeout_ns = or_default(options->write_timeout_ns, BOW_LIMIT_WRITE_NS),
        .idle_timeout_ns = or_default(options->idle_timeout_ns, BOW_NEVER),
        .max_age_ns = or_default(options->max_age_ns, BOW_NEVER),
        .max_age_grace_ns = or_default(options->max_age_grace_ns, BOW_NEVER),
        .retry_after_ns = or_default(options->retry_after_ns, BOW_LIMIT_RETRY_AFTER_NS),
    };
    server->limits.compression = (struct bow__compression_options){
        .compression = options->compression,
        .threshold_bytes = options->compression_threshold_bytes,
        .level = options->compression_level,
        .max_message_bytes = server->limits.max_message_bytes,
    };
    server->options.grace_ns = or_default(options->grace_ns, SECONDS(10));
}

static int refuse(const struct bow_server_options *options, int rc, const char *reason)
{
    return bow__transport_error(options->error, "making", "a server", rc, reason);
}

static int check_options(const struct bow_server_options *options)
{
    int n_loops = (options->loop != NULL) + (options->group != NULL) + (options->workers > 0);

    if (n_loops > 1) {
        return refuse(options, -EINVAL,
                      "set one of options.loop, options.group and options.workers");
    }
    if (options->backlog < 0) {
        return refuse(options, -EINVAL, "options.backlog is negative; 0 is the most there is");
    }
    if ((options->protocols & ~BOW__ALL_PROTOCOLS) != 0) {
        return refuse(options, -EINVAL, "options.protocols has bits that are no BOW_PROTOCOL_");
    }
    if (!bow__compression_is_known(options->compression)) {
        return refuse(options, -EINVAL, "options.compression is none of enum bow_compression");
    }
    return 0;
}

static int get_context(struct bow_context *given, struct bow_context **ret_context)
{
    struct bow_context_options defaults = BOW_CONTEXT_OPTIONS_INIT;

    if (given != NULL) {
        *ret_context = bow_context_ref(given);
        return 0;
    }
    return bow_context_new(&defaults, ret_context);
}

static int make(const struct bow_server_options *options, struct bow_context *context,
                struct bow_server **ret_server)
{
    struct bow_server *server = bow__alloc_zero(context, sizeof(*server));

    if (server == NULL) {
        return -ENOMEM;
    }
    server->options = *options;
    server->options.error = NULL;
    server->context = context;
    int rc = bow__server_listen_list(server);
    server->options.listen = NULL; /* it was borrowed */
    if (rc < 0) {
        bow__server_free_listeners(server);
        bow__free(context, server, sizeof(*server));
        return rc;
    }
    if (options->handlers_on != NULL) {
        (void)bow_executor_ref(options->handlers_on);
    }
    if (options->blocking_on != NULL) {
        (void)bow_executor_ref(options->blocking_on);
    }
    set_limits(server);
    bow__registry_init(&server->registry, context);
    bow__interceptors_init(&server->interceptors, context);
    bow__text_clear(&server->error);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->stopped, NULL);
    atomic_store(&server->refs, 1);
    bow__server_init_stop(server);
    *ret_server = server;
    return 0;
}

int bow_server_new(const struct bow_server_options *options, struct bow_server **ret_server)
{
    struct bow_server_options known = BOW_SERVER_OPTIONS_INIT;
    struct bow_context *context = NULL;

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return rc;
    }
    rc = check_options(&known);
    if (rc < 0) {
        return rc;
    }
    rc = get_context(known.context, &context);
    if (rc < 0) {
        return refuse(&known, rc, NULL);
    }
    rc = make(&known, context, ret_server);
    if (rc < 0) {
        bow_context_unref(context);
        return refuse(&known, rc, NULL);
    }
    return 0;
}

int bow_server_add_service(struct bow_server *server, const struct bow_service *service,
                           const void *handlers, size_t handlers_size, uint64_t hash, void *user)
{
    bow__text_clear(&server->error);
    return bow__registry_add(&server->registry, service, handlers, handlers_size, hash, user,
                             &server->error);
}

int bow_server_intercept(struct bow_server *server, const struct bow_interceptor *interceptor)
{
    bow__text_clear(&server->error);
    if (server->registry.sealed) {
        bow__text_printf(&server->error, "an interceptor is added before the server starts");
        return -EBUSY;
    }
    int rc = bow__interceptors_add(&server->interceptors, interceptor, &server->error);
    if (rc == 0) {
        bow__text_clear(&server->error);
    }
    return rc;
}

/* Where handlers run */

static struct bow__executor_dispatch *get_executor_dispatch(struct bow_server *server,
                                                            struct bow_executor *executor)
{
    uint32_t max = server->options.max_waiting_calls;

    return bow__executor_dispatch_get(server->context, &server->elsewheres, executor,
                                      max > 0 ? max : BOW_LIMIT_WAITING_CALLS);
}

int bow_server_bind(struct bow_server *server, const char *name, struct bow_executor *executor)
{
    struct bow__executor_dispatch *executor_dispatch = NULL;

    bow__text_clear(&server->error);
    if (server->registry.sealed) {
        bow__text_printf(&server->error, "binding %s: the server has been started", name);
        return -EBUSY;
    }
    if (executor != NULL) {
        executor_dispatch = get_executor_dispatch(server, executor);
        if (executor_dispatch == NULL) {
            bow__text_printf(&server->error, "binding %s: out of memory", name);
            return -ENOMEM;
        }
    }
    if (bow__registry_bind(&server->registry, name, 0, executor_dispatch) == 0) {
        bow__text_printf(&server->error,
                         "binding %s: no service or method that was added is so named", name);
        return -ENOENT;
    }
    return 0;
}

int bow_server_limit_calls(struct bow_server *server, const char *name, uint32_t max_calls)
{
    bow__text_clear(&server->error);
    if (server->registry.sealed) {
        bow__text_printf(&server->error, "limiting %s: the server has been started", name);
        return -EBUSY;
    }
    if (bow__registry_limit(&server->registry, name, max_calls) == 0) {
        bow__text_printf(&server->error,
                         "limiting %s: no service or method that was added is so named", name);
        return -ENOENT;
    }
    return 0;
}

/* Those that no one has bound and that have all of `flags`, to `executor` if there is one. */
static int bind_unbound(struct bow_server *server, uint32_t flags, struct bow_executor *executor)
{
    if (executor == NULL) {
        return 0;
    }
    struct bow__executor_dispatch *executor_dispatch = get_executor_dispatch(server, executor);
    if (executor_dispatch == NULL) {
        return -ENOMEM;
    }
    (void)bow__registry_bind(&server->registry, NULL, flags, executor_dispatch);
    return 0;
}

int bow__server_bind_rest(struct bow_server *server)
{
    int rc = bind_unbound(server, BOW_METHOD_BLOCKING, server->options.blocking_on);

    if (rc == 0) {
        rc = bind_unbound(server, 0, server->options.handlers_on);
    }
    if (rc < 0) {
        return rc;
    }
    const struct bow_method *blocking = bow__registry_unbound_blocking(&server->registry);
    if (blocking == NULL) {
        return 0;
    }
    bow__text_printf(&server->error,
                     "starting: %s is declared to block and would hold its loop up; give "
                     "options.blocking_on an executor, or bow_server_bind() the method (with NULL: "
                     "to its loop after all, in a test say)",
                     blocking->path + 1);
    return -EDEADLK;
}

/* The end */

void bow__server_ref(struct bow_server *server)
{
    atomic_fetch_add_explicit(&server->refs, 1, memory_order_relaxed);
}

bool bow__server_drop(struct bow_server *server)
{
    return atomic_fetch_sub_explicit(&server->refs, 1, memory_order_acq_rel) == 1;
}

void bow__server_unref(struct bow_server *server)
{
    if (bow__server_drop(server)) {
        bow__server_destroy(server);
    }
}

void bow__server_destroy(struct bow_server *server)
{
    struct bow_context *context = server->context;
    bow__server_unmake(server);
    bow__registry_fini(&server->registry);
    bow__interceptors_fini(&server->interceptors, true);
    bow__executor_dispatch_free_all(context, server->elsewheres);
    if (server->options.handlers_on != NULL) {
        bow_executor_unref(server->options.handlers_on);
    }
    if (server->options.blocking_on != NULL) {
        bow_executor_unref(server->options.blocking_on);
    }
    pthread_cond_destroy(&server->stopped);
    pthread_mutex_destroy(&server->lock);
    bow__server_free_listeners(server);
    bow__free(context, server, sizeof(*server));
    bow_context_unref(context);
}

void bow_server_free(struct bow_server *server)
{
    if (server == NULL) {
        return;
    }
    if (bow__server_is_foreign(server)) {
        bow__server_forsake(server);
        return;
    }
    if (bow__server_get_state(server) == BOW__SERVER_STARTED) {
        bow_server_stop(server);
        (void)bow_server_join(server);
    }
    bow__server_unref(server);
}

/* What it tells */

const char *bow_server_error(const struct bow_server *server)
{
    return server->error.bytes;
}

uint16_t bow_server_port(const struct bow_server *server)
{
    return server->port;
}

int bow_server_metrics(const struct bow_server *server, struct bow_metrics *metrics)
{
    struct bow_metrics sum = BOW_METRICS_INIT;

    if (metrics->size < sizeof(metrics->size) || metrics->size > sizeof(sum)) {
        return -EINVAL;
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
