/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Futures and promises: one completion, listeners, progress (L40, L42). */

#include "tests/support/loops.h"

#include <bowline/executor.h>
#include <bowline/future.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A loop of the test's, a promise whose listeners run there, and what they were told. */
struct stage {
    struct loops t;
    struct bow_loop *loop;
    struct bow_promise *promise;
    struct bow_future *future;
    char log[256];
    int n_freed;
};

/* A listener that writes its letter down. */
struct ear {
    struct bow_future_listener listener;
    struct stage *stage;
    char letter;
    struct ear *adds;    /* in its function */
    struct ear *removes; /* the same, also of progress */
    int remove_rc;
};

static void note(struct stage *stage, const char *format, ...) BOW_PRINTF(2, 3);

static void note(struct stage *stage, const char *format, ...)
{
    size_t len = strlen(stage->log);
    va_list args;

    va_start(args, format);
    vsnprintf(stage->log + len, sizeof(stage->log) - len, format, args);
    va_end(args);
}

static void free_value(void *value, void *user)
{
    struct stage *stage = user;

    assert_ptr_equal(value, &stage->n_freed);
    stage->n_freed++;
}

static void begin(struct stage *stage)
{
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;

    memset(stage, 0, sizeof(*stage));
    loops_begin(&stage->t);
    stage->loop = loops_new_owner(&stage->t);
    options.loop = stage->loop;
    options.free_value = free_value;
    options.free_user = stage;
    assert_int_equal(bow_promise_new(stage->t.context, &options, &stage->promise), 0);
    stage->future = bow_future_ref(bow_promise_future(stage->promise));
}

static void end(struct stage *stage)
{
    bow_promise_unref(stage->promise);
    bow_future_unref(stage->future);
    bow_loop_unref(stage->loop);
    loops_end(&stage->t);
}

static void turn(struct stage *stage)
{
    assert_int_equal(bow_loop_run_once(stage->loop, 0), 0);
}

static void add_ear(struct ear *ear)
{
    assert_int_equal(bow_future_listen(ear->stage->future, &ear->listener), 0);
}

static void leave_others(struct ear *ear)
{
    if (ear->removes != NULL) {
        ear->remove_rc = bow_future_unlisten(ear->stage->future, &ear->removes->listener);
    }
}

static void on_done(struct bow_future *future, void *user)
{
    struct ear *ear = user;

    assert_ptr_equal(future, ear->stage->future);
    assert_true(bow_loop_in_loop(ear->stage->loop));
    note(ear->stage, " %c:%d", ear->letter, bow_future_error(future));
    if (ear->adds != NULL) {
        add_ear(ear->adds);
        note(ear->stage, " %c.", ear->letter);
    }
    leave_others(ear);
}

static void on_progress(struct bow_future *future, uint64_t progress, uint64_t total, void *user)
{
    struct ear *ear = user;

    assert_ptr_equal(future, ear->stage->future);
    note(ear->stage, " %c=%u/%u", ear->letter, (unsigned)progress, (unsigned)total);
    leave_others(ear);
}

static void ears_init(struct stage *stage, struct ear *ears, int n)
{
    for (int i = 0; i < n; i++) {
        ears[i] = (struct ear){.listener = {.fn = on_done, .user = &ears[i]},
                               .stage = stage,
                               .letter = (char)('a' + i)};
    }
}

/* L40: one completion */

static void test_future_l40_success_with_a_value_that_is_freed_with_it(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    assert_int_equal(bow_future_get_state(stage.future), BOW_FUTURE_PENDING);
    assert_int_equal(bow_future_error(stage.future), -EINPROGRESS);
    assert_false(bow_future_is_done(stage.future));
    assert_int_equal(bow_promise_succeed(stage.promise, &stage.n_freed), 0);
    assert_int_equal(bow_future_get_state(stage.future), BOW_FUTURE_SUCCEEDED);
    assert_true(bow_future_is_done(stage.future));
    assert_int_equal(bow_future_error(stage.future), 0);
    assert_ptr_equal(bow_future_value(stage.future), &stage.n_freed);
    stage.promise = bow_promise_unref(stage.promise);
    assert_int_equal(stage.n_freed, 0);
    stage.future = bow_future_unref(stage.future);
    assert_int_equal(stage.n_freed, 1);
    end(&stage);
}

