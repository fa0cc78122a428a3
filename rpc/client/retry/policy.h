/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RETRY_POLICY_H
#define BOWLINE_RPC_CLIENT_RETRY_POLICY_H

/*
 * What is said of one method: whether its calls are tried again, and what else a service config
 * says. Pure decisions, about numbers. Knows neither calls nor time.
 */

#include <bowline/retry.h>
#include <bowline/status.h>
#include <stddef.h>

/** Complete: a default stands where nothing was said. */
struct bow__method_policy {
    uint8_t max_attempts; /* 1: nothing is tried again */
    bool retries;         /* whatever follows was said, if only that nothing is */
    bool hedges;
    bool waits_for_ready;
    uint32_t codes; /* bits 1u << code: tried again; hedged: not the end of it */
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns;
    double multiplier;
    uint64_t attempt_timeout_ns; /* BOW_NEVER: none */
    uint64_t hedging_delay_ns;

    uint64_t timeout_ns;       /* of a call, beside its own; BOW_NEVER: none */
    size_t max_request_bytes;  /* SIZE_MAX: as the client */
    size_t max_response_bytes; /* SIZE_MAX: as the client */
};

/** One that says nothing. */
void bow__policy_init(struct bow__method_policy *policy);
/** That of a method which is declared idempotent. */
void bow__policy_init_idempotent(struct bow__method_policy *policy);
/** Take what the program says. Returns 0, or -EINVAL and why not. */
int bow__policy_read(const struct bow_retry_policy *given, struct bow__method_policy *ret_policy,
                     const char **ret_reason);

/** Whether a failure with that code may be tried again. */
static inline bool bow__policy_takes(const struct bow__method_policy *policy, enum bow_code code)
{
    return (unsigned)code < 32 && (policy->codes >> (unsigned)code & 1u) != 0;
}

/** The pause after one of `pause_ns`; 0: this is the first. Who waits adds jitter. */
uint64_t bow__policy_next_pause(const struct bow__method_policy *policy, uint64_t pause_ns);

#endif
