/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's start: its loops, a worker on each, and the listeners (server_listen.c). All or
 * nothing.
 */

#include "rpc/server/server_start.h"
#include "base/alloc.h"
#include "rpc/server/operations/operations.h"
#include "rpc/server/server_fork.h"
#include "rpc/server/server_listen.h"
#include "rpc/server/server_operations.h"
#include "rpc/server/server_own.h"
#include "rpc/server/server_services.h"
#include "rpc/server/server_stop.h"
#include "rpc/server/server_web.h"
#include "transport/channel/acceptor.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

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
        server->main = server->options.loop;
        bow__loop_hold(server->main);
        return 0;
    }
    if (server->options.group != NULL) {
        server->main = bow_group_get(server->group, 0);
        bow__loop_hold(server->main);
        return 0;
    }
    options.thread = kind;
    options.name = "bow-server";
    int rc = bow_loop_new(server->context, &options, &server->main);
    server->owns_main = rc == 0;
    return rc;
}

/* Whoever wants no limit of messages may have named one of which not even four can be counted. */
static size_t default_flight(size_t max_message_bytes, uint32_t n_loops)
{
    size_t n_messages = (size_t)4 * n_loops;

    if (max_message_bytes > SIZE_MAX / n_messages) {
        return SIZE_MAX;
    }
    size_t least = max_message_bytes * n_messages;
    return least > BOW_LIMIT_SERVER_BYTES_IN_FLIGHT ? least : BOW_LIMIT_SERVER_BYTES_IN_FLIGHT;
}

/* A loop's share has to let large messages through. */
static int share_flight(struct bow_server *server, uint32_t n_loops)
{
    struct bow__worker_limits *limits = &server->limits;
    size_t max = server->options.max_bytes_in_flight;
    bool is_default = max == 0;

    if (is_default) {
        max = default_flight(limits->max_message_bytes, n_loops);
    }
    limits->max_bytes_in_flight = max;
    limits->max_loop_bytes_in_flight = max / n_loops;
    if (is_default || limits->max_loop_bytes_in_flight / 2 >= limits->max_message_bytes) {
        return 0;
    }
    bow__text_printf(&server->error,
                     "starting: max_bytes_in_flight (%zu) is less than two messages of "
                     "max_message_bytes (%zu) for each of %u loops",
                     max, limits->max_message_bytes, n_loops);
    return -EINVAL;
}

/* A loop that few connections are on is not to be short of what one may have. */
#define LEAST_LOOP_QUEUED_BYTES ((size_t)32 << 20)

static void share_backlog(struct bow_server *server, uint32_t n_loops)
{
    struct bow__worker_limits *limits = &server->limits;
    size_t max = server->options.max_queued_reply_bytes;

    if (max == 0) {
        size_t least = LEAST_LOOP_QUEUED_BYTES * n_loops;
        max = BOW_LIMIT_SERVER_QUEUED_REPLY_BYTES;
        max = max > least ? max : least;
    }
    limits->max_queued_reply_bytes = max;
    limits->max_loop_queued_reply_bytes = max / n_loops;
}

static int make_workers(struct bow_server *server)
{
    uint32_t n = server->group != NULL ? bow_group_size(server->group) : 1;

    int rc = share_flight(server, n);
    if (rc < 0) {
        return rc;
    }
    share_backlog(server, n);
    server->workers = bow__alloc_array(server->context, n, sizeof(struct bow__worker *));
    if (server->workers == NULL) {
        return -ENOMEM;
    }
    server->n_workers = n;
    server->limits.interceptors = server->interceptors.n > 0 ? &server->interceptors : NULL;
    rc = bow__quotas_new(server->context, &server->registry, server->options.max_server_calls, n,
                         &server->limits.quotas);
    if (rc == 0 && server->limits.health != NULL) {
        rc = bow__health_make_loops(&server->health, n);
    }
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct bow_loop *loop =
            server->group != NULL ? bow_group_get(server->group, i) : server->main;
        rc = bow__worker_new(server->context, loop, server, &server->registry, &server->limits,
                             &server->n_connections, bow__server_on_worker_done,
                             &server->workers[i]);
        if (rc == 0 && server->limits.health != NULL) {
            rc = bow__health_add_loop(&server->health, loop);
        }
    }
    return rc;
}

/* What is posted to one that has no thread, or takes no task any more, would be lost, and the
 * server then never end. */