static void test_future_l40_second_completion_says_so_and_changes_nothing(void **state)
{
    struct stage stage;
    int other = 0;

    (void)state;
    begin(&stage);
    assert_int_equal(bow_promise_fail(stage.promise, 5), -EINVAL);
    assert_int_equal(bow_promise_fail(stage.promise, -EIO), 0);
    assert_int_equal(bow_promise_fail(stage.promise, -EPERM), -EALREADY);
    assert_int_equal(bow_promise_succeed(stage.promise, &other), -EALREADY);
    assert_int_equal(bow_future_cancel(stage.future), -EALREADY);
    assert_int_equal(bow_promise_set_uncancellable(stage.promise), -EALREADY);
    assert_int_equal(bow_future_get_state(stage.future), BOW_FUTURE_FAILED);
    assert_int_equal(bow_future_error(stage.future), -EIO);
    assert_null(bow_future_value(stage.future));
    end(&stage);
    assert_int_equal(stage.n_freed, 0);
}

static void test_future_l40_cancelled_before_the_work_begins(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    assert_int_equal(bow_future_cancel(stage.future), 0);
    assert_int_equal(bow_future_cancel(stage.future), 0);
    assert_int_equal(bow_future_get_state(stage.future), BOW_FUTURE_CANCELLED);
    assert_int_equal(bow_future_error(stage.future), -ECANCELED);
    assert_int_equal(bow_promise_set_uncancellable(stage.promise), -ECANCELED);
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), -EALREADY);
    end(&stage);
}

static void test_future_l40_uncancellable_can_only_be_completed(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    assert_int_equal(bow_promise_set_uncancellable(stage.promise), 0);
    assert_int_equal(bow_promise_set_uncancellable(stage.promise), 0);
    assert_int_equal(bow_future_cancel(stage.future), -EBUSY);
    assert_int_equal(bow_future_get_state(stage.future), BOW_FUTURE_UNCANCELLABLE);
    assert_int_equal(bow_future_error(stage.future), -EINPROGRESS);
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), 0);
    assert_int_equal(bow_future_cancel(stage.future), -EALREADY);
    end(&stage);
}

static void test_future_l40_dropped_promise_fails_it(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    struct bow_promise *second = bow_promise_ref(stage.promise);
    bow_promise_unref(second);
    assert_false(bow_future_is_done(stage.future));
    stage.promise = bow_promise_unref(stage.promise);
    assert_int_equal(bow_future_error(stage.future), -EPIPE);
    end(&stage);
}

/* L40: listeners */

static void test_future_l40_listeners_run_on_the_loop_in_the_order_of_adding(void **state)
{
    struct stage stage;
    struct ear ears[4];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 4);
    add_ear(&ears[0]);
    add_ear(&ears[1]);
    turn(&stage);
    assert_string_equal(stage.log, "");
    assert_int_equal(bow_promise_fail(stage.promise, -EIO), 0);
    add_ear(&ears[2]); /* done, and those before it have not run yet */
    assert_string_equal(stage.log, "");
    turn(&stage);
    assert_string_equal(stage.log, " a:-5 b:-5 c:-5");
    add_ear(&ears[3]);
    assert_string_equal(stage.log, " a:-5 b:-5 c:-5"); /* never inside the adder */
    turn(&stage);
    assert_string_equal(stage.log, " a:-5 b:-5 c:-5 d:-5");
    turn(&stage);
    assert_string_equal(stage.log, " a:-5 b:-5 c:-5 d:-5"); /* once */
    end(&stage);
}

