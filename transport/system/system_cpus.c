/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many CPUs this process may keep busy: its affinity, and the quota of its
 * cgroup (v2, or v1's controller "cpu"), which holds for every group on the way up to
 * the root. Knows nothing of what the number is used for.
 */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES (2 * PATH_MAX + 32)
/* Far above what kernels can be built for. */
#define MAX_CPUS ((size_t)1 << 20)

/* These files are short and come whole in one read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    if (n < 0) {
        return false;
    }
    text[n] = '\0';
    return true;
}

/* Rounded up: a part of one is one. */
static uint32_t cpus_of(uint64_t quota, uint64_t period)
{
    if (period == 0) {
        return 0;
    }
    uint64_t cpus = quota / period + (quota % period != 0);
    if (cpus > UINT32_MAX) {
        return UINT32_MAX;
    }
    return cpus > 0 ? (uint32_t)cpus : 1;
}

/* "QUOTA PERIOD" or "max PERIOD", both in microseconds (Documentation/admin-guide/cgroup-v2). */
static uint32_t cpus_of_v2(const char *folder)
{
    char file[FILE_BYTES];
    char text[64];
    uint64_t quota;
    uint64_t period;

    snprintf(file, sizeof(file), "%s/cpu.max", folder);
    return read_text(file, text, sizeof(text)) &&
                   sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2
               ? cpus_of(quota, period)
               : 0;
}

static bool read_number(const char *folder, const char *name, int64_t *ret_number)
{
    char file[FILE_BYTES];
    char text[64];

    snprintf(file, sizeof(file), "%s/%s", folder, name);
    return read_text(file, text, sizeof(text)) && sscanf(text, "%" SCNd64, ret_number) == 1;
}

/* A quota of -1 is none (Documentation/scheduler/sched-bwc). */
static uint32_t cpus_of_v1(const char *folder)
{
    int64_t quota = -1;
    int64_t period = 0;

    return read_number(folder, "cpu.cfs_quota_us", &quota) &&
                   read_number(folder, "cpu.cfs_period_us", &period) && quota > 0 && period > 0
               ? cpus_of((uint64_t)quota, (uint64_t)period)
               : 0;
}

/* Whether "cpu" is among the controllers of a line, "cpu,cpuacct"; of version 2 there are none. */
static bool names_cpu(const char *names, size_t len)
{
    while (len > 0) {
        size_t n = strcspn(names, ",:");
        if (n == 3 && strncmp(names, "cpu", 3) == 0) {
            return true;
        }
        size_t n_skipped = n < len ? n + 1 : len;
        names += n_skipped;
        len -= n_skipped;
    }
    return false;
}

/* The line of a hierarchy is "ID:CONTROLLERS:PATH"; the unified one's is "0::PATH". Returns PATH,
 * cut off from what follows, or NULL. */
static char *path_of(char *text, bool unified)
{
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        char *names = strchr(line, ':');
        char *path = names != NULL ? strchr(names + 1, ':') : NULL;
        bool is_whole = path != NULL && (end == NULL || path < end);
        if (is_whole && (unified ? strncmp(line, "0::", 3) == 0
                                 : names_cpu(names + 1, (size_t)(path - names - 1)))) {
            path[1 + strcspn(path + 1, "\n")] = '\0';
            return path + 1;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return NULL;
}

/* The smallest quota on the way up. Inside a container the path is another's, and only the root is
 * there. */
static uint32_t smallest_of(char *path, const char *root, uint32_t (*cpus_in)(const char *folder))
{
    char folder[2 * PATH_MAX];
    uint32_t smallest = 0;

    while (path != NULL) {
        snprintf(folder, sizeof(folder), "%s%s", root, path);
        uint32_t cpus = cpus_in(folder);
        if (cpus > 0 && (smallest == 0 || cpus < smallest)) {
            smallest = cpus;
        }
        char *last = strrchr(path, '/');
        if (last == NULL) {
            break;
        }
        *last = '\0';
    }
    return smallest;
}

uint32_t bow__linux_cgroup_cpus(const char *self_path, const char *root)
{
    char text[PATH_MAX];
    char v1_root[PATH_MAX];

    if (!read_text(self_path, text, sizeof(text))) {
        return 0;
    }
    uint32_t v2 = smallest_of(path_of(text, true), root, cpus_of_v2);
    if (!read_text(self_path, text, sizeof(text))) {
        return v2;
    }
    /* By this name, as a link, where controllers share a hierarchy. */
    snprintf(v1_root, sizeof(v1_root), "%s/cpu", root);
    uint32_t v1 = smallest_of(path_of(text, false), v1_root, cpus_of_v1);
    return v1 > 0 && (v2 == 0 || v1 < v2) ? v1 : v2;
}

/* A set that is too small for all CPUs that the kernel could have is -EINVAL. */
uint32_t bow__linux_affinity_cpus(int (*get)(pid_t pid, size_t size, cpu_set_t *ret_set))
{
    for (size_t n_cpus = CPU_SETSIZE; n_cpus <= MAX_CPUS; n_cpus *= 2) {
        size_t size = CPU_ALLOC_SIZE(n_cpus);
        cpu_set_t *set = CPU_ALLOC(n_cpus);
        if (set == NULL) {
            return 1;
        }
        CPU_ZERO_S(size, set);
        int rc = get(0, size, set) == 0 ? 0 : -errno;
        int n = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (rc != -EINVAL) {
            return n > 0 ? (uint32_t)n : 1;
        }
    }
    return 1;
}

uint32_t bow__linux_cpus(void *user)
{
    uint32_t cpus = bow__linux_affinity_cpus(sched_getaffinity);
    uint32_t quota = bow__linux_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    (void)user;

    return quota > 0 && quota < cpus ? quota : cpus;
}
