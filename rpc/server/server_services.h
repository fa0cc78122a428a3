/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_SERVICES_H
#define BOWLINE_RPC_SERVER_SERVER_SERVICES_H

/*
 * What a server serves, and where its handlers run.
 */

#include "rpc/server/server_state.h"

/** Bind the methods that nothing was said of as options do. Before start. Returns 0 or -ENOMEM. */
int bow__server_bind_rest(struct bow_server *server);

#endif
