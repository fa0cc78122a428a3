/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_SUBCHANNEL_LIST_H
#define BOWLINE_RPC_CLIENT_SUBCHANNEL_LIST_H

/*
 * Which subchannels a client has on one loop: those of its target's addresses, or of what a name
 * has (subchannel_set.h). Each address has one block of them, the first and its further ones.
 */

#include "rpc/client/subchannel.h"

/** Zeroed memory that has its calls, config and ops. No address yet. */
void bow__subchannel_list_init(struct bow__subchannel_list *list);
/** The target's own addresses; `subchannels`: zeroed, as many as they have. */
void bow__subchannel_list_add_target(struct bow__subchannel_list *list,
                                     struct bow__subchannel *subchannels);
/** Nothing is left that uses it; without those that are drained. */
void bow__subchannel_list_fini(struct bow__subchannel_list *list);

/** Add `address`, which is kept: `subchannels` are zeroed, as many as it has, and are kept. */
void bow__subchannel_add(struct bow__subchannel_list *list, struct bow__subchannel *subchannels,
                         const struct bow__target_address *address);
/** Whether nothing is left of the address of `first`, which is drained, so that its memory may go
 * when the turn is over. */
bool bow__subchannel_is_empty(const struct bow__subchannel *first);
/** What a list's fini does, of one that is out of the list. */
void bow__subchannel_fini(struct bow__subchannel *first);

#endif
