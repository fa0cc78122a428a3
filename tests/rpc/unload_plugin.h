/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_UNLOAD_PLUGIN_H
#define BOWLINE_TESTS_RPC_UNLOAD_PLUGIN_H

/*
 * What unload_test asks of the plug-in that it loads.
 */

/** Where the server runs; the client drives its own loop but for one. */
enum unload_binding {
    UNLOAD_OWN,
    UNLOAD_LOOP,
    UNLOAD_CLIENT_ON_LOOP, /* and the server */
    UNLOAD_GROUP,
    UNLOAD_WORKERS,
    UNLOAD_PER_WORKER,
    UNLOAD_N_BINDINGS,
};

/** Serve a call and end: 0; -EBUSY when memory is left; or what failed. */
__attribute__((visibility("default"))) int unload_serve(enum unload_binding binding);

#endif
