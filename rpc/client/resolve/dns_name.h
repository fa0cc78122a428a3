/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_DNS_NAME_H
#define BOWLINE_RPC_CLIENT_RESOLVE_DNS_NAME_H

/*
 * What a "dns:" name asks for: [//SERVER/]HOST[:PORT][?srv].
 */

#include "base/text.h"
#include "transport/address/address.h"

struct bow__dns_name {
    char servers[BOW__ADDRESS_TEXT_BYTES]; /* who is asked; empty: it does not say */
    char host[BOW__HOST_BYTES];
    char port[8];
    bool asks_srv; /* for SRV records, which say ports and weights */
};

/** Take `name` apart. Returns 0, or -EINVAL with the reason appended. */
int bow__dns_name_parse(const char *name, struct bow__dns_name *ret_name, struct bow__text *why);

/** Whether it has to be looked up: an address of IP has not. */
bool bow__dns_name_resolves(const char *name);

#endif
