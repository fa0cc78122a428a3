/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_MATRIX_RELAY_H
#define BOWLINE_TESTS_E2E_MATRIX_RELAY_H

/*
 * What stands between client and server in the matrix test: it passes bytes on, counts the
 * frames in them (of the protocol, or TLS records), and cuts the connection after the
 * one that it is told. Driven by the test's thread; never blocks.
 *
 *     client ──► fds[0]  flows[RELAY_UP]  ──►  fds[1] ──► server
 *            ◄──         flows[RELAY_DOWN] ◄──
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum relay_framing {
    RELAY_NATIVE = 0,
    RELAY_HTTP2 = 1,
    RELAY_TLS = 2,
};

enum relay_direction {
    RELAY_UP = 0,   /* to the server */
    RELAY_DOWN = 1, /* to the client */
};

/** Where a connection is cut: after `n_frames` of one direction, or after half of the next. */
struct relay_cut {
    enum relay_direction direction;
    unsigned n_frames;
    bool is_half;
    bool is_reset; /* both ends get a reset (TCP), not an end */
};

struct relay_flow {
    enum relay_framing framing;
    enum relay_direction direction;
    uint8_t bytes[64 << 10];
    size_t begin; /* read and not yet passed on: [begin, end) */
    size_t end;
    size_t frame_left; /* of the frame being passed on; 0: between two */
    bool has_begun;    /* the preface is behind us */
    bool is_over;      /* the sender's end has been passed on */
    unsigned n_frames; /* passed on whole, since relay_arm() */
    uint64_t n_bytes;
};

struct relay_link {
    int fds[2]; /* -1: none */
    struct relay_flow flows[2];
};

#define RELAY_MAX_LINKS 4

struct relay {
    bool is_unix;
    enum relay_framing framing;
    char address[64]; /* where clients connect */
    char server[64];
    int listening;
    struct relay_link links[RELAY_MAX_LINKS];
    int n_links;
    bool is_armed;
    bool has_cut;
    struct relay_cut cut;
};

/** Listen; `server` is what bow_server was told to listen on, with its port. */
void relay_start(struct relay *relay, bool is_unix, enum relay_framing framing, const char *server);
void relay_stop(struct relay *relay);

/** Count frames from here on, and cut there, once. Until then all is passed on. */
void relay_arm(struct relay *relay, const struct relay_cut *cut);

/** Pass on what has come. Returns whether anything happened. */
bool relay_pump(struct relay *relay);

/** Of all links. */
uint64_t relay_bytes(const struct relay *relay, enum relay_direction direction);
/** Of the first link, since relay_arm(). */
unsigned relay_frames(const struct relay *relay, enum relay_direction direction);

#endif
