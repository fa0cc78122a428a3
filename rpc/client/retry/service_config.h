/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RETRY_SERVICE_CONFIG_H
#define BOWLINE_RPC_CLIENT_RETRY_SERVICE_CONFIG_H

/*
 * gRPC's service config, from JSON: what it says of methods, of the budget, and which balancing it
 * names. Members that are not known here are left out; what is known has to make sense, or all of
 * it is refused. Constant once it is read.
 */

#include "base/text.h"
#include "rpc/client/retry/budget.h"
#include "rpc/client/retry/policy_table.h"

struct bow__service_config {
    struct bow__policy_table methods;
    bool throttles; /* `rates` are said */
    struct bow__retry_rates rates;
    const char *balancing; /* the first policy that is known, by gRPC's name; a constant; NULL */
};

/** Returns 0; or -EINVAL, with the path of what is wrong and why; -EMSGSIZE above
 * BOW_LIMIT_SERVICE_CONFIG_BYTES; -ENOMEM. `ret_config` holds nothing then. */
int bow__service_config_read(struct bow_context *context, const char *json,
                             struct bow__service_config *ret_config, struct bow__text *reason);
/** Zeroed memory, too. */
void bow__service_config_fini(struct bow__service_config *config);

#endif
