/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tasks: order, bounds, failures, tails (L30, L37–L39). */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <bowline/loop_stats.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* L30 */

static void test_loop_l30_posting_intrusive_tasks_never_allocates(void **state)
{
    struct loops t;
    struct bow_task tasks[200];
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    t.alloc.fail_at = t.alloc.n_calls + 1;
    t.alloc.fail_after = true;
    for (int i = 0; i < 200; i++) {
        bow_task_init(&tasks[i], "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    while (n < 200) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    assert_true(bow_loop_in_loop(loop)); /* from outside so far, now from inside */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    while (n < 300) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    assert_int_equal(t.alloc.n_failed, 0);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), -ENOMEM);
    t.alloc.fail_at = 0;
    bow_loop_unref(loop);
    loops_end(&t);
}

#define N_PRODUCERS 4
#define N_NUMBERED 20000

struct numbered {
    struct bow_task task;
    struct line *line;
    int number;
};

struct line {
    struct bow_loop *loop;
    struct numbered *tasks;
    int next; /* on the loop */
    int n_disordered;
    int n_failed;
    pthread_t thread;
};

static int check_number(void *user)
{
    struct numbered *numbered = user;
    struct line *line = numbered->line;

    line->n_disordered += numbered->number != line->next;
    line->next = numbered->number + 1;
    return 0;
}

static void *post_numbered(void *argument)
{
    struct line *line = argument;

    for (int i = 0; i < N_NUMBERED; i++) {
        struct numbered *numbered = &line->tasks[i];
        *numbered = (struct numbered){.line = line, .number = i};
        bow_task_init(&numbered->task, "numbered", check_number, numbered);
        int rc = i % 5 == 4 ? bow_loop_post_lazy(line->loop, &numbered->task)
                            : bow_loop_post(line->loop, &numbered->task);
        line->n_failed += rc != 0;
    }
    return NULL;
}

static void test_loop_l30_each_producers_tasks_run_in_its_order(void **state)
{
    struct loops t;
    struct line lines[N_PRODUCERS];
    static struct numbered tasks[N_PRODUCERS][N_NUMBERED];

    (void)state;
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    for (int i = 0; i < N_PRODUCERS; i++) {
        lines[i] = (struct line){.loop = loop, .tasks = tasks[i]};
        assert_int_equal(pthread_create(&lines[i].thread, NULL, post_numbered, &lines[i]), 0);
    }
    for (int i = 0; i < N_PRODUCERS; i++) {
        pthread_join(lines[i].thread, NULL);
    }
    loops_stop(loop);
    for (int i = 0; i < N_PRODUCERS; i++) {
        assert_int_equal(lines[i].n_failed, 0);
        assert_int_equal(lines[i].next, N_NUMBERED);
        assert_int_equal(lines[i].n_disordered, 0);
    }
    loops_end(&t);
}

static int never_called(void *user)
{
    (void)user;
    return -EINVAL;
}

struct refused {
    int n;
    bool is_right;
};

static void note_refused(struct bow_loop *loop, const char *name, bow_task_fn fn, void *task_user,
                         void *user)
{
    struct refused *refused = user;

    (void)loop;
    refused->n++;
    refused->is_right = strcmp(name, "refused") == 0 && fn == never_called && task_user == refused;
}

static void test_loop_l30_heap_tasks_are_bounded_and_intrusive_ones_are_not(void **state)
{
    struct loops t;
    struct refused refused = {0};
    struct bow_task tasks[20];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.max_pending_tasks = 10;
    options.rejected = note_refused;
    options.rejected_user = &refused;
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    }
    size_t bytes = bow_context_bytes(t.context);
    assert_int_equal(bow_loop_execute(loop, "refused", never_called, &refused), -EAGAIN);
    assert_int_equal(refused.n, 1);
    assert_true(refused.is_right);
    assert_int_equal(bow_context_bytes(t.context), bytes);
    for (int i = 0; i < 20; i++) {
        bow_task_init(&tasks[i], "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post(loop, &tasks[i]), 0);
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 30);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0); /* room again */
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.tasks_rejected, 1);
    bow_loop_unref(loop);
    loops_end(&t);
}

struct freed {
    struct bow_loop *loop;
    struct bow_task task;
    int n_runs;
};

static int post_same_again(void *user)
{
    struct freed *freed = user;

    if (++freed->n_runs == 3) {
        memset(&freed->task, 0xA5, sizeof(freed->task)); /* free from the start of fn */
        return 0;
    }
    bow_task_init(&freed->task, "again", post_same_again, freed);
    return bow_loop_post(freed->loop, &freed->task);
}

