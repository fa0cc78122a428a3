/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Time in a test: it stands still until the test moves it, or until somebody waits while
 * nobody else has anything to do. A blocking call waits in its client's loop; the
 * test's loop is run from inside that wait.
 */

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TURNS 100000

/* What a turn has done shows in these. */
static uint64_t activity(const struct bow_loop *loop)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    (void)bow_loop_get_stats(loop, &stats);
    return stats.events + stats.tasks_run + stats.timers_fired;
}

/* Returns whether anything was done, or a negative errno. */
static int settle(struct bow_test *test)
{
    const uint64_t first = activity(test->loop);

    for (int i = 0; i < MAX_TURNS; i++) {
        uint64_t before = activity(test->loop);
        int rc = bow_loop_run_once(test->loop, 0);
        if (rc < 0) {
            return rc;
        }
        if (activity(test->loop) == before && bow_loop_next_timeout(test->loop) > 0) {
            return before != first;
        }
    }
    return -ELOOP;
}

static uint64_t now(const struct bow_test *test)
{
    return atomic_load(&test->fake.now_ns);
}

static void move_to(struct bow_test *test, uint64_t at_ns)
{
    if (at_ns > now(test)) {
        bow__fake_system_advance(&test->fake, at_ns - now(test));
    }
}

static uint64_t next_timer(struct bow_test *test)
{
    return bow__time_add(now(test), bow_loop_next_timeout(test->loop));
}

/* Waiting without a time-out for what can't come is a mistake in the test; a hang would not say so.
 */
static void give_up(const char *why)
{
    fprintf(stderr, "bowline test: somebody waits, and %s\n", why);
    abort();
}

/* Another loop waits until then. */
static int on_idle(struct fake_system *fake, uint64_t until_ns, void *user)
{
    struct bow_test *test = user;
    uint64_t next = until_ns;
    (void)fake;

    int rc = settle(test);
    if (rc > 0) {
        /* One thread runs both loops, so what was given to the waiting one lies there without a
         * wake-up: have it look, as after a signal. */
        return -EINTR;
    }
    if (rc == 0) {
        next = bow__time_min(next, next_timer(test));
    } else if (rc != -EBUSY) {
        give_up(rc == -ELOOP ? "the test's loop does not come to rest"
                             : "the test's loop cannot be run");
    } /* else we are inside a callback of the test's loop, which has to wait as well */
    if (next == BOW_NEVER) {
        give_up("without a time-out, and nothing will happen any more");
    }
    move_to(test, next);
    return 0;
}

void bow__test_clock_init(struct bow_test *test)
{
    bow__fake_system_init(&test->fake);
    test->fake.on_idle = on_idle;
    test->fake.user = test;
}

uint64_t bow_test_now(const struct bow_test *test)
{
    return now(test);
}

int bow_test_run(struct bow_test *test)
{
    int rc = settle(test);
    return rc < 0 ? rc : 0;
}

int bow__test_step(struct bow_test *test, uint64_t until_ns)
{
    int rc = settle(test);
    if (rc < 0) {
        return rc;
    }
    uint64_t next = next_timer(test);
    if (next > until_ns || next == BOW_NEVER) {
        return 1;
    }
    move_to(test, next);
    return bow_test_run(test);
}

int bow_test_advance(struct bow_test *test, uint64_t by_ns)
{
    const uint64_t target = bow__time_add(now(test), by_ns);
    int rc = 0;

    while (rc == 0) {
        rc = bow__test_step(test, target);
    }
    if (rc < 0) {
        return rc;
    }
    if (target != BOW_NEVER) {
        move_to(test, target);
    }
    return bow_test_run(test);
}
