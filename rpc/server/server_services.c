/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server serves: services and their limits, interceptors, and where handlers run.
 */

#include "rpc/server/server_services.h"
#include "base/alloc.h"
#include "rpc/core/call/generic.h"
#include <bowline/executor.h>
#include <bowline/limits.h>

#include <errno.h>

int bow_server_add_service(struct bow_server *server, const struct bow_service *service,
                           const void *handlers, size_t handlers_size, uint64_t hash, void *user)
{
    bow__text_clear(&server->error);
    return bow__registry_add(&server->registry, service, handlers, handlers_size, hash, user,
                             &server->error);
}

int bow_server_set_fallback(struct bow_server *server, bow_generic_fn handler, void *user)
{
    bow__text_clear(&server->error);
    if (handler == NULL) {
        bow__text_printf(&server->error, "setting a fallback: it has no handler");
        return -EINVAL;
    }
    int rc = bow__registry_set_fallback(&server->registry, &bow__generic_method,
                                        &server->fallback_handler, user, &server->error);
    if (rc == 0) {
        server->fallback_handler = handler;
    }
    return rc;
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

/* What the methods of `executor` share; NULL out of memory. */
static struct bow__handler_executor *get_handler_executor(struct bow_server *server,
                                                          struct bow_executor *executor)
{
    uint32_t max = server->options.max_waiting_calls;
    struct bow__handler_executor *made = server->handler_executors;

    while (made != NULL && made->executor != executor) {
        made = made->next;
    }
    if (made != NULL) {
        return made;
    }
    made = bow__alloc_zero(server->context, sizeof(*made));
    if (made != NULL) {
        made->executor = bow_executor_ref(executor);
        made->max_waiting = max > 0 ? max : BOW_LIMIT_WAITING_CALLS;
        made->next = server->handler_executors;
        server->handler_executors = made;
    }
    return made;
}

int bow_server_bind(struct bow_server *server, const char *name, struct bow_executor *executor)
{
    struct bow__handler_executor *shared = NULL;

    bow__text_clear(&server->error);
    if (server->registry.sealed) {
        bow__text_printf(&server->error, "binding %s: the server has been started", name);
        return -EBUSY;
    }
    if (executor != NULL) {
        shared = get_handler_executor(server, executor);
        if (shared == NULL) {
            bow__text_printf(&server->error, "binding %s: out of memory", name);
            return -ENOMEM;
        }
    }
    if (bow__registry_bind(&server->registry, name, 0, shared) == 0) {
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
    struct bow__handler_executor *shared = get_handler_executor(server, executor);
    if (shared == NULL) {
        return -ENOMEM;
    }
    (void)bow__registry_bind(&server->registry, NULL, flags, shared);
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
