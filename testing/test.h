/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTING_TEST_H
#define BOWLINE_TESTING_TEST_H

/*
 * A test from inside, for the files that make it up:
 *
 *     finding.c  what is wrong
 *     clock.c    time, and who runs while somebody waits
 *     pair.c     a server and its clients
 *     fault.c    what goes wrong: connections, memory
 *     test.c     its life, and what is left at the end
 *
 * One thread. Its own memory is not the context's, which is what is looked at.
 */

#include "base/list.h"
#include "testing/alloc.h"
#include "testing/fake_system.h"
#include "transport/memory/inproc.h"

#include <bowline/testing.h>

struct bow_test {
    struct test_alloc alloc;
    struct fake_system fake;
    struct bow__inproc_faults faults;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow__link pairs;
    unsigned n_names;
    int n_findings;
};

/* finding.c */

/** Print a finding and count it. */
void bow__test_find(struct bow_test *test, const char *format, ...) BOW_PRINTF(2, 3);

/* clock.c */

void bow__test_clock_init(struct bow_test *test);
/** Move the clock to the next timer, but not beyond `until_ns`, and run what is due. Returns as
 * bow_test_run(), or 1 when nothing comes by then. */
int bow__test_step(struct bow_test *test, uint64_t until_ns);

/* pair.c */

void bow__test_free_pairs(struct bow_test *test);

#endif
