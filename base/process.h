/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_PROCESS_H
#define BOWLINE_BASE_PROCESS_H

/*
 * Which process this is, at the price of a load: what was begun before a fork() is told from what
 * is used after it by that number. Knows nothing of who asks.
 *
 * Design. The number lies in a page that the kernel gives to a child process empty
 * (MADV_WIPEONFORK, Linux 4.14), and is put there by whoever finds it missing. Threads that do so
 * at once put in the same, so the order is relaxed, without a partner. Where the kernel has no such
 * page, it is asked each time.
 */

#include "base/shared.h"
#include <stdatomic.h>

struct bow__process {
    atomic_int *page; /* NULL: there is none */
};

/** Cannot fail: without memory for a page the kernel is asked. */
void bow__process_init(struct bow__process *process);
void bow__process_fini(struct bow__process *process);

/** Ask the kernel, and note the answer. */
BOW__SHARED int bow__process_ask(const struct bow__process *process);

/** The number of this process; never 0. Thread: any. */
static inline int bow__process_id(const struct bow__process *process)
{
    int id = process->page != (atomic_int *)0
                 ? atomic_load_explicit(process->page, memory_order_relaxed)
                 : 0;
    return id != 0 ? id : bow__process_ask(process);
}

#endif
