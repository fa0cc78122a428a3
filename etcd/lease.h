/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_LEASE_H
#define BOWLINE_ETCD_LEASE_H

/*
 * A lease: granted, renewed at a third of its time to live, granted anew when it was lost, given
 * back at the end. Knows nothing of the keys under it. All on the loop.
 *
 *     start ──► on_granted ──► renewals ──► on_lost ──► on_granted …
 *     stop ───► revoked ──► on_closed
 */

#include "etcd/op.h"

struct bow__etcd_lease;

struct bow__etcd_lease_events {
    void (*on_granted)(struct bow__etcd_lease *lease);
    void (*on_lost)(struct bow__etcd_lease *lease, const char *why);
    void (*on_error)(struct bow__etcd_lease *lease, const struct bow_status *status);
    void (*on_closed)(struct bow__etcd_lease *lease);
};

struct bow__etcd_lease {
    const struct bow__etcd_lease_events *events;
    struct bow__etcd_op op;
    struct bow_timer renew;
    struct bow_timer expiry; /* of a strict one */
    int64_t asked_ttl_s;
    int64_t id; /* 0: none now */
    uint64_t ttl_ns;
    uint64_t sent_ns; /* the last request that may prolong it */
    uint64_t revoke;  /* the call */
    bool is_awaited;  /* the answer to a renewal */
    bool is_strict;   /* lost when it has ended by the clock here, not only when etcd says so */
    bool is_stopping;
    bool is_closed;
};

void bow__etcd_lease_init(struct bow__etcd_lease *lease, struct bow_etcd *etcd, int64_t ttl_s,
                          bool is_strict, const struct bow__etcd_lease_events *events);
void bow__etcd_lease_start(struct bow__etcd_lease *lease);
/** It is none any more: on_lost, and another one is asked for. */
void bow__etcd_lease_lose(struct bow__etcd_lease *lease, const char *why);
/** Idempotent. on_closed may run inside. */
void bow__etcd_lease_stop(struct bow__etcd_lease *lease);

#endif
