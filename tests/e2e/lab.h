/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_LAB_H
#define BOWLINE_TESTS_E2E_LAB_H

/*
 * A server of the Lab service on a thread of its own, for tests that look at whole programs from
 * outside: through the public headers and generated stubs only.
 */

#include "lab.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <stdatomic.h>

#define LAB_MS UINT64_C(1000000)

struct lab {
    struct bow_context *context;
    struct bow_server *server;
    uint16_t port;
    char target[64]; /* "127.0.0.1:PORT", with the protocol's prefix */
    atomic_uint n_hung;
    atomic_uint n_cancelled;
    struct bow_call *held[64]; /* hung calls, answered at the end */
    atomic_uint n_held;
};

/** Start on 127.0.0.1 and a free port. `prefix` is "" or "grpc:". Fails the test when it can't. */
void lab_start(struct lab *lab, const char *prefix);
/** The same with options of the test's own (context and address are the lab's) and a ceiling on the
 * context's bytes; 0: none. */
void lab_start_with(struct lab *lab, const char *prefix, const struct bow_server_options *options,
                    size_t max_bytes);

/** Stop, answer what hangs, and check that no byte of the server's context is left. */
void lab_stop(struct lab *lab);

/** Resident bytes of this process. */
size_t lab_rss_bytes(void);

uint64_t lab_now_ns(void);

/** Whether `count` grows to `wanted` within `timeout_ns`. Yields meanwhile. */
bool lab_wait_count(const atomic_uint *count, unsigned wanted, uint64_t timeout_ns);

/** The middle one; sorts `values`. */
uint64_t lab_median(uint64_t *values, size_t n);
/** The value that `percent` % are not above; sorts `values`. */
uint64_t lab_percentile(uint64_t *values, size_t n, unsigned percent);

/** Whether a sanitizer or valgrind-like tool slows this build: counts shrink then, and times mean
 * nothing. */
bool lab_is_instrumented(void);

#endif
