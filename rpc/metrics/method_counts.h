/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_METRICS_METHOD_COUNTS_H
#define BOWLINE_RPC_METRICS_METHOD_COUNTS_H

/*
 * What one loop counts of one method's calls, on either side. Knows neither calls nor who serves or
 * makes them.
 *
 * Design. One writer, the loop, into memory of its own, and readers that add up: see base/count.h.
 * Nothing is copied for them, so what is not asked for costs nothing.
 */

#include "rpc/metrics/times.h"
#include <bowline/metrics.h>

struct bow__sizes {
    _Atomic(uint64_t) sum;
    _Atomic(uint64_t) n[BOW_N_SIZES];
};

struct bow__method_counts {
    _Atomic(uint64_t) started;
    _Atomic(uint64_t) ended[BOW_N_CODES];
    _Atomic(uint64_t) bytes_in;
    _Atomic(uint64_t) bytes_out;
    _Atomic(uint64_t) total_ns;
    _Atomic(uint64_t) refused[BOW_N_REFUSALS]; /* BOW_REFUSED_QUEUE: any thread, fetch_add */
    _Atomic(uint64_t) cancelled;
    _Atomic(uint64_t) stalls;
    _Atomic(uint64_t) attempts;
    _Atomic(uint64_t) retries;
    struct bow__sizes received;
    struct bow__sizes sent;
    _Atomic(struct bow__times *) times[BOW_N_TIMES][BOW_N_CODES];
};

static inline void bow__sizes_record(struct bow__sizes *sizes, uint64_t n_bytes)
{
    /* Bucket k has what is at most 2^k, and more than 2^(k-1). */
    uint64_t less = n_bytes - (n_bytes != 0);
    unsigned bucket = 63u - (unsigned)__builtin_clzll(2 * less + 1);

    bow__count(&sizes->n[bucket < BOW_N_SIZES ? bucket : BOW_N_SIZES - 1], 1);
    bow__count(&sizes->sum, n_bytes);
}

/** Count `n` calls of `ns` each. Loop. */
static inline void bow__method_counts_time(struct bow__method_counts *counts,
                                           struct bow_context *context, enum bow_method_time what,
                                           enum bow_code code, uint64_t ns, uint64_t n)
{
    bow__times_record(&counts->times[what][(unsigned)code < BOW_N_CODES ? code : BOW_UNKNOWN],
                      context, ns, n);
}

/** Add everything but the times. Thread: any. */
void bow__method_counts_add(const struct bow__method_counts *counts,
                            struct bow_method_metrics *sum);
/** Add the times of `what` with `code`, all of them with BOW_N_CODES. Thread: any. */
void bow__method_counts_add_times(const struct bow__method_counts *counts,
                                  enum bow_method_time what, unsigned code,
                                  struct bow_histogram *sum);
/** Nobody counts or reads any more: the times go. */
void bow__method_counts_fini(struct bow__method_counts *counts, struct bow_context *context);

/** Where the numbers of one method come from: what the loops have counted, one after the other. */
struct bow_method_source {
    /** Calls `visit` for what each loop has counted of the method. */
    void (*each)(const struct bow_method_source *source,
                 void (*visit)(const struct bow__method_counts *counts, void *user), void *user);
};

/** Fill in a method's numbers: `ret_metrics` refers to `source` from then on. Thread: any. */
void bow__method_metrics_read(const char *path, const struct bow_method_source *source,
                              struct bow_method_metrics *ret_metrics);

#endif
