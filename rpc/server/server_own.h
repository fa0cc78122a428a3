/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_OWN_H
#define BOWLINE_RPC_SERVER_SERVER_OWN_H

/*
 * The services of the library among those that a server has.
 */

#include "rpc/server/server_state.h"

/** Add them as options say, but for those that the program has added itself, to run on their
 * connection's loop. Again after a start that failed; before seal. Returns 0; -ENOMEM; -EBADMSG,
 * with server->error filled, for a descriptor that cannot be read. */
int bow__server_add_own(struct bow_server *server);

#endif
