/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata of a server's calls, unary and streaming: what it gets, and what it sends
 * before the first message and with the status.
 */

#include "serve_fixture.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bow_slice text(const char *value)
{
    return (struct bow_slice){(const uint8_t *)value, strlen(value)};
}

/* Received */

static void see(struct serving *s, struct bow_call *call)
{
    const struct bow_metadata *metadata = bow_call_metadata(call);
    const struct bow_slice *who = bow_metadata_find(metadata, "who");
    const struct bow_slice *raw = bow_metadata_find(metadata, "raw-bin");

    s->n_sent = metadata->n;
    if (metadata->n > 0) {
        assert_string_equal((const char *)who->data, "anna");
        assert_int_equal(raw->len, 3);
        assert_memory_equal(raw->data, "\0\xFF\n", 3);
    }
    s->rc = serve_reply(call, 1);
}

static void begin_with(struct serving *s, const char *path, size_t n)
{
    const struct bow_metadata_entry entries[] = {
        {"who", text("anna")},
        {"raw-bin", {(const uint8_t *)"\0\xFF\n", 3}},
    };
    const struct bow_metadata metadata = {entries, n};

    s->enter = see;
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, &metadata);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->n_sent, n);
    assert_int_equal(s->rc, 0);
    assert_int_equal(s->peer.n_headers, 0);
    assert_string_equal(s->peer.trailing, "");
}

static void test_metadata_reaches_a_unary_handler(void **state)
{
    begin_with(*state, SERVE_PLAIN, 2);
}

static void test_metadata_reaches_a_streaming_handler(void **state)
{
    begin_with(*state, SERVE_BOTH, 2);
}

static void test_metadata_is_empty_when_none_came(void **state)
{
    begin_with(*state, SERVE_PLAIN, 0);
}

/* Sent */

static void add(struct bow_call *call)
{
    assert_int_equal(bow_call_add_initial(call, "first", text("a")), 0);
    assert_int_equal(bow_call_add_initial(call, "first", text("b")), 0);
    assert_int_equal(bow_call_add_trailing(call, "last", text("z")), 0);
}

static void add_and_reply(struct serving *s, struct bow_call *call)
{
    add(call);
    s->rc = serve_reply(call, 7);
}

static void expect_all(struct serving *s)
{
    assert_string_equal(s->peer.initial, "first=a;first=b;");
    assert_int_equal(s->peer.n_headers, 1);
    assert_string_equal(s->peer.trailing, "last=z;");
}

static void expect_reply_with_metadata(struct serving *s, const char *path)
{
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.last_number, 7);
    assert_int_equal(s->peer.n_messages, 1);
    expect_all(s);
    assert_int_equal(s->rc, 0);
}

static void test_metadata_goes_with_a_unary_reply(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply;
    expect_reply_with_metadata(s, SERVE_PLAIN);
}

static void test_metadata_goes_with_the_reply_of_a_stream(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply;
    expect_reply_with_metadata(s, SERVE_GATHER);
}

static void add_and_reply_much(struct serving *s, struct bow_call *call)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    add(call);
    reply.number = 7;
    reply.payload.len = 100000;
    reply.payload.data = calloc(1, reply.payload.len);
    s->rc = bow_call_reply(call, &reply.base);
    free(reply.payload.data);
}

static void test_metadata_goes_with_a_large_unary_reply(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_reply_much;
    expect_reply_with_metadata(s, SERVE_PLAIN);
}

static void *add_and_reply_elsewhere(void *call)
{
    add(call);
    assert_int_equal(serve_reply(call, 7), 0);
    return NULL;
}

static void hand_on(struct serving *s, struct bow_call *call)
{
    assert_int_equal(
        pthread_create(&s->t->helpers[s->t->n_helpers++], NULL, add_and_reply_elsewhere, call), 0);
}

static void test_metadata_goes_with_a_unary_reply_of_a_thread(void **state)
{
    struct serving *s = *state;

    s->enter = hand_on;
    expect_reply_with_metadata(s, SERVE_PLAIN);
}

static void add_and_stream(struct serving *s, struct bow_call *call)
{
    assert_int_equal(bow_call_add_initial(call, "first", text("a")), 0);
    assert_int_equal(bow_call_add_initial(call, "first", text("b")), 0);
    assert_int_equal(serve_send(call, 1), 0);
    assert_int_equal(bow_call_add_initial(call, "late", text("c")), -EALREADY);
    assert_int_equal(bow_call_add_trailing(call, "last", text("z")), 0);
    assert_int_equal(serve_send(call, 2), 0);
    s->rc = bow_call_finish(call);
}

static void test_metadata_goes_around_the_messages_of_a_stream(void **state)
{
    struct serving *s = *state;

    s->enter = add_and_stream;
    serve_begin(s, SERVE_BOTH);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.n_messages, 2);
    expect_all(s);
}

