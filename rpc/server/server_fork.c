/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server in a process that was forked from the one that serves: a copy without threads, whose
 * descriptors are the parent's too. Here it is told from a server of this process, and forgotten.
 */

#include "rpc/server/server_fork.h"

#include <errno.h>

bool bow__server_has_foreign_loop(const struct bow_server *server)
{
    bool is_foreign = server->main != NULL && bow__loop_is_foreign(server->main);
    uint32_t n = server->group != NULL ? bow_group_size(server->group) : 0;

    for (uint32_t i = 0; i < n && !is_foreign; i++) {
        is_foreign = bow__loop_is_foreign(bow_group_get(server->group, i));
    }
    return is_foreign;
}

bool bow__server_is_foreign(const struct bow_server *server)
{
    return atomic_load_explicit(&server->opened, memory_order_acquire) &&
           bow__server_has_foreign_loop(server);
}

int bow__server_refuse_foreign(struct bow_server *server, const char *stage)
{
    bow__text_clear(&server->error);
    bow__text_printf(&server->error,
                     "%s: the server or its loop was used before fork(), and belongs to the parent "
                     "process: fork first, or make both in the child",
                     stage);
    return -ECHILD;
}

void bow__server_forsake(struct bow_server *server)
{
    uint32_t n = server->group != NULL ? bow_group_size(server->group) : 0;

    if (server->main != NULL) {
        bow__loop_forsake(server->main);
    }
    for (uint32_t i = 0; i < n; i++) {
        bow__loop_forsake(bow_group_get(server->group, i));
    }
}
