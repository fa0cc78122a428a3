/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The budget of attempts after the first.
 */

#include "rpc/client/retry/budget.h"

#include <bowline/limits.h>

#define ONE UINT64_C(1000)
#define MINUTE_MS UINT64_C(60000)
#define SHARE_MILLI (ONE * BOW_LIMIT_RETRY_SHARE_PERCENT / 100)
#define MAX_SHARE_MILLI (ONE * BOW_LIMIT_RETRY_BURST)

/* `bucket` + n × each, at most `max`; however much that would be. */
static uint64_t fill(uint64_t bucket, uint64_t n, uint64_t each, uint64_t max)
{
    if (bucket >= max) {
        return max;
    }
    return each == 0 || n < (max - bucket) / each ? bucket + n * each : max;
}

void bow__retry_budget_init(struct bow__retry_budget *budget, const struct bow__retry_rates *rates,
                            uint64_t now_ns)
{
    *budget = (struct bow__retry_budget){
        .rates = *rates,
        .tokens_milli = rates->max_milli,
        .share_milli = MAX_SHARE_MILLI,
        .seen_ns = now_ns,
    };
}

void bow__retry_budget_change(struct bow__retry_budget *budget,
                              const struct bow__retry_rates *rates)
{
    uint64_t max = budget->rates.max_milli;

    budget->tokens_milli = max > 0 ? budget->tokens_milli * rates->max_milli / max : 0;
    budget->rates = *rates;
}

/* What is less than a thousandth of a token stays for the next time. */
static void fill_by_time(struct bow__retry_budget *budget, uint64_t now_ns)
{
    const struct bow__retry_rates *rates = &budget->rates;
    uint64_t ns_each = rates->per_minute > 0 ? MINUTE_MS * 1000000 / (rates->per_minute * ONE) : 0;

    if (ns_each == 0 || now_ns <= budget->seen_ns) {
        budget->seen_ns = now_ns;
        return;
    }
    uint64_t n = (now_ns - budget->seen_ns) / ns_each;
    budget->tokens_milli = fill(budget->tokens_milli, n, 1, rates->max_milli);
    budget->seen_ns += n * ns_each;
}

void bow__retry_budget_settle(struct bow__retry_budget *budget, uint64_t n_started,
                              uint64_t n_succeeded, uint64_t now_ns)
{
    budget->tokens_milli = fill(budget->tokens_milli, n_succeeded - budget->n_succeeded,
                                budget->rates.ratio_milli, budget->rates.max_milli);
    budget->share_milli =
        fill(budget->share_milli, n_started - budget->n_started, SHARE_MILLI, MAX_SHARE_MILLI);
    budget->n_succeeded = n_succeeded;
    budget->n_started = n_started;
    fill_by_time(budget, now_ns);
}

void bow__retry_budget_fail(struct bow__retry_budget *budget)
{
    budget->tokens_milli -= budget->tokens_milli < ONE ? budget->tokens_milli : ONE;
}

bool bow__retry_budget_take(struct bow__retry_budget *budget)
{
    if (budget->tokens_milli <= budget->rates.max_milli / 2 || budget->share_milli < ONE) {
        return false;
    }
    budget->share_milli -= ONE;
    return true;
}
