/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_OPERATIONS_H
#define BOWLINE_RPC_SERVER_OPERATIONS_OPERATIONS_H

/*
 * The operations listener of a server: HTTP/1.1 for probes, scrapers and people, on a loop of the
 * server's that serves no calls if there is one. All on that loop but making and starting.
 *
 *     new ──► start ──► (connections) ──► close ──► closed, once ──► free
 *        └──────────────► free
 */

#include "base/text.h"
#include "rpc/server/operations/routes.h"

struct bow__handed;
struct bow__operations;

/** What is known of it before it runs; all is kept. */
struct bow__operations_options {
    struct bow_loop *loop;
    const char *address;
    struct bow__handed *handed; /* borrowed for new(): of another process's sockets; may be NULL */
    bool exposed;               /* may be reached from other hosts */
    struct bow__operations_host host;
};

/** Bind and listen. Returns 0; or a negative errno, with what went wrong in `error`. Thread: any.
 */
int bow__operations_new(struct bow_context *context, const struct bow__operations_options *options,
                        struct bow__operations **ret_operations, struct bow__text *error);
/** Returns 0 or a negative errno: nothing has begun. Thread: any. */
int bow__operations_start(struct bow__operations *operations);
/** What listens for it, NULL once it closes. */
struct bow_acceptor *bow__operations_acceptor(const struct bow__operations *operations);
/** Where it listens, or has, in words. Thread: any. */
const char *bow__operations_addresses(const struct bow__operations *operations);
/** End all of it; `closed` is the last callback, on the loop, or on any thread once that has
 * terminated. Thread: loop, or any once it has terminated. */
void bow__operations_close(struct bow__operations *operations, void (*closed)(void *user),
                           void *user);
/** One that was not started, or has closed. NULL is allowed. */
void bow__operations_free(struct bow__operations *operations);

#endif
