/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The allocator for tests, with cmocka's assertions; see the header. */

#include "tests/support/alloc.h"

#include "base/slot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct bow_context *test_context_new(struct test_alloc *alloc)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    options.allocator = &alloc->allocator;
    assert_int_equal(bow_context_new(&options, &context), 0);
    return context;
}

void test_context_end(struct bow_context *context, struct test_alloc *alloc)
{
    assert_int_equal(bow_context_bytes(context), 0);
    /* the context itself, and what it keeps for upper layers */
    assert_in_range(atomic_load(&alloc->n_blocks), 1, 1 + BOW__N_SLOTS);
    assert_null(bow_context_unref(context));
    assert_int_equal(atomic_load(&alloc->n_blocks), 0);
    assert_int_equal(atomic_load(&alloc->n_bytes), 0);
}

/* Returns false when the run met no failure. */
static bool run_failing(struct test_alloc *alloc, const struct bow_context_options *given,
                        int (*scenario)(struct bow_context *context, void *user), void *user)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    if (given != NULL) {
        options = *given;
    }
    options.allocator = &alloc->allocator;
    int rc = bow_context_new(&options, &context);
    if (rc == 0) {
        rc = scenario(context, user);
        test_context_end(context, alloc);
    }
    bool failed = atomic_load(&alloc->n_failed) > 0;
    if (rc != 0 && !(failed && rc == -ENOMEM)) {
        fail_msg("allocation %zu failing: the scenario returned %d", alloc->fail_at, rc);
    }
    return failed;
}

size_t test_alloc_fail_each(const struct bow_context_options *options,
                            int (*scenario)(struct bow_context *context, void *user), void *user)
{
    struct test_alloc alloc;

    for (size_t at = 1;; at++) {
        test_alloc_init(&alloc);
        alloc.fail_at = at;
        if (!run_failing(&alloc, options, scenario, user)) {
            return atomic_load(&alloc.n_calls);
        }
        test_alloc_init(&alloc);
        alloc.fail_at = at;
        alloc.fail_after = true;
        (void)run_failing(&alloc, options, scenario, user);
    }
}
