/* SPDX-License-Identifier: 0BSD */
/* Owns the inotify descriptor, and what its events mean here. */

#include "changes.h"
#include "kubelet.h"
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WHAT_COUNTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)

int changes_open(struct changes *changes, const char *devices_folder, const char *plugins_folder,
                 const char **ret_folder)
{
    *ret_folder = devices_folder;
    changes->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (changes->fd < 0) {
        return -errno;
    }
    changes->devices = inotify_add_watch(changes->fd, devices_folder, WHAT_COUNTS);
    if (changes->devices >= 0) {
        *ret_folder = plugins_folder;
        /* The same number as the first one's when it is the same folder. */
        changes->plugins = inotify_add_watch(changes->fd, plugins_folder, WHAT_COUNTS);
    }
    if (changes->devices < 0 || changes->plugins < 0) {
        int rc = -errno;
        changes_close(changes);
        return rc;
    }
    return 0;
}

static unsigned meaning(const struct changes *changes, const struct inotify_event *event)
{
    unsigned bits = 0;

    if ((event->mask & IN_Q_OVERFLOW) != 0) { /* anything may have happened */
        return CHANGE_DEVICES | CHANGE_KUBELET;
    }
    if ((event->mask & IN_IGNORED) != 0) {
        return CHANGE_LOST;
    }
    if (event->wd == changes->devices) {
        bits |= CHANGE_DEVICES;
    }
    if (event->wd == changes->plugins && (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 &&
        strcmp(event->name, KUBELET_SOCKET) == 0) {
        bits |= CHANGE_KUBELET;
    }
    return bits;
}

unsigned changes_take(struct changes *changes)
{
    alignas(struct inotify_event) uint8_t buffer[4096];
    unsigned bits = 0;
    ssize_t n;

    while ((n = read(changes->fd, buffer, sizeof(buffer))) > 0) {
        for (const uint8_t *at = buffer; at < buffer + n;) {
            const struct inotify_event *event = (const void *)at;
            bits |= meaning(changes, event);
            at += sizeof(*event) + event->len;
        }
    }
    return bits;
}

void changes_close(struct changes *changes)
{
    close(changes->fd);
}