static void test_future_l40_listener_adds_and_removes_others(void **state)
{
    struct stage stage;
    struct ear ears[4];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 4);
    ears[0].adds = &ears[3];
    ears[0].removes = &ears[1];
    add_ear(&ears[0]);
    add_ear(&ears[1]);
    add_ear(&ears[2]);
    assert_int_equal(bow_future_cancel(stage.future), 0);
    turn(&stage);
    turn(&stage);
    assert_string_equal(stage.log, " a:-125 a. c:-125 d:-125");
    assert_int_equal(ears[0].remove_rc, 0);
    end(&stage);
}

static void test_future_l40_removed_listener_is_not_called(void **state)
{
    struct stage stage;
    struct ear ears[3];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 3);
    add_ear(&ears[0]);
    add_ear(&ears[1]);
    assert_int_equal(bow_future_unlisten(stage.future, &ears[1].listener), 0);
    assert_int_equal(bow_future_unlisten(stage.future, &ears[1].listener), -ENOENT);
    add_ear(&ears[2]); /* at the end that has moved */
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), 0);
    assert_int_equal(bow_future_unlisten(stage.future, &ears[0].listener), 0);
    turn(&stage);
    assert_string_equal(stage.log, " c:0");
    end(&stage);
}

static void free_itself(struct bow_future *future, void *user)
{
    struct ear *ear = user;

    note(ear->stage, " gone:%d", bow_future_error(future));
    test_free(ear);
}

static void test_future_l40_f20_listener_may_free_itself_and_the_last_reference(void **state)
{
    struct stage stage;
    struct ear *ear = test_malloc(sizeof(*ear));

    (void)state;
    begin(&stage);
    ears_init(&stage, ear, 1);
    ear->listener.fn = free_itself;
    add_ear(ear);
    stage.promise = bow_promise_unref(stage.promise);
    stage.future = bow_future_unref(stage.future);
    turn(&stage);
    assert_string_equal(stage.log, " gone:-32");
    end(&stage);
}

static void test_future_l40_future_without_a_home_has_no_listeners(void **state)
{
    struct loops t;
    struct bow_promise *promise = NULL;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_future_listener listener = {.fn = on_done};

    (void)state;
    loops_begin(&t);
    assert_int_equal(bow_promise_new(t.context, NULL, &promise), 0);
    assert_int_equal(bow_future_listen(bow_promise_future(promise), &listener), -EINVAL);
    bow_promise_unref(promise);
    options.size++;
    assert_int_equal(bow_promise_new(t.context, &options, &promise), -EINVAL);
    loops_end(&t);
}

/* L40: a home that is gone */

struct rejections {
    struct ear *ear;
    int n;
    bool runs_it;
};

static void on_rejected(struct bow_loop *loop, const char *name, bow_task_fn fn, void *task_user,
                        void *user)
{
    struct rejections *rejections = user;

    assert_non_null(loop);
    assert_string_equal(name, "future listeners");
    rejections->n++;
    if (rejections->runs_it) {
        assert_int_equal(fn(task_user), 0);
    }
}

static void note_end(struct bow_future *future, void *user)
{
    struct ear *ear = user;

    note(ear->stage, " %c:%d", ear->letter, bow_future_error(future));
}

static void complete_after_shutdown(bool runs_it, const char *expected)
{
    struct stage stage = {.n_freed = 0};
    struct rejections rejections = {.runs_it = runs_it};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct ear ears[2];

    loops_begin(&stage.t);
    loop_options.thread = BOW_LOOP_OWNER;
    loop_options.rejected = on_rejected;
    loop_options.rejected_user = &rejections;
    stage.loop = loops_new(&stage.t, &loop_options);
    options.loop = stage.loop;
    assert_int_equal(bow_promise_new(stage.t.context, &options, &stage.promise), 0);
    stage.future = bow_future_ref(bow_promise_future(stage.promise));
    ears_init(&stage, ears, 2);
    ears[0].listener.fn = note_end;
    add_ear(&ears[0]);
    bow_loop_shutdown(stage.loop, 0, 0);
    assert_int_equal(bow_loop_run(stage.loop), 0);
    stage.loop = bow_loop_unref(stage.loop); /* the future keeps its memory */

    assert_int_equal(bow_promise_fail(stage.promise, -EIO), 0);
    assert_int_equal(rejections.n, 1);
    assert_string_equal(stage.log, expected);
    if (runs_it) {
        assert_int_equal(bow_future_listen(stage.future, &ears[1].listener), -ESHUTDOWN);
        assert_int_equal(rejections.n, 1); /* the caller has the error, and the listener */
    }
    assert_int_equal(bow_future_error(stage.future), -EIO);
    end(&stage);
}

