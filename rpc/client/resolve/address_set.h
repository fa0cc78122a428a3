/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_ADDRESS_SET_H
#define BOWLINE_RPC_CLIENT_RESOLVE_ADDRESS_SET_H

/*
 * What a resolver said of a name, copied: each address once, BOW_LIMIT_RESOLVED_ADDRESSES at most.
 * One block of memory, constant once made, without threads. Knows no connections.
 */

#include <bowline/context.h>
#include <bowline/resolver.h>

struct bow__address_set {
    size_t n_bytes; /* of this memory */
    uint32_t n;
    size_t n_cut; /* left out, above the limit */
    const char *service_config;
    const uint32_t *sorted; /* indices of `items`, in the order of their bytes */
    /* In the order in which they were said. `address` without a scheme that says nothing more;
     * `server_name` and `locality` NULL where nothing was said; `weight` at least 1. */
    struct bow_resolver_address items[];
};

/** Copy `n` addresses, in any order; `service_config` may be NULL. Of equal ones the greatest
 * weight counts. Returns 0 or -ENOMEM. */
int bow__address_set_new(struct bow_context *context, const struct bow_resolver_address *addresses,
                         size_t n, const char *service_config, struct bow__address_set **ret_set);
/** NULL is allowed. */
void bow__address_set_free(struct bow_context *context, struct bow__address_set *set);

/** The order of their bytes, weights left aside: 0 for the same server. */
int bow__resolver_address_compare(const struct bow_resolver_address *a,
                                  const struct bow_resolver_address *b);
/** The index of the one that equals `address`, or -1. */
int bow__address_set_find(const struct bow__address_set *set,
                          const struct bow_resolver_address *address);

#endif
