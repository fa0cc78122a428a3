/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is accepted in the very last moments of a loop, after its last turn (F24, L07). */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct late {
    struct bow_loop_hook hook;
    struct bow_loop *loop;
    struct bow_task task;
    struct bow__deferred flush;
    struct bow__deferred free;
    int n_run;
    int n_flushed;
    int n_freed;
    int post_rc;
    int hook_rc;
};

static void on_flush(struct bow__deferred *deferred)
{
    BOW__CONTAINER(deferred, struct late, flush)->n_flushed++;
}

static void on_free(struct bow__deferred *deferred)
{
    BOW__CONTAINER(deferred, struct late, free)->n_freed++;
}

static int run_late(void *user)
{
    struct late *late = user;

    late->n_run++;
    late->hook_rc = bow_loop_add_hook(late->loop, &late->hook); /* it would never run */
    bow__loop_defer_flush(late->loop, &late->flush);
    bow__loop_defer_free(late->loop, &late->free);
    return 0;
}

static void *post_late(void *argument)
{
    struct late *late = argument;

    late->post_rc = bow_loop_post(late->loop, &late->task);
    return NULL;
}

/* Hooks run when the loop takes in nothing more by itself, and still accepts. */
static void on_hook(struct bow_loop_hook *hook)
{
    pthread_t thread;

    assert_int_equal(
        pthread_create(&thread, NULL, post_late, BOW__CONTAINER(hook, struct late, hook)), 0);
    pthread_join(thread, NULL);
}

static void test_loop_l07_f24_task_accepted_after_the_last_turn_runs(void **state)
{
    struct loops t;
    struct late late = {.hook.fn = on_hook, .flush.fn = on_flush, .free.fn = on_free};

    (void)state;
    loops_begin(&t);
    late.loop = loops_new_owner(&t);
    bow__list_init(&late.flush.link);
    bow__list_init(&late.free.link);
    bow_task_init(&late.task, "late", run_late, &late);
    assert_int_equal(bow_loop_add_hook(late.loop, &late.hook), 0);
    bow_loop_shutdown(late.loop, 0, 0);
    assert_int_equal(bow_loop_run(late.loop), 0);
    assert_int_equal(late.post_rc, 0);
    assert_int_equal(late.n_run, 1);
    assert_int_equal(late.hook_rc, -ESHUTDOWN);
    assert_int_equal(late.n_flushed, 1);
    assert_int_equal(late.n_freed, 1);
    bow_loop_unref(late.loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l07_f24_task_accepted_after_the_last_turn_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
