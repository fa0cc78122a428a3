/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_CLAIM_H
#define BOWLINE_BASE_CLAIM_H

/*
 * Which process an object with a lock belongs to: the one that first took the lock. In a process
 * that was forked from it another thread may have held the lock, and nobody gives it back; one that
 * nobody had taken goes along.
 *
 *     if (!bow__claim(&process, &object->used_by)) {
 *         return -ECHILD;
 *     }
 *     pthread_mutex_lock(&object->lock);
 *
 * Design. fork() copies what memory held at some moment. The mark is exchanged in before the lock
 * is taken, both sequentially consistent or stronger than what the lock does, so that a lock which
 * is held in the copy has its mark there. Once set it is only compared: relaxed.
 */

#include "base/process.h"
#include <stdbool.h>

/** Take the object whose `used_by` (0 at first) this is for the process, or find that it is
 * another's. Thread: any. */
static inline bool bow__claim(const struct bow__process *process, atomic_int *used_by)
{
    const int id = bow__process_id(process);
    int owner = atomic_load_explicit(used_by, memory_order_relaxed);

    if (owner == 0 && atomic_compare_exchange_strong(used_by, &owner, id)) {
        return true;
    }
    return owner == id;
}

/** Whether another process has it; without taking it. Thread: any. */
static inline bool bow__is_claimed_elsewhere(const struct bow__process *process,
                                             const atomic_int *used_by)
{
    const int owner = atomic_load_explicit(used_by, memory_order_relaxed);
    return owner != 0 && owner != bow__process_id(process);
}

#endif
