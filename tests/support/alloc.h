/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_ALLOC_H
#define BOWLINE_TESTS_SUPPORT_ALLOC_H

/*
 * An allocator for tests: counts the blocks that are out, fails the n-th
 * allocation, fills fresh memory with junk, and aborts when a block is freed or
 * resized with another size than it was asked for with, or twice. Any thread.
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

#include <bowline/context.h>
#include <stdatomic.h>

struct test_alloc {
    struct bow_allocator allocator; /* for bow_context_options.allocator */
    atomic_size_t n_calls;          /* alloc() and growing resize(), failed ones included */
    atomic_size_t n_blocks;         /* out now */
    atomic_size_t n_bytes;          /* out now, as asked for */
    atomic_size_t n_failed;         /* refused so far */
    atomic_size_t fail_at;          /* which call fails, from 1; 0: none */
    atomic_bool fail_after;         /* all calls after it fail too */
};

void test_alloc_init(struct test_alloc *alloc);

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
