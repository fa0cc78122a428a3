/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_HOLD_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_HOLD_H

/*
 * A key that is there as long as its holder: a service that registers itself, a member of a group.
 * It is put under a lease, and again under another one when that was lost.
 *
 *     start ──► on_held ──► stop ──► on_closed
 *                ▲    │
 *                └────┴── on_lost
 *
 * Each function is for the loop of its etcd, or before it runs.
 */

#include "etcd_lease.h"

struct etcd_hold;

/** What happens to a key that is held; all are called. */
struct etcd_hold_events {
    /** The key is there, with `lease`. */
    void (*on_held)(struct etcd_hold *hold, int64_t lease, void *user);
    /** It is gone, or may be; it is put again as soon as that can be. */
    void (*on_lost)(struct etcd_hold *hold, int64_t lease, const char *why, void *user);
    /** For people: it goes on by itself. */
    void (*on_interrupted)(struct etcd_hold *hold, const struct bow_status *why, void *user);
    /** The last one: stopped, or an error that stays. The memory of `hold` is yours again. */
    void (*on_closed)(struct etcd_hold *hold, const struct bow_status *status, void *user);
};

/** A key that is held, embedded in what it is for. All of it is private. */
struct etcd_hold {
    struct etcd *etcd;
    const struct etcd_hold_events *events;
    void *user;
    const char *key;
    const char *value;
    struct etcd_lease lease;
    struct etcd_login login;
    struct bow_timer timer; /* begins the next put, or login */
    uint64_t call;          /* put or login; 0: none */
    int64_t lease_id;       /* 0: none */
    int64_t put_id;         /* the lease of the put that is under way */
    bool lacks_token;
    bool closed;              /* the lease is; the call, if any, is cancelled */
    struct bow_status status; /* not OK: how it ended; its message is `reason` */
    char reason[256];
};

/** Owns: keeps all that it is given until on_closed. */
void etcd_hold_start(struct etcd_hold *hold, struct etcd *etcd, const char *key, const char *value,
                     int64_t ttl_s, const struct etcd_hold_events *events, void *user);
/** Take the key away; then on_closed, with CANCELLED. Idempotent. */
void etcd_hold_stop(struct etcd_hold *hold);

#endif
