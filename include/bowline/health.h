/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_HEALTH_H
#define BOWLINE_HEALTH_H

/*
 * Whether a server, and each of its services, can serve: what load balancers, supervisors and
 * gRPC's clients ask for by grpc.health.v1.Health, which every server has unless its options say
 * no_health, or a service of that name was added (which then takes its place).
 *
 *     start ──► SERVING ◄──bow_health_set()──► NOT_SERVING ──┐
 *                  └──── stop, SIGTERM: the drain begins ────┴──► NOT_SERVING, whatever is set
 *
 * From its start a server ("") and each service that was added are SERVING. As soon as it begins to
 * drain, all that is known is NOT_SERVING, to who asks and to who watches; when GOAWAY is sent,
 * watching ends with UNAVAILABLE, so that it keeps no connection; and so it does on one that has
 * reached max_age_ns.
 *
 * A probe has an answer from a full server: calls of this service are outside of max_server_calls,
 * those of Check and List outside of max_bytes_in_flight too, and all run on their connection's
 * loop whatever handlers_on says. Interceptors see them like any other. Who watches is bounded by
 * max_calls of each connection and by max_bytes_in_flight, and is told the latest state only: while
 * it does not read, one message waits for it.
 *
 *     rc = bow_health_set(server, "shop.Orders", BOW_HEALTH_NOT_SERVING);   // its database is gone
 */

#include <bowline/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_server;

/** States, as grpc.health.v1 numbers them. */
enum bow_health_state {
    BOW_HEALTH_UNKNOWN = 0,
    BOW_HEALTH_SERVING = 1,
    BOW_HEALTH_NOT_SERVING = 2,
};

/**
 * Say what state `service` is in: "pkg.Service", any other name that clients agree on with you, or
 * "" for the whole server, which says nothing of its services. Who asks after this has returned is
 * told so; who watches, soon. Before the start it holds from then on.
 *
 * Thread:  any; also while the server drains, then without effect
 * Owns:    copies `service`
 * Returns: 0; -EINVAL (no name, or no state); -ENOTSUP with options.no_health; -ENOMEM; -ECHILD
 *          (see bow_server_start())
 */
BOW_EXPORT BOW_MUST_USE int bow_health_set(struct bow_server *server, const char *service,
                                           enum bow_health_state state);

/**
 * Forget the state of `service`: who asks is told NOT_FOUND, who watches SERVICE_UNKNOWN, until it
 * is set again. Its name is kept as long as the server: names are for services, not for each of
 * what passes through them.
 *
 * Thread:  any
 * Owns:    borrows `service`
 * Returns: 0; -ENOENT when it was not known; -EINVAL for no name, or ""; -ENOTSUP; -ECHILD
 */
BOW_EXPORT int bow_health_unset(struct bow_server *server, const char *service);

#ifdef __cplusplus
}
#endif
#endif
