/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which of the library's services a server has, and what a program says to them. What they do is
 * in rpc/services.
 */

#include "rpc/server/server_own.h"
#include "base/alloc.h"
#include "base/refuse.h"
#include "rpc/server/server_fork.h"

#include <errno.h>

/* Whatever the program says of all methods, before a start or after one that failed. */
static void stay_on_loop(struct bow_server *server, const struct bow_service *service)
{
    (void)bow__registry_bind(&server->registry, service->name, 0, NULL);
}

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
    stay_on_loop(server, service);
    bow__registry_exempt(&server->registry, service->name);
    server->limits.health = &server->health;
    return 0;
}

/* One that the program has added takes the place of ours. */
static int or_theirs(struct bow_server *server, int rc)
{
    if (rc != -EEXIST) {
        return rc;
    }
    bow__text_clear(&server->error);
    return 0;
}

/* Reflection */

static int make_reflection(struct bow_server *server)
{
    server->reflection = bow__alloc_zero(server->context, sizeof(*server->reflection));
    if (server->reflection == NULL) {
        return -ENOMEM;
    }
    bow__reflection_init(server->reflection, server->context);
    return 0;
}

static int add_reflection(struct bow_server *server, const struct bow_service *service)
{
    size_t n_handlers = 0;
    const void *handlers = bow__reflection_handlers(&n_handlers);

    int rc = bow__registry_add(&server->registry, service, handlers, n_handlers, service->hash,
                               server->reflection, &server->error);
    if (rc == 0) {
        stay_on_loop(server, service);
    }
    return rc;
}

static int reflect(const struct bow_service *service, void *user)
{
    return bow__reflection_add(user, service);
}

/* Of all services, itself included. */
static int fill_reflection(struct bow_server *server)
{
    const char *bad = "";

    bow__reflection_clear(server->reflection); /* of what a start that failed has left */
    int rc = bow__registry_each(&server->registry, reflect, server->reflection);

    rc = rc == 0 ? bow__reflection_seal(server->reflection, &bad) : rc;
    if (rc == -EBADMSG) {
        bow__text_printf(&server->error,
                         "starting: reflection: the descriptor of %s cannot be read; generate its "
                         "C again",
                         bad);
    }
    return rc;
}

/* Again after a start that failed, too. */
static int add_reflections(struct bow_server *server)
{
    int rc = server->reflection == NULL ? make_reflection(server) : 0;

    for (int i = 0; i < BOW__N_REFLECTION_SERVICES && rc == 0; i++) {
        rc = or_theirs(server, add_reflection(server, &server->reflection->services[i]));
    }
    return rc == 0 ? fill_reflection(server) : rc;
}

int bow__server_add_own(struct bow_server *server)
{
    int rc = 0;

    /* A start that failed has added them. */
    if (server->registry.sealed) {
        return 0;
    }
    if (!server->options.no_health && server->limits.health == NULL) {
        rc = or_theirs(server, add_health(server));
    }
    if (rc == 0 && server->options.reflection) {
        rc = add_reflections(server);
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
