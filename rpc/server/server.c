/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's options and their defaults, and its making and freeing.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "rpc/core/header_limit.h"
#include "rpc/server/dispatch/server_conn.h"
#include "rpc/server/server_fork.h"
#include "rpc/server/server_listen.h"
#include "rpc/server/server_stop.h"
#include "rpc/server/server_web.h"
#include "transport/address/transport_error.h"
#include "transport/channel/unix_file.h"
#include <bowline/executor.h>
#include <bowline/limits.h>

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
        .max_header_bytes = bow__header_limit_or_default(options->max_header_bytes),
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
    struct bow__text reason;
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
    if (options->unix_mode > BOW__MODE_MAX) {
        return refuse(options, -EINVAL, "options.unix_mode is above 0777");
    }
    if (bow__header_limit_check(options->max_header_bytes, &reason) < 0) {
        return refuse(options, -EINVAL, reason.bytes);
    }
    if (options->hand_over_on_sigusr2 && options->take_over == NULL) {
        return refuse(options, -EINVAL,
                      "options.hand_over_on_sigusr2 needs options.take_over: where to");
    }
    if (bow__server_check_origins(options, &reason) < 0) {
        return refuse(options, -EINVAL, reason.bytes);
    }
    if (bow__server_check_page(options, &reason) < 0) {
        return refuse(options, -EINVAL, reason.bytes);
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

static int copy_text(struct bow_server *server, const char **option, char **ret_copy)
{
    const char *text = *option;

    *option = NULL; /* it was borrowed */
    if (text == NULL) {
        return 0;
    }
    *ret_copy = bow__dup(server->context, text, strlen(text));
    return *ret_copy != NULL ? 0 : -ENOMEM;
}

static int copy_operations(struct bow_server *server)
{
    int rc = copy_text(server, &server->options.operations_listen, &server->operations_address);

    return rc < 0 ? rc
                  : copy_text(server, &server->options.operations_hosts, &server->operations_hosts);
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
    server->take_over.fd = -1;
    int rc = bow__server_listen_list(server);
    server->options.listen = NULL; /* it was borrowed */
    if (rc < 0) {
        bow__server_free_listeners(server);
        bow__free(context, server, sizeof(*server));
        return rc;
    }
    set_limits(server);
    rc = copy_operations(server);
    if (rc == 0) {
        rc = copy_text(server, &server->options.take_over, &server->take_over_address);
    }
    if (rc == 0) {
        rc = bow__server_keep_origins(server);
    }
    if (rc == 0) {
        rc = bow__server_keep_page(server);
    }
    if (rc < 0) {
        bow__web_origins_free(context, server->limits.web_origins);
        bow__server_free_text(server, server->operations_address);
        bow__server_free_text(server, server->operations_hosts);
        bow__server_free_text(server, server->take_over_address);
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
    bow__registry_init(&server->registry, context);
    bow__interceptors_init(&server->interceptors, context);
    bow__health_init(&server->health, context, bow__server_conn_is_leaving);
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
        return options != NULL && options->size == 0
                   ? refuse(options, rc, "begin the options with BOW_SERVER_OPTIONS_INIT")
                   : rc;
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

/* The end */

static bool is_mine_to_drive(const struct bow_server *server)
{
    return server->owns_main &&
           (bow_loop_in_loop(server->main) || bow__loop_awaits_owner(server->main));
}

/* After a bow_server_run() that could not start all of it, or not wait for signals, nobody else
 * drives it. */
static void drive_own_loop(struct bow_server *server)
{
    while (is_mine_to_drive(server) && bow__server_get_state(server) == BOW__SERVER_STARTED &&
           bow_loop_run_once(server->main, BOW_NEVER) == 0) {
    }
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
        drive_own_loop(server);
        if (!bow__loop_awaits_owner(server->main)) {
            (void)bow_server_join(server);
        }
    }
    bow__server_unref(server);
}

/* What it tells */

const char *bow_server_error(const struct bow_server *server)
{
    return server->error.bytes;
}

const char *bow_server_addresses(const struct bow_server *server)
{
    return server->addresses != NULL ? server->addresses : "";
}

uint16_t bow_server_port(const struct bow_server *server)
{
    return server->port;
}
