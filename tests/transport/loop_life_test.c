/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The life of a loop: states, threads, shutdown, references (L01–L08). */

#include "tests/support/loops.h"
#include "transport/loop.h"

#include <bowline/timer.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static int count(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
    return 0;
}

static void end_loop(struct bow_loop *loop)
{
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    bow_loop_unref(loop);
}

/* L01 */

struct seen_states {
    struct bow_loop *loop;
    enum bow_loop_state in_task;
    enum bow_loop_state in_hook;
    enum bow_loop_state in_last_task;
    struct bow_loop_hook hook;
    struct bow_task last;
};

static int see_in_task(void *user)
{
    struct seen_states *seen = user;

    seen->in_task = bow_loop_get_state(seen->loop);
    return 0;
}

static int see_in_last_task(void *user)
{
    struct seen_states *seen = user;

    seen->in_last_task = bow_loop_get_state(seen->loop);
    return 0;
}

static void see_in_hook(struct bow_loop_hook *hook)
{
    struct seen_states *seen = BOW__CONTAINER(hook, struct seen_states, hook);

    seen->in_hook = bow_loop_get_state(seen->loop);
    bow_task_init(&seen->last, "last", see_in_last_task, seen);
    assert_int_equal(bow_loop_post(seen->loop, &seen->last), 0);
}

static void test_loop_l01_life_passes_through_all_states_in_order(void **state)
{
    struct loops t;
    struct bow_task task;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct seen_states seen = {.loop = loop, .hook.fn = see_in_hook};
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);
    assert_int_equal(bow_loop_add_hook(loop, &seen.hook), 0);
    bow_task_init(&task, "see", see_in_task, &seen);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(seen.in_task, BOW_LOOP_STARTED);

    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_SHUTTING_DOWN);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(seen.in_hook, BOW_LOOP_SHUTTING_DOWN);
    assert_int_equal(seen.in_last_task, BOW_LOOP_SHUTDOWN);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);

    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L02 */

static void test_loop_l02_first_task_starts_the_thread(void **state)
{
    struct loops t;
    atomic_int n = 0;
    struct bow_task task;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(atomic_load(&t.fake.n_threads), 0);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);
    bow_task_init(&task, "count", count, &n);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    end_loop(loop);
    assert_int_equal(n, 1);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l01_life_passes_through_all_states_in_order),
        cmocka_unit_test(test_loop_l02_first_task_starts_the_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
