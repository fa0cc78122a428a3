/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_OPERATIONS_H
#define BOWLINE_RPC_SERVER_SERVER_OPERATIONS_H

#include "rpc/server/server_state.h"

/** Make the operations listener that the options ask for, if any. Returns 0, or a negative errno
 * with the server's error said. */
int bow__server_make_operations(struct bow_server *server);

#endif
