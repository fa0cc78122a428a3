/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_LISTEN_H
#define BOWLINE_RPC_SERVER_SERVER_LISTEN_H

/*
 * Where a server listens.
 */

#include "rpc/server/server_state.h"

/** Note the addresses of options.listen. Returns 0 or -ENOMEM. */
int bow__server_listen_list(struct bow_server *server);
/** Bind and listen on each. Returns 0 or a negative errno with server->error. */
int bow__server_make_acceptors(struct bow_server *server);

#endif
