/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_LEASE_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_LEASE_H

/*
 * A lease that is kept alive: keys that are put with it go when its holder does. It is renewed
 * three times in its time to live, over any server that answers; one that is lost is replaced by
 * another, under which the keys have to be put again.
 *
 *     start ──► on_granted ──► (renewed) ──► stop ──► on_closed
 *                   ▲              │
 *                   └── on_lost ◄──┘   no answer for its time to live, or the server has it no more
 *
 * The time to live counts from before the last renewal that was answered was sent, so on_lost
 * comes no later than the server can let the lease, and its keys, go: whoever holds a lock by it
 * stops there. Each function is for the loop of its etcd, or before it runs.
 */

#include "etcd.h"
#include <bowline/timer.h>

struct etcd_lease;

/** What happens to a lease; all are called. */
struct etcd_lease_events {
    /** There is one: put the keys with this id. */
    void (*on_granted)(struct etcd_lease *lease, int64_t id, int64_t ttl_s, void *user);
    /** Its keys are gone, or may be. Another one is asked for. */
    void (*on_lost)(struct etcd_lease *lease, int64_t id, const char *why, void *user);
    /** For people: it goes on by itself. */
    void (*on_interrupted)(struct etcd_lease *lease, const struct bow_status *why, void *user);
    /** The last one: stopped, or an error that stays. The memory of `lease` is yours again. */
    void (*on_closed)(struct etcd_lease *lease, const struct bow_status *status, void *user);
};

/** A lease, embedded in what it is for. All of it is private. */
struct etcd_lease {
    struct etcd *etcd;
    const struct etcd_lease_events *events;
    void *user;
    struct etcd_login login;
    struct bow_timer next;   /* begins what is to be done, when nothing is under way */
    struct bow_timer renew;  /* sends a renewal; or what was sent was not answered */
    struct bow_timer expiry; /* the lease may be gone by now */
    struct etcdserverpb__lease__lease_keep_alive__stream stream; /* of renewals; NULL: none */
    uint64_t call; /* the unary one that is under way; 0: none */
    uint64_t pause_ns;
    uint64_t sent_ns; /* the grant, or the renewal that is not answered */
    int64_t asked_ttl_s;
    int64_t ttl_s;
    int64_t id; /* 0: none */
    uint32_t n_revokes;
    bool awaited; /* an answer to a renewal */
    bool lacks_token;
    bool stopping;
};

/** Owns: keeps all that it is given until on_closed. */
void etcd_lease_start(struct etcd_lease *lease, struct etcd *etcd, int64_t ttl_s,
                      const struct etcd_lease_events *events, void *user);
/** Give the lease back, so that its keys go at once; then on_closed, with CANCELLED. Idempotent. */
void etcd_lease_stop(struct etcd_lease *lease);

#endif
