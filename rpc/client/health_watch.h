/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_HEALTH_WATCH_H
#define BOWLINE_RPC_CLIENT_HEALTH_WATCH_H

/*
 * What a server says of the service that options.health_service names, on one connection: a call of
 * grpc.health.v1.Health's Watch for as long as the connection takes calls. It is none of the
 * client's: no interceptor, list or counter of calls sees it, and it keeps no connection.
 *
 *     begin ──► told SERVING, or another state ──► … ──► it ends ──pause──► begin
 *                                                  └──► UNIMPLEMENTED: serves, and is not asked
 * again
 *
 * What was said last holds until something else is said, also while the call is begun again, for
 * proxies end calls that are only long. One that ends before anything was said on it says that the
 * server does not serve. What follows from all that is for the subchannel to say.
 */

#include "base/text.h"
#include "rpc/connection/conn.h"
#include <bowline/timer.h>

struct bow__client_calls;
struct bow__client_config;
struct bow__health_watch;

/** The server serves: `why` is NULL; or why it does not: "says that …" (borrowed). Each time that
 * it is said, the same or not. Inside the session. */
typedef void (*bow__health_said_fn)(struct bow__health_watch *watch, const char *why);

struct bow__health_watch {
    struct bow__conn *conn;
    struct bow__client_calls *calls; /* for what messages are opened with */
    const struct bow__client_config *config;
    bow__health_said_fn on_said;
    struct bow_timer timer; /* when it begins again */
    uint64_t key;           /* of the call's stream; 0: there is none */
    uint64_t begun_ns;
    uint64_t pause_ns; /* before this one, since which nothing was said; or 0 */
    bool is_wanted;    /* from its start to its stop, unless the server has no such method */
    bool was_told;     /* something, by this call */
};

/** Nothing is watched yet. `watch` is a part of what holds `conn`. */
void bow__health_watch_init(struct bow__health_watch *watch, struct bow__conn *conn,
                            struct bow__client_calls *calls,
                            const struct bow__client_config *config, bow__health_said_fn on_said);

/** Between its start and its stop, unless the server has no such method. */
static inline bool bow__health_watch_is_wanted(const struct bow__health_watch *watch)
{
    return watch->is_wanted;
}

/** The peer has answered: begin. Once. */
void bow__health_watch_start(struct bow__health_watch *watch);
/** There is a stream again: begin, if there was none for that. */
void bow__health_watch_resume(struct bow__health_watch *watch);
/** Nothing is said any more. Idempotent, also of one that never started. */
void bow__health_watch_stop(struct bow__health_watch *watch);

/** What its session tells of it: events whose `stream` is the watch. */
void bow__health_watch_on_message(struct bow__health_watch *watch, struct bow__message *message);
void bow__health_watch_on_status(struct bow__health_watch *watch, const struct bow_status *status);

#endif
