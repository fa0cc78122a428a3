/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_TAKE_OVER_H
#define BOWLINE_RPC_SERVER_TAKE_OVER_H

/*
 * The new one of two server processes: it asks the old one for its listening sockets, before it
 * listens, and tells it when it serves. Part of a start, and blocking like that.
 *
 *     begin ──► (listeners are made of server->take_over.handed, and started) ──► finish
 *                                                                        └──► abandon
 */

#include "transport/channel/handed.h"

struct bow_server;

struct bow__take_over {
    int fd; /* to the old one; -1: nobody offers anything */
    struct bow__handed handed;
};

/** Ask at options.take_over, if that is set. Returns 0, also when nobody is there; or a negative
 * errno with server->error. */
int bow__take_over_begin(struct bow_server *server);
/** Tell the old one that this one serves, and have what was taken for its own. Returns 0; or
 * -ETIMEDOUT with server->error when the old one goes on. */
int bow__take_over_finish(struct bow_server *server);
/** The old one goes on. Idempotent. */
void bow__take_over_abandon(struct bow_server *server);

#endif
