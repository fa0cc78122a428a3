/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RETRY_BUDGET_H
#define BOWLINE_RPC_CLIENT_RETRY_BUDGET_H

/*
 * How much a client may try again, whatever the policies of its methods say: so that many clients
 * of one sick server do not keep it sick. Two buckets, in thousandths:
 *
 *     tokens   a failed attempt takes 1, a call that succeeds puts `ratio` back (gRPC's A6); at
 *              half of `max` or below nothing is tried again. Time puts a little back, too, for a
 *              client that calls too seldom to earn it
 *     share    each call puts BOW_LIMIT_RETRY_SHARE_PERCENT hundredths in, at most
 *              BOW_LIMIT_RETRY_BURST; what is tried again takes 1. So, over any span of time, there
 *              are no more attempts than 1.2 × calls + the burst
 *
 * What goes in is taken from counters that the loop has anyway, when somebody wants something out:
 * a call that ends well does nothing for it. Knows neither calls nor clocks.
 */

#include <stdbool.h>
#include <stdint.h>

struct bow__retry_rates {
    uint32_t max_milli;   /* tokens */
    uint32_t ratio_milli; /* of one token, for a success */
    uint32_t per_minute;  /* tokens */
};

struct bow__retry_budget {
    struct bow__retry_rates rates;
    uint64_t tokens_milli;
    uint64_t share_milli;
    uint64_t n_started; /* as seen last */
    uint64_t n_succeeded;
    uint64_t seen_ns;
};

/** Full. */
void bow__retry_budget_init(struct bow__retry_budget *budget, const struct bow__retry_rates *rates,
                            uint64_t now_ns);
/** Other rates from now on; what is left stays, in proportion. */
void bow__retry_budget_change(struct bow__retry_budget *budget,
                              const struct bow__retry_rates *rates);
/** Put in what has come about by now: the calls that have been begun, and ended well, so far. */
void bow__retry_budget_settle(struct bow__retry_budget *budget, uint64_t n_started,
                              uint64_t n_succeeded, uint64_t now_ns);
/** An attempt has failed in a way that may be tried again. */
void bow__retry_budget_fail(struct bow__retry_budget *budget);
/** Take what one more attempt costs. Returns whether there may be one. */
bool bow__retry_budget_take(struct bow__retry_budget *budget);

#endif
