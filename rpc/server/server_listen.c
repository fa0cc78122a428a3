/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where a server listens, and what is added to a connection's pipeline in front of the
 * handler of calls: the program's own handlers, then security.
 */

#include "rpc/server/server_listen.h"
#include "base/alloc.h"
#include "base/options.h"
#include "rpc/server/dispatch/server_conn.h"
#include "transport/channel/acceptor.h"
#include "transport/channel/unix_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int add_listener(struct bow_server *server, const struct bow_listen_options *options,
                        const char *address, size_t len)
{
    struct bow__listener *listener = bow__alloc_zero(server->context, sizeof(*listener) + len + 1);
    struct bow__listener **end = &server->listeners;

    if (listener == NULL) {
        return -ENOMEM;
    }
    memcpy(listener->address, address, len);
    listener->address_len = len;
    listener->server = server;
    listener->options = *options;
    listener->options.address = listener->address;
    if (listener->options.security != NULL) {
        listener->options.security->ops->ref(listener->options.security);
    }
    if (listener->options.protocols == 0) {
        listener->options.protocols = BOW__DEFAULT_PROTOCOLS;
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = listener;
    server->n_listeners++;
    return 0;
}

int bow__server_listen_list(struct bow_server *server)
{
    struct bow_listen_options options = BOW_LISTEN_OPTIONS_INIT;
    const char *at = server->options.listen;

    options.security = server->options.security;
    options.protocols = server->options.protocols;
    options.plaintext = server->options.plaintext;
    options.backlog = server->options.backlog;
    options.unix_mode = server->options.unix_mode;
    options.unix_owner = server->options.unix_owner;
    options.unix_group = server->options.unix_group;
    while (at != NULL && *at != '\0') {
        const char *comma = strchr(at, ',');
        at += strspn(at, " ");
        size_t len = comma != NULL ? (size_t)(comma - at) : strlen(at);
        int rc = add_listener(server, &options, at, len);
        if (rc < 0) {
            return rc;
        }
        at = comma != NULL ? comma + 1 : NULL;
    }
    return 0;
}

static int refuse_listen(struct bow_server *server, int rc, const char *why)
{
    bow__text_printf(&server->error, "adding an address to listen on: %s", why);
    return rc;
}

int bow_server_listen(struct bow_server *server, const struct bow_listen_options *options)
{
    struct bow_listen_options known = BOW_LISTEN_OPTIONS_INIT;

    bow__text_clear(&server->error);
    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return refuse_listen(server, rc, "begin with BOW_LISTEN_OPTIONS_INIT");
    }
    if (known.address == NULL) {
        return refuse_listen(server, -EINVAL, "options.address is NULL");
    }
    if ((known.protocols & ~BOW__ALL_PROTOCOLS) != 0 || known.backlog < 0) {
        return refuse_listen(server, -EINVAL,
                             "options.protocols has bits that are no BOW_PROTOCOL_, or "
                             "options.backlog is negative");
    }
    if (known.unix_mode > BOW__MODE_MAX) {
        return refuse_listen(server, -EINVAL, "options.unix_mode is above 0777");
    }
    if (bow__server_get_state(server) != BOW__SERVER_NEW) {
        return refuse_listen(server, -EBUSY, "the server has been started");
    }
    rc = add_listener(server, &known, known.address, strlen(known.address));
    return rc < 0 ? refuse_listen(server, rc, "out of memory") : 0;
}

/* Connections */

static struct bow__worker *worker_on(const struct bow_server *server, const struct bow_loop *loop)
{
    for (uint32_t i = 0; i < server->n_workers; i++) {
        if (server->workers[i]->loop == loop) {
            return server->workers[i];
        }
    }
    return NULL;
}

static int secure(struct bow_security *security, struct bow_channel *channel, uint32_t protocols)
{
    /* By BOW_PROTOCOL_ bits, those for browsers as one. */
    static const char *const names[] = {
        [1] = "bowline/1",
        [2] = "h2",
        [3] = "bowline/1,h2",
        [4] = "h2,http/1.1",
        [5] = "bowline/1,h2,http/1.1",
        [6] = "h2,http/1.1",
        [7] = "bowline/1,h2,http/1.1",
    };
    uint32_t web = (protocols & BOW__WEB_PROTOCOLS) != 0 ? 4 : 0;
    struct bow_security_request request = {.alpn =
                                               names[(protocols & BOW__DEFAULT_PROTOCOLS) | web]};

    return security->ops->add(security, channel, &request);
}

