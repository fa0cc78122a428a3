/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_METRICS_METRICS_TEXT_H
#define BOWLINE_RPC_METRICS_METRICS_TEXT_H

/*
 * Which metrics there are as text, and what they are called. Where the numbers come from is its
 * caller's business.
 */

#include <bowline/loop_stats.h>
#include <bowline/metrics_text.h>

/** Whose numbers are written. */
struct bow__metrics_owner {
    const char *target; /* of a client; NULL: a server's */
    const void *owner;  /* for these */
    void (*totals)(const void *owner, struct bow_metrics *ret_totals);
    void (*each_method)(const void *owner, bow_method_metrics_fn fn, void *user);
    /** NULL behind the last one. */
    const struct bow_loop *(*loop)(const void *owner, uint32_t i);
};

/** Returns as bow_server_metrics_text(). Thread: any. */
int bow__metrics_text_write(const struct bow__metrics_owner *owner, enum bow_metrics_format format,
                            bow_metrics_put_fn put, void *user);

#endif
