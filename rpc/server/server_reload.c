/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reloading (SIGHUP, bow_server_reload()): renewed certificates for a server that goes on. The
 * security of each listener reads its files again. What security is, only its table knows.
 */

#include "rpc/server/server_reload.h"
#include "base/log.h"
#include "rpc/server/server_fork.h"
#include "transport/address/transport_error.h"

#include <errno.h>

/* Listeners may share one, which is to be read once. */
static bool is_first_with(const struct bow__listener *first, const struct bow__listener *listener)
{
    while (first->options.security != listener->options.security) {
        first = first->next;
    }
    return first == listener;
}

static int reload_listener(const struct bow__listener *listener,
                           struct bow_transport_error *ret_error)
{
    struct bow_security *security = listener->options.security;
    struct bow_transport_error error = {0};

    int rc = security->ops->reload(security, error.text, sizeof(error.text));
    if (rc < 0) {
        (void)bow__transport_error(ret_error, "reloading the security of", listener->address, rc,
                                   error.text);
    }
    return rc;
}

int bow_server_reload(struct bow_server *server, struct bow_transport_error *ret_error)
{
    int rc = 0;

    if (bow__server_is_foreign(server)) {
        return bow__transport_error(ret_error, "reloading the security of", "the server", -ECHILD,
                                    "it was started before fork(), by the parent process");
    }
    for (const struct bow__listener *at = server->listeners; at != NULL; at = at->next) {
        const struct bow_security *security = at->options.security;
        if (security == NULL || security->ops->reload == NULL ||
            !is_first_with(server->listeners, at)) {
            continue;
        }
        int failed = reload_listener(at, rc == 0 ? ret_error : NULL);
        atomic_fetch_add_explicit(failed < 0 ? &server->n_reloads_failed : &server->n_reloads, 1,
                                  memory_order_relaxed);
        rc = rc == 0 ? failed : rc;
    }
    return rc;
}

void bow__server_reload_by_signal(struct bow_server *server)
{
    struct bow_transport_error error = {0};

    int rc = bow_server_reload(server, &error);
    if (rc < 0) {
        bow__log(server->context, BOW_LOG_ERROR, "server: %s; what was read before goes on",
                 error.text);
    } else {
        bow__log(server->context, BOW_LOG_INFO, "server: certificates were read again");
    }
    if (server->options.on_reload != NULL) {
        server->options.on_reload(server, rc, error.text, server->options.reload_user);
    }
}
