/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Events and the watches they lead to (L16–L18). */

#include "tests/support/loops.h"
#include "tests/support/ready.h"

#include <bowline/loop_stats.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* L16 */

#define N_READY 200

static void test_loop_l16_the_batch_doubles_when_it_was_full(void **state)
{
    struct loops t;
    static struct ready many[N_READY];
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    const uint64_t expected[] = {64, 64 + 128, 64 + 128 + N_READY, 64 + 128 + 2 * N_READY};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < N_READY; i++) {
        ready_open(&many[i], loop);
    }
    for (int turn = 0; turn < 4; turn++) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        assert_int_equal(bow_loop_get_stats(loop, &stats), 0);
        assert_int_equal(stats.events, expected[turn]);
    }
    for (int i = 0; i < N_READY; i++) {
        assert_true(many[i].n_events >= 2); /* nobody is passed over */
        ready_close(&many[i]);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l16_a_batch_that_cannot_grow_serves_all_the_same(void **state)
{
    struct loops t;
    static struct ready many[N_READY];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < N_READY; i++) {
        ready_open(&many[i], loop);
    }
    t.alloc.fail_at = t.alloc.n_calls + 1;
    t.alloc.fail_after = true;
    for (int turn = 0; turn < 8; turn++) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    t.alloc.fail_at = 0;
    for (int i = 0; i < N_READY; i++) {
        assert_true(many[i].n_events >= 1);
        ready_close(&many[i]);
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L17, F07: whichever of two comes first closes the other and puts a new one in its place. */

struct usurper {
    struct ready *ready; /* the two */
    struct ready fresh;  /* not ready, with the number of the closed one */
    bool is_done;
};

static void open_idle(struct ready *ready, struct bow_loop *loop, int fd)
{
    *ready = (struct ready){.watch.ops = &ready_ops, .loop = loop};
    int idle = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(idle, fd); /* the lowest free number */
    assert_int_equal(bow__loop_watch(loop, &ready->watch, idle, BOW_POLL_IN), 0);
}

static void usurp(struct ready *ready)
{
    struct usurper *usurper = ready->user;
    struct ready *other = ready == &usurper->ready[0] ? &usurper->ready[1] : &usurper->ready[0];
    struct bow_loop *loop = ready->loop;

    if (usurper->is_done) {
        return;
    }
    usurper->is_done = true;
    int fd = other->watch.fd;
    ready_close(other);
    open_idle(&usurper->fresh, loop, fd);
}

static void
test_loop_l17_f07_an_event_never_reaches_the_channel_that_reused_its_number(void **state)
{
    struct loops t;
    struct ready ready[2];
    struct usurper usurper = {.ready = ready};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 2; i++) {
        ready_open(&ready[i], loop);
        ready[i].then = usurp;
        ready[i].user = &usurper;
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready[0].n_events + ready[1].n_events, 1);
    assert_int_equal(usurper.fresh.n_events, 0);
    ready_close(&ready[ready[0].n_events == 1 ? 0 : 1]);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(usurper.fresh.n_events, 0);
    ready_close(&usurper.fresh);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* The same in the memory of the closed one, which is the harder case: its address is reused too. */
static void usurp_in_place(struct ready *ready)
{
    struct usurper *usurper = ready->user;
    struct ready *other = ready == &usurper->ready[0] ? &usurper->ready[1] : &usurper->ready[0];

    if (usurper->is_done) {
        return;
    }
    usurper->is_done = true;
    int fd = other->watch.fd;
    struct bow_loop *loop = other->loop;
    ready_close(other);
    open_idle(other, loop, fd);
}

static void test_loop_l17_f07_an_event_never_reaches_the_channel_in_the_same_memory(void **state)
{
    struct loops t;
    struct ready ready[2];
    struct usurper usurper = {.ready = ready};

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 2; i++) {
        ready_open(&ready[i], loop);
        ready[i].then = usurp_in_place;
        ready[i].user = &usurper;
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready[0].n_events + ready[1].n_events, 1);
    ready_close(&ready[0]);
    ready_close(&ready[1]);
    bow__loop_unwatch(loop, &ready[1].watch); /* idempotent */
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l17_rewatch_changes_what_is_reported(void **state)
{
    struct loops t;
    struct ready ready;

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    ready_open(&ready, loop);
    assert_int_equal(bow__loop_rewatch(loop, &ready.watch, 0), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready.n_events, 0);
    assert_int_equal(bow__loop_rewatch(loop, &ready.watch, BOW_POLL_OUT), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready.n_events, 1);
    ready_close(&ready);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l17_interest_0_reports_not_even_a_hang_up(void **state)
{
    struct loops t;
    struct ready ready = {.watch.ops = &ready_ops};
    int pair[2];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    ready.loop = loop;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    assert_int_equal(bow__loop_watch(loop, &ready.watch, pair[0], 0), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready.n_events, 0);
    assert_int_equal(bow__loop_rewatch(loop, &ready.watch, BOW_POLL_IN), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready.n_events, 1);
    ready_close(&ready);
    bow_loop_unref(loop);
    loops_end(&t);
}

static void pause_other(struct ready *ready)
{
    struct ready *other = ready->user;

    assert_int_equal(bow__loop_rewatch(ready->loop, &other->watch, 0), 0);
}

static void test_loop_l17_f07_interest_0_holds_for_the_rest_of_the_batch(void **state)
{
    struct loops t;
    struct ready ready[2];

    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < 2; i++) {
        ready_open(&ready[i], loop);
        ready[i].then = pause_other;
        ready[i].user = &ready[1 - i];
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(ready[0].n_events + ready[1].n_events, 1);
    ready_close(&ready[0]);
    ready_close(&ready[1]);
    bow_loop_unref(loop);
    loops_end(&t);
}

/* L18 */

#define N_CROWD 600

struct crowd {
    struct ready many[N_CROWD];
    int n_to_close;
    bool is_done;
};

/* Whoever comes first closes so many of the others. */
static void close_others(struct ready *ready)
{
    struct crowd *crowd = ready->user;

    if (crowd->is_done) {
        return;
    }
    crowd->is_done = true;
    for (int i = 0; crowd->n_to_close > 0; i++) {
        if (&crowd->many[i] != ready) {
            ready_close(&crowd->many[i]);
            crowd->many[i].watch.fd = -1;
            crowd->n_to_close--;
        }
    }
}

static int sum_events(const struct crowd *crowd)
{
    int n = 0;

    for (int i = 0; i < N_CROWD; i++) {
        n += crowd->many[i].n_events;
    }
    return n;
}

/* Events handled in the turn whose first one closes `n_to_close` others, and in the next one. */
static void count_after_closing(int n_to_close, int *ret_same_turn, int *ret_next_turn)
{
    struct loops t;
    static struct crowd crowd;

    loops_begin(&t);
    struct bow_loop *loop = loops_new_owner(&t);
    for (int i = 0; i < N_CROWD; i++) {
        ready_open(&crowd.many[i], loop);
        crowd.many[i].user = &crowd;
    }
    for (int turn = 0; turn < 5; turn++) { /* until a batch holds them all */
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
    }
    crowd.n_to_close = n_to_close;
    crowd.is_done = false;
    for (int i = 0; i < N_CROWD; i++) {
        crowd.many[i].then = close_others;
        crowd.many[i].n_events = 0;
    }
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    *ret_same_turn = sum_events(&crowd);
    assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    *ret_next_turn = sum_events(&crowd) - *ret_same_turn;
    for (int i = 0; i < N_CROWD; i++) {
        if (crowd.many[i].watch.fd >= 0) {
            ready_close(&crowd.many[i]);
        }
    }
    bow_loop_unref(loop);
    loops_end(&t);
}

static void test_loop_l18_after_256_deregistrations_the_rest_is_polled_again(void **state)
{
    int same = 0;
    int next = 0;

    (void)state;
    count_after_closing(255, &same, &next);
    assert_int_equal(same, N_CROWD - 255);
    assert_int_equal(next, N_CROWD - 255);
    count_after_closing(256, &same, &next);
    assert_int_equal(same, 1);
    assert_int_equal(next, N_CROWD - 256); /* none is lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_l16_the_batch_doubles_when_it_was_full),
        cmocka_unit_test(test_loop_l16_a_batch_that_cannot_grow_serves_all_the_same),
        cmocka_unit_test(
            test_loop_l17_f07_an_event_never_reaches_the_channel_that_reused_its_number),
        cmocka_unit_test(test_loop_l17_f07_an_event_never_reaches_the_channel_in_the_same_memory),
        cmocka_unit_test(test_loop_l17_rewatch_changes_what_is_reported),
        cmocka_unit_test(test_loop_l17_interest_0_reports_not_even_a_hang_up),
        cmocka_unit_test(test_loop_l17_f07_interest_0_holds_for_the_rest_of_the_batch),
        cmocka_unit_test(test_loop_l18_after_256_deregistrations_the_rest_is_polled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
