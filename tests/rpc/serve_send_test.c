/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server sends by its streaming calls: from the loop and from other threads, in order,
 * within bounds, and payloads.
 */

#include "serve_fixture.h"

#include <bowline/arena.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void let_wait(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

/* A thread that uses the call while the test drives the peer */

struct helper {
    struct serving *s;
    struct bow_call *call;
    uint64_t n;       /* messages */
    size_t n_payload; /* bytes beside each */
    uint64_t first;   /* number */
    void (*last)(struct helper *helper);
    int rc;
    int n_done;
    pthread_t thread;
};

static void step(struct serving *s, struct bow_call *call)
{
    (void)call;
    serve_step(s);
}

static int setup(void **state)
{
    assert_int_equal(serve_setup(state), 0);
    struct serving *s = *state;
    s->in_writable = step;
    s->in_closed = step;
    return 0;
}

/* As a program would: a refused message is tried again after on_writable, or the end. */
static int send_patiently(struct helper *helper, uint64_t number)
{
    for (;;) {
        int n_steps = serve_count(helper->s, &helper->s->n_steps);
        int rc = serve_send_sized(helper->call, number, helper->n_payload);
        if (rc != -EAGAIN) {
            return rc;
        }
        serve_wait(helper->s, &helper->s->n_steps, n_steps + 1);
    }
}

static void *run_helper(void *user)
{
    struct helper *helper = user;

    for (uint64_t i = 0; i < helper->n; i++) {
        helper->rc = send_patiently(helper, helper->first + i);
        if (helper->rc < 0) {
            break;
        }
    }
    if (helper->last != NULL) {
        helper->last(helper);
    }
    pthread_mutex_lock(&helper->s->t->lock);
    helper->n_done = 1;
    pthread_cond_broadcast(&helper->s->t->changed);
    pthread_mutex_unlock(&helper->s->t->lock);
    bow_call_unref(helper->call);
    return NULL;
}

static void start_helper(struct helper *helper, struct serving *s)
{
    helper->s = s;
    helper->call = bow_call_ref(s->call);
    assert_int_equal(pthread_create(&helper->thread, NULL, run_helper, helper), 0);
}

static void finish_elsewhere(struct helper *helper)
{
    helper->rc = bow_call_finish(helper->call);
}

static void fail_elsewhere(struct helper *helper)
{
    helper->rc = bow_call_fail(helper->call, BOW_ABORTED, "by a thread");
}

static void reply_elsewhere(struct helper *helper)
{
    helper->rc = serve_reply(helper->call, 1);
}

/* From other threads */

static void test_send_elsewhere_keeps_its_order(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.n = 1000, .first = 1, .last = finish_elsewhere};

    serve_begin(s, SERVE_BOTH);
    start_helper(&helper, s);
    serve_expect_status(s, BOW_OK, "");
    pthread_join(helper.thread, NULL);
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(helper.rc, 0);
    assert_int_equal(s->peer.n_messages, 1000);
    assert_int_equal(s->peer.n_disordered, 0);
}

static void test_fail_elsewhere_ends_the_call(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.n = 3, .first = 1, .last = fail_elsewhere};

    serve_begin(s, SERVE_BOTH);
    start_helper(&helper, s);
    serve_expect_status(s, BOW_ABORTED, "by a thread");
    pthread_join(helper.thread, NULL);
    serve_expect_closed(s, BOW_ABORTED, "by a thread");
    assert_int_equal(helper.rc, 0);
}

static void test_reply_elsewhere_is_the_one_message(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.last = reply_elsewhere};

    serve_begin(s, SERVE_GATHER);
    start_helper(&helper, s);
    serve_expect_status(s, BOW_OK, "");
    pthread_join(helper.thread, NULL);
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 1);
}

/* What a message was to be built in has failed: it may lack something, or be none. */
static void spoil_arena(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    assert_null(bow_arena_alloc(bow_call_arena(call), (size_t)65 << 20));
}

static void test_send_after_the_arena_failed_is_refused(void **state)
{
    struct serving *s = *state;

    s->enter = spoil_arena;
    serve_begin(s, SERVE_BOTH);
    assert_int_equal(serve_send(s->call, 1), -ENOMEM);
    assert_int_equal(bow_call_send(s->call, NULL), -ENOMEM);
    assert_int_equal(bow_call_fail(s->call, BOW_RESOURCE_EXHAUSTED, "no memory"), 0);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "no memory");
    assert_int_equal(s->peer.n_messages, 0);
}

