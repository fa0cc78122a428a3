/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata of a client's calls, unary and streams: what is sent along, what comes before the
 * first message and with the status, and what is refused.
 */

#include "stream_fixture.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct bow_metadata_entry entry_of(const char *key, const char *value)
{
    return (struct bow_metadata_entry){key, {(const uint8_t *)value, strlen(value)}};
}

static void start_say(struct streams *s, const struct bow_metadata *metadata)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.metadata = metadata;
    assert_int_equal(
        calls__echo__say__start(s->t->client, &request, &options, calls_on_done, s->t, NULL), 0);
}

static void finish_with_trailing(struct streams *s, enum bow_code code, const char *key,
                                 const char *value)
{
    struct bow_metadata_entry entry = entry_of(key, value);
    struct bow_status status = {.code = code, .message = "", .metadata = {&entry, 1}};

    stream_peer_finish_status(&s->peer, &status);
}

static void expect_entry(const struct bow_metadata *metadata, const char *key, const char *value)
{
    const struct bow_slice *found = bow_metadata_find(metadata, key);

    assert_non_null(found);
    assert_string_equal((const char *)found->data, value);
    assert_int_equal(found->len, strlen(value));
}

static void test_metadata_of_a_unary_call_goes_both_ways(void **state)
{
    struct streams *s = *state;
    const struct bow_metadata_entry sent[] = {entry_of("user", "ann"), entry_of("user", "bob"),
                                              entry_of("key-bin", "\x01\xFF")};

    start_say(s, &(struct bow_metadata){sent, 3});
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_string_equal(s->peer.metadata, "user=ann;user=bob;key-bin=\x01\xFF;");
    stream_peer_respond(&s->peer, "first", "one");
    stream_peer_send(&s->peer, 3);
    finish_with_trailing(s, BOW_OK, "last", "two");
    calls_wait(s->t, &s->t->n_done, 1);
    assert_int_equal(s->t->result.status.code, BOW_OK);
    assert_int_equal(((const Calls__Reply *)s->t->result.reply)->number, 3);
    expect_entry(&s->t->result.initial, "first", "one");
    expect_entry(&s->t->result.status.metadata, "last", "two");
}

static void test_metadata_comes_with_an_error_too(void **state)
{
    struct streams *s = *state;

    start_say(s, NULL);
    streams_accept(s);
    stream_peer_wait(&s->peer, &s->peer.n_messages, 1);
    assert_string_equal(s->peer.metadata, "");
    finish_with_trailing(s, BOW_NOT_FOUND, "why", "gone");
    calls_wait(s->t, &s->t->n_done, 1);
    assert_int_equal(s->t->result.status.code, BOW_NOT_FOUND);
    assert_int_equal(s->t->result.initial.n, 0);
    expect_entry(&s->t->result.status.metadata, "why", "gone");
}

static void open_with(struct streams *s, const struct bow_method *method, const char *key,
                      const char *value)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_metadata_entry entry = entry_of(key, value);
    struct bow_metadata metadata = {&entry, 1};

    options.metadata = &metadata;
    streams_open(s, method, &options);
    streams_accept(s);
}

static void test_metadata_of_a_stream_comes_before_its_messages(void **state)
{
    struct streams *s = *state;

    open_with(s, &streams_both, "user", "ann");
    assert_string_equal(s->peer.metadata, "user=ann;");
    stream_peer_respond(&s->peer, "first", "one");
    streams_wait(s, &s->n_headers, 1);
    assert_int_equal(s->n_messages, 0);
    assert_string_equal(s->initial, "first=one");
    stream_peer_send(&s->peer, 1);
    finish_with_trailing(s, BOW_ABORTED, "last", "two");
    streams_expect_closed(s, BOW_ABORTED, NULL);
    assert_int_equal(s->n_headers, 1);
    assert_int_equal(s->n_messages, 1);
    expect_entry(&s->result.initial, "first", "one");
    expect_entry(&s->result.status.metadata, "last", "two");
}

