/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_TRANSPORT_CONFORMANCE_H
#define BOWLINE_TESTS_TRANSPORT_CONFORMANCE_H

/*
 * What every kind of channel does alike, written once. A kind brings a fixture: how such a
 * channel is made, and how its peer is played. The scenarios talk to nothing else.
 *
 *     static const struct conformance_fixture tls = { .name = "tls", .begin = ..., };
 *
 *     int main(void)
 *     {
 *         const struct conformance_fixture *const fixtures[] = {&tls};
 *         return conformance_run(fixtures, 1);
 *     }
 */

#include "tests/support/net.h"

#define CONFORMANCE_MAX_PROBES 3

struct conformance;

/** How one kind of channel is made and its peer played. All run on the test's thread, outside of
 * callbacks. */
struct conformance_fixture {
    const char *name; /* the end of the tests' names: "tcp" */

    /** Set up c->loop and a channel whose last handlers were put in by conformance_add_probes(); on
     * return they have seen on_active. A peer that does not read is to stop the channel's output
     * before 1 MiB. */
    void (*begin)(struct conformance *c);
    /** Tear all down, whatever state it is in, and assert that nothing is left. */
    void (*end)(struct conformance *c);
    /** Let what is ready happen; may wait shortly for something that is on its way. */
    void (*turn)(struct conformance *c);

    /* The peer */
    /** Send all of it, turning meanwhile if need be. 64 KiB fit while the channel does not read. */
    void (*send)(struct conformance *c, const void *bytes, size_t len);
    /** Take at most `max` bytes that have arrived; 0: there are none now. */
    size_t (*receive)(struct conformance *c, void *bytes, size_t max);
    /** receive() has found the end of the channel's side. */
    bool (*has_ended)(struct conformance *c);
    /** End the peer's side in order, behind what it sent; it goes on reading. */
    void (*shut)(struct conformance *c);
    /** Break the connection. */
    void (*reset)(struct conformance *c);
};

struct conformance {
    const struct conformance_fixture *fixture;
    struct loops t;              /* the fixture's, if it has use for it */
    struct bow_channel *channel; /* a reference, by conformance_add_probes() */
    struct bow_loop *loop;
    struct probe probes[CONFORMANCE_MAX_PROBES];
    int n_probes;
    void *state; /* the fixture's */
};

/** For the fixture's on_channel, `user` is the struct conformance: behind its own handlers. */
int conformance_add_probes(struct bow_channel *channel, void *user);

/** All scenarios with all fixtures. Returns main()'s result. */
int conformance_run(const struct conformance_fixture *const *fixtures, size_t n);

#endif