static void test_future_l40_listeners_of_a_loop_that_ended_go_to_its_rejection_handler(void **state)
{
    (void)state;
    complete_after_shutdown(false, "");
    complete_after_shutdown(true, " a:-5");
}

static void note_on_executor(struct bow_future *future, void *user)
{
    struct ear *ear = user;

    note(ear->stage, " %c:%d", ear->letter, bow_future_error(future));
}

static void test_future_l40_listeners_run_on_an_executor(void **state)
{
    struct stage stage = {.n_freed = 0};
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct ear ears[2];

    (void)state;
    loops_begin(&stage.t);
    executor_options.n_threads = 0;
    assert_int_equal(bow_executor_new(stage.t.context, &executor_options, &options.executor), 0);
    assert_int_equal(bow_promise_new(stage.t.context, &options, &stage.promise), 0);
    stage.future = bow_future_ref(bow_promise_future(stage.promise));
    ears_init(&stage, ears, 2);
    ears[0].listener.fn = note_on_executor;
    ears[1].listener.fn = note_on_executor;
    add_ear(&ears[0]);
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), 0);
    add_ear(&ears[1]);
    assert_string_equal(stage.log, "");
    assert_int_equal(bow_executor_run_once(options.executor, 0), 0);
    assert_string_equal(stage.log, " a:0 b:0");
    bow_executor_unref(options.executor);
    end(&stage);
}

/* L42 */

static void test_future_l42_progress_comes_folded_and_before_the_end(void **state)
{
    struct stage stage;
    struct ear ears[2];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 2);
    ears[0].listener.on_progress = on_progress;
    add_ear(&ears[0]);
    add_ear(&ears[1]); /* asks for the end only */
    assert_int_equal(bow_promise_report(stage.promise, 1, 10), 0);
    assert_string_equal(stage.log, "");
    turn(&stage);
    assert_string_equal(stage.log, " a=1/10");
    assert_int_equal(bow_promise_report(stage.promise, 2, 10), 0);
    assert_int_equal(bow_promise_report(stage.promise, 3, 10), 0);
    turn(&stage);
    assert_string_equal(stage.log, " a=1/10 a=3/10");
    assert_int_equal(bow_promise_report(stage.promise, 11, 10), -EINVAL);
    assert_int_equal(bow_promise_report(stage.promise, 11, 0), 0);
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), 0);
    assert_int_equal(bow_promise_report(stage.promise, 12, 0), -EALREADY);
    turn(&stage);
    assert_string_equal(stage.log, " a=1/10 a=3/10 a=11/0 a:0 b:0");
    end(&stage);
}

static void test_future_l42_listener_that_comes_later_hears_the_newest_report(void **state)
{
    struct stage stage;
    struct ear ears[2];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 2);
    assert_int_equal(bow_promise_report(stage.promise, 4, 8), 0);
    turn(&stage);
    ears[0].listener.on_progress = on_progress;
    add_ear(&ears[0]);
    turn(&stage);
    assert_string_equal(stage.log, " a=4/8");
    end(&stage);
}

static void test_future_l42_listener_removes_itself_and_others_while_told(void **state)
{
    struct stage stage;
    struct ear ears[3];

    (void)state;
    begin(&stage);
    ears_init(&stage, ears, 3);
    for (int i = 0; i < 3; i++) {
        ears[i].listener.on_progress = on_progress;
        add_ear(&ears[i]);
    }
    ears[0].removes = &ears[0];
    ears[1].removes = &ears[2];
    assert_int_equal(bow_promise_report(stage.promise, 1, 2), 0);
    turn(&stage);
    assert_string_equal(stage.log, " a=1/2 b=1/2");
    assert_int_equal(ears[0].remove_rc, 0);
    assert_int_equal(bow_promise_succeed(stage.promise, NULL), 0);
    turn(&stage);
    assert_string_equal(stage.log, " a=1/2 b=1/2 b:0");
    end(&stage);
}

