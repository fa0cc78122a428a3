/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_DEVICE_PLUGIN_KUBELET_H
#define BOWLINE_EXAMPLES_DEVICE_PLUGIN_KUBELET_H

/*
 * Registering at kubelet: a client of its socket. kubelet connects to the plugin before it answers,
 * so the plugin has to listen already, and to go on serving: the call has a callback and blocks
 * nothing.
 *
 *     open ──► register ──► told ──► register, whenever kubelet is another one ──► close
 *                 │
 *                 └── no kubelet there: the call waits for one
 *
 * Each function is for the client's loop.
 */

#include <bowline/client.h>
#include <bowline/timer.h>

#define KUBELET_SOCKET "kubelet.sock"

/** Told how it ended: NULL for registered, else why kubelet will not have this plugin. */
typedef void (*kubelet_fn)(const struct bow_status *refusal, void *user);

struct kubelet_options {
    struct bow_context *context;
    struct bow_loop *loop;
    const char *folder; /* with kubelet's socket in it */
    const char *endpoint;
    const char *resource;
    kubelet_fn told;
    void *user;
};

struct kubelet {
    struct kubelet_options options; /* what they point at is kept until kubelet_close() */
    struct bow_client *client;
    struct bow_timer timer; /* begins the next call */
    uint64_t call;          /* under way; 0: none */
    bool again;             /* that one is cancelled, or comes from a kubelet that is gone */
    bool closed;            /* what ends now is of no interest */
};

/** Connects to nothing yet. Returns: 0; or a negative errno, and `*ret_error` says why. */
int kubelet_open(struct kubelet *kubelet, const struct kubelet_options *options,
                 struct bow_transport_error *ret_error);
/** Register, or anew; as often as it takes. `told` comes later, for the last time alone. */
void kubelet_register(struct kubelet *kubelet);
void kubelet_close(struct kubelet *kubelet);

#endif
