/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_FURTHER_H
#define BOWLINE_RPC_CLIENT_FURTHER_H

/*
 * Which address gets a further connection, when those that there are have as many calls as their
 * servers take at once (max_connections_per_address).
 */

#include "rpc/client/subchannel.h"

/** A subchannel that is to connect, of an address whose server has answered and that has the fewest
 * in use; or NULL. One that rests after a failure is told to go on when it is time. Loop. */
struct bow__subchannel *bow__further_find(const struct bow__subchannel_list *list);

#endif
