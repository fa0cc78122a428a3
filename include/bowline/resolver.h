/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RESOLVER_H
#define BOWLINE_RESOLVER_H

/*
 * Names whose addresses change while calls run: a resolver is a table that says which servers a
 * name has, now and each time that it changes. A client whose target is "SCHEME:///NAME", or
 * "SCHEME:NAME", asks the table of that scheme.
 *
 *     first call on a loop ──► start(NAME, watch) ──► bow_resolver_update(watch, …)
 *                                                     at any time, as often as needed
 *     a server failed, or said GOAWAY ──► refresh()
 *     the client is freed, or its loop shuts down ──► stop(): no update after it
 *
 * There is one watch for each of a client's loops that is in use. Each update is the whole set, in
 * any order; a server that is in it twice counts once. What was there before keeps its connection,
 * what is new takes its part of the calls as soon as its server has answered, and what is gone
 * takes no new calls: those on it may go on for BOW_LIMIT_RESOLVED_DRAIN_NS. At most
 * BOW_LIMIT_RESOLVED_ADDRESSES are used; of more the first in the order of their bytes are, and the
 * log says so.
 *
 * The last good set stays in use when an update says an error, is empty, or has an address that
 * cannot be used: for whatever reason names are unknown, their servers may well be there. The
 * log and the text of a call that fails then say why. While there never was one, calls wait
 * for it until their deadline; an error ends those that do not wait for ready, with UNAVAILABLE.
 *
 *     static int start(const struct bow_resolver *resolver, struct bow_loop *loop,
 *                      const char *name, struct bow_resolver_watch *watch, void **ret_state);
 *     static void stop(void *state);
 *
 *     static const struct bow_resolver directory = {
 *         .size = sizeof(directory), .scheme = "directory", .start = start, .stop = stop};
 *     static const struct bow_resolver *const resolvers[] = {&directory};
 *
 *     options.resolvers = resolvers;
 *     options.n_resolvers = 1;
 *     options.target = "directory:///orders";
 */

#include <bowline/visibility.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_loop;
struct bow_resolver_watch;

/** Bytes of a resolver's scheme at most, with a NUL. */
#define BOW_RESOLVER_SCHEME_BYTES ((size_t)32)

/** One server, as a resolver knows it. Two that differ in their weight alone are the same. */
struct bow_resolver_address {
    const char *address;     /* as a client's target: "192.0.2.1:50051", "unix:/run/x"; no list, and
                                nothing that is resolved by a table */
    const char *server_name; /* whom it must prove to be, with security; NULL: the client's
                                server_name, else the host that the target's NAME begins with */
    const char *locality;    /* where it is, "zone-a"; NULL: not said */
    uint32_t weight;         /* what it can take, beside the others; 0: 1. Calls go round evenly:
                                neither this nor the locality counts for them yet */
};

/** All that a resolver knows of a name; begin with BOW_RESOLVER_UPDATE_INIT. */
struct bow_resolver_update {
    size_t size;                                  /* sizeof this struct, set by the INIT */
    const struct bow_resolver_address *addresses; /* the whole set; borrowed for the call */
    size_t n_addresses;
    const char *error;          /* NULL; or why none are known now: a sentence without a period. The
                                   addresses are not looked at */
    const char *service_config; /* gRPC's service config, JSON; NULL: nothing was said */
};

#define BOW_RESOLVER_UPDATE_INIT BOW__INIT(struct bow_resolver_update, )

/**
 * Say what the name of `watch` has now. It is copied, and taken in the loop's next turn, or the
 * newest of several: so this may be called inside any callback. Without memory for that the update
 * is lost, and told to the log as an error would be.
 *
 * Thread:  the watch's loop; between the return of start() and stop()
 */
BOW_EXPORT void bow_resolver_update(struct bow_resolver_watch *watch,
                                    const struct bow_resolver_update *update);

/** What a program fills in for a scheme of its own. Its functions run on the client's loop, and
 * never from inside a function of the client, so they may use the client. */
struct bow_resolver {
    size_t size;        /* sizeof this struct */
    const char *scheme; /* lower-case letters, digits, "+", "-", "."; shorter than
                           BOW_RESOLVER_SCHEME_BYTES. "dns" and "file" replace the library's; those
                           of addresses ("unix", "ipv4", "list", …) cannot be had */
    /**
     * Begin to say what `name` has: the target behind "SCHEME:" or "SCHEME:///", lives until
     * stop(). Calls bow_resolver_update() later, not from inside.
     *
     * Returns: 0, with `*ret_state`; or a negative errno, which counts as an error that was told:
     *          it is called again, in pauses as after failed connections, until it returns 0
     */
    int (*start)(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state);
    /** A hint that what is known may be old: a connection failed, its server said GOAWAY, or a call
     * wants to know again after an error; then an update has to follow, be it the same error. At
     * most once in BOW_LIMIT_RESOLVER_REFRESH_NS. NULL: it tells by itself what there is to tell,
     * and calls fail while it told an error. */
    void (*refresh)(void *state);
    /** The watch has ended: no update after it. Frees `state`. */
    void (*stop)(void *state);
    void *user; /* the program's */
};

#ifdef __cplusplus
}
#endif
#endif