static void add_and_fail(struct serving *s, struct bow_call *call)
{
    add(call);
    s->rc = bow_call_fail(call, BOW_ABORTED, "with metadata");
}

static void expect_failure_with_metadata(struct serving *s, const char *path)
{
    s->enter = add_and_fail;
    serve_begin(s, path);
    serve_expect_status(s, BOW_ABORTED, "with metadata");
    expect_all(s);
}

static void test_metadata_goes_with_a_unary_failure(void **state)
{
    expect_failure_with_metadata(*state, SERVE_PLAIN);
}

static void test_metadata_goes_with_the_failure_of_a_stream(void **state)
{
    expect_failure_with_metadata(*state, SERVE_BOTH);
}

static void fail_by_status(struct serving *s, struct bow_call *call)
{
    const struct bow_metadata_entry entries[] = {{"why-bin", text("because")}};
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = BOW_ABORTED;
    status.message = "by status";
    status.metadata = (struct bow_metadata){entries, 1};
    assert_int_equal(bow_call_add_trailing(call, "last", text("z")), 0);
    s->rc = bow_call_fail_status(call, &status);
}

static void expect_status_with_metadata(struct serving *s, const char *path)
{
    s->enter = fail_by_status;
    serve_begin(s, path);
    serve_expect_status(s, BOW_ABORTED, "by status");
    assert_string_equal(s->peer.trailing, "last=z;why-bin=because;");
    assert_int_equal(s->rc, 0);
}

static void test_metadata_of_a_status_goes_with_it(void **state)
{
    expect_status_with_metadata(*state, SERVE_PLAIN);
}

static void test_metadata_of_a_status_goes_with_that_of_a_stream(void **state)
{
    expect_status_with_metadata(*state, SERVE_BOTH);
}

/* Refused */

static void fail_wrongly(struct serving *s, struct bow_call *call)
{
    const struct bow_metadata_entry entries[] = {{"Upper", text("v")}};
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = BOW_ABORTED;
    status.metadata = (struct bow_metadata){entries, 1};
    s->rc = bow_call_fail_status(call, &status);
}

static void expect_internal(struct serving *s, const char *path)
{
    s->enter = fail_wrongly;
    serve_begin(s, path);
    serve_expect_status(s, BOW_INTERNAL, "metadata of the status");
    assert_int_equal(s->rc, -EINVAL);
}

static void test_metadata_of_a_status_is_checked(void **state)
{
    expect_internal(*state, SERVE_PLAIN);
}

static void test_metadata_of_a_stream_s_status_is_checked(void **state)
{
    expect_internal(*state, SERVE_BOTH);
}

static void add_too_much(struct serving *s, struct bow_call *call)
{
    char *long_value = calloc(1, BOW_LIMIT_HEADER_BYTES_MAX + 1);

    memset(long_value, 'v', BOW_LIMIT_HEADER_BYTES_MAX);
    assert_int_equal(bow_call_add_initial(call, "Upper", text("v")), -EINVAL);
    assert_int_equal(bow_call_add_trailing(call, "grpc-status", text("0")), -EINVAL);
    assert_int_equal(bow_call_add_initial(call, "te", text("trailers")), -EINVAL);
    assert_int_equal(bow_call_add_trailing(call, "content-type", text("v")), -EINVAL);
    assert_int_equal(bow_call_add_initial(call, "k", text(" v")), -EINVAL);
    assert_int_equal(bow_call_add_initial(call, "k", text(long_value)), -EMSGSIZE);
    assert_int_equal(bow_call_add_trailing(call, "k", text(long_value)), -EMSGSIZE);
    free(long_value);
    s->rc = serve_reply(call, 1);
}

static void test_metadata_that_breaks_a_rule_is_not_added(void **state)
{
    struct serving *s = *state;

    s->enter = add_too_much;
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.n_headers, 0);
    assert_string_equal(s->peer.trailing, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_metadata_reaches_a_unary_handler),
        TEST(test_metadata_reaches_a_streaming_handler),
        TEST(test_metadata_is_empty_when_none_came),
        TEST(test_metadata_goes_with_a_unary_reply),
        TEST(test_metadata_goes_with_the_reply_of_a_stream),
        TEST(test_metadata_goes_with_a_large_unary_reply),
        TEST(test_metadata_goes_with_a_unary_reply_of_a_thread),
        TEST(test_metadata_goes_around_the_messages_of_a_stream),
        TEST(test_metadata_goes_with_a_unary_failure),
        TEST(test_metadata_goes_with_the_failure_of_a_stream),
        TEST(test_metadata_of_a_status_goes_with_it),
        TEST(test_metadata_of_a_status_goes_with_that_of_a_stream),
        TEST(test_metadata_of_a_status_is_checked),
        TEST(test_metadata_of_a_stream_s_status_is_checked),
        TEST(test_metadata_that_breaks_a_rule_is_not_added),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
