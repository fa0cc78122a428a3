/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The reply, the cancel, the deadline and the loss of the connection in every order, one right
 * behind the other or with a turn of the loop between: a call completes once.
 */

#include "timed_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_EVENTS 4
#define N_ORDERS 24
#define TIMEOUT_NS SECOND

enum event {
    REPLY,
    CANCEL,
    DEADLINE,
    LOSS,
};

static const enum bow_code codes[N_EVENTS] = {
    [REPLY] = BOW_OK,
    [CANCEL] = BOW_CANCELLED,
    [DEADLINE] = BOW_DEADLINE_EXCEEDED,
    [LOSS] = BOW_UNAVAILABLE,
};

/* The `n`-th permutation. */
static void order_of(int n, enum event *ret_order)
{
    enum event left[N_EVENTS] = {REPLY, CANCEL, DEADLINE, LOSS};

    for (int i = 0, n_left = N_EVENTS; i < N_EVENTS; i++, n_left--) {
        int which = n % n_left;
        n /= n_left;
        ret_order[i] = left[which];
        memmove(&left[which], &left[which + 1], (size_t)(n_left - 1 - which) * sizeof(left[0]));
    }
}

static void happen(struct timed *timed, enum event event, uint64_t id)
{
    switch (event) {
    case REPLY: {
        int rc = timed_reply(timed->held, NULL);
        assert_true(rc == 0 || rc == -ECANCELED);
        timed->held = NULL;
        break;
    }
    case CANCEL:
        bow_client_cancel(timed->pair->client, id);
        break;
    case DEADLINE:
        timed_advance(timed, TIMEOUT_NS);
        break;
    case LOSS:
        bow_test_break(timed->test, BOW_TEST_RESET);
        break;
    }
}

static void run_order(struct timed *timed, int n, bool apart)
{
    enum event order[N_EVENTS];
    int n_done = timed->n_done;

    order_of(n, order);
    uint64_t id = timed_hold(timed, TIMEOUT_NS);
    for (int i = 0; i < N_EVENTS; i++) {
        happen(timed, order[i], id);
        if (apart) {
            timed_run(timed);
            assert_int_equal(timed->n_done, n_done + 1);
            assert_int_equal(timed->code, codes[order[0]]);
        }
    }
    timed_advance(timed, 10 * TIMEOUT_NS);
    assert_int_equal(timed->n_done, n_done + 1);
    timed_say(timed, 0); /* nothing is in the way of the next one */
    timed_advance(timed, TIMEOUT_NS);
    assert_int_equal(timed->n_done, n_done + 2);
    assert_int_equal(timed->code, BOW_OK);
}

static void test_orders_f19_of_what_ends_a_call_complete_it_once(void **state)
{
    struct timed *timed = *state;

    timed_begin(timed, NULL, NULL);
    for (int n = 0; n < N_ORDERS; n++) {
        run_order(timed, n, true);
        run_order(timed, n, false);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_orders_f19_of_what_ends_a_call_complete_it_once),
    };

    timed_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
