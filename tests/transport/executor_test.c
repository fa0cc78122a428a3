/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What an executor does with tasks: order, side by side, strands, bounds, an owner (L44). */

#include "tests/support/gate.h"
#include "tests/support/loops.h"

#include <bowline/executor.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct bow_executor *new_executor(struct loops *t, uint32_t n_threads)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = n_threads;
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

static void turn(struct bow_executor *executor)
{
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
}

/* Notes its number in what it belongs to. */
struct noted {
    struct bow_task task;
    char *log;
    char letter;
};

static int note(void *user)
{
    struct noted *noted = user;
    size_t len = strlen(noted->log);

    noted->log[len] = noted->letter;
    noted->log[len + 1] = '\0';
    return 0;
}

static struct bow_task *noted_init(struct noted *noted, char *log, char letter)
{
    noted->log = log;
    noted->letter = letter;
    bow_task_init(&noted->task, "note", note, noted);
    return &noted->task;
}

static void test_executor_l44_owner_runs_tasks_in_the_order_of_posting(void **state)
{
    struct loops t;
    struct noted noted[3];
    char log[8] = "";

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bow_executor_post(executor, noted_init(&noted[i], log, (char)('a' + i))),
                         0);
    }
    assert_string_equal(log, "");
    assert_false(bow_executor_in_executor(executor));
    turn(executor);
    assert_string_equal(log, "abc");
    assert_true(bow_executor_in_executor(executor));
    assert_int_equal(atomic_load(&t.fake.n_threads), 0);
    bow_executor_unref(executor);
    loops_end(&t);
}

struct again {
    struct bow_executor *executor;
    struct bow_task task;
    int n_runs;
    int rc;
};

static int post_again(void *user)
{
    struct again *again = user;

    again->n_runs++;
    again->rc = bow_executor_run_once(again->executor, 0);
    int rc = bow_executor_post(again->executor, &again->task);
    return rc == -ESHUTDOWN ? 0 : rc;
}

static void test_executor_l44_task_posted_by_a_task_is_for_the_next_call(void **state)
{
    struct loops t;
    struct again again = {.n_runs = 0};

    (void)state;
    loops_begin(&t);
    again.executor = new_executor(&t, 0);
    bow_task_init(&again.task, "again", post_again, &again);
    assert_int_equal(bow_executor_post(again.executor, &again.task), 0);
    turn(again.executor);
    assert_int_equal(again.n_runs, 1);
    assert_int_equal(again.rc, -EBUSY); /* not inside itself */
    turn(again.executor);
    assert_int_equal(again.n_runs, 2);
    bow_executor_unref(again.executor);
    assert_int_equal(again.n_runs, 3); /* what was accepted */
    loops_end(&t);
}

static void test_executor_l44_only_one_without_threads_is_driven(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 1);
    assert_int_equal(bow_executor_run_once(executor, 0), -EINVAL);
    assert_int_equal(bow_executor_run(executor), -EINVAL);
    bow_executor_unref(executor);
    loops_end(&t);
}

/* Two that can only end when both run. */
struct pair {
    struct gate gate;
    struct bow_task tasks[2];
};

static int meet(void *user)
{
    struct pair *pair = user;

    gate_add(&pair->gate);
    gate_wait(&pair->gate, 2);
    return 0;
}

static void test_executor_l44_tasks_that_block_run_side_by_side(void **state)
{
    struct loops t;
    struct pair pair;

    (void)state;
    loops_begin(&t);
    gate_init(&pair.gate);
    struct bow_executor *executor = new_executor(&t, 4);
    for (int i = 0; i < 2; i++) {
        bow_task_init(&pair.tasks[i], "meet", meet, &pair);
        assert_int_equal(bow_executor_post(executor, &pair.tasks[i]), 0);
    }
    bow_executor_unref(executor);
    assert_in_range(atomic_load(&t.fake.n_threads), 2, 2); /* no more than were needed */
    gate_fini(&pair.gate);
    loops_end(&t);
}

#define N_STRANDS 3
#define N_PER_STRAND 500

struct ordered {
    struct bow_task task;
    struct sequence *sequence;
    int number;
};

/* Not atomic on purpose: a strand's tasks see each other's work without more. */
struct sequence {
    struct bow_strand *strand;
    struct ordered tasks[N_PER_STRAND];
    int next;
    int n_wrong;
};

