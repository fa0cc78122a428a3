/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_PEERS_FLOODER_KINDS_H
#define BOWLINE_TESTS_PEERS_FLOODER_KINDS_H

/*
 * What the flooder can do beside the floods of tests/e2e: what is put up with, waits, or ends a
 * connection, but costs a server more than it costs who sends it.
 */

#include "tests/e2e/floods.h"

enum flooder_way {
    FLOODER_RAW = 1,     /* what opens a connection is up to the units */
    FLOODER_HARD = 2,    /* it ends with a RST, and not with a FIN */
    FLOODER_UNREAD = 4,  /* what the victim says stays in the socket, and the connection open */
    FLOODER_DRIPPED = 8, /* a byte at a time, each a segment */
};

struct flooder_kind {
    struct flood flood;
    unsigned ways;
    unsigned n_at_once; /* connections, each of which stays with its unit; 0: one after the other */
};

extern const struct flooder_kind flooder_kinds[];
extern const size_t n_flooder_kinds;

/** Make what the units of `kind` need, if that is a bomb. */
void flooder_kind_prepare(const struct flooder_kind *kind);

#endif