static void test_metadata_is_sent_again_with_the_second_try(void **state)
{
    struct streams *s = *state;
    struct bow_status status = BOW_STATUS_OK_INIT;

    open_with(s, &streams_pour, "user", "ann");
    s->peer.metadata[0] = '\0';
    status.code = BOW_UNAVAILABLE;
    status.not_processed = true;
    stream_peer_finish_status(&s->peer, &status);
    stream_peer_wait(&s->peer, &s->peer.n_opens, 2);
    assert_string_equal(s->peer.metadata, "user=ann;");
    stream_peer_finish(&s->peer, BOW_OK, "");
    streams_expect_closed(s, BOW_OK, NULL);
}

/* A server that has said something has run a handler, whatever its status says. */
static void test_metadata_received_means_that_the_call_was_processed(void **state)
{
    struct streams *s = *state;
    struct bow_status status = BOW_STATUS_OK_INIT;

    streams_begin(s, &streams_pour);
    stream_peer_respond(&s->peer, "first", "one");
    streams_wait(s, &s->n_headers, 1);
    status.code = BOW_UNAVAILABLE;
    status.not_processed = true;
    stream_peer_finish_status(&s->peer, &status);
    streams_expect_closed(s, BOW_UNAVAILABLE, NULL);
    assert_int_equal(s->peer.n_opens, 1);
}

/* What may not be sent */

static void expect_refused(struct streams *s, const struct bow_metadata_entry *entry, int expected,
                           enum bow_code code, const char *words)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_metadata_entry entries[2] = {entry_of("fine", "too"), *entry};
    struct bow_metadata metadata = {entries, 2};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_stream *stream = NULL;

    options.metadata = &metadata;
    assert_int_equal(
        calls__echo__say__start(s->t->client, &request, &options, calls_on_done, s->t, NULL),
        expected);
    assert_int_equal(
        bow_client_open(s->t->client, &streams_both, NULL, &options, &streams_events, s, &stream),
        expected);
    assert_null(calls__echo__say__call(s->t->client, &request, &options, &result));
    assert_int_equal(result.status.code, code);
    if (strstr(result.status.message, words) == NULL) {
        fail_msg("%s", result.status.message);
    }
    bow_result_fini(&result);
}

static void test_metadata_against_the_rules_is_refused(void **state)
{
    struct streams *s = *state;
    struct bow_metadata_entry upper = entry_of("User", "ann");
    struct bow_metadata_entry own = entry_of("grpc-status", "0");
    struct bow_metadata_entry https = entry_of("te", "trailers");
    struct bow_metadata_entry value = entry_of("name", "a\nb");
    struct bow_metadata_entry blank = entry_of("name", "a ");

    expect_refused(s, &upper, -EINVAL, BOW_INVALID_ARGUMENT, "\"User\"");
    expect_refused(s, &own, -EINVAL, BOW_INVALID_ARGUMENT,
                   "\"grpc-status\" cannot be sent: the key");
    expect_refused(s, &https, -EINVAL, BOW_INVALID_ARGUMENT,
                   "\"te\" cannot be sent: the key is one");
    expect_refused(s, &value, -EINVAL, BOW_INVALID_ARGUMENT, "\"name\" cannot be sent: its key or");
    expect_refused(s, &blank, -EINVAL, BOW_INVALID_ARGUMENT, "\"name\"");
}

static void test_metadata_over_the_limit_is_refused(void **state)
{
    static uint8_t bytes[BOW_LIMIT_HEADER_BYTES_MAX];
    struct streams *s = *state;
    struct bow_metadata_entry large = {"large-bin", {bytes, sizeof(bytes)}};

    expect_refused(s, &large, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED,
                   "BOW_LIMIT_HEADER_BYTES_MAX (131072)");
}

#define METADATA_TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        METADATA_TEST(test_metadata_of_a_unary_call_goes_both_ways),
        METADATA_TEST(test_metadata_comes_with_an_error_too),
        METADATA_TEST(test_metadata_of_a_stream_comes_before_its_messages),
        METADATA_TEST(test_metadata_is_sent_again_with_the_second_try),
        METADATA_TEST(test_metadata_received_means_that_the_call_was_processed),
        METADATA_TEST(test_metadata_against_the_rules_is_refused),
        METADATA_TEST(test_metadata_over_the_limit_is_refused),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
