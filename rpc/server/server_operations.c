/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server tells its operations listener of itself, and with which options that is made. What
 * it answers is in operations/, when it ends in server_stop.c.
 */
#include "rpc/server/server_operations.h"
#include "rpc/server/operations/operations.h"
#include "rpc/server/server_dump.h"

static bool is_draining(const struct bow_server *server)
{
    return atomic_load(&server->stop_requested);
}

/* What may be shown: numbers and addresses. Of security only whether there is any. */

static void put_number(struct bow__out *out, bool json, const char *name, uint64_t number)
{
    if (json && number == BOW_NEVER) {
        bow__out_null(out, name);
    } else if (json) {
        bow__out_number(out, name, number);
    } else if (number == BOW_NEVER) {
        bow__out_printf(out, "%s: none\n", name);
    } else {
        bow__out_printf(out, "%s: %" PRIu64 "\n", name, number);
    }
}

static void put_bool(struct bow__out *out, bool json, const char *name, bool value)
{
    if (json) {
        bow__out_bool(out, name, value);
    } else {
        bow__out_printf(out, "%s: %s\n", name, value ? "true" : "false");
    }
}

static void put_text(struct bow__out *out, bool json, const char *name, const char *text)
{
    if (json) {
        bow__out_string(out, name, text);
    } else {
        bow__out_printf(out, "%s: ", name);
        bow__out_escaped(out, text);
        bow__out_printf(out, "\n");
    }
}

static bool is_secure(const struct bow_server *server)
{
    bool is_secure = server->listeners != NULL;

    for (const struct bow__listener *at = server->listeners; at != NULL; at = at->next) {
        is_secure = is_secure && at->options.security != NULL;
    }
    return is_secure;
}

static void put_config(const struct bow_server *server, bool json, struct bow__out *out)
{
    const struct bow__worker_limits *limits = &server->limits;

    put_text(out, json, "version", BOW__VERSION);
    put_text(out, json, "addresses", server->addresses != NULL ? server->addresses : "");
    put_bool(out, json, "security_on_all", is_secure(server));
    put_number(out, json, "loops", server->n_workers);
    put_number(out, json, "methods", server->registry.n_methods);
    put_number(out, json, "interceptors", server->interceptors.n);
    put_bool(out, json, "reflection", server->options.reflection);
    put_bool(out, json, "health", limits->health != NULL);
    put_number(out, json, "max_connections", limits->max_connections);
    put_number(out, json, "max_calls", limits->max_calls);
    put_number(out, json, "max_server_calls",
               server->options.max_server_calls > 0 ? server->options.max_server_calls : BOW_NEVER);
    put_number(out, json, "max_message_bytes", limits->max_message_bytes);
    put_number(out, json, "max_header_bytes", limits->max_header_bytes);
    put_number(out, json, "max_bytes_in_flight", limits->max_bytes_in_flight);
    put_number(out, json, "max_queued_reply_bytes", limits->max_queued_reply_bytes);
    put_number(out, json, "max_deadline_ns", limits->max_deadline_ns);
    put_number(out, json, "heartbeat_ns", limits->heartbeat_ns);
    put_number(out, json, "heartbeat_timeout_ns", limits->heartbeat_timeout_ns);
    put_number(out, json, "first_frame_timeout_ns", limits->first_frame_timeout_ns);
    put_number(out, json, "write_timeout_ns", limits->write_timeout_ns);
    put_number(out, json, "idle_timeout_ns", limits->idle_timeout_ns);
    put_number(out, json, "max_age_ns", limits->max_age_ns);
    put_number(out, json, "lame_duck_ns", server->options.lame_duck_ns);
    put_number(out, json, "retry_after_ns", limits->retry_after_ns);
}

const char *bow_server_operations_addresses(const struct bow_server *server)
{
    return server->operations != NULL ? bow__operations_addresses(server->operations) : "";
}

int bow__server_make_operations(struct bow_server *server)
{
    if (server->operations_address == NULL) {
        return 0;
    }
    struct bow__operations_options options = {
        .loop = server->main,
        .address = server->operations_address,
        .handed = &server->take_over.handed,
        .exposed = server->options.operations_exposed,
        .host =
            {
                .server = server,
                .health = &server->health.states,
                .hosts = server->operations_hosts,
                .is_draining = is_draining,
                .gather = bow__server_gather_new,
                .put_config = put_config,
            },
    };

    return bow__operations_new(server->context, &options, &server->operations, &server->error);
}
