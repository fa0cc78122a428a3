/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_SYSTEM_SYSTEM_LINUX_H
#define BOWLINE_TRANSPORT_SYSTEM_SYSTEM_LINUX_H

/*
 * The parts that the table of the operating system is put together from. The
 * table stands below the context and is given none, so the few bytes it keeps
 * for each poller and each thread come from malloc.
 */

#include <bowline/system.h>
#include <sched.h>
#include <time.h>

extern const struct bow_poller_ops bow__poller_epoll;

int bow__linux_thread_start(void *user, const struct bow_thread_options *options,
                            void (*run)(void *argument), void *argument,
                            struct bow_thread **ret_thread);
void bow__linux_thread_join(void *user, struct bow_thread *thread);
void bow__linux_thread_detach(void *user, struct bow_thread *thread);

int bow__linux_resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                       int max, const char **ret_reason);

uint32_t bow__linux_cpus(void *user);

static inline uint64_t bow__linux_read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bow__linux_now_ns(void *user);

/** The same clock as it stood at the kernel's last tick. */
static inline uint64_t bow__linux_coarse_ns(void)
{
    return bow__linux_read_clock(CLOCK_MONOTONIC_COARSE);
}

/**
 * CPUs that the cgroup named in `self_path` (a /proc/self/cgroup) may use: the smallest quota on
 * the way from it up to `root`, of version 2, or up to `root`/cpu, of version 1, rounded up. 0: no
 * limit.
 */
uint32_t bow__linux_cgroup_cpus(const char *self_path, const char *root);

/** CPUs in the set that `get`, as sched_getaffinity(), gives; at least 1. */
uint32_t bow__linux_affinity_cpus(int (*get)(pid_t pid, size_t size, cpu_set_t *ret_set));

#endif
