/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Initial metadata that a call's handler may add, and that its client does not take. The four kinds
 * of method have one answer to it.
 */

#include "serve_fixture.h"

#include "rpc/core/call/call.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOO_LARGE "that the client takes: raise max_header_bytes there"

static void add_too_much(struct bow_call *call)
{
    char *value = calloc(1, BOW_LIMIT_HEADER_BYTES);

    memset(value, 'v', BOW_LIMIT_HEADER_BYTES);
    assert_int_equal(bow_call_add_initial(
                         call, "k", (struct bow_slice){(uint8_t *)value, BOW_LIMIT_HEADER_BYTES}),
                     0);
    free(value);
}

static void expect_refused(struct serving *s, const char *path, int rc)
{
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, TOO_LARGE);
    assert_non_null(strstr(s->peer.text, path));
    assert_int_equal(s->peer.n_headers, 0);
    assert_int_equal(s->peer.n_messages, 0);
    assert_int_equal(s->rc, rc);
}

static void add_and_reply(struct serving *s, struct bow_call *call)
{
    add_too_much(call);
    s->rc = serve_reply(call, 7);
}

static void test_unsent_metadata_refuses_a_unary_reply(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply;
    expect_refused(s, SERVE_PLAIN, -EMSGSIZE);
}

static void add_and_reply_much(struct serving *s, struct bow_call *call)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    add_too_much(call);
    reply.payload.len = 100000;
    reply.payload.data = calloc(1, reply.payload.len);
    s->rc = bow_call_reply(call, &reply.base);
    free(reply.payload.data);
}

static void test_unsent_metadata_refuses_a_large_unary_reply(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply_much;
    expect_refused(s, SERVE_PLAIN, -EMSGSIZE);
}

static void test_unsent_metadata_refuses_the_reply_of_a_client_s_stream(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply;
    expect_refused(s, SERVE_GATHER, -EMSGSIZE);
}

/* The handler may do what it will with the call that cannot send; that it went well it cannot say.
 */
static void add_send_and_finish(struct serving *s, struct bow_call *call)
{
    add_too_much(call);
    assert_int_equal(serve_send(call, 1), -EMSGSIZE);
    assert_int_equal(serve_send_sized(call, 1, 100000), -EMSGSIZE);
    s->rc = bow_call_finish(call);
    assert_int_equal(serve_send(call, 1), -ECANCELED);
}

static void test_unsent_metadata_refuses_the_messages_of_a_server_s_stream(void **state)
{
    struct serving *s = *state;

    s->enter = add_send_and_finish;
    expect_refused(s, SERVE_POUR, -EMSGSIZE);
}

static void test_unsent_metadata_refuses_the_messages_of_both_streams(void **state)
{
    struct serving *s = *state;

    s->enter = add_send_and_finish;
    expect_refused(s, SERVE_BOTH, -EMSGSIZE);
}

static void *send_elsewhere(void *call)
{
    assert_int_equal(serve_send(call, 1), 0);
    bow_call_unref(call);
    return NULL;
}

static void add_and_hand_on(struct serving *s, struct bow_call *call)
{
    add_too_much(call);
    serve_listen(s, call);
    bow_call_ref(call);
    assert_int_equal(pthread_create(&s->t->helpers[s->t->n_helpers++], NULL, send_elsewhere, call),
                     0);
}

/* What was taken from another thread is not lost without a word. */
static void test_unsent_metadata_ends_a_call_with_posted_messages(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_hand_on;
    expect_refused(s, SERVE_BOTH, 0);
    serve_expect_closed(s, BOW_RESOURCE_EXHAUSTED, TOO_LARGE);
}

/* An error is worth more than what was to come with it. */
static void add_and_fail(struct serving *s, struct bow_call *call)
{
    add_too_much(call);
    s->rc = bow_call_fail(call, BOW_ABORTED, "for a reason of its own");
}

static void expect_own_error(struct serving *s, const char *path)
{
    s->enter = add_and_fail;
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_ABORTED, "for a reason of its own");
    assert_int_equal(s->peer.n_headers, 0);
    assert_int_equal(s->rc, 0);
}

static void test_unsent_metadata_leaves_a_unary_failure(void **state)
{
    expect_own_error(*state, SERVE_PLAIN);
}

static void test_unsent_metadata_leaves_the_failure_of_a_stream(void **state)
{
    expect_own_error(*state, SERVE_BOTH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unsent_metadata_refuses_a_unary_reply),
        TEST(test_unsent_metadata_refuses_a_large_unary_reply),
        TEST(test_unsent_metadata_refuses_the_reply_of_a_client_s_stream),
        TEST(test_unsent_metadata_refuses_the_messages_of_a_server_s_stream),
        TEST(test_unsent_metadata_refuses_the_messages_of_both_streams),
        TEST(test_unsent_metadata_ends_a_call_with_posted_messages),
        TEST(test_unsent_metadata_leaves_a_unary_failure),
        TEST(test_unsent_metadata_leaves_the_failure_of_a_stream),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
