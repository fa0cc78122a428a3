/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_DEVICE_PLUGIN_CHANGES_H
#define BOWLINE_EXAMPLES_DEVICE_PLUGIN_CHANGES_H

/*
 * What happens in two folders, by inotify: nodes come and go in the devices' one, and in the
 * plugins' one kubelet makes its socket anew when it has restarted.
 *
 * That socket is the sign to wait for, not the plugin's own that vanishes. When kubelet starts it
 * removes all files of the folder, in no order, and then makes its socket: until then a new socket
 * of the plugin might be removed as well, or be announced to nobody.
 */

/** What has happened: bits. */
enum change {
    CHANGE_DEVICES = 1, /* look at the devices again */
    CHANGE_KUBELET = 2, /* kubelet's socket was made */
    CHANGE_LOST = 4,    /* a folder is gone: nothing will be told any more */
};

struct changes {
    int fd; /* readable when there is something to take */
    int devices;
    int plugins;
};

/** Returns: 0; or a negative errno, and `*ret_folder` is the one that cannot be watched. */
int changes_open(struct changes *changes, const char *devices_folder, const char *plugins_folder,
                 const char **ret_folder);
/** Take all that has happened, without waiting. Returns bits of enum change. */
unsigned changes_take(struct changes *changes);
void changes_close(struct changes *changes);

#endif
