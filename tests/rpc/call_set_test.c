/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sets of calls: all of them done, one that fails, and the end of a set in the middle.
 */

#include "call_fixture.h"

#include <bowline/call_set.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct sets {
    struct calls *t;
    struct bow_call_set *set;
    int n_done; /* under the lock of t */
    bool frees; /* in the callback */
};

static void on_done(struct bow_call_set *set, void *user)
{
    struct sets *s = user;

    assert_ptr_equal(set, s->set);
    assert_true(bow_loop_in_loop(s->t->loop));
    if (s->frees) {
        bow_call_set_free(set);
        s->set = NULL;
    }
    pthread_mutex_lock(&s->t->lock);
    s->n_done++;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

static void make(struct sets *s, struct calls *t, uint32_t max_calls, bool cancels_rest)
{
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;

    *s = (struct sets){.t = t};
    options.max_calls = max_calls;
    options.cancels_rest = cancels_rest;
    assert_int_equal(bow_call_set_new(t->loop, &options, on_done, s, &s->set), 0);
}

static int start(struct sets *s, const struct bow_method *method, uint64_t number,
                 enum bow_code code)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = number;
    request.code = code;
    return bow_call_set_start(s->set, s->t->client, method, &request.base, NULL);
}

static enum bow_code code_of(const struct sets *s, uint32_t number)
{
    return bow_call_set_result(s->set, number)->status.code;
}

static void test_set_done_comes_once_after_all(void **state)
{
    struct calls *t = *state;
    struct sets s;

    make(&s, t, 4, false);
    assert_int_equal(start(&s, calls__echo__say__method(), 1, BOW_OK), 0);
    assert_int_equal(start(&s, calls__echo__hold__method(), 2, BOW_OK), 1);
    assert_int_equal(start(&s, calls__echo__say__method(), 3, BOW_ABORTED), 2);
    bow_call_set_commit(s.set);
    struct bow_call *held = calls_take_held(t);
    assert_int_equal(s.n_done, 0);
    assert_int_equal(calls_reply(held, 20), 0);
    calls_wait(t, &s.n_done, 1);
    assert_int_equal(bow_call_set_n_calls(s.set), 3);
    assert_int_equal(((const Calls__Reply *)bow_call_set_result(s.set, 0)->reply)->number, 1);
    assert_int_equal(((const Calls__Reply *)bow_call_set_result(s.set, 1)->reply)->number, 20);
    assert_int_equal(code_of(&s, 2), BOW_ABORTED);
    assert_null(bow_call_set_result(s.set, 3));
    assert_int_equal(s.n_done, 1);
    bow_call_set_free(s.set);
}

static void test_set_first_failure_cancels_the_rest(void **state)
{
    struct calls *t = *state;
    struct sets s;

    make(&s, t, 4, true);
    assert_int_equal(start(&s, calls__echo__hold__method(), 1, BOW_OK), 0);
    assert_int_equal(start(&s, calls__echo__hold__method(), 2, BOW_OK), 1);
    calls_wait(t, &t->n_held, 2);
    assert_int_equal(start(&s, calls__echo__say__method(), 3, BOW_ABORTED), 2);
    bow_call_set_commit(s.set);
    calls_wait(t, &s.n_done, 1);
    assert_int_equal(code_of(&s, 0), BOW_CANCELLED);
    assert_int_equal(code_of(&s, 1), BOW_CANCELLED);
    assert_int_equal(code_of(&s, 2), BOW_ABORTED);
    calls_wait(t, &t->n_cancelled, 2);
    bow_call_set_free(s.set);
}

static void test_set_says_what_is_wrong(void **state)
{
    struct calls *t = *state;
    struct bow_call_set_options none = BOW_CALL_SET_OPTIONS_INIT;
    Calls__Reply other = CALLS__REPLY__INIT;
    struct sets s;

    make(&s, t, 1, false);
    assert_int_equal(bow_call_set_new(t->loop, &none, on_done, &s, &s.set), -EINVAL);
    assert_int_equal(
        bow_call_set_start(s.set, t->client, calls__echo__say__method(), &other.base, NULL),
        -EINVAL);
    assert_int_equal(start(&s, calls__echo__say__method(), 1, BOW_OK), 0);
    assert_int_equal(start(&s, calls__echo__say__method(), 2, BOW_OK), -ENOSPC);
    bow_call_set_commit(s.set);
    assert_int_equal(start(&s, calls__echo__say__method(), 3, BOW_OK), -EINVAL);
    calls_wait(t, &s.n_done, 1);
    bow_call_set_free(s.set);
}

static void test_set_without_calls_is_done(void **state)
{
    struct calls *t = *state;
    struct sets s;

    make(&s, t, 1, false);
    s.frees = true;
    bow_call_set_commit(s.set);
    calls_wait(t, &s.n_done, 1);
}

static void test_set_cancelled_takes_no_more_and_ends(void **state)
{
    struct calls *t = *state;
    struct sets s;

    make(&s, t, 2, false);
    s.frees = true;
    assert_int_equal(start(&s, calls__echo__hold__method(), 1, BOW_OK), 0);
    calls_wait(t, &t->n_held, 1);
    bow_call_set_cancel(s.set);
    bow_call_set_cancel(s.set);
    assert_int_equal(start(&s, calls__echo__say__method(), 2, BOW_OK), -ECANCELED);
    bow_call_set_commit(s.set);
    calls_wait(t, &s.n_done, 1);
}

static void test_set_freed_before_its_calls_are_done_says_nothing(void **state)
{
    struct calls *t = *state;
    struct sets s;

    make(&s, t, 2, false);
    assert_int_equal(start(&s, calls__echo__hold__method(), 1, BOW_OK), 0);
    calls_wait(t, &t->n_held, 1);
    bow_call_set_free(s.set);
    bow_call_set_free(NULL);
    calls_wait(t, &t->n_cancelled, 1);
    bow_client_free(t->client); /* its callbacks have run then */
    t->client = NULL;
    assert_int_equal(s.n_done, 0);
}

#define SET_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SET_TEST(test_set_done_comes_once_after_all),
        SET_TEST(test_set_first_failure_cancels_the_rest),
        SET_TEST(test_set_says_what_is_wrong),
        SET_TEST(test_set_without_calls_is_done),
        SET_TEST(test_set_cancelled_takes_no_more_and_ends),
        SET_TEST(test_set_freed_before_its_calls_are_done_says_nothing),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
