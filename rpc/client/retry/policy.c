/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The policy of a method: defaults, what cannot be, and how pauses grow.
 */

#include "rpc/client/retry/policy.h"

#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <bowline/system.h>
#include <errno.h>

#define DEFAULT_ATTEMPTS 3u
#define DEFAULT_BACKOFF_MIN_NS (UINT64_C(50) * 1000000u)
#define DEFAULT_BACKOFF_MAX_NS (UINT64_C(2) * 1000000000u)
#define DEFAULT_MULTIPLIER 2.0

/* Of a pause that grows for ever there is no use. */
#define MAX_PAUSE_NS (UINT64_C(3600) * 1000000000u)

void bow__policy_init(struct bow__method_policy *policy)
{
    *policy = (struct bow__method_policy){
        .max_attempts = 1,
        .backoff_min_ns = DEFAULT_BACKOFF_MIN_NS,
        .backoff_max_ns = DEFAULT_BACKOFF_MAX_NS,
        .multiplier = DEFAULT_MULTIPLIER,
        .attempt_timeout_ns = BOW_NEVER,
        .timeout_ns = BOW_NEVER,
        .max_request_bytes = SIZE_MAX,
        .max_response_bytes = SIZE_MAX,
    };
}

void bow__policy_init_idempotent(struct bow__method_policy *policy)
{
    bow__policy_init(policy);
    policy->retries = true;
    policy->max_attempts = DEFAULT_ATTEMPTS;
    policy->codes = 1u << BOW_UNAVAILABLE;
}

static const char *fault_of(const struct bow_retry_policy *given)
{
    if (given->codes >> BOW_N_CODES != 0 || (given->codes & 1u << BOW_OK) != 0) {
        return "codes has a bit that is no code of a failure";
    }
    if (given->multiplier != 0 && !(given->multiplier >= 1 && given->multiplier <= 1000)) {
        return "multiplier is not from 1 to 1000";
    }
    if (given->hedges && given->attempt_timeout_ns != 0) {
        return "attempt_timeout_ns is for attempts one after the other, and hedges for those "
               "beside "
               "each other: set one of them";
    }
    return NULL;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

int bow__policy_read(const struct bow_retry_policy *given, struct bow__method_policy *ret_policy,
                     const char **ret_reason)
{
    *ret_reason = fault_of(given);
    if (*ret_reason != NULL) {
        return -EINVAL;
    }
    uint32_t attempts = given->max_attempts != 0 ? given->max_attempts : DEFAULT_ATTEMPTS;
    bow__policy_init_idempotent(ret_policy);
    ret_policy->max_attempts =
        (uint8_t)(attempts < BOW_LIMIT_RETRY_ATTEMPTS ? attempts : BOW_LIMIT_RETRY_ATTEMPTS);
    ret_policy->codes = given->codes != 0 ? given->codes : ret_policy->codes;
    ret_policy->backoff_min_ns = or_default(given->backoff_min_ns, DEFAULT_BACKOFF_MIN_NS);
    ret_policy->backoff_max_ns = or_default(given->backoff_max_ns, DEFAULT_BACKOFF_MAX_NS);
    ret_policy->multiplier = given->multiplier != 0 ? given->multiplier : DEFAULT_MULTIPLIER;
    ret_policy->attempt_timeout_ns = or_default(given->attempt_timeout_ns, BOW_NEVER);
    ret_policy->hedges = given->hedges;
    ret_policy->hedging_delay_ns = given->hedging_delay_ns;
    return 0;
}

uint64_t bow__policy_next_pause(const struct bow__method_policy *policy, uint64_t pause_ns)
{
    uint64_t max_ns = policy->backoff_max_ns < MAX_PAUSE_NS ? policy->backoff_max_ns : MAX_PAUSE_NS;
    double next =
        pause_ns == 0 ? (double)policy->backoff_min_ns : (double)pause_ns * policy->multiplier;

    return next < (double)max_ns ? (uint64_t)next : max_ns;
}
