/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_PEER_H
#define BOWLINE_TOOLS_BOWLINE_PEER_H

/*
 * The server that the command line names, and a client of it: its context, a loop on a thread of
 * its own, TLS, the bearer token.
 */

#include "options.h"
#include "tls.h"
#include <bowline/bearer.h>
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/group.h>
#include <bowline/interceptor.h>

struct peer {
    const struct options *options;
    const char *target;
    struct bow_context *context;
    struct bow_group *group; /* one loop, so that one thread may send while another receives */
    struct tool_tls *tls;    /* NULL: plaintext */
    struct bow_bearer *bearer;
    struct bow_client *client;
};

/** Make all of it; nothing is connected yet. Returns EXIT_OK, or what to exit with: it has said
 * why. In each case peer_close() follows. */
int peer_open(struct peer *peer, const struct options *options, const char *target);

/** One more client of the same server, on `loop` (NULL: on the peer's): with connections of its
 * own. */
int peer_client(struct peer *peer, struct bow_loop *loop, struct bow_client **ret_client);

void peer_close(struct peer *peer);

/** Whether the target is gRPC's. */
bool peer_is_grpc(const struct peer *peer);

/** Say how a call failed: the status's code, its text, and what may help. Returns the exit code. */
int peer_failed(const struct peer *peer, const struct bow_status *status);

#endif
