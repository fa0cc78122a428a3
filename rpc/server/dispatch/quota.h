/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_QUOTA_H
#define BOWLINE_RPC_SERVER_DISPATCH_QUOTA_H

/*
 * A fixed number of things that all loops together may hold, counted without a
 * cache line that they all write to at each. A loop fetches a batch of what is
 * left, spends it one by one in memory of its own, and gives back what it has too
 * much of.
 *
 *     shared: n_left ──fetch a batch──► local: n_spare ─acquire─► in use
 *        ▲   ◄──────more than n_keep──────┘     ▲ └──release───────┤
 *        └─────────────────release, on any thread───────────────────────┘
 *
 * Invariant: what is left, spare and in use is `max` together, so never more than `max`
 * are in use. While the other loops hold spares, the last eighth of it may be refused to a loop.
 *
 * Design. `n_left` is relaxed: it is a number and publishes nothing else. A local count belongs
 * to its loop. One loop takes everything at once and never comes back; below 16 for
 * each loop a batch is one and none is spare, so that so little is counted exactly.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bow__quota {
    atomic_uint n_left;
    uint32_t max;    /* 0: none, and the quota is not to be asked */
    uint32_t batch;  /* fetched at once */
    uint32_t n_keep; /* spare at most */
    bool is_exempt;  /* of a method: its calls are not counted for the whole server */
    char apart[47];  /* from the next one's */
};

/** One loop's own. Zeroed at first. */
struct bow__quota_local {
    uint32_t n_spare;
};

/** Set up for `n_loops` > 0. */
void bow__quota_init(struct bow__quota *quota, uint32_t max, uint32_t n_loops);

/** Fetch a batch into `local`, which has no spare. Returns whether there was anything left. Loop.
 */
bool bow__quota_fetch(struct bow__quota *quota, struct bow__quota_local *local);

/** Give back to the others what `local` has too much of. Loop. */
void bow__quota_return(struct bow__quota *quota, struct bow__quota_local *local);

/** Acquire one; false: `max` are in use, or the last of them are spare on other loops. Loop. */
static inline bool bow__quota_acquire(struct bow__quota *quota, struct bow__quota_local *local)
{
    if (local->n_spare == 0 && !bow__quota_fetch(quota, local)) {
        return false;
    }
    local->n_spare--;
    return true;
}

/** Release one that was acquired with this local count. Loop. */
static inline void bow__quota_release(struct bow__quota *quota, struct bow__quota_local *local)
{
    if (++local->n_spare > quota->n_keep) {
        bow__quota_return(quota, local);
    }
}

/** Release one, wherever it was acquired. Thread: any. */
void bow__quota_release_remote(struct bow__quota *quota);

#endif