static int start_loops(struct bow_server *server)
{
    int rc = bow__loop_prepare(server->main);

    for (uint32_t i = 0; i < server->n_workers && rc == 0; i++) {
        rc = bow__loop_prepare(server->workers[i]->loop);
    }
    if (rc < 0) {
        explain(server, "starting the server's loops", rc);
    }
    return rc;
}

static int make_all(struct bow_server *server, enum bow_loop_thread kind)
{
    int rc = bow__server_bind_rest(server);
    if (rc == 0) {
        rc = bow__server_add_own(server);
    }
    if (rc == 0) {
        rc = bow__registry_seal(&server->registry);
    }
    if (rc == 0) {
        rc = bow__server_list_files(server);
    }
    if (rc == 0) {
        rc = make_group(server);
    }
    if (rc == 0) {
        rc = make_main(server, kind);
    }
    if (rc == 0 && bow__server_has_foreign_loop(server)) {
        rc = bow__server_refuse_foreign(server, "starting");
    }
    if (rc == 0) {
        rc = make_workers(server);
    }
    if (rc == 0) {
        rc = bow__take_over_begin(server);
    }
    if (rc == 0) {
        rc = bow__server_make_acceptors(server);
    }
    if (rc == 0) {
        rc = bow__server_make_operations(server);
    }
    if (rc == 0) {
        rc = start_loops(server);
    }
    return rc;
}

/* A worker whose loop has shut down meanwhile never begins, and so never reports: it is no part. */
static int open_workers(struct bow_server *server)
{
    int rc = 0;

    for (uint32_t i = 0; i < server->n_workers; i++) {
        int refused = bow__worker_open(server->workers[i]);
        if (refused < 0) {
            server->n_parts--;
            rc = refused;
        }
    }
    return rc;
}

/* Once it has begun it ends as the last part does, whatever comes of the others. */
static int open_operations(struct bow_server *server)
{
    int rc = server->operations != NULL ? bow__operations_start(server->operations) : 0;

    server->runs_operations = server->operations != NULL && rc == 0;
    server->n_parts += server->runs_operations;
    return rc;
}

/* Under the lock. */
static int open_parts(struct bow_server *server)
{
    server->n_parts = server->n_workers + server->n_acceptors;
    atomic_store(&server->n_open_acceptors, server->n_acceptors);
    int rc = open_workers(server);
    if (rc == 0) {
        rc = open_operations(server);
    }
    if (rc == 0) {
        rc = bow__acceptors_start(server->acceptors, server->n_acceptors);
    }
    if (rc < 0) {
        server->n_parts -= server->n_acceptors;
        atomic_store(&server->n_open_acceptors, 0);
        bow__server_unlisten(server);
    }
    return rc;
}

/*
 * `ret_begun`: from here on the workers end by themselves, so a failure stops the server instead of
 * undoing: one of its loops has ended, and it could not start on them again. The main loop is
 * first, for it is what ends them.
 */
static int open_all(struct bow_server *server, bool *ret_begun)
{
    pthread_mutex_lock(&server->lock);
    int rc = bow__loop_post_internal(server->main, &server->open_task, 0);
    *ret_begun = rc == 0;
    if (rc == 0) {
        bow__server_ref(server);
        server->state = BOW__SERVER_STARTED;
        rc = open_parts(server);
        server->tells_stopping = rc == 0;
        atomic_store(&server->opened, true);
    }
    pthread_mutex_unlock(&server->lock);
    return rc;
}

int bow__server_start(struct bow_server *server, enum bow_loop_thread kind)
{
    bow__text_clear(&server->error);
    if (bow__server_is_foreign(server)) {
        return bow__server_refuse_foreign(server, "starting");
    }
    if (bow__server_get_state(server) != BOW__SERVER_NEW) {
        bow__text_printf(&server->error, "starting: the server has been started before");
        return -EBUSY;
    }
    bool begun = false;
    int rc = make_all(server, kind);
    if (rc < 0 && server->error.len == 0) {
        explain(server, "starting", rc);
    }
    if (rc == 0) {
        rc = open_all(server, &begun);
        if (rc < 0) {
            explain(server, "starting the server's loops", rc);
        }
    }
    if (!begun) {
        bow__server_unmake(server);
        return rc;
    }
    if (rc == 0 && !atomic_load(&server->stop_requested)) {
        rc = bow__take_over_finish(server);
    }
    if (rc < 0 || atomic_load(&server->stop_requested)) {
        bow__take_over_abandon(server);
        bow_server_stop(server);
    }
    return rc;
}

int bow_server_start(struct bow_server *server)
{
    return bow__server_start(server, BOW_LOOP_OWN_THREAD);
}
