/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_LOOPS_H
#define BOWLINE_TESTS_SUPPORT_LOOPS_H

/*
 * What tests of loops have in common: a context over the counting allocator and
 * the fake system, a log that is remembered, and at the end the assertion that no
 * byte, no thread and no descriptor is left.
 *
 *     struct loops t;
 *     loops_begin(&t);
 *     struct bow_loop *loop = loops_new_owner(&t);     driven by the test
 *     ...
 *     bow_loop_unref(loop);
 *     loops_end(&t);
 */

#include "tests/support/alloc.h"
#include "tests/support/fake_system.h"

#include <bowline/loop.h>

#define LOOPS_LOG_BYTES 4096

struct loops {
    struct test_alloc alloc;
    struct fake_system fake;
    struct bow_context *context;
    int n_fds;                 /* open before the test */
    int n_threads;             /* there before the test */
    char log[LOOPS_LOG_BYTES]; /* lines, each with a line feed; one thread at a time */
    size_t log_len;
};

void loops_begin(struct loops *t);
/** The same with the real clock and the real waiting. */
void loops_begin_real(struct loops *t);
/** The same with a table of the test's own, which must outlive the test. */
void loops_begin_with(struct loops *t, const struct bow_system *system);
void loops_end(struct loops *t);

/** A loop that the test drives. */
struct bow_loop *loops_new_owner(struct loops *t);
/** A loop with a thread of its own. */
struct bow_loop *loops_new_threaded(struct loops *t);
/** One with options; fails the test when there is none. */
struct bow_loop *loops_new(struct loops *t, const struct bow_loop_options *options);

/** Shut down at once, wait for the end, drop the reference. */
void loops_stop(struct bow_loop *loop);

/** A task that adds 1 to the atomic_int it is given. */
int loops_count_run(void *user);

/** Wait until there are no more threads than before the test: one that nobody joins ends some time
 * after its last sign of life. */
void loops_await_threads(const struct loops *t);

/** Open descriptors of this process. */
int loops_count_fds(void);

#endif
