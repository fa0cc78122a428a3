/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which of the library's services a server has, and what a program says to them. What they do is
 * in rpc/services.
 */

#include "rpc/server/server_own.h"
#include "base/refuse.h"
#include "rpc/server/server_fork.h"

#include <errno.h>

/* Health */

static int serve_by_default(const struct bow_service *service, void *user)
{
    struct bow_server *server = user;

    return bow__health_states_set(&server->health.states, service->name, BOW_HEALTH_SERVING, true);
}

static int add_health(struct bow_server *server)
{
    const struct bow_service *service = &bow__health__health__service;
    size_t n_handlers = 0;
    const void *handlers = bow__health_handlers(&n_handlers);

    int rc = bow__registry_each(&server->registry, serve_by_default, server);
    if (rc == 0) {
        rc = bow__health_states_set(&server->health.states, "", BOW_HEALTH_SERVING, true);
    }
    if (rc == 0) {
        rc = bow__registry_add(&server->registry, service, handlers, n_handlers, service->hash,
                               &server->health, &server->error);
    }
    if (rc < 0) {
        return rc;
    }
    bow__registry_exempt(&server->registry, service->name);
    server->limits.health = &server->health;
    return 0;
}

int bow__server_add_own(struct bow_server *server)
{
    /* A start that failed has added them. */
    if (server->registry.sealed || server->limits.health != NULL) {
        return 0;
    }
    int rc = server->options.no_health ? 0 : add_health(server);
    if (rc == -EEXIST) {
        bow__text_clear(&server->error);
        return 0;
    }
    return rc;
}

/* What a program says */

static int refuse(struct bow_server *server, int rc, const char *function, const char *why)
{
    return bow__refuse(server->context, rc, "%s: %s", function, why);
}

static int check(struct bow_server *server, const char *function, const char *service)
{
    if (service == NULL) {
        return refuse(server, -EINVAL, function, "the service has no name; \"\" is the server");
    }
    if (server->options.no_health) {
        return refuse(server, -ENOTSUP, function, "the server has options.no_health");
    }
    return bow__server_is_foreign(server) ? -ECHILD : 0;
}

int bow_health_set(struct bow_server *server, const char *service, enum bow_health_state state)
{
    int rc = check(server, "bow_health_set", service);

    if (rc < 0) {
        return rc;
    }
    if ((unsigned)state > BOW_HEALTH_NOT_SERVING) {
        return refuse(server, -EINVAL, "bow_health_set", "it is none of enum bow_health_state");
    }
    return bow__health_set(&server->health, service, state);
}

int bow_health_unset(struct bow_server *server, const char *service)
{
    int rc = check(server, "bow_health_unset", service);

    if (rc < 0) {
        return rc;
    }
    if (*service == '\0') {
        return refuse(server, -EINVAL, "bow_health_unset", "a server is always in some state");
    }
    return bow__health_unset(&server->health, service);
}
