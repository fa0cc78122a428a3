/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_NETWORKS_H
#define BOWLINE_TRANSPORT_ADDRESS_NETWORKS_H

/*
 * A list of networks as people write it, and whether an address lies in it. Knows
 * nothing of what that is good for.
 *
 *     10.0.0.0/8, 192.0.2.7, fd00::/8, unix
 */

#include "base/text.h"

#include <bowline/context.h>

struct bow__network {
    uint8_t address[16]; /* 4 or 16 of them */
    uint8_t n_bytes;
    uint8_t n_bits; /* of the prefix */
};

struct bow__networks {
    struct bow__network *items;
    size_t n_items;
    size_t n_allocated;
    bool has_unix;
};

/** Parse; at least one must be there. A network with bits set beyond its prefix is refused: one of
 * the two is a mistake. Returns 0; -ENOMEM; -EINVAL with the reason appended to `why`. */
int bow__networks_parse(struct bow_context *context, const char *text,
                        struct bow__networks *ret_networks, struct bow__text *why);
void bow__networks_free(struct bow_context *context, struct bow__networks *networks);

/** Whether a peer, in the form of bow_channel_peer(), is in one of them. An IPv4 address that a
 * dual-stack socket shows as IPv6 is IPv4. */
bool bow__networks_contain(const struct bow__networks *networks, const char *peer);

#endif
