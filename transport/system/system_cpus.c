/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many CPUs this process may keep busy: its affinity, and the quota of its
 * cgroup (v2), which holds for every group on the way up to the root. Knows
 * nothing of what the number is used for.
 */

#include "transport/system/system_linux.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* "QUOTA PERIOD" or "max PERIOD", both in microseconds (Documentation/admin-guide/cgroup-v2). */
static uint32_t cpus_of_max(const char *path)
{
    char text[64];
    uint64_t quota;
    uint64_t period;

    if (!read_text(path, text, sizeof(text)) ||
        sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) != 2 || period == 0) {
        return 0;
    }
    uint64_t cpus = quota / period + (quota % period != 0);
    if (cpus > UINT32_MAX) {
        return UINT32_MAX;
    }
    return cpus > 0 ? (uint32_t)cpus : 1;
}

/* The line of the unified hierarchy is "0::PATH". */
static char *unified_path(char *text)
{
    char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL) {
        return NULL;
    }
    char *path = strstr(line, "::") + 2;
    path[strcspn(path, "\n")] = '\0';
    return path;
}

uint32_t bow__linux_cgroup_cpus(const char *self_path, const char *root)
{
    char text[PATH_MAX];
    char file[2 * PATH_MAX];
    uint32_t smallest = 0;

    char *path = read_text(self_path, text, sizeof(text)) ? unified_path(text) : NULL;
    while (path != NULL) {
        snprintf(file, sizeof(file), "%s%s/cpu.max", root, path);
        uint32_t cpus = cpus_of_max(file);
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

uint32_t bow__linux_cpus(void *user)
{
    cpu_set_t set;
    uint32_t cpus = 1;

    (void)user;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        cpus = (uint32_t)CPU_COUNT(&set);
    }
    uint32_t quota = bow__linux_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < cpus) {
        cpus = quota;
    }
    return cpus > 0 ? cpus : 1;
}
