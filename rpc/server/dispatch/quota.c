/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What loops fetch from each other's shared count, and give back to it. Knows nothing of what
 * is counted.
 */

#include "rpc/server/dispatch/quota.h"

#define MAX_BATCH 32u
/* Two batches may be spare on each other loop: an eighth of all. */
#define BATCHES_PER_LOOP 16u

void bow__quota_init(struct bow__quota *quota, uint32_t max, uint32_t n_loops)
{
    uint32_t batch = max / BATCHES_PER_LOOP / n_loops;

    atomic_init(&quota->n_left, max);
    quota->max = max;
    if (n_loops == 1) {
        quota->batch = max;
        quota->n_keep = max;
        return;
    }
    quota->batch = batch < 1 ? 1 : batch > MAX_BATCH ? MAX_BATCH : batch;
    quota->n_keep = batch < 1 ? 0 : 2 * quota->batch - 1;
}

bool bow__quota_fetch(struct bow__quota *quota, struct bow__quota_local *local)
{
    unsigned left = atomic_load_explicit(&quota->n_left, memory_order_relaxed);
    unsigned n = 0;

    do {
        if (left == 0) {
            return false;
        }
        n = left < quota->batch ? left : quota->batch;
    } while (!atomic_compare_exchange_weak_explicit(&quota->n_left, &left, left - n,
                                                    memory_order_relaxed, memory_order_relaxed));
    local->n_spare += n;
    return true;
}

void bow__quota_return(struct bow__quota *quota, struct bow__quota_local *local)
{
    uint32_t n = local->n_spare - quota->n_keep / 2;

    local->n_spare -= n;
    atomic_fetch_add_explicit(&quota->n_left, n, memory_order_relaxed);
}

void bow__quota_release_remote(struct bow__quota *quota)
{
    atomic_fetch_add_explicit(&quota->n_left, 1, memory_order_relaxed);
}
