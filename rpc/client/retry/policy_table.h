/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RETRY_POLICY_TABLE_H
#define BOWLINE_RPC_CLIENT_RETRY_POLICY_TABLE_H

/*
 * Policies by what they are for: a method, a service, everything. Constant once it is made, so that
 * loops share one.
 */

#include "base/map.h"
#include "rpc/client/retry/policy.h"

struct bow__policy_entry;

struct bow__policy_table {
    struct bow_context *context;
    struct bow__bytes_map by_name; /* "pkg.Service/Method", "pkg.Service/", "/" */
    struct bow__policy_entry *entries;
    uint32_t n;
};

void bow__policy_table_init(struct bow__policy_table *table, struct bow_context *context);
/** Zeroed memory, too. */
void bow__policy_table_fini(struct bow__policy_table *table);

/** Add that of a method of a service; "" for the method: of the service; both "": of everything.
 * Returns 0; -EEXIST; -ENOSPC above BOW_LIMIT_METHOD_CONFIGS; -ENOMEM. */
int bow__policy_table_add(struct bow__policy_table *table, const char *service, const char *method,
                          const struct bow__method_policy *policy);
/** The one that is nearest to the method of `path`, "/pkg.Service/Method"; or NULL. */
const struct bow__method_policy *bow__policy_table_find(const struct bow__policy_table *table,
                                                        const char *path);

#endif
