/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * bow_server_hand_over(): from any thread to the main loop, and from there, once another process
 * serves, to the end of this server. How sockets are offered is in hand_over.c.
 */

#include "rpc/server/server_hand_over.h"
#include "base/log.h"
#include "rpc/server/hand_over.h"
#include "rpc/server/server_fork.h"
#include "rpc/server/server_stop.h"
#include "transport/address/transport_error.h"

#include <errno.h>

static int begin_task(void *user)
{
    struct bow_server *server = user;

    int rc = server->draining ? -ESHUTDOWN : bow__hand_over_start(server->hand_over);
    if (rc < 0) {
        bow__hand_over_close(server->hand_over);
    }
    bow__server_part_done(server);
    return rc == -ESHUTDOWN ? 0 : rc;
}

/* Under the lock, so that the server does not end meanwhile. */
static int begin(struct bow_server *server, const char *address,
                 struct bow_transport_error *ret_error)
{
    static const char stage[] = "offering sockets at";

    if (server->state != BOW__SERVER_STARTED || !atomic_load(&server->opened) ||
        atomic_load(&server->stop_requested)) {
        return bow__transport_error(ret_error, stage, address, -ESHUTDOWN,
                                    "the server has not been started, or ends");
    }
    if (server->hand_over != NULL) {
        return bow__transport_error(ret_error, stage, address, -EALREADY,
                                    "the server offers them already");
    }
    int rc = bow__hand_over_new(server, address, bow__server_leave, &server->hand_over, ret_error);
    if (rc < 0) {
        return rc;
    }
    bow_task_init(&server->hand_over_task, "hand over", begin_task, server);
    rc = bow__loop_post_internal(server->main, &server->hand_over_task, 0);
    if (rc < 0) {
        bow__hand_over_free(server->hand_over);
        server->hand_over = NULL;
        return bow__transport_error(ret_error, stage, address, rc, NULL);
    }
    server->n_parts++;
    return 0;
}

int bow_server_hand_over(struct bow_server *server, const char *address,
                         struct bow_transport_error *ret_error)
{
    if (bow__server_is_foreign(server)) {
        return bow__transport_error(ret_error, "offering the sockets of", "the server", -ECHILD,
                                    "it was started before fork(), by the parent process");
    }
    if (address == NULL) {
        return bow__transport_error(ret_error, "offering sockets at", "no address", -EINVAL,
                                    "write unix:PATH or unix-abstract:NAME");
    }
    pthread_mutex_lock(&server->lock);
    int rc = begin(server, address, ret_error);
    pthread_mutex_unlock(&server->lock);
    return rc;
}

void bow__server_hand_over_by_signal(struct bow_server *server)
{
    struct bow_transport_error error = {0};

    int rc = bow_server_hand_over(server, server->take_over_address, &error);
    if (rc < 0 && rc != -EALREADY) {
        bow__log(server->context, BOW_LOG_ERROR, "server: %s; it goes on", error.text);
    } else {
        bow__log(server->context, BOW_LOG_INFO, "server: its sockets are offered at %s",
                 server->take_over_address);
    }
}
