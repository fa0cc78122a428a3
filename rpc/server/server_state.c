/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's references and state, and giving back what it has once nobody refers to it. Knows
 * nothing of how it comes to serve, and to stop.
 */

#include "rpc/server/server_state.h"
#include "base/alloc.h"
#include "rpc/server/hand_over.h"
#include "rpc/server/operations/operations.h"
#include "transport/channel/acceptor.h"
#include <bowline/executor.h>
#include <string.h>

enum bow__server_state bow__server_get_state(struct bow_server *server)
{
    pthread_mutex_lock(&server->lock);
    enum bow__server_state state = server->state;
    pthread_mutex_unlock(&server->lock);
    return state;
}

bool bow__server_in_loops(const struct bow_server *server)
{
    if (server->main != NULL && bow_loop_in_loop(server->main)) {
        return true;
    }
    return server->group != NULL && bow_group_current(server->group) != NULL;
}

/* Giving back */

/* All that was posted has run when it returns, except on the loop's own thread. A loop that nobody
 * drives has to be run once more to end. */
static void end_own_main(struct bow_server *server)
{
    if (bow_loop_shutdown(server->main, 0, 0) == 0 && bow_loop_run(server->main) < 0) {
        (void)!bow_loop_join(server->main, BOW_NEVER);
    }
    bow_loop_unref(server->main);
}

static void let_go_of_main(struct bow_server *server)
{
    if (server->owns_main) {
        end_own_main(server);
    } else {
        bow__loop_release(server->main);
    }
    server->main = NULL;
    server->owns_main = false;
}

void bow__server_unlisten(struct bow_server *server)
{
    if (!server->runs_operations) {
        bow__operations_free(server->operations);
        server->operations = NULL;
    }
    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        if (server->acceptors[i] != NULL) {
            bow__acceptor_undo(server->acceptors[i]);
        }
    }
    if (server->acceptors != NULL) {
        bow__free(server->context, server->acceptors,
                  server->cap_acceptors * sizeof(struct bow_acceptor *));
    }
    server->acceptors = NULL;
    server->n_acceptors = 0;
    server->port = 0;
    bow__free(server->context, server->addresses, server->addresses_bytes);
    server->addresses = NULL;
}

void bow__server_unmake(struct bow_server *server)
{
    bow__server_unlisten(server);
    bow__take_over_abandon(server);
    bow__hand_over_free(server->hand_over);
    server->hand_over = NULL;
    if (server->main != NULL) {
        let_go_of_main(server);
    }
    bow__operations_free(server->operations);
    server->operations = NULL;
    for (uint32_t i = 0; i < server->n_workers; i++) {
        bow__worker_unref(server->workers[i]);
    }
    if (server->workers != NULL) {
        bow__free(server->context, server->workers,
                  server->n_workers * sizeof(struct bow__worker *));
    }
    server->workers = NULL;
    server->n_workers = 0;
    bow__health_free_loops(&server->health);
    bow__quotas_unref(server->limits.quotas);
    server->limits.quotas = NULL;
    if (server->owns_group) {
        bow_group_unref(server->group);
    }
    server->group = NULL;
    server->owns_group = false;
}

void bow__server_free_listeners(struct bow_server *server)
{
    while (server->listeners != NULL) {
        struct bow__listener *listener = server->listeners;
        server->listeners = listener->next;
        if (listener->options.security != NULL) {
            listener->options.security->ops->unref(listener->options.security);
        }
        bow__free(server->context, listener, sizeof(*listener) + listener->address_len + 1);
    }
}

void bow__server_free_text(struct bow_server *server, char *text)
{
    bow__free(server->context, text, text != NULL ? strlen(text) + 1 : 0);
}

static void free_handler_executors(struct bow_context *context, struct bow__handler_executor *all)
{
    while (all != NULL) {
        struct bow__handler_executor *next = all->next;
        bow_executor_unref(all->executor);
        bow__free(context, all, sizeof(*all));
        all = next;
    }
}

void bow__server_destroy(struct bow_server *server)
{
    struct bow_context *context = server->context;
    bow__server_unmake(server);
    bow__registry_fini(&server->registry);
    bow__web_origins_free(context, server->limits.web_origins);
    bow__web_page_free(server->limits.web_page);
    bow__free(context, server->limits.web_files,
              server->limits.cap_web_files * sizeof(*server->limits.web_files));
    bow__health_fini(&server->health);
    if (server->reflection != NULL) {
        bow__reflection_fini(server->reflection);
        bow__free(context, server->reflection, sizeof(*server->reflection));
    }
    bow__interceptors_fini(&server->interceptors, true);
    free_handler_executors(context, server->handler_executors);
    if (server->options.handlers_on != NULL) {
        bow_executor_unref(server->options.handlers_on);
    }
    if (server->options.blocking_on != NULL) {
        bow_executor_unref(server->options.blocking_on);
    }
    pthread_cond_destroy(&server->stopped);
    pthread_mutex_destroy(&server->lock);
    bow__server_free_listeners(server);
    bow__server_free_text(server, server->operations_address);
    bow__server_free_text(server, server->operations_hosts);
    bow__server_free_text(server, server->take_over_address);
    bow__free(context, server, sizeof(*server));
    bow_context_unref(context);
}

/* References */

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
