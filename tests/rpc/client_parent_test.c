/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that a handler makes for the call it serves: one deadline, one end. */

#include "call_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void start_child(struct calls *t, struct bow_call *parent)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.parent = parent;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
}

static struct bow_call *start_parent(struct calls *t, uint64_t timeout_ns, uint64_t *ret_id)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = timeout_ns;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, ret_id), 0);
    return calls_take_held(t);
}

static void test_client_parent_cancelled_cancels_its_child(void **state)
{
    struct calls *t = *state;
    uint64_t id = 0;
    struct bow_call *parent = start_parent(t, 0, &id);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    bow_client_cancel(t->client, id);
    calls_wait(t, &t->n_cancelled, 2);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_int_equal(calls_reply(child, 1), -ECANCELED);
    start_child(t, parent); /* of a parent that has ended: cancelled at once */
    calls_wait(t, &t->n_done, 3);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_int_equal(calls_reply(parent, 1), -ECANCELED);
}

static void test_client_parent_answered_cancels_its_child(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 0, NULL);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
    calls_wait(t, &t->n_cancelled, 1);
    assert_int_equal(calls_reply(child, 1), -ECANCELED);
}

static void test_client_parent_child_that_ends_first_leaves_its_parent(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 0, NULL);

    start_child(t, parent);
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_OK);
}

static void test_client_parents_deadline_is_the_childs(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 5000 * MS, NULL);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    assert_true(bow_call_deadline(child) <= bow_call_deadline(parent) + 1000 * MS);
    assert_int_equal(calls_reply(child, 1), 0);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_client_parent_cancelled_cancels_its_child),
        TEST(test_client_parent_answered_cancels_its_child),
        TEST(test_client_parent_child_that_ends_first_leaves_its_parent),
        TEST(test_client_parents_deadline_is_the_childs),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
