/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_SUBCHANNEL_SET_H
#define BOWLINE_RPC_CLIENT_SUBCHANNEL_SET_H

/*
 * The subchannels of a name on one loop, as its addresses come and go:
 *
 *     said, was not there ──► added: in the list                  its server answers: takes calls
 *     said, was there     ──► stays, with its connections
 *     was there, not said ──► drained: out of the list, no new calls
 *                                ├─ the last call on it has ended ──► freed
 *                                └─ BOW_LIMIT_RESOLVED_DRAIN_NS ──► its calls end ──► freed
 *
 * An address that comes back while it is being drained is a new one. Those of a target that no
 * resolver is asked for are the list's alone.
 */

#include "rpc/client/resolve/address_set.h"
#include "rpc/client/subchannel_list.h"

struct bow__subchannel_set {
    struct bow__subchannel_list *list;
    struct bow__link drained; /* first ones, the oldest in front */
    uint32_t n_drained;
    struct bow_timer timer; /* something is to be freed, or cut */
};

void bow__subchannel_set_init(struct bow__subchannel_set *set, struct bow__subchannel_list *list);
/** Frees all that are there, and what the list has. */
void bow__subchannel_set_fini(struct bow__subchannel_set *set);

/** Have those of `said` in the list, in its order, and no others. Nothing is under way on the loop
 * but this. Returns 0, or -ENOMEM with nothing changed. */
int bow__subchannel_set_update(struct bow__subchannel_set *set,
                               const struct bow__address_set *said);

/** A drained one has nothing left; `on_drained` of its list's ops. */
void bow__subchannel_set_reap(struct bow__subchannel_set *set);
/** Free nothing more until the fini. */
void bow__subchannel_set_stop(struct bow__subchannel_set *set);
/** Whether a drained one has an attempt that is yet to end. */
bool bow__subchannel_set_has_attempt(const struct bow__subchannel_set *set);

#endif