/* L06 */

static void test_future_l06_tells_when_a_loop_has_terminated(void **state)
{
    struct stage stage;
    struct bow_promise_options options = BOW_PROMISE_OPTIONS_INIT;
    struct bow_future *before = NULL;
    struct bow_future *after = NULL;
    struct ear ear;

    (void)state;
    begin(&stage);
    struct bow_loop *other = loops_new_owner(&stage.t);
    options.loop = stage.loop;
    assert_int_equal(bow_loop_terminated(other, &options, &before), 0);
    ears_init(&stage, &ear, 1);
    ear.listener.fn = note_end;
    assert_int_equal(bow_future_listen(before, &ear.listener), 0);
    assert_int_equal(bow_loop_run_once(other, 0), 0);
    bow_loop_shutdown(other, 0, 0);
    assert_false(bow_future_is_done(before));
    assert_int_equal(bow_loop_run(other), 0);
    assert_int_equal(bow_future_error(before), 0);
    turn(&stage);
    assert_string_equal(stage.log, " a:0");

    assert_int_equal(bow_loop_terminated(other, NULL, &after), 0);
    assert_true(bow_future_is_done(after));
    bow_loop_unref(other);
    bow_future_unref(before);
    bow_future_unref(after);
    end(&stage);
}

static void test_future_l06_loop_that_never_started_terminates_at_once(void **state)
{
    struct loops t;
    struct bow_future *future = NULL;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_terminated(loop, NULL, &future), 0);
    bow_loop_shutdown(loop, FAKE_S, FAKE_S);
    assert_true(bow_future_is_done(future));
    bow_loop_unref(loop);
    bow_future_unref(future);
    loops_end(&t);
}

static int make_all(struct bow_context *context, void *user)
{
    struct bow_promise *promise = NULL;
    (void)user;
    int rc = bow_promise_new(context, NULL, &promise);
    bow_promise_unref(promise);
    return rc;
}

static void test_future_l40_each_failing_allocation_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, make_all, NULL) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_future_l40_success_with_a_value_that_is_freed_with_it),
        cmocka_unit_test(test_future_l40_second_completion_says_so_and_changes_nothing),
        cmocka_unit_test(test_future_l40_cancelled_before_the_work_begins),
        cmocka_unit_test(test_future_l40_uncancellable_can_only_be_completed),
        cmocka_unit_test(test_future_l40_dropped_promise_fails_it),
        cmocka_unit_test(test_future_l40_listeners_run_on_the_loop_in_the_order_of_adding),
        cmocka_unit_test(test_future_l40_listener_adds_and_removes_others),
        cmocka_unit_test(test_future_l40_removed_listener_is_not_called),
        cmocka_unit_test(test_future_l40_f20_listener_may_free_itself_and_the_last_reference),
        cmocka_unit_test(test_future_l40_future_without_a_home_has_no_listeners),
        cmocka_unit_test(
            test_future_l40_listeners_of_a_loop_that_ended_go_to_its_rejection_handler),
        cmocka_unit_test(test_future_l40_listeners_run_on_an_executor),
        cmocka_unit_test(test_future_l42_progress_comes_folded_and_before_the_end),
        cmocka_unit_test(test_future_l42_listener_that_comes_later_hears_the_newest_report),
        cmocka_unit_test(test_future_l42_listener_removes_itself_and_others_while_told),
        cmocka_unit_test(test_future_l06_tells_when_a_loop_has_terminated),
        cmocka_unit_test(test_future_l06_loop_that_never_started_terminates_at_once),
        cmocka_unit_test(test_future_l40_each_failing_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
