/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RETRY_RETRIES_H
#define BOWLINE_RPC_CLIENT_RETRY_RETRIES_H

/*
 * What a client tries again by: what it was made with, which its loops share, and what each loop
 * has of its own, which is a budget and a service config that came later. Knows no calls.
 *
 * Of a method the program's own policy counts before that of a service config, and of these the one
 * that a resolver told last before that of the options; what a service config says beside its
 * retryPolicy or hedgingPolicy counts in any case.
 */

#include "rpc/client/retry/service_config.h"

/** Constant while there is a client. */
struct bow__retry_config {
    struct bow_context *context;
    bool keeps_idempotent;
    struct bow__policy_table policies;         /* the program's */
    struct bow__service_config service_config; /* empty: none */
    struct bow__retry_rates rates;
};

/** `options` and `service_config` may be NULL. Returns 0; -EINVAL, -EMSGSIZE with the reason;
 * -ENOMEM. */
int bow__retry_config_init(struct bow__retry_config *config, struct bow_context *context,
                           const struct bow_retry_options *options, const char *service_config,
                           struct bow__text *reason);
/** Zeroed memory, too. */
void bow__retry_config_fini(struct bow__retry_config *config);

/** Of one loop, where all of it happens. */
struct bow__retries {
    const struct bow__retry_config *config;
    struct bow__service_config told; /* by a resolver, if `is_told` */
    bool is_told;
    bool has_policies; /* some method may have one beside what its .proto declares */
    uint64_t n_failed; /* calls that have not ended with OK */
    struct bow__retry_budget budget;
};

void bow__retries_init(struct bow__retries *retries, const struct bow__retry_config *config);
void bow__retries_fini(struct bow__retries *retries);

/** A resolver says a service config; NULL: none, and that of the options counts. Calls that have
 * begun keep what they began with. Returns as bow__service_config_read(); the last good one stays
 * then. */
int bow__retry_config_update(struct bow__retries *retries, const char *json,
                             struct bow__text *reason);
/** The balancing that the service config in force names ("round_robin"), or NULL. */
const char *bow__retry_config_balancing(const struct bow__retries *retries);

/** What is said of the method of `path` that has those BOW_METHOD_ flags; false: nothing. */
bool bow__retries_find(const struct bow__retries *retries, const char *path, uint32_t flags,
                       struct bow__method_policy *ret_policy);

#endif
