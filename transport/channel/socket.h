/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_SOCKET_H
#define BOWLINE_TRANSPORT_CHANNEL_SOCKET_H

/*
 * What bytes come from and go to, whatever is below: a descriptor of the system's, or an
 * object that has a system table of its own. Knows nothing of channels.
 */

#include "transport/loop/loop.h"

/** One end of a connection: a descriptor of `system`, or without one (fd -1) an
 * object that is the table's `user`. */
struct bow__socket {
    int fd;
    const struct bow_system *system;
    struct bow__source *source; /* of its readiness; NULL: the loop's poller */
};

static inline void bow__socket_close(const struct bow__socket *socket)
{
    socket->system->close(socket->system->user, socket->fd);
}

#endif
