/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_ADMISSION_H
#define BOWLINE_RPC_SERVER_DISPATCH_ADMISSION_H

/*
 * Whether a call that has just arrived is taken: fixed limits on the calls in
 * progress, of the whole server and of single methods, what all peers have in flight, and the
 * context's ceiling on memory.
 * What is refused here was not decoded and cost a lookup.
 *
 *     arrives ──► admit ──► [the call's life, with its handler's] ──► leave
 *                   └──► refused: the status says which limit, its value, and when to come again
 *
 * Design. A call counts until its handler has answered it, also while nobody waits for it
 * any more: what an overloaded server is short of, such a handler holds. It then leaves on any
 * thread, maybe after the server has gone, so the counts are referenced by the workers.
 */

#include "rpc/core/in_flight.h"
#include "rpc/core/registry.h"
#include "rpc/server/dispatch/quota.h"
#include <bowline/context.h>
#include <bowline/metrics.h>
#include <bowline/status.h>

/** The limits of one server: [0] of all its calls, [1 + index] of a method's,
 * the last of the fallback's. Counted. */
struct bow__quotas {
    struct bow_context *context;
    atomic_uint refs; /* relaxed up, acq_rel down */
    uint32_t n;
    struct bow__quota quota[];
};

/** One loop's side. */
struct bow__admission {
    struct bow_context *context;
    struct bow__quotas *quotas;      /* a reference; NULL: no call is counted */
    struct bow__quota_local *locals; /* as many */
    uint64_t retry_after_ns;
    bool has_limits; /* that are looked at for each call */
    bool is_on;      /* there is anything to look at */
};

/** NULL with 0: neither the server nor a method has a limit. Returns 0 or -ENOMEM. */
int bow__quotas_new(struct bow_context *context, const struct bow__registry *registry,
                    uint32_t max_server_calls, uint32_t n_loops, struct bow__quotas **ret_quotas);
void bow__quotas_unref(struct bow__quotas *quotas);

/** Shares `quotas`, which may be NULL. Returns 0 or -ENOMEM. */
int bow__admission_init(struct bow__admission *admission, struct bow_context *context,
                        struct bow__quotas *quotas, uint64_t retry_after_ns);
void bow__admission_fini(struct bow__admission *admission);

/** The server is short of room for what its peers have in flight, or is no more. Loop. */
void bow__admission_watch(struct bow__admission *admission, bool is_short);

/**
 * Take a call of `entry` that came on the connection of `share`. Returns NULL when it is taken;
 * else the name of the limit, counts that in `metrics` and in `refused` of its method, and
 * `*ret_status` with `text` says why. Loop.
 */
const char *bow__admission_admit(struct bow__admission *admission,
                                 const struct bow__registered_method *entry,
                                 const struct bow__in_flight_share *share,
                                 struct bow_metrics *metrics,
                                 _Atomic(uint64_t) refused[BOW_N_REFUSALS], struct bow__text *text,
                                 struct bow_status *ret_status);

/** A call of method `index` that was admitted has been let go of; `off_loop`: the calling thread
 * may be another than the loop's. */
void bow__admission_leave(struct bow__admission *admission, uint32_t index, bool off_loop);

#endif
