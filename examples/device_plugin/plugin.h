/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_DEVICE_PLUGIN_PLUGIN_H
#define BOWLINE_EXAMPLES_DEVICE_PLUGIN_PLUGIN_H

/*
 * The service that kubelet calls, on a Unix socket in kubelet's folder. Knows nothing of how
 * devices are found, and when they are looked at.
 *
 *     listen ──► tell, whenever the devices have changed ──► stop ──► has_stopped ──► free
 *       ▲ │
 *       └─┘ again, when kubelet has removed the socket
 *
 * All of it is for one loop, which its owner drives.
 */

#include "allocate.h"
#include "devices.h"

struct bow_context;
struct bow_loop;
struct bow_server;
struct watcher;

/** Set up by hand, the first part; outlives the loop. */
struct plugin {
    struct bow_context *context;
    struct bow_loop *loop;
    struct devices *devices;
    const char *socket; /* the path of the plugin's own one */
    struct allocate_options allocate;
    struct bow_server *server; /* from here on private */
    struct watcher *watchers;
};

/** Listen, or anew where the socket was removed. Returns: 0; or a negative errno, which has been
 * explained on standard error. */
int plugin_listen(struct plugin *plugin);
/** Whether its socket is still to be found. */
bool plugin_is_reachable(const struct plugin *plugin);
/** Send the devices to all who watch and have not been sent this state of them. */
void plugin_tell(struct plugin *plugin);
/** Begin to end: streams are ended, calls in progress answered. */
void plugin_stop(struct plugin *plugin);
bool plugin_has_stopped(const struct plugin *plugin);
void plugin_free(struct plugin *plugin);

#endif
