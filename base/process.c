/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The page that is empty again in a child process. It is not of the context's memory: a whole page
 * of the kernel's is needed, and no other data may lie in it.
 */

#include "base/process.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

void bow__process_init(struct bow__process *process)
{
    void *page =
        mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    process->page = NULL;
    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, sizeof(atomic_int), MADV_WIPEONFORK) < 0) {
        munmap(page, sizeof(atomic_int));
        return;
    }
    process->page = page;
}

void bow__process_fini(struct bow__process *process)
{
    if (process->page != NULL) {
        munmap(process->page, sizeof(atomic_int));
    }
}

int bow__process_ask(const struct bow__process *process)
{
    int id = (int)getpid();

    if (process->page != NULL) {
        atomic_store_explicit(process->page, id, memory_order_relaxed);
    }
    return id;
}
