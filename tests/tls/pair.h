/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_TLS_PAIR_H
#define BOWLINE_TESTS_TLS_PAIR_H

/*
 * A client and a server without sockets; the test is the wire between them. Each has
 * TLS and a probe behind it.
 *
 *     struct pair pair;
 *     pair_begin(&pair);                  options that work
 *     pair.client.tls_options.server_name = "elsewhere.test";
 *     pair_open(&pair);
 *     pair_run(&pair);                    until nothing moves
 *     assert_string_equal(pair.client.failure, "…");
 *     pair_end(&pair);                    asserts that nothing is left, here and in OpenSSL's queue
 */

#include "tests/support/net.h"
#include "tests/tls/certs.h"

#include <bowline/embedded.h>
#include <bowline/tls.h>

struct pair_side {
    struct pair *pair;
    struct bow_tls_context_options options;
    struct bow_tls_options tls_options;
    struct bow_tls_context *context; /* kept over several connections */
    struct bow_embedded_options embedded_options;
    struct bow_embedded *embedded;
    struct probe probe;
    char failure[512]; /* at the first on_error */
    bool ends_told;    /* the other side knows of our end */
    size_t n_sent;     /* bytes carried away */
    /** Instead of TLS and the probe. */
    int (*on_channel)(struct bow_channel *channel, struct pair_side *side);
};

struct pair {
    struct loops t;
    struct pair_side client;
    struct pair_side server;
    size_t piece_bytes; /* carried at once; 0: all there is */
    size_t cut_after;   /* the wire breaks after that many bytes of the client; 0: it does not */
};

/** For cmocka's group: the certificates of all tests. */
int pair_setup(void **state);
int pair_teardown(void **state);
/** A path in the certificates' folder; lives as long as the group. */
const char *pair_file(void **state, const char *name);

void pair_begin(struct pair *pair, void **state);
void pair_open(struct pair *pair);
/** Carry what there is each way; false when there was nothing. */
bool pair_carry(struct pair *pair);
void pair_run(struct pair *pair);
/** Close and free both ends; contexts stay for another pair_open(). */
void pair_close(struct pair *pair);
void pair_end(struct pair *pair);

struct bow_tls *pair_tls(struct pair_side *side);
struct bow_channel *pair_channel(struct pair_side *side);
void pair_write(struct pair_side *side, const void *bytes, size_t len);
/** Open, run and assert that both ends are open. */
void pair_open_well(struct pair *pair);
/** Assert that the probe got exactly `text`, and forget it. */
void pair_assert_got(struct pair_side *side, const char *text);

#endif
