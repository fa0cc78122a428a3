/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_BOUND_H
#define BOWLINE_TESTS_RPC_BOUND_H

/*
 * Each kind of loop that a server may be given, and calls while the test drives one.
 *
 *     struct bound bound = {.t = t};
 *     bound_begin(&bound, GROUP);
 *     struct bow_server *server = bound_make_server(&bound);
 *     ...
 *     bow_server_free(server);
 *     bound_end(&bound);
 */

#include "call_fixture.h"

#include <bowline/group.h>

#define BOUND_N_WORKERS 2
#define BOUND_TURN_NS (10 * MS)

enum binding { OWN, LOOP, OWNER, GROUP, WORKERS, N_BINDINGS };

struct bound {
    struct calls *t;
    enum binding binding;
    uint32_t max_calls;    /* of its servers; 0: as by default */
    struct bow_loop *loop; /* the server's, of LOOP and OWNER */
    struct bow_group *group;
};

struct bow_loop *bound_new_loop(struct calls *t, enum bow_loop_thread thread);

void bound_begin(struct bound *bound, enum binding binding);
void bound_end(struct bound *bound);

/** One that listens nowhere so far. */
struct bow_server *bound_make_server(struct bound *bound);
/** Listen on one more address. */
void bound_listen(struct bow_server *server, const char *address, bool per_worker);
/** The loop that the test has to drive, or NULL. */
struct bow_loop *bound_driven(const struct bound *bound);
/** Until the counter, of the calls, is at least `n`; what has to be driven is, meanwhile. */
void bound_wait(const struct bound *bound, const int *counter, int n);
/** A call that ends well; `driven` (may be NULL) is driven meanwhile. */
void bound_expect_say(struct calls *t, struct bow_client *client, struct bow_loop *driven);
/** Stop the server, and wait for that. */
void bound_stop_server(struct bound *bound, struct bow_server *server);

#endif
