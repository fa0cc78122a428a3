/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVER_WATCH_H
#define BOWLINE_RPC_CLIENT_RESOLVER_WATCH_H

/*
 * One client on one of its loops that wants to know what a name has: asks the target's resolver,
 * checks and keeps what it says, and why it does not know.
 *
 *     IDLE ──want──► WAITING ──update──► KNOWN      stays so; errors are kept beside it
 *                      │  ▲
 *                error ▼  │ start() again, after a pause
 *                    FAILED ──update──► KNOWN
 *
 * A resolver is asked, and told, from the loop alone and never inside a function of the client: by
 * a timer, which also brings what it says, one turn later. Knows no connections.
 */

#include "base/text.h"
#include "rpc/client/client_options.h"
#include "rpc/client/resolve/address_set.h"
#include <bowline/timer.h>

enum bow__resolver_watch_state {
    BOW__RESOLVER_IDLE = 0, /* nobody has wanted to know */
    BOW__RESOLVER_WAITING,  /* it has said nothing yet */
    BOW__RESOLVER_FAILED,   /* it has said that it knows none, or could not be started */
    BOW__RESOLVER_KNOWN,    /* there is a set */
};

/** What its owner is told, on the loop, with nothing else under way. */
struct bow__resolver_watch_ops {
    /** Take `set` in the place of the one before, which lives until this returns. Returns 0, or
     * -ENOMEM: then the one before stays. */
    int (*on_set)(void *owner, const struct bow__address_set *set);
    /** `error` has changed, or the state. */
    void (*on_error)(void *owner);
};

struct bow_resolver_watch {
    const struct bow__client_config *config;
    const struct bow__resolver_watch_ops *ops;
    void *owner;
    enum bow__resolver_watch_state state;
    struct bow_timer timer; /* whatever is next to do */
    void *resolver_state;
    bool is_started;               /* the resolver has a state */
    bool is_stopped;               /* for ever */
    bool is_in_doubt;              /* a hint is due */
    uint64_t next_start_ns;        /* unless it is started */
    uint64_t next_refresh_ns;      /* not before */
    uint64_t pause_ns;             /* after starts that failed */
    uint64_t failed_at_ns;         /* when `error` was told last */
    struct bow__address_set *set;  /* the last good one; NULL: none */
    struct bow__address_set *next; /* has come, and is yet to be taken; NULL: none */
    bool has_next_error;           /* likewise */
    struct bow__text next_error;
    struct bow__text error; /* why nothing newer is known than `set`; empty: it is the newest */
};

/** A watch of the config's target, which has a resolver. Returns 0 or -ENOMEM. Thread: any. */
int bow__resolver_watch_new(const struct bow__client_config *config,
                            struct bow_resolver_watch **ret_watch);
/** It is stopped, or was never wanted. NULL is allowed. */
void bow__resolver_watch_free(struct bow_resolver_watch *watch);

/** Who is told, and where. Once. Thread: any. */
void bow__resolver_watch_bind(struct bow_resolver_watch *watch, struct bow_loop *loop,
                              const struct bow__resolver_watch_ops *ops, void *owner);

/** Calls want it: begin, if that has not been done, or ask again if it failed backoff_min_ns ago or
 * earlier. Returns whether that it failed is no reason to fail. */
bool bow__resolver_watch_want(struct bow_resolver_watch *watch);
/** What is known may be old: tell the resolver, now and then. */
void bow__resolver_watch_doubt(struct bow_resolver_watch *watch);
/** Nothing is told any more. Idempotent. */
void bow__resolver_watch_stop(struct bow_resolver_watch *watch);

#endif
