/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_JITTER_H
#define BOWLINE_RPC_CONNECTION_JITTER_H

/*
 * Times that differ a little, so that what began together does not go on together.
 */

#include "base/alloc.h"
#include "base/clock.h"

/** `ns` give or take at most `spread_ns`, which is no more than that; BOW_NEVER as it is. */
static inline uint64_t bow__jittered(struct bow_context *context, uint64_t ns, uint64_t spread_ns)
{
    const struct bow_system *system = bow__context_system(context);
    uint32_t random = 0;

    if (ns == BOW_NEVER || system->random(system->user, &random, sizeof(random)) < 0) {
        return ns;
    }
    return bow__time_add(ns - spread_ns, spread_ns / 512 * (random % 1024));
}

#endif