static int expect_own_turn(void *user)
{
    struct ordered *ordered = user;
    struct sequence *sequence = ordered->sequence;

    sequence->n_wrong += ordered->number != sequence->next;
    sequence->next++;
    return 0;
}

static void post_sequences(struct sequence *all)
{
    for (int i = 0; i < N_PER_STRAND; i++) {
        for (int s = 0; s < N_STRANDS; s++) {
            struct ordered *ordered = &all[s].tasks[i];
            *ordered = (struct ordered){.sequence = &all[s], .number = i};
            bow_task_init(&ordered->task, "ordered", expect_own_turn, ordered);
            assert_int_equal(bow_strand_post(all[s].strand, &ordered->task), 0);
        }
    }
}

static void test_executor_l44_strand_keeps_order_on_any_thread(void **state)
{
    static struct sequence all[N_STRANDS];
    struct loops t;

    (void)state;
    loops_begin(&t);
    memset(all, 0, sizeof(all));
    struct bow_executor *executor = new_executor(&t, 4);
    for (int s = 0; s < N_STRANDS; s++) {
        assert_int_equal(bow_strand_new(executor, &all[s].strand), 0);
    }
    post_sequences(all);
    for (int s = 0; s < N_STRANDS; s++) {
        bow_strand_unref(all[s].strand); /* what waits in it runs all the same */
    }
    bow_executor_unref(executor);
    for (int s = 0; s < N_STRANDS; s++) {
        assert_int_equal(all[s].next, N_PER_STRAND);
        assert_int_equal(all[s].n_wrong, 0);
    }
    loops_end(&t);
}

static void test_executor_l44_long_strand_leaves_room_for_others(void **state)
{
    struct loops t;
    struct noted noted[40];
    struct noted other;
    char log[64] = "";
    struct bow_strand *strand = NULL;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    assert_int_equal(bow_strand_new(executor, &strand), 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(bow_strand_post(strand, noted_init(&noted[i], log, 's')), 0);
    }
    assert_int_equal(bow_executor_post(executor, noted_init(&other, log, 'x')), 0);
    turn(executor);
    assert_non_null(strchr(log, 'x'));
    assert_true(strlen(log) < 41);
    bow_strand_unref(strand);
    bow_executor_unref(executor);
    assert_int_equal(strlen(log), 41);
    loops_end(&t);
}

struct rejections {
    int n;
    bow_task_fn fn;
    void *task_user;
};

static void on_rejected(struct bow_executor *executor, const char *name, bow_task_fn fn,
                        void *task_user, void *user)
{
    struct rejections *rejections = user;

    assert_non_null(executor);
    assert_string_equal(name, "count");
    rejections->n++;
    rejections->fn = fn;
    rejections->task_user = task_user;
}

static struct bow_executor *new_bounded(struct loops *t, struct rejections *rejections)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = 0;
    options.max_pending_tasks = 2;
    options.rejected = on_rejected;
    options.rejected_user = rejections;
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

