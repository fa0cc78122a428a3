/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counts beside the system's own; see steady_count.h. */

#include "steady_count.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_ulong n_calls;

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    atomic_fetch_add(&n_calls, 1);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
    atomic_fetch_add(&n_calls, 1);
    return (int)syscall(SYS_munmap, address, length);
}

int madvise(void *address, size_t length, int advice)
{
    atomic_fetch_add(&n_calls, 1);
    return (int)syscall(SYS_madvise, address, length, advice);
}

void *mremap(void *address, size_t length, size_t new_length, int flags, ...)
{
    va_list args;

    atomic_fetch_add(&n_calls, 1);
    va_start(args, flags);
    void *wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void *) : NULL;
    va_end(args);
    return (void *)syscall(SYS_mremap, address, length, new_length, flags, wanted);
}

void steady_count(struct steady_counts *counts)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    counts->n_faults = (unsigned long)usage.ru_minflt;
    counts->n_mapping_calls = atomic_load(&n_calls);
}

void steady_taken(const struct steady_counts *before, struct steady_counts *ret_taken)
{
    struct steady_counts now;

    steady_count(&now);
    ret_taken->n_faults = now.n_faults - before->n_faults;
    ret_taken->n_mapping_calls = now.n_mapping_calls - before->n_mapping_calls;
}
