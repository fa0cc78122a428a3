/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_BOTH_ENDS_H
#define BOWLINE_TESTS_RPC_BOTH_ENDS_H

/*
 * A server and its client on one loop that the test drives, so that a test of memory knows every
 * allocation there is, and none depends on a race.
 */

#include "call_fixture.h"

struct both_ends {
    struct bow_loop *loop;
    struct bow_server *server;
    struct bow_client *client;
};

/** 0, or what failed; close it either way. `handlers` gets `user`. */
int both_ends_open(struct both_ends *ends, struct bow_context *context,
                   const struct calls__echo__handlers *handlers, void *user);
/** Ends all of it in turns of the loop, whatever there is. */
void both_ends_close(struct both_ends *ends);

#endif
