/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's start: its loops, a worker on each, and the listeners. All or nothing.
 */

#include "base/alloc.h"
#include "rpc/server_state.h"

#include <errno.h>
#include <string.h>

static struct bow__worker *worker_on(const struct bow_server *server, const struct bow_loop *loop)
{
    for (uint32_t i = 0; i < server->n_workers; i++) {
        if (server->workers[i]->loop == loop) {
            return server->workers[i];
        }
    }
    return NULL;
}

static int on_channel(struct bow_channel *channel, void *user)
{
    struct bow__worker *worker = worker_on(user, bow_channel_loop(channel));

    return worker != NULL ? bow__worker_accept(worker, channel) : -ESHUTDOWN;
}

static void explain(struct bow_server *server, const char *stage, int error)
{
    bow__text_printf(&server->error, "%s: ", stage);
    bow__text_errno(&server->error, error);
}

/* Loops */

static int make_group(struct bow_server *server)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;

    if (server->options.group != NULL) {
        server->group = server->options.group;
        return 0;
    }
    if (server->options.workers == 0) {
        return 0;
    }
    options.n_loops = server->options.workers;
    options.name = "server";
    int rc = bow_group_new(server->context, &options, &server->group);
    server->owns_group = rc == 0;
    return rc;
}

static int make_main(struct bow_server *server, enum bow_loop_thread kind)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    if (server->options.loop != NULL) {
        server->main = bow_loop_ref(server->options.loop);
        return 0;
    }
    if (server->options.group != NULL) {
        server->main = bow_loop_ref(bow_group_get(server->group, 0));
        return 0;
    }
    options.thread = kind;
    options.name = "bow-server";
    int rc = bow_loop_new(server->context, &options, &server->main);
    server->owns_main = rc == 0;
    return rc;
}

