/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_SUBCHANNEL_H
#define BOWLINE_RPC_CLIENT_SUBCHANNEL_H

/*
 * A client's subchannels on one loop: one for each address of its target, with at most one
 * connection that takes calls, or is to. Beside it there may be others that take none any more and
 * end when their calls have ended. All on the loop.
 *
 * Where max_connections_per_address allows more, an address has further subchannels for the rest
 * of them. They connect when the balancer says so, and never by themselves.
 */

#include "base/text.h"
#include "rpc/client/client_conn.h"
#include "rpc/client/client_options.h"
#include "transport/address/address_list.h"

struct bow__subchannel;

/** In the order in which the subchannels' states make the balancer's: the highest counts. */
enum bow__connectivity {
    BOW__CONNECTIVITY_BACKING_OFF = 0, /* the last attempt failed, or its server does not serve */
    BOW__CONNECTIVITY_IDLE,
    BOW__CONNECTIVITY_CONNECTING,
    BOW__CONNECTIVITY_READY, /* takes calls */
};

/** What the owner of subchannels, which is a balancer, is told. */
struct bow__subchannel_ops {
    /** Its state has changed: it takes calls from now on, or none any more. */
    void (*on_state)(struct bow__subchannel *subchannel, enum bow__connectivity before);
    /** An attempt failed: with the last of them, calls that wait for no other fail. */
    void (*on_failed)(struct bow__subchannel *subchannel);
    /** Calls that are queued may be sent, or need a connection again. */
    void (*on_change)(struct bow__subchannel *subchannel);
    /** Its connection was lost to silence: those of the others may be as dead. */
    void (*on_silence)(struct bow__subchannel *subchannel);
    /** Its server failed, or leaves: the name may have others by now. */
    void (*on_doubt)(struct bow__subchannel *subchannel);
    /** It is drained, and nothing of it is left: see subchannel_set.h. */
    void (*on_drained)(struct bow__subchannel *subchannel);
};

struct bow__subchannel {
    struct bow__subchannel_list *list;
    const struct bow__target_address *address;
    struct bow__link at; /* the first of its address: in the list's addresses, or drained ones */
    uint32_t n_conns;    /* of any age */
    bool is_drained;     /* the name has the address no more */
    uint64_t drained_until_ns; /* then its calls end */
    enum bow__connectivity state;
    struct bow__link ready_link;   /* READY: in the list's ready, or further ones */
    struct bow__client_conn *conn; /* READY; CONNECTING because it is probed; or BACKING_OFF because
                                      its server says that it does not serve */
    bool attempting;               /* none has answered yet: what follows belongs to that */
    bool is_told;                  /* last_error is of this attempt */
    struct bow_connect *connect;   /* under way */
    struct bow__link candidates;   /* connected: being secured, or have yet to answer; in order */
    uint64_t next_address_ns;      /* when the name's next address is tried beside them */
    bool is_name;
    bool is_further;                     /* not the first of its address */
    struct bow__address_list *addresses; /* of a name, once it is wanted; or NULL */
    struct bow_timer timer;              /* of the next attempt, or of this one */
    uint64_t tried_at_ns;
    uint64_t failed_at_ns;
    uint64_t backoff_ns; /* 0: the last attempt succeeded, or there was none */
    uint64_t next_try_ns;
    uint64_t n_calls_seen; /* calls that had begun on the loop when the state changed last */
    bool was_up;           /* for the count of reconnects */
    bool was_turned_away;  /* by a GOAWAY, before it was said whether the server serves */
    bool probed;           /* CONNECTING again, for its server has to show that it lives */
    struct bow__text last_error;
};

/** Whether its connection takes no calls until its server says that it serves. */
static inline bool bow__subchannel_is_unhealthy(const struct bow__subchannel *subchannel)
{
    return subchannel->state == BOW__CONNECTIVITY_BACKING_OFF && subchannel->conn != NULL;
}

struct bow__subchannel_list {
    struct bow__client_calls *calls;
    const struct bow__client_config *config;
    const struct bow__subchannel_ops *ops;
    /* The first of each address; its further ones lie behind it in memory. */
    struct bow__link addresses;
    uint32_t n_addresses;
    uint32_t n_in[BOW__CONNECTIVITY_READY + 1]; /* how many of these are in which state */
    struct bow__link ready;                     /* those that take calls */
    uint32_t n_ready;
    struct bow__link further;      /* further ones that take calls */
    uint32_t n_further_in_use;     /* that take calls, or are to */
    uint32_t n_further_connecting; /* that are to */
    struct bow__link conns;        /* of all, with those that end */
    bool has_idle;                 /* several addresses: one may wait for a call to be of use */
    bool catching_up;              /* what comes now came to pass while nobody drove the loop */
};

static inline struct bow__subchannel *bow__subchannel_at(struct bow__link *link)
{
    return BOW__CONTAINER(link, struct bow__subchannel, at);
}

/** The first of the first address, and of the one that follows that of `subchannel`; or NULL. */
static inline struct bow__subchannel *
bow__subchannel_list_first(const struct bow__subchannel_list *list)
{
    return bow__list_is_empty(&list->addresses) ? NULL : bow__subchannel_at(list->addresses.next);
}

static inline struct bow__subchannel *bow__subchannel_next(const struct bow__subchannel *subchannel)
{
    struct bow__link *next = subchannel->at.next;

    return next != &subchannel->list->addresses ? bow__subchannel_at(next) : NULL;
}

/** How many lie behind each other: the first of an address, and its further ones. */
static inline uint32_t bow__subchannels_each(const struct bow__subchannel_list *list)
{
    return list->config->options.max_connections_per_address;
}

/** Take the address of `first` out: its subchannels connect no more and take no new calls, and
 * their connections end with the calls on them. */
void bow__subchannel_drain(struct bow__subchannel *first, uint64_t until_ns);
/** Set up zeroed memory, for the list to add. */
void bow__subchannel_init(struct bow__subchannel *subchannel, struct bow__subchannel_list *list,
                          const struct bow__target_address *address, bool is_further);
/** Connect for calls that wait, unless it is too early after a failure; `at_once`: even then. */
void bow__subchannel_request_connection(struct bow__subchannel *subchannel, bool at_once);
/** Whether it is too early for the next connection, after one that failed or was lost. */
bool bow__subchannel_is_resting(const struct bow__subchannel *subchannel);
/** Whether an attempt failed less than backoff_min_ns ago, and the next is not due; or whether its
 * server does not serve. */
bool bow__subchannel_is_too_early(const struct bow__subchannel *subchannel);
/** Whether its server is yet to say that it serves. */
bool bow__subchannel_awaits_health(const struct bow__subchannel *subchannel);
/** A connection on which nothing has come, of an attempt under way; or NULL. */
const struct bow__client_conn *
bow__subchannel_silent_candidate(const struct bow__subchannel *subchannel);
/** A server was lost to silence: one that has been silent as well takes calls when it has answered.
 */
void bow__subchannel_probe(struct bow__subchannel *subchannel);
/** Make no further attempt. */
void bow__subchannel_close(struct bow__subchannel *subchannel);

#endif
