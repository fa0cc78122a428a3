/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RETRY_H
#define BOWLINE_RETRY_H

/*
 * When a client sends a call again, by itself: the policy of each method, and the budget that all
 * of them share. To the program, to interceptors and in the metrics a call stays one call, whatever
 * attempts it takes: one completion, one deadline for all of it, and a cancel ends every attempt.
 *
 *     call ──► attempt 1 ──► UNAVAILABLE ──► pause ──► attempt 2 ──► OK ──► done
 *                                │
 *                                └─► no policy, no attempt left, no budget, no time: done
 *
 * Three things send a call again, and each has its own rule:
 *
 * - A call that certainly no handler has seen (status.not_processed) is sent once more without any
 *   policy, and as often as that happens when it never left the client. That is not counted here.
 * - A method that its .proto declares idempotent (idempotency_level = IDEMPOTENT or
 *   NO_SIDE_EFFECTS) is tried up to 3 times when it ends with UNAVAILABLE, without any policy
 *   being given; `keep_idempotent` in the options turns that off.
 * - A policy says for a method, a service or all of them which codes are tried again. It decides
 *   alone, as in gRPC: name a code only for methods that may run twice.
 *
 * Nothing is tried again of which the program has seen something: initial metadata, or a message.
 *
 *     struct bow_retry_policy policy = BOW_RETRY_POLICY_INIT;
 *     const struct bow_retry_policy *policies[] = {&policy};
 *     struct bow_retry_options retry = BOW_RETRY_OPTIONS_INIT;
 *     policy.method = "shop.Orders/Get";
 *     policy.max_attempts = 4;
 *     policy.codes = 1u << BOW_UNAVAILABLE | 1u << BOW_RESOURCE_EXHAUSTED;
 *     retry.policies = policies;
 *     retry.n_policies = 1;
 *     options.retry = &retry;
 *
 * The same, and what else gRPC's service config says of methods, as JSON: options.service_config
 * of <bowline/client.h>.
 *
 * Invariant: a server that is sick gets at most 1.2 times the calls that it is sent, and
 * BOW_LIMIT_RETRY_BURST attempts of each client and loop beside them.
 */

#include <bowline/visibility.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Of which calls what is tried again, and when; begin with BOW_RETRY_POLICY_INIT. */
struct bow_retry_policy {
    size_t size;             /* sizeof this struct, set by the INIT */
    const char *method;      /* "pkg.Service/Method"; "pkg.Service": each of its methods that has no
                                policy of its own; NULL: each that neither is there for; copied */
    uint32_t max_attempts;   /* with the first; more than BOW_LIMIT_RETRY_ATTEMPTS is that; 1: none
                                but it, also of a method that is declared idempotent; 0: 3 */
    uint32_t codes;          /* bits 1u << BOW_UNAVAILABLE and so on; 0: that one */
    uint64_t backoff_min_ns; /* the first pause; 0: 50 ms. Each has ± 20 % jitter. A server that
                                asks to wait (status.retry_after_ns) is obeyed instead */
    uint64_t backoff_max_ns; /* 0: 2 s */
    double multiplier;       /* of a pause for the next; at least 1; 0: 2 */
    uint64_t attempt_timeout_ns; /* an attempt that has brought nothing for so long is given up and
                                    counts as one that may be tried again; 0: none */
    bool hedges; /* do not wait for an attempt to fail before the next is sent: for unary
                    methods without side effects. The first answer counts, the others
                    are cancelled; a code that is not in `codes` is an answer, too */
    uint64_t
        hedging_delay_ns; /* how long each next attempt waits for those before; 0: not at all */
};

#define BOW_RETRY_POLICY_INIT BOW__INIT(struct bow_retry_policy, )

/** How a client tries again; begin with BOW_RETRY_OPTIONS_INIT. */
struct bow_retry_options {
    size_t size;                                    /* sizeof this struct, set by the INIT */
    const struct bow_retry_policy *const *policies; /* copied; at most BOW_LIMIT_METHOD_CONFIGS */
    size_t n_policies;
    bool keep_idempotent; /* methods that are declared idempotent are sent once, unless a policy
                             says otherwise */

    /* The budget, on each of the client's loops. A bucket of tokens: an attempt that fails takes
     * one, a call that succeeds puts `budget_percent` hundredths of one back. While half of it or
     * less is left nothing is tried again. Beside that no more than BOW_LIMIT_RETRY_SHARE_PERCENT
     * of all calls are, whatever is left. What retryThrottling of a service config says comes in
     * place of the first two. */
    uint32_t budget_tokens;     /* 0: BOW_LIMIT_RETRY_TOKENS; at most 1000 */
    uint32_t budget_percent;    /* 0: BOW_LIMIT_RETRY_PERCENT; at most 100 */
    uint32_t budget_per_minute; /* tokens that time puts back, for clients that seldom call; 0:
                                   BOW_LIMIT_RETRY_PER_MINUTE; at most 600 */
};

#define BOW_RETRY_OPTIONS_INIT BOW__INIT(struct bow_retry_options, )

#ifdef __cplusplus
}
#endif
#endif
