/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What loops fetch from each other's shared count, and give back to it. Knows nothing of what
 * is counted.
 */

#include "rpc/server/dispatch/quota.h"

#define MAX_SHARE 32u
/* Two shares may be spare on each other loop: an eighth of all. */
#define SHARES_PER_LOOP 16u

void bow__quota_init(struct bow__quota *quota, uint32_t max, uint32_t n_loops)
{
    uint32_t share = max / SHARES_PER_LOOP / n_loops;

    atomic_init(&quota->n_left, max);
    quota->max = max;
    if (n_loops == 1) {
        quota->share = max;
        quota->n_keep = max;
        return;
    }
    quota->share = share < 1 ? 1 : share > MAX_SHARE ? MAX_SHARE : share;
    quota->n_keep = share < 1 ? 0 : 2 * quota->share - 1;
}

bool bow__quota_fetch(struct bow__quota *quota, struct bow__quota_part *part)
{
    unsigned left = atomic_load_explicit(&quota->n_left, memory_order_relaxed);
    unsigned n = 0;

    do {
        if (left == 0) {
            return false;
        }
        n = left < quota->share ? left : quota->share;
    } while (!atomic_compare_exchange_weak_explicit(&quota->n_left, &left, left - n,
                                                    memory_order_relaxed, memory_order_relaxed));
    part->n_spare += n;
    return true;
}

void bow__quota_return(struct bow__quota *quota, struct bow__quota_part *part)
{
    uint32_t n = part->n_spare - quota->n_keep / 2;

    part->n_spare -= n;
    atomic_fetch_add_explicit(&quota->n_left, n, memory_order_relaxed);
}

void bow__quota_give_elsewhere(struct bow__quota *quota)
{
    atomic_fetch_add_explicit(&quota->n_left, 1, memory_order_relaxed);
}