static int on_channel(struct bow_channel *channel, void *user)
{
    const struct bow__listener *listener = user;
    const struct bow_listen_options *options = &listener->options;
    struct bow__worker *worker = worker_on(listener->server, bow_channel_loop(channel));

    if (worker == NULL) {
        return -ESHUTDOWN;
    }
    int rc = options->prepare != NULL ? options->prepare(channel, options->user) : 0;
    if (rc == 0 && options->security != NULL) {
        rc = secure(options->security, channel, options->protocols);
    }
    return rc < 0 ? rc : bow__server_conn_accept(worker, channel, options);
}

/* Start */

static int check_plaintext(struct bow_server *server, const struct bow_listen_options *options)
{
    int local = bow_address_is_local(options->address);

    if (strncmp(options->address, "grpc:", strlen("grpc:")) == 0) {
        bow__text_printf(&server->error,
                         "parsing \"%s\": \"grpc:\" is for a client's target; a server speaks gRPC "
                         "on each of its addresses",
                         options->address);
        return -EINVAL;
    }
    /* What cannot be parsed the acceptor explains. */
    if (local == 0 && !options->plaintext && options->security == NULL) {
        bow__text_printf(&server->error,
                         "listening on %s: it can be reached from other hosts, and connections are "
                         "not encrypted; set options.security (see bow_tls_security()), or "
                         "options.plaintext = true to allow that, or listen on 127.0.0.1, [::1] or "
                         "a Unix socket",
                         options->address);
        return -EPERM;
    }
    return 0;
}

static int open_listener(struct bow_server *server, struct bow__listener *listener)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    int rc = check_plaintext(server, &listener->options);
    if (rc < 0) {
        return rc;
    }
    options.address = listener->address;
    options.loop = server->main;
    options.workers = server->group;
    options.backlog = listener->options.backlog;
    options.per_worker = listener->options.per_worker && server->group != NULL;
    options.shares_port = listener->options.shares_port;
    options.unix_mode = listener->options.unix_mode;
    options.unix_owner = listener->options.unix_owner;
    options.unix_group = listener->options.unix_group;
    options.channel.keepalive_ns = server->options.keepalive_ns;
    options.channel.tcp_timeout_ns = server->options.tcp_timeout_ns;
    options.channel.data_bytes = sizeof(struct bow__server_conn);
    options.channel.on_channel = on_channel;
    options.channel.user = listener;
    rc = bow__acceptor_new_from(server->context, &options, &server->take_over.handed,
                                &server->acceptors[server->n_acceptors], &error);
    if (rc < 0) {
        bow__text_printf(&server->error, "%s", error.text);
        return rc;
    }
    if (server->port == 0) {
        server->port = bow_acceptor_port(server->acceptors[server->n_acceptors]);
    }
    server->n_acceptors++;
    return 0;
}

/* The acceptors end before the server does. */
static int name_addresses(struct bow_server *server)
{
    size_t n_bytes = 0;
    size_t len = 0;

    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        n_bytes += strlen(bow_acceptor_addresses(server->acceptors[i])) + sizeof(", ");
    }
    server->addresses = bow__alloc(server->context, n_bytes);
    if (server->addresses == NULL) {
        return -ENOMEM;
    }
    server->addresses_bytes = n_bytes;
    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        len += (size_t)snprintf(server->addresses + len, n_bytes - len, "%s%s", i > 0 ? ", " : "",
                                bow_acceptor_addresses(server->acceptors[i]));
    }
    return 0;
}

int bow__server_make_acceptors(struct bow_server *server)
{
    if (server->n_listeners == 0) {
        bow__text_printf(&server->error, "starting: options.listen names no address");
        return -EINVAL;
    }
    server->cap_acceptors = server->n_listeners;
    server->acceptors =
        bow__alloc_array(server->context, server->cap_acceptors, sizeof(struct bow_acceptor *));
    int rc = server->acceptors != NULL ? 0 : -ENOMEM;
    for (struct bow__listener *at = server->listeners; at != NULL && rc == 0; at = at->next) {
        rc = open_listener(server, at);
    }
    return rc == 0 ? name_addresses(server) : rc;
}
