/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_OWN_H
#define BOWLINE_RPC_SERVER_SERVER_OWN_H

/*
 * The services of the library among those that a server has.
 */

#include "rpc/server/server_state.h"

/** Add them as options say, but for those that the program has added itself. Idempotent; after what
 * is bound, before seal. Returns 0 or -ENOMEM. */
int bow__server_add_own(struct bow_server *server);

#endif
