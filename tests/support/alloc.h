/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_ALLOC_H
#define BOWLINE_TESTS_SUPPORT_ALLOC_H

/*
 * The allocator of libbowline-testing (testing/alloc.h) in our own tests.
 *
 *     struct test_alloc alloc;
 *     test_alloc_init(&alloc);
 *     struct bow_context *context = test_context_new(&alloc);
 *     alloc.fail_at = alloc.n_calls + 1;       the next allocation fails
 *     ...
 *     test_context_end(context, &alloc);       nothing may be left
 *
 * A scenario under each failure in turn:
 *
 *     static int scenario(struct bow_context *context, void *user) { ...; return rc; }
 *     test_alloc_fail_each(NULL, scenario, NULL);
 */

#include "testing/alloc.h"

static inline void test_alloc_init(struct test_alloc *alloc)
{
    bow__test_alloc_init(alloc);
}

/** A context over `alloc`, all else default; fails the test when there is none. */
struct bow_context *test_context_new(struct test_alloc *alloc);

/** Assert that nothing is allocated through `context`, drop it, assert that `alloc` has all back.
 */
void test_context_end(struct bow_context *context, struct test_alloc *alloc);

/**
 * Run `scenario` with the first allocation failing, then the second, and so on,
 * each once alone and once with all that follow, until a run meets no failure;
 * that one must return 0, the others 0 or -ENOMEM. Each run has a new context,
 * made from `options` (NULL: the defaults; its allocator is replaced), and must
 * leave nothing allocated. Returns the number of allocations of the whole run.
 */
size_t test_alloc_fail_each(const struct bow_context_options *options,
                            int (*scenario)(struct bow_context *context, void *user), void *user);

#endif
