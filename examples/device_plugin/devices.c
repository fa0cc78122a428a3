/* SPDX-License-Identifier: 0BSD */
/* Owns which names are devices, and when one is healthy. */

#include "devices.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Links are followed: udev's stable names (/dev/serial/by-id) are links to nodes. */
static bool is_node(DIR *folder, const char *name)
{
    struct stat found;

    return fstatat(dirfd(folder), name, &found, 0) == 0 &&
           (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode));
}

struct device *devices_find(struct devices *devices, const char *id)
{
    for (size_t i = 0; i < devices->n; i++) {
        if (strcmp(devices->all[i].id, id) == 0) {
            return &devices->all[i];
        }
    }
    return NULL;
}

static void see(struct devices *devices, const char *name)
{
    struct device *device = devices_find(devices, name);

    if (device == NULL && (devices->n == DEVICES_MAX || strlen(name) >= DEVICES_ID_BYTES)) {
        fprintf(stderr, "device-plugin: %s is left out: %s\n", name,
                devices->n == DEVICES_MAX ? "there are too many" : "its name is too long");
        return;
    }
    if (device == NULL) {
        device = &devices->all[devices->n++];
        *device = (struct device){.healthy = false};
        snprintf(device->id, sizeof(device->id), "%s", name);
    }
    device->seen = true;
}

static void take_over(struct devices *devices)
{
    bool changed = false;

    for (size_t i = 0; i < devices->n; i++) {
        struct device *device = &devices->all[i];
        if (device->healthy != device->seen) {
            printf("%s is %s\n", device->id, device->seen ? "there" : "gone");
            changed = true;
        }
        device->healthy = device->seen;
        device->seen = false;
    }
    devices->revision += changed;
}

int devices_scan(struct devices *devices)
{
    const struct dirent *entry;
    DIR *folder = opendir(devices->folder);

    if (folder == NULL) {
        return -errno;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (fnmatch(devices->pattern, entry->d_name, FNM_PERIOD) == 0 &&
            is_node(folder, entry->d_name)) {
            see(devices, entry->d_name);
        }
    }
    closedir(folder);
    take_over(devices);
    return 0;
}
