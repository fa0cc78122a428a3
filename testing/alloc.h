/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTING_ALLOC_H
#define BOWLINE_TESTING_ALLOC_H

/*
 * An allocator for tests: counts the blocks that are out, fails the n-th
 * allocation, fills fresh memory with junk, and aborts when a block is freed or
 * resized with another size than it was asked for with, or twice. On request it knows
 * where each block was asked for. Any thread. Knows nothing of a test's framework.
 */

#include "base/list.h"

#include <bowline/context.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct test_alloc {
    struct bow_allocator allocator; /* for bow_context_options.allocator */
    atomic_size_t n_calls;          /* alloc() and resize(), failed ones included */
    atomic_size_t n_blocks;         /* out now */
    atomic_size_t n_bytes;          /* out now, as asked for */
    atomic_size_t n_failed;         /* refused so far */
    atomic_size_t fail_at;          /* which call fails, from 1; 0: none */
    atomic_bool fail_after;         /* all calls after it fail too */
    bool traces;           /* set before the first block: remember them and their callers */
    pthread_mutex_t mutex; /* guards the list */
    struct bow__link blocks;
};

void bow__test_alloc_init(struct test_alloc *alloc);

/** With `traces`: print the blocks that are out, oldest first, at most `max`, each with its size
 * and who asked for it. */
void bow__test_alloc_print(struct test_alloc *alloc, FILE *out, size_t max);

#endif