static void test_executor_l44_full_queue_rejects_until_there_is_room(void **state)
{
    struct loops t;
    struct rejections rejections = {0};
    struct bow_executor_stats stats = {.size = sizeof(stats)};
    struct bow_strand *strand = NULL;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_bounded(&t, &rejections);
    assert_int_equal(bow_strand_new(executor, &strand), 0);
    assert_int_equal(bow_executor_execute(executor, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_strand_execute(strand, "count", loops_count_run, &n), 0);
    assert_int_equal(bow_strand_execute(strand, "count", loops_count_run, &n), -EAGAIN);
    assert_int_equal(bow_executor_execute(executor, "count", loops_count_run, &n), -EAGAIN);
    assert_int_equal(rejections.n, 2);
    assert_ptr_equal(rejections.fn, loops_count_run);
    assert_ptr_equal(rejections.task_user, &n);

    bow_task_init(&task, "count", loops_count_run, &n);
    assert_int_equal(bow_executor_post(executor, &task), 0); /* intrusive: not bounded */
    assert_int_equal(bow_executor_get_stats(executor, &stats), 0);
    assert_int_equal(stats.pending_tasks, 3);
    turn(executor);
    assert_int_equal(n, 3);
    assert_int_equal(bow_executor_execute(executor, "count", loops_count_run, &n), 0);
    turn(executor);
    assert_int_equal(bow_executor_get_stats(executor, &stats), 0);
    assert_int_equal(stats.tasks_run, 4);
    assert_int_equal(stats.tasks_rejected, 2);
    assert_int_equal(stats.pending_tasks, 0);
    bow_strand_unref(strand);
    bow_executor_unref(executor);
    loops_end(&t);
}

static void test_executor_l44_strand_after_the_end_is_rejected(void **state)
{
    struct loops t;
    struct rejections rejections = {0};
    struct bow_strand *strand = NULL;
    struct bow_task task;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_bounded(&t, &rejections);
    assert_int_equal(bow_strand_new(executor, &strand), 0);
    bow_executor_shutdown(executor, 0, 0);
    bow_task_init(&task, "count", loops_count_run, &n);
    while (bow_executor_get_state(executor) != BOW_LOOP_TERMINATED) {
        turn(executor);
    }
    assert_int_equal(bow_strand_post(strand, &task), -ESHUTDOWN);
    assert_int_equal(rejections.n, 1);
    assert_ptr_equal(rejections.task_user, &n);
    assert_int_equal(bow_strand_execute(strand, "count", loops_count_run, &n), -ESHUTDOWN);
    assert_int_equal(rejections.n, 2);
    assert_int_equal(n, 0);
    bow_strand_unref(strand);
    bow_executor_unref(executor);
    loops_end(&t);
}

static int fail_with_eio(void *user)
{
    (void)user;
    return -EIO;
}

static void test_executor_l44_failing_task_is_logged_with_its_name(void **state)
{
    struct loops t;
    struct bow_executor_stats stats = {.size = sizeof(stats)};
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    struct bow_executor *executor = new_executor(&t, 0);
    assert_int_equal(bow_executor_execute(executor, "broken", fail_with_eio, NULL), 0);
    assert_int_equal(bow_executor_execute(executor, "count", loops_count_run, &n), 0);
    turn(executor);
    assert_int_equal(n, 1);
    assert_non_null(strstr(t.log, "bow-exec: task broken failed: EIO"));
    assert_int_equal(bow_executor_get_stats(executor, &stats), 0);
    assert_int_equal(stats.tasks_failed, 1);
    bow_executor_unref(executor);
    loops_end(&t);
}

static int make_and_use(struct bow_context *context, void *user)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct bow_strand *strand = NULL;
    atomic_int n = 0;
    (void)user;
    options.n_threads = 0;
    int rc = bow_executor_new(context, &options, &executor);
    if (rc < 0) {
        return rc;
    }
    rc = bow_executor_execute(executor, "count", loops_count_run, &n);
    const int expected = rc == 0;
    if (rc == 0) {
        rc = bow_strand_new(executor, &strand);
    }
    if (rc == 0) {
        rc = bow_strand_execute(strand, "count", loops_count_run, &n);
    }
    bow_strand_unref(strand);
    bow_executor_unref(executor);
    assert_int_equal(n, expected + (rc == 0));
    return rc;
}

static void test_executor_l44_each_failing_allocation_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, make_and_use, NULL) >= 4);
}

static void test_executor_l44_options_out_of_range_are_refused(void **state)
{
    struct loops t;
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor_stats stats = {.size = sizeof(stats) + 1};
    struct bow_executor *executor = NULL;

    (void)state;
    loops_begin(&t);
    options.n_threads = (uint32_t)-2;
    assert_int_equal(bow_executor_new(t.context, &options, &executor), -EINVAL);
    options.n_threads = 1;
    options.size++;
    assert_int_equal(bow_executor_new(t.context, &options, &executor), -EINVAL);
    assert_null(executor);
    executor = new_executor(&t, 0);
    assert_int_equal(bow_executor_get_stats(executor, &stats), -EINVAL);
    bow_executor_unref(executor);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_l44_owner_runs_tasks_in_the_order_of_posting),
        cmocka_unit_test(test_executor_l44_task_posted_by_a_task_is_for_the_next_call),
        cmocka_unit_test(test_executor_l44_only_one_without_threads_is_driven),
        cmocka_unit_test(test_executor_l44_tasks_that_block_run_side_by_side),
        cmocka_unit_test(test_executor_l44_strand_keeps_order_on_any_thread),
        cmocka_unit_test(test_executor_l44_long_strand_leaves_room_for_others),
        cmocka_unit_test(test_executor_l44_full_queue_rejects_until_there_is_room),
        cmocka_unit_test(test_executor_l44_strand_after_the_end_is_rejected),
        cmocka_unit_test(test_executor_l44_failing_task_is_logged_with_its_name),
        cmocka_unit_test(test_executor_l44_each_failing_allocation_leaves_nothing),
        cmocka_unit_test(test_executor_l44_options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