static void test_reply_after_the_arena_failed_is_resource_exhausted(void **state)
{
    struct serving *s = *state;

    s->enter = spoil_arena;
    serve_begin(s, SERVE_GATHER);
    assert_int_equal(bow_call_reply(s->call, NULL), -ENOMEM);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "memory ran out");
    assert_int_equal(s->peer.n_messages, 0);
}

/* The loop is held by the handler while another thread posts: nothing is sent meanwhile. */
static void send_behind_posted(struct serving *s, struct bow_call *call)
{
    struct helper helper = {.n = 3, .first = 1};

    serve_listen(s, call);
    start_helper(&helper, s);
    calls_wait(s->t, &helper.n_done, 1);
    pthread_join(helper.thread, NULL);
    assert_int_equal(serve_send(call, 4), 0);
    assert_int_equal(bow_call_finish(call), 0);
}

static void test_send_on_the_loop_goes_behind_what_was_posted(void **state)
{
    struct serving *s = *state;

    s->enter = send_behind_posted;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 4);
    assert_int_equal(s->peer.n_disordered, 0);
}

static void finish_behind_posted(struct serving *s, struct bow_call *call)
{
    struct helper helper = {.n = 3, .first = 1};

    serve_listen(s, call);
    start_helper(&helper, s);
    calls_wait(s->t, &helper.n_done, 1);
    pthread_join(helper.thread, NULL);
    assert_int_equal(bow_call_finish(call), 0);
}

static void test_finish_on_the_loop_comes_after_what_was_posted(void **state)
{
    struct serving *s = *state;

    s->enter = finish_behind_posted;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 3);
}

/* Bounds */

static void fill_elsewhere(struct helper *helper)
{
    while ((helper->rc = serve_send_sized(helper->call, ++helper->n, 1000)) == 0) {
    }
}

/* Nothing is left in the session's queue, which would say that it is low again. */
static void be_filled(struct serving *s, struct bow_call *call)
{
    struct helper helper = {.last = fill_elsewhere};

    serve_listen(s, call);
    start_helper(&helper, s);
    calls_wait(s->t, &helper.n_done, 1);
    pthread_join(helper.thread, NULL);
    s->rc = helper.rc;
    s->n_sent = helper.n - 1;
    assert_false(bow_call_is_writable(call));
    assert_int_equal(serve_send(call, 1), -EAGAIN);
    assert_int_equal(s->n_writable, 0);
}

static void test_posted_messages_are_bounded_and_writable_follows(void **state)
{
    struct serving *s = *state;

    s->enter = be_filled;
    serve_begin(s, SERVE_BOTH);
    assert_int_equal(s->rc, -EAGAIN);
    assert_in_range(s->n_sent, 55, 64);
    session_peer_wait(&s->peer, &s->peer.n_messages, (int)s->n_sent);
    serve_wait_serving(s, &s->n_writable, 1);
    assert_int_equal(s->peer.n_disordered, 0);
}

static void fill_with_nothing(struct helper *helper)
{
    Calls__Reply empty = CALLS__REPLY__INIT;

    while (helper->n < 100000 && (helper->rc = bow_call_send(helper->call, &empty.base)) == 0) {
        helper->n++;
    }
}

static void be_filled_with_nothing(struct serving *s, struct bow_call *call)
{
    struct helper helper = {.last = fill_with_nothing};

    (void)call;
    start_helper(&helper, s);
    calls_wait(s->t, &helper.n_done, 1);
    pthread_join(helper.thread, NULL);
    s->rc = helper.rc;
    s->n_sent = helper.n;
}

static void test_posted_messages_without_bytes_are_bounded(void **state)
{
    struct serving *s = *state;

    s->enter = be_filled_with_nothing;
    serve_begin(s, SERVE_BOTH);
    assert_int_equal(s->rc, -EAGAIN);
    session_peer_wait(&s->peer, &s->peer.n_messages, (int)s->n_sent);
}

static void send_until_refused(struct serving *s, struct bow_call *call)
{
    s->rc = 0;
    while (s->n_sent < 400 && (s->rc = serve_send_sized(call, s->n_sent + 1, 1000)) == 0) {
        s->n_sent++;
    }
}

static void listen_and_send(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    send_until_refused(s, call);
}

/* On the loop, where the hooks that send run. */
static void see_what_was_sent(struct serving *s)
{
    assert_int_equal(s->rc, -EAGAIN);
    s->request_number = s->n_sent;
}