static void test_loop_l30_f20_a_tasks_memory_is_free_when_it_starts(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct freed freed = {.loop = loop};
    bow_task_init(&freed.task, "again", post_same_again, &freed);
    assert_int_equal(bow_loop_post(loop, &freed.task), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(freed.n_runs, 3);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L37 */

struct tail {
    struct bow_loop *loop;
    struct bow_task task;
    atomic_int *n_tasks;
    int n_tasks_seen;
    int n_runs;
};

static int run_tail(void *user)
{
    struct tail *tail = user;

    tail->n_runs++;
    tail->n_tasks_seen = *tail->n_tasks;
    int rc = bow_loop_post_tail(tail->loop, &tail->task);
    return rc == -ESHUTDOWN ? 0 : rc;
}

static void test_loop_l37_tail_tasks_run_after_the_others_once_a_turn(void **state)
{
    struct loops t;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    struct tail tail = {.loop = loop, .n_tasks = &n};
    bow_task_init(&tail.task, "tail", run_tail, &tail);
    assert_int_equal(bow_loop_post_tail(loop, &tail.task), 0);
    for (int turn = 1; turn <= 3; turn++) {
        assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
        assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(tail.n_runs, turn);
        assert_int_equal(tail.n_tasks_seen, 2 * turn);
    }
    assert_true(bow_loop_next_timeout(loop) == BOW_NEVER); /* it keeps nobody awake */
    bow_loop_unref(loop);
    assert_int_equal(tail.n_runs, 5); /* in the last turn, and in the closing of the loop */
    loops_end(&t);
}

static void test_loop_l37_tail_tasks_are_bounded(void **state)
{
    struct loops t;
    struct bow_task tasks[3];
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.thread = BOW_LOOP_OWNER;
    options.max_tail_tasks = 2;
    struct bow_loop *loop = loops_new(&t, &options);
    for (int i = 0; i < 3; i++) {
        bow_task_init(&tasks[i], "count", loops_count_run, &n);
        assert_int_equal(bow_loop_post_tail(loop, &tasks[i]), i < 2 ? 0 : -EAGAIN);
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 2);
    assert_int_equal(bow_loop_post_tail(loop, &tasks[2]), 0);
    bow_loop_unref(loop);
    assert_int_equal(n, 3);
    loops_end(&t);
}

/* L38 */

static int fail_it(void *user)
{
    (void)user;
    return -EPROTO;
}

static void test_loop_l38_a_failing_task_is_logged_by_name_and_hurts_no_other(void **state)
{
    struct loops t;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_execute(loop, "the failing one", fail_it, NULL), 0);
    assert_int_equal(bow_loop_execute(loop, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(n, 1);
    assert_non_null(strstr(t.log, "the failing one"));
    assert_non_null(strstr(t.log, "EPROTO"));
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.tasks_failed, 1);
    assert_int_equal(stats.tasks_run, 2);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L39, the simple numbers */

static void test_loop_l39_stats_say_what_has_happened(void **state)
{
    struct loops t;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    struct bow_loop_stats small = {.size = offsetof(struct bow_loop_stats, polls), .polls = 99};
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(
        bow_loop_schedule(loop, BOW_SCHEDULE_ONCE, FAKE_S, 0, "count", loops_count_run, &n, NULL),
        0);
    assert_int_equal(bow_loop_run_once(loop, FAKE_MS), 0);
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.turns, 2);
    assert_int_equal(stats.polls, 2);
    assert_int_equal(stats.events, 0);
    assert_int_equal(stats.pending_timers, 1);
    assert_int_equal(stats.timers_fired, 0);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
    assert_int_equal(stats.timers_fired, 1);
    assert_int_equal(stats.pending_timers, 0);

    assert_int_equal(bow_loop_get_stats(loop, &small), 0);
    assert_int_equal(small.turns, 3);
    assert_int_equal(small.polls, 99); /* an older caller's struct is not overrun */
    stats.size = sizeof(stats) + 1;
    assert_int_equal(bow_loop_get_stats(loop, &stats), -EINVAL);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_gives_idle_chunks_back_after_a_while(void **state)
{
    struct loops t;
    struct bow__block *blocks[8];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    for (int i = 0; i < 8; i++) {
        blocks[i] = bow__pool_get(bow__loop_pool(loop));
        assert_non_null(blocks[i]);
    }
    for (int i = 0; i < 8; i++) {
        bow__pool_put(bow__loop_pool(loop), blocks[i]);
    }
    for (int turn = 0; turn < 4; turn++) { /* 4, 2, 1, none: then it sleeps in peace */
        assert_int_equal(bow_loop_run_once(loop, 3600 * FAKE_S), 0);
    }
    assert_int_equal(bow__loop_pool(loop)->n_idle, 0);
    assert_in_range(atomic_load(&t.fake.now_ns) - FAKE_START, 3600 * FAKE_S, 3606 * FAKE_S);
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l30_posting_intrusive_tasks_never_allocates),
        cmocka_unit_test(test_loop_l30_each_producers_tasks_run_in_its_order),
        cmocka_unit_test(test_loop_l30_heap_tasks_are_bounded_and_intrusive_ones_are_not),
        cmocka_unit_test(test_loop_l30_f20_a_tasks_memory_is_free_when_it_starts),
        cmocka_unit_test(test_loop_l37_tail_tasks_run_after_the_others_once_a_turn),
        cmocka_unit_test(test_loop_l37_tail_tasks_are_bounded),
        cmocka_unit_test(test_loop_l38_a_failing_task_is_logged_by_name_and_hurts_no_other),
        cmocka_unit_test(test_loop_l39_stats_say_what_has_happened),
        cmocka_unit_test(test_loop_gives_idle_chunks_back_after_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
