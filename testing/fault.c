/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a test lets go wrong: its connections, and its memory. */

#include "testing/test.h"

#include <errno.h>
#include <stdio.h>

/* Connections */

static enum bow__inproc_fault kind_of(enum bow_test_fault fault)
{
    return fault == BOW_TEST_STALL ? BOW__INPROC_STALL : BOW__INPROC_RESET;
}

void bow_test_break(struct bow_test *test, enum bow_test_fault fault)
{
    bow__inproc_break(&test->faults, kind_of(fault));
}

void bow_test_break_after_bytes(struct bow_test *test, enum bow_test_fault fault, uint64_t n)
{
    bow__inproc_break_after(&test->faults, kind_of(fault), n, BOW_NEVER);
}

void bow_test_break_after_sends(struct bow_test *test, enum bow_test_fault fault, uint64_t n)
{
    bow__inproc_break_after(&test->faults, kind_of(fault), BOW_NEVER, n);
}

void bow_test_resume(struct bow_test *test)
{
    bow__inproc_resume(&test->faults);
}

void bow_test_refuse(struct bow_test *test, bool refuses)
{
    atomic_store(&test->faults.refuses, refuses);
}

/* Memory */

size_t bow_test_allocations(const struct bow_test *test)
{
    return atomic_load(&test->alloc.n_calls);
}

static void fail_at(struct bow_test *test, size_t n, bool and_after)
{
    atomic_store(&test->alloc.fail_after, and_after);
    atomic_store(&test->alloc.fail_at, n != 0 ? bow_test_allocations(test) + n : 0);
}

void bow_test_fail_allocation(struct bow_test *test, size_t n)
{
    fail_at(test, n, false);
}

void bow_test_fail_allocations(struct bow_test *test, size_t n)
{
    fail_at(test, n, true);
}

size_t bow_test_failed_allocations(const struct bow_test *test)
{
    return atomic_load(&test->alloc.n_failed);
}

struct run {
    size_t n_allocations;
    size_t n_failed;
};

static int run_with(bow_test_scenario_fn scenario, void *user, size_t at, bool and_after,
                    struct run *ret_run)
{
    struct bow_test *test = NULL;

    int rc = bow_test_new(NULL, &test);
    if (rc < 0) {
        return rc;
    }
    size_t before = bow_test_allocations(test);
    fail_at(test, at, and_after);
    rc = scenario(test, user);
    ret_run->n_failed = bow_test_failed_allocations(test);
    ret_run->n_allocations = bow_test_allocations(test) - before;
    fail_at(test, 0, false); /* ending is not what is tried */
    int n_findings = bow_test_end(test);
    if (rc < 0 || n_findings > 0) {
        fprintf(stderr,
                "bowline test: with allocation %zu failing%s: the scenario returned %d, %d "
                "findings\n",
                at, and_after ? ", and all after it" : "", rc, n_findings);
        return -EUCLEAN;
    }
    return 0;
}

int bow_test_fail_each(bow_test_scenario_fn scenario, void *user)
{
    for (size_t at = 1;; at++) {
        struct run run = {0};
        int rc = run_with(scenario, user, at, false, &run);
        if (rc < 0) {
            return rc;
        }
        if (run.n_failed == 0) {
            return (int)run.n_allocations;
        }
        rc = run_with(scenario, user, at, true, &run);
        if (rc < 0) {
            return rc;
        }
    }
}