static void test_send_to_who_does_not_read_is_refused_and_writable_follows(void **state)
{
    struct serving *s = *state;

    s->peer.keeps_credit = true;
    s->enter = listen_and_send;
    /* What is refused before the reader's window is used up goes on at once. */
    s->in_writable = send_until_refused;
    serve_begin(s, SERVE_BOTH);
    while (session_peer_serve(&s->peer, 50)) {
    }
    serve_on_loop(s, see_what_was_sent);
    uint64_t n_before = s->request_number;
    int n_writable = serve_count(s, &s->n_writable);
    assert_true(n_before < 400);
    s->peer.keeps_credit = false;
    session_peer_give_credit(&s->peer);
    serve_wait_serving(s, &s->n_writable, n_writable + 1);
    session_peer_wait(&s->peer, &s->peer.n_messages, (int)n_before);
    assert_int_equal(s->peer.n_disordered, 0);
}

/* A large message is no reason to refuse the one before it, and lets nothing in behind it. */
static void send_one_large(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    assert_true(bow_call_is_writable(call));
    assert_int_equal(serve_send_sized(call, 1, (size_t)1 << 20), 0);
    assert_false(bow_call_is_writable(call));
    s->rc = serve_send(call, 2);
}

static void test_send_behind_a_large_message_is_refused(void **state)
{
    struct serving *s = *state;

    s->enter = send_one_large;
    serve_begin(s, SERVE_BOTH);
    assert_int_equal(s->rc, -EAGAIN);
    session_peer_wait(&s->peer, &s->peer.n_messages, 1);
    serve_wait_serving(s, &s->n_writable, 1);
    assert_int_equal(s->n_writable, 1);
}

#define MANY 100000u

static void pour_on(struct serving *s, struct bow_call *call)
{
    while (s->n_sent < MANY && (s->rc = serve_send_sized(call, s->n_sent + 1, 100)) == 0) {
        s->n_sent++;
    }
    if (s->n_sent == MANY && s->rc == 0) {
        s->rc = bow_call_finish(call);
    }
}

static void listen_and_pour(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    pour_on(s, call);
}

/* Take what comes a little at a time, and look at what the server's side holds. */
static void read_slowly(struct serving *s, size_t *ret_most)
{
    s->peer.keeps_credit = true;
    *ret_most = 0;
    while (s->peer.n_ends == 0) {
        if (!session_peer_serve(&s->peer, 1)) {
            session_peer_give_credit(&s->peer);
        }
        size_t now = bow_context_bytes(s->t->context);
        *ret_most = now > *ret_most ? now : *ret_most;
    }
}

static void test_many_messages_for_a_slow_reader_take_bounded_memory(void **state)
{
    struct serving *s = *state;
    size_t most = 0;

    s->enter = listen_and_pour;
    s->in_writable = pour_on;
    serve_begin(s, SERVE_BOTH);
    read_slowly(s, &most);
    assert_int_equal(s->peer.code, BOW_OK);
    assert_int_equal(s->peer.n_messages, MANY);
    assert_int_equal(s->peer.n_disordered, 0);
    assert_true(most < ((size_t)3 << 20));
}

static void test_many_messages_of_a_thread_take_bounded_memory(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.n = MANY, .n_payload = 100, .first = 1, .last = finish_elsewhere};
    size_t most = 0;

    serve_begin(s, SERVE_BOTH);
    start_helper(&helper, s);
    read_slowly(s, &most);
    pthread_join(helper.thread, NULL);
    assert_int_equal(s->peer.code, BOW_OK);
    assert_int_equal(s->peer.n_messages, MANY);
    assert_int_equal(s->peer.n_disordered, 0);
    assert_true(most < ((size_t)3 << 20));
}

/* The end, while something waits */

static void send_elsewhere_for_ever(struct helper *helper)
{
    uint64_t number = 0;

    do {
        helper->rc = send_patiently(helper, ++number);
    } while (helper->rc == 0 && number < 2 * BOW_STREAM_WRITABLE_BYTES);
}

static void test_cancelled_while_a_thread_sends_stops_it(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.last = send_elsewhere_for_ever};

    serve_begin(s, SERVE_BOTH);
    start_helper(&helper, s);
    session_peer_wait(&s->peer, &s->peer.n_messages, 10);
    session_peer_cancel(&s->peer);
    pthread_join(helper.thread, NULL);
    assert_int_equal(helper.rc, -ECANCELED);
    serve_expect_closed(s, BOW_CANCELLED, "");
}

