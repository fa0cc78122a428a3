/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_DEVICE_PLUGIN_DEVICES_H
#define BOWLINE_EXAMPLES_DEVICE_PLUGIN_DEVICES_H

/*
 * The device nodes of a folder whose names match a pattern. One that was seen once stays in the
 * table: it is healthy while its node exists, so that kubelet hears that it went, and that it is
 * back. Knows nothing of kubelet and of calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX 256u
#define DEVICES_ID_BYTES 64u /* with a NUL: the contract allows 63 characters */

struct device {
    char id[DEVICES_ID_BYTES]; /* the node's name in the folder */
    bool healthy;
    bool seen; /* by the scan that is under way */
};

struct devices {
    const char *folder;  /* "/dev" */
    const char *pattern; /* "ttyUSB*", as fnmatch() takes it */
    struct device all[DEVICES_MAX];
    size_t n;
    uint64_t revision; /* one more with each scan that found another state */
};

/** Look at the folder again, and print what has changed. Returns: 0, or a negative errno for a
 * folder that cannot be read, and the table is as it was. */
int devices_scan(struct devices *devices);

/** NULL: none was ever called that. */
struct device *devices_find(struct devices *devices, const char *id);

#endif