static int make_workers(struct bow_server *server)
{
    uint32_t n = server->group != NULL ? bow_group_size(server->group) : 1;

    server->workers = bow__alloc_array(server->context, n, sizeof(struct bow__worker *));
    if (server->workers == NULL) {
        return -ENOMEM;
    }
    server->n_workers = n;
    for (uint32_t i = 0; i < n; i++) {
        struct bow_loop *loop =
            server->group != NULL ? bow_group_get(server->group, i) : server->main;
        int rc = bow__worker_new(server->context, loop, server, &server->registry, &server->limits,
                                 &server->n_connections, bow__server_on_worker_done,
                                 &server->workers[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Listeners */

static int check_plaintext(struct bow_server *server, const char *address)
{
    int local = bow_address_is_local(address);

    if (strncmp(address, "grpc:", strlen("grpc:")) == 0) {
        bow__text_printf(&server->error,
                         "parsing \"%s\": \"grpc:\" is for a client's target; a server speaks gRPC "
                         "on each of its addresses",
                         address);
        return -EINVAL;
    }
    /* What cannot be parsed the acceptor explains. */
    if (local == 0 && !server->options.plaintext) {
        bow__text_printf(&server->error,
                         "listening on %s: it can be reached from other hosts, and connections are "
                         "not encrypted; set options.plaintext = true to allow that, or listen on "
                         "127.0.0.1, [::1] or a Unix socket",
                         address);
        return -EPERM;
    }
    return 0;
}

static int listen_on(struct bow_server *server, const char *address)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    int rc = check_plaintext(server, address);
    if (rc < 0) {
        return rc;
    }
    options.address = address;
    options.loop = server->main;
    options.workers = server->group;
    options.backlog = server->options.backlog;
    options.channel.data_bytes = sizeof(struct bow__server_conn);
    options.channel.on_channel = on_channel;
    options.channel.user = server;
    rc = bow_acceptor_new(server->context, &options, &server->acceptors[server->n_acceptors],
                          &error);
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

static size_t count_commas(const char *list)
{
    size_t n = 0;

    for (; *list != '\0'; list++) {
        n += *list == ',';
    }
    return n;
}

/* Each entry of the list, cut in place in a copy of it. */
static int listen_on_each(struct bow_server *server, char *list)
{
    int rc = 0;

    while (list != NULL && rc == 0) {
        char *comma = strchr(list, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        list += strspn(list, " ");
        rc = listen_on(server, list);
        list = comma != NULL ? comma + 1 : NULL;
    }
    return rc;
}

static int make_listeners(struct bow_server *server)
{
    const char *list = server->options.listen;

    if (list == NULL || *list == '\0') {
        bow__text_printf(&server->error, "starting: options.listen names no address");
        return -EINVAL;
    }
    size_t len = strlen(list);
    server->cap_acceptors = (uint32_t)count_commas(list) + 1;
    server->acceptors =
        bow__alloc_array(server->context, server->cap_acceptors, sizeof(struct bow_acceptor *));
    char *copy = bow__dup(server->context, list, len);
    int rc = -ENOMEM;
    if (server->acceptors != NULL && copy != NULL) {
        rc = listen_on_each(server, copy);
    }
    if (copy != NULL) {
        bow__free(server->context, copy, len + 1);
    }
    return rc;
}

static int make_all(struct bow_server *server, enum bow_loop_thread kind)
{
    int rc = bow__registry_seal(&server->registry);
    if (rc == 0) {
        rc = make_group(server);
    }
    if (rc == 0) {
        rc = make_main(server, kind);
    }
    if (rc == 0) {
        rc = make_workers(server);
    }
    if (rc == 0) {
        rc = make_listeners(server);
    }
    return rc;
}

/* All that was posted has run when it returns, except on the loop's own thread. A loop that nobody
 * drives has to be run once more to end. */
static void end_main(struct bow_server *server)
{
    if (server->owns_main && bow_loop_shutdown(server->main, 0, 0) == 0 &&
        bow_loop_run(server->main) < 0) {
        (void)!bow_loop_join(server->main, BOW_NEVER);
    }
    bow_loop_unref(server->main);
    server->main = NULL;
    server->owns_main = false;
}

void bow__server_unmake(struct bow_server *server)
{
    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        if (server->acceptors[i] != NULL) {
            bow_acceptor_close(server->acceptors[i], NULL, NULL);
        }
    }
    if (server->acceptors != NULL) {
        bow__free(server->context, server->acceptors,
                  server->cap_acceptors * sizeof(struct bow_acceptor *));
    }
    server->acceptors = NULL;
    server->n_acceptors = 0;
    server->port = 0;
    if (server->main != NULL) {
        end_main(server);
    }
    for (uint32_t i = 0; i < server->n_workers; i++) {
        bow__worker_unref(server->workers[i]);
    }
    if (server->workers != NULL) {
        bow__free(server->context, server->workers,
                  server->n_workers * sizeof(struct bow__worker *));
    }
    server->workers = NULL;
    server->n_workers = 0;
    if (server->owns_group) {
        bow_group_unref(server->group);
    }
    server->group = NULL;
    server->owns_group = false;
}

/* From here on the parts end by themselves, so a failure stops the server instead of undoing. */
static int open_all(struct bow_server *server)
{
    server->n_parts = server->n_workers + server->n_acceptors;
    server->n_open_acceptors = server->n_acceptors;
    server->state = BOW__SERVER_STARTED;
    bow__server_ref(server);
    int rc = bow_loop_post(server->main, &server->open_task);
    for (uint32_t i = 0; i < server->n_workers && rc == 0; i++) {
        rc = bow__worker_open(server->workers[i]);
    }
    for (uint32_t i = 0; i < server->n_acceptors && rc == 0; i++) {
        rc = bow_acceptor_start(server->acceptors[i]);
    }
    return rc;
}

int bow__server_start(struct bow_server *server, enum bow_loop_thread kind)
{
    bow__text_clear(&server->error);
    if (bow__server_get_state(server) != BOW__SERVER_NEW) {
        bow__text_printf(&server->error, "starting: the server has been started before");
        return -EBUSY;
    }
    int rc = make_all(server, kind);
    if (rc < 0) {
        if (server->error.len == 0) {
            explain(server, "starting", rc);
        }
        bow__server_unmake(server);
        return rc;
    }
    rc = open_all(server);
    if (rc < 0) {
        explain(server, "starting the server's loops", rc);
        bow_server_stop(server);
    }
    return rc;
}

int bow_server_start(struct bow_server *server)
{
    return bow__server_start(server, BOW_LOOP_OWN_THREAD);
}