/* Posted, and the connection is gone before the loop comes to it. */
static void lose_posted(struct serving *s, struct bow_call *call)
{
    struct helper helper = {.n = 3, .first = 1, .last = finish_elsewhere};

    serve_listen(s, call);
    start_helper(&helper, s);
    calls_wait(s->t, &helper.n_done, 1);
    pthread_join(helper.thread, NULL);
    calls_wait(s->t, &s->n_steps, 1);
    s->rc = helper.rc;
}

static void test_posted_answer_of_a_lost_call_is_dropped(void **state)
{
    struct serving *s = *state;

    s->enter = lose_posted;
    session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, NULL);
    session_peer_cancel(&s->peer);
    session_peer_end(&s->peer);
    s->has_peer = false;
    serve_step(s);
    serve_wait(s, &s->n_closed, 1);
    assert_int_equal(s->rc, 0);
}

/* Payloads */

static struct bow_payload *payload_of(struct serving *s, uint64_t number, size_t n_payload)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    struct bow_payload *payload = NULL;

    reply.number = number;
    reply.payload.len = n_payload;
    reply.payload.data = calloc(1, n_payload + 1);
    assert_int_equal(bow_payload_new(s->t->context, &reply.base, &payload), 0);
    free(reply.payload.data);
    return payload;
}

static void send_payloads(struct serving *s, struct bow_call *call)
{
    struct bow_payload *large = payload_of(s, 2, 20000);
    struct bow_payload *small = payload_of(s, 1, 10);

    assert_int_equal(bow_call_send_payload(call, small), 0);
    assert_int_equal(bow_call_send_payload(call, large), 0);
    bow_payload_unref(small);
    bow_payload_unref(large);
    assert_int_equal(serve_send(call, 3), 0);
    s->rc = bow_call_finish(call);
}

static void test_payloads_are_sent_in_order(void **state)
{
    struct serving *s = *state;

    s->enter = send_payloads;
    for (int i = 1; i <= 3; i++) {
        session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, NULL);
        s->peer.last_number = 0;
        session_peer_wait(&s->peer, &s->peer.n_ends, i);
        assert_int_equal(s->peer.code, BOW_OK);
        assert_int_equal(s->peer.n_messages, 3 * i);
    }
    assert_int_equal(s->peer.n_disordered, 0);
}

static void send_payload_elsewhere(struct helper *helper)
{
    struct bow_payload *payload = payload_of(helper->s, 1, 20000);

    helper->rc = bow_call_send_payload(helper->call, payload);
    bow_payload_unref(payload);
}

static void test_payload_elsewhere_is_sent_and_let_go(void **state)
{
    struct serving *s = *state;
    struct helper helper = {.last = send_payload_elsewhere};

    serve_begin(s, SERVE_BOTH);
    start_helper(&helper, s);
    session_peer_wait(&s->peer, &s->peer.n_messages, 1);
    pthread_join(helper.thread, NULL);
    assert_int_equal(helper.rc, 0);
    assert_int_equal(s->peer.last_number, 1);
}

static void test_payload_to_an_ended_call_is_refused(void **state)
{
    struct serving *s = *state;
    struct bow_payload *payload = payload_of(s, 1, 1);

    s->enter = let_wait;
    serve_begin(s, SERVE_BOTH);
    struct bow_call *call = bow_call_ref(s->call);
    session_peer_cancel(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
    assert_int_equal(bow_call_send_payload(call, payload), -ECANCELED);
    bow_call_unref(call);
    bow_payload_unref(payload);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_send_elsewhere_keeps_its_order),
        TEST(test_fail_elsewhere_ends_the_call),
        TEST(test_reply_elsewhere_is_the_one_message),
        TEST(test_send_after_the_arena_failed_is_refused),
        TEST(test_reply_after_the_arena_failed_is_resource_exhausted),
        TEST(test_send_on_the_loop_goes_behind_what_was_posted),
        TEST(test_finish_on_the_loop_comes_after_what_was_posted),
        TEST(test_posted_messages_are_bounded_and_writable_follows),
        TEST(test_posted_messages_without_bytes_are_bounded),
        TEST(test_send_to_who_does_not_read_is_refused_and_writable_follows),
        TEST(test_send_behind_a_large_message_is_refused),
        TEST(test_many_messages_for_a_slow_reader_take_bounded_memory),
        TEST(test_many_messages_of_a_thread_take_bounded_memory),
        TEST(test_cancelled_while_a_thread_sends_stops_it),
        TEST(test_posted_answer_of_a_lost_call_is_dropped),
        TEST(test_payloads_are_sent_in_order),
        TEST(test_payload_elsewhere_is_sent_and_let_go),
        TEST(test_payload_to_an_ended_call_is_refused),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
