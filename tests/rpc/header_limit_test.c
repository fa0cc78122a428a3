/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * max_header_bytes of both sides: what it lets through both ways, what becomes of more, in which
 * words, and that the connection lives on. On virtual time; PROTOCOL is the argument.
 */

#include "pair_security.h"
#include "protos/echo.bow.h"
#include "protos/kinds.bow.h"

#include <bowline/client.h>
#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)

static bool is_grpc;

/* What the handler sends along, and what came to it. */
struct limits {
    struct bow_test *test;
    struct bow_test_pair *pair;
    size_t n_initial;
    size_t n_trailing;
    size_t n_details;
    enum bow_code code;
    const char *text; /* of an error */
    size_t n_entries;
    size_t n_value; /* of "big" or "big-bin" */
    bool is_whole;
    int n_calls;
    int reply_rc;
};

/* Values */

static uint8_t byte_at(size_t i)
{
    return (uint8_t)('a' + i % 23);
}

static struct bow_slice value_of(size_t n)
{
    static uint8_t bytes[BOW_LIMIT_HEADER_BYTES_MAX];

    for (size_t i = 0; i < n; i++) {
        bytes[i] = byte_at(i);
    }
    return (struct bow_slice){bytes, n};
}

static bool is_value(struct bow_slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] != byte_at(i)) {
            return false;
        }
    }
    return value.data[value.len] == '\0';
}

/* The server */

static void look(struct limits *limits, const struct bow_metadata *metadata)
{
    limits->n_entries = metadata->n;
    limits->n_value = 0;
    limits->is_whole = true;
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        if (strncmp(entry->key, "big", 3) == 0) {
            limits->n_value = entry->value.len;
            limits->is_whole = is_value(entry->value);
        } else {
            limits->is_whole =
                limits->is_whole && (size_t)atoi((const char *)entry->value.data) == i;
        }
    }
}

static void end_with_error(struct limits *limits, struct bow_call *call)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = limits->code;
    status.message = limits->text;
    status.details = value_of(limits->n_details);
    bow_call_fail_status(call, &status);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct limits *limits = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    limits->n_calls++;
    look(limits, bow_call_metadata(call));
    if (limits->n_initial > 0) {
        assert_int_equal(bow_call_add_initial(call, "big", value_of(limits->n_initial)), 0);
    }
    if (limits->n_trailing > 0) {
        assert_int_equal(bow_call_add_trailing(call, "big", value_of(limits->n_trailing)), 0);
    }
    if (limits->code != BOW_OK) {
        end_with_error(limits, call);
        return;
    }
    reply.number = request->number;
    reply.payload = request->payload;
    limits->reply_rc = calls__echo__say__reply(call, &reply);
}

/* A stream whose trailing metadata is known behind the first message only. */
static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    struct limits *limits = user;

    assert_int_equal(kinds__all__count__send(call, request), 0);
    assert_int_equal(bow_call_add_trailing(call.call, "big", value_of(limits->n_trailing)), 0);
    limits->reply_rc = kinds__all__count__finish(call);
}

static void on_last_summand(struct kinds__all__sum__call call, void *user)
{
    struct limits *limits = user;
    Kinds__Number reply = KINDS__NUMBER__INIT;

    assert_int_equal(bow_call_add_trailing(call.call, "big", value_of(limits->n_trailing)), 0);
    limits->reply_rc = kinds__all__sum__reply(call, &reply);
}

static void sum(struct kinds__all__sum__call call, void *user)
{
    static const struct kinds__all__sum__call_events events = {.on_half_close = on_last_summand};

    assert_int_equal(kinds__all__sum__listen(call, &events, user), 0);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say};
    const struct kinds__all__handlers kinds = {.count = count, .sum = sum};

    int rc = calls__echo__serve(server, &handlers, user);
    return rc == 0 ? kinds__all__serve(server, &kinds, user) : rc;
}

static int set_up(void **state)
{
    static struct limits limits;

    limits = (struct limits){.text = ""};
    *state = &limits;
    return bow_test_new(NULL, &limits.test);
}

static int tear_down(void **state)
{
    struct limits *limits = *state;

    bow_test_pair_free(limits->test, limits->pair);
    pair_unsecure();
    return bow_test_end(limits->test);
}

static void make_pair(struct limits *limits, size_t server_bytes, size_t client_bytes)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    server.max_header_bytes = server_bytes;
    client.max_header_bytes = client_bytes;
    pair_secure(limits->test, &server, &client);
    options.serve = serve;
    options.user = limits;
    options.grpc = is_grpc;
    options.server = &server;
    options.client = &client;
    assert_int_equal(bow_test_pair_new(limits->test, &options, &limits->pair), 0);
}

/* The client */

static void expect_words(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, words);
    }
}

static void expect_call(struct limits *limits, const struct bow_metadata *metadata,
                        size_t n_payload, enum bow_code code, const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.metadata = metadata;
    request.payload.data = calloc(1, n_payload + 1);
    request.payload.len = n_payload;
    const Calls__Reply *reply =
        calls__echo__say__call(limits->pair->blocking, &request, &options, &result);
    expect_words(result.status.message, words);
    assert_int_equal(result.status.code, code);
    if (code == BOW_OK) {
        assert_int_equal(reply->payload.len, n_payload);
    }
    free(request.payload.data);
    bow_result_fini(&result);
}

static void expect_with_value(struct limits *limits, const char *key, size_t n, enum bow_code code,
                              const char *words)
{
    const struct bow_metadata_entry entry = {key, value_of(n)};
    const struct bow_metadata metadata = {&entry, 1};

    expect_call(limits, &metadata, 10, code, words);
}

static void expect_plain(struct limits *limits)
{
    expect_call(limits, NULL, 10, BOW_OK, "");
}

static void expect_one_connection(struct limits *limits)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    /* Until they are published. */
    assert_int_equal(bow_test_advance(limits->test, UINT64_C(1000000000)), 0);
    assert_int_equal(bow_server_metrics(limits->pair->server, &metrics), 0);
    assert_int_equal(metrics.connections_opened, 1);
    assert_int_equal(metrics.protocol_errors, 0);
}

/* Requests */

static void test_request_above_the_default_is_taken_where_it_is_allowed(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, 32 * KIB, 0);
    /* Also the first of a connection, before the server has said so. */
    for (int i = 0; i < 3; i++) {
        expect_with_value(limits, "big", 20 * KIB, BOW_OK, "");
        assert_int_equal(limits->n_value, 20 * KIB);
        assert_true(limits->is_whole);
        expect_with_value(limits, "big-bin", 20 * KIB, BOW_OK, "");
        assert_int_equal(limits->n_value, 20 * KIB);
        assert_true(limits->is_whole);
    }
    assert_int_equal(limits->n_calls, 6);
    expect_one_connection(limits);
}

static void test_largest_request_is_taken(void **state)
{
    struct limits *limits = *state;
    static const size_t payloads[] = {0, 10, 20000, 200000};
    const struct bow_metadata_entry entries[] = {{"big", value_of(63 * KIB)},
                                                 {"bigger", value_of(60 * KIB)}};
    const struct bow_metadata metadata = {entries, 2};

    make_pair(limits, BOW_LIMIT_HEADER_BYTES_MAX, 0);
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        expect_call(limits, &metadata, payloads[i], BOW_OK, "");
        assert_int_equal(limits->n_entries, 2);
        assert_true(limits->is_whole);
    }
    expect_one_connection(limits);
}

static void test_many_entries_are_taken_in_their_order(void **state)
{
    struct limits *limits = *state;
    static struct bow_metadata_entry entries[2000];
    static char numbers[2000][8];
    const struct bow_metadata metadata = {entries, 2000};

    for (size_t i = 0; i < 2000; i++) {
        int n = snprintf(numbers[i], sizeof(numbers[i]), "%zu", i);
        entries[i] = (struct bow_metadata_entry){i % 2 == 0 ? "k" : "k-bin",
                                                 {(const uint8_t *)numbers[i], (size_t)n}};
    }
    make_pair(limits, 100 * KIB, 0);
    expect_call(limits, &metadata, 10, BOW_OK, "");
    assert_int_equal(limits->n_entries, 2000);
    assert_true(limits->is_whole);
}

static void test_request_above_what_the_server_takes_is_not_sent(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, 32 * KIB, 0);
    for (int is_connected = 0; is_connected < 2; is_connected++) {
        expect_with_value(limits, "big", 40 * KIB, BOW_RESOURCE_EXHAUSTED,
                          "above the 32768 that the server takes: raise max_header_bytes there");
        expect_with_value(limits, "big", 40 * KIB, BOW_RESOURCE_EXHAUSTED, "its header of 4");
        expect_plain(limits);
    }
    assert_int_equal(limits->n_calls, 2);
    expect_one_connection(limits);
}

static void test_value_that_http2_cannot_carry_is_not_sent(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, BOW_LIMIT_HEADER_BYTES_MAX, 0);
    if (is_grpc) {
        expect_with_value(limits, "big", 70 * KIB, BOW_RESOURCE_EXHAUSTED,
                          "one of its values has 71680 bytes, and grpc allows 65536");
    } else {
        expect_with_value(limits, "big", 70 * KIB, BOW_OK, "");
        assert_true(limits->is_whole);
    }
    expect_plain(limits);
    expect_one_connection(limits);
}

/* Over gRPC it is not sent, once the server has said so. The native protocol has no word for less
 * than its default. */
static void test_request_above_a_small_limit_is_refused(void **state)
{
    struct limits *limits = *state;
    const char *words = is_grpc ? "above the 4096 that the server takes"
                                : "exceeds the server's max_header_bytes (4096): raise it there";

    make_pair(limits, 4 * KIB, 0);
    expect_with_value(limits, "big", 2 * KIB, BOW_OK, "");
    for (int i = 0; i < 3; i++) {
        expect_with_value(limits, "big", 6 * KIB, BOW_RESOURCE_EXHAUSTED, words);
        expect_plain(limits);
    }
    assert_int_equal(limits->n_calls, 4);
    expect_one_connection(limits);
}

static void test_first_request_above_a_small_limit_is_refused_there(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, 4 * KIB, 0);
    expect_with_value(limits, "big", 6 * KIB, BOW_RESOURCE_EXHAUSTED,
                      "exceeds the server's max_header_bytes (4096): raise it there");
    expect_plain(limits);
    assert_int_equal(limits->n_calls, 1);
    expect_one_connection(limits);
}

/* Answers */

static void test_answer_above_the_default_is_taken_where_it_is_allowed(void **state)
{
    struct limits *limits = *state;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    make_pair(limits, 0, BOW_LIMIT_HEADER_BYTES_MAX);
    limits->n_initial = 60 * KIB;
    limits->n_trailing = 50 * KIB;
    for (int i = 0; i < 2; i++) {
        calls__echo__say__call(limits->pair->blocking, &request, NULL, &result);
        assert_int_equal(result.status.code, BOW_OK);
        look(limits, &result.initial);
        assert_int_equal(limits->n_value, 60 * KIB);
        assert_true(limits->is_whole);
        look(limits, &result.status.metadata);
        assert_int_equal(limits->n_value, 50 * KIB);
        assert_true(limits->is_whole);
        bow_result_fini(&result);
    }
    expect_one_connection(limits);
}

static void test_initial_metadata_above_what_the_client_takes_is_not_sent(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, 0, 32 * KIB);
    limits->n_initial = 40 * KIB;
    expect_call(limits, NULL, 10, BOW_RESOURCE_EXHAUSTED,
                "above the 32768 that the client takes: raise max_header_bytes there");
    assert_int_equal(limits->reply_rc, -EMSGSIZE);
    limits->n_initial = 20 * KIB;
    expect_call(limits, NULL, 10, BOW_OK, "");
    expect_one_connection(limits);
}

static void test_answer_above_a_small_limit_ends_its_call_alone(void **state)
{
    struct limits *limits = *state;
    const char *words = is_grpc ? "above the 4096 that the client takes"
                                : "exceeds the client's max_header_bytes (4096): raise it there";

    make_pair(limits, 0, 4 * KIB);
    for (int i = 0; i < 3; i++) {
        limits->n_initial = 6 * KIB;
        expect_call(limits, NULL, 10, BOW_RESOURCE_EXHAUSTED, words);
        limits->n_initial = 0;
        expect_plain(limits);
    }
    expect_one_connection(limits);
}

/* Which over gRPC the client says, natively it keeps it to itself below what any peer takes. */
static void test_trailing_metadata_above_a_small_limit(void **state)
{
    static const size_t payloads[] = {10, 100000};
    struct limits *limits = *state;

    make_pair(limits, 0, 4 * KIB);
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        limits->n_trailing = 6 * KIB;
        expect_call(limits, NULL, payloads[i], BOW_RESOURCE_EXHAUSTED,
                    is_grpc ? "above the 4096 that the client takes"
                            : "exceeds the client's max_header_bytes (4096): raise it there");
        limits->n_trailing = 0;
        expect_plain(limits);
    }
    expect_one_connection(limits);
}

/* That a call went well is not said without what belongs to it. */
static void test_trailing_metadata_above_what_the_client_takes_is_not_sent(void **state)
{
    static const size_t payloads[] = {10, 100000};
    struct limits *limits = *state;

    make_pair(limits, 0, 32 * KIB);
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        limits->n_trailing = 40 * KIB;
        expect_call(limits, NULL, payloads[i], BOW_RESOURCE_EXHAUSTED,
                    "the trailing metadata of /calls.Echo/Say cannot be sent: its header of 4");
        assert_int_equal(limits->reply_rc, -EMSGSIZE);
        limits->n_trailing = 20 * KIB;
        expect_call(limits, NULL, payloads[i], BOW_OK, "");
        assert_int_equal(limits->reply_rc, 0);
    }
    expect_one_connection(limits);
}

static void expect_count(struct limits *limits, enum bow_code code, const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__count__stream stream;
    Kinds__Number request = KINDS__NUMBER__INIT;
    const Kinds__Number *number = NULL;

    assert_int_equal(
        kinds__all__count__open(limits->pair->blocking, &request, NULL, NULL, NULL, &stream), 0);
    while (kinds__all__count__stream_receive(stream, BOW_NEVER, &number) == 1) {
    }
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    expect_words(result.status.message, words);
    assert_int_equal(result.status.code, code);
    bow_result_fini(&result);
}

static void expect_sum(struct limits *limits, enum bow_code code, const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__sum__stream stream;

    assert_int_equal(kinds__all__sum__open(limits->pair->blocking, NULL, NULL, NULL, &stream), 0);
    (void)kinds__all__sum__stream_finish(stream, &result);
    expect_words(result.status.message, words);
    assert_int_equal(result.status.code, code);
    bow_result_fini(&result);
}

static void test_trailing_metadata_of_a_stream_above_what_the_client_takes(void **state)
{
    static const char words[] = "cannot be sent: its header of 4";
    struct limits *limits = *state;

    make_pair(limits, 0, 32 * KIB);
    limits->n_trailing = 40 * KIB;
    expect_count(limits, BOW_RESOURCE_EXHAUSTED, words);
    assert_int_equal(limits->reply_rc, -EMSGSIZE);
    expect_sum(limits, BOW_RESOURCE_EXHAUSTED, words);
    assert_int_equal(limits->reply_rc, -EMSGSIZE);
    limits->n_trailing = 20 * KIB;
    expect_count(limits, BOW_OK, "");
    assert_int_equal(limits->reply_rc, 0);
    expect_sum(limits, BOW_OK, "");
    assert_int_equal(limits->reply_rc, 0);
    expect_one_connection(limits);
}

/* A status says its code, however long its words. */
static void test_long_status_fits_what_the_client_takes(void **state)
{
    static char text[6000];
    struct limits *limits = *state;

    memset(text, '%', sizeof(text) - 1);
    make_pair(limits, 0, is_grpc ? BOW_LIMIT_HEADER_BYTES_MIN : 0);
    limits->code = BOW_ABORTED;
    limits->text = text;
    limits->n_trailing = 100 * KIB;
    limits->n_details = 100 * KIB;
    expect_call(limits, NULL, 10, BOW_ABORTED, is_grpc ? "%%%%" : "%%%%%%%%");
    *limits = (struct limits){.test = limits->test, .pair = limits->pair};
    expect_plain(limits);
    expect_one_connection(limits);
}

static void test_details_above_the_default_are_taken_where_it_is_allowed(void **state)
{
    struct limits *limits = *state;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    make_pair(limits, 0, BOW_LIMIT_HEADER_BYTES_MAX);
    limits->code = BOW_ABORTED;
    limits->n_details = 40 * KIB;
    calls__echo__say__call(limits->pair->blocking, &request, NULL, &result);
    assert_int_equal(result.status.code, BOW_ABORTED);
    assert_int_equal(result.status.details.len, 40 * KIB);
    assert_memory_equal(result.status.details.data, value_of(40 * KIB).data, 40 * KIB);
    bow_result_fini(&result);
}

/* One of more than 64 KiB would be the end of a connection over HTTP/2. */
static void test_value_that_http2_cannot_carry_is_not_in_trailers(void **state)
{
    struct limits *limits = *state;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    make_pair(limits, 0, BOW_LIMIT_HEADER_BYTES_MAX);
    for (int i = 0; i < 4; i++) {
        bool is_error = i % 2 == 1;
        limits->n_trailing = is_error ? 0 : 70 * KIB;
        limits->n_details = 60 * KIB; /* of an error; as base64 80 KiB */
        limits->code = is_error ? BOW_ABORTED : BOW_OK;
        calls__echo__say__call(limits->pair->blocking, &request, NULL, &result);
        assert_int_equal(result.status.code,
                         is_error || !is_grpc ? limits->code : BOW_RESOURCE_EXHAUSTED);
        assert_int_equal(result.status.metadata.n, is_error || is_grpc ? 0 : 1);
        assert_int_equal(result.status.details.len, is_error && !is_grpc ? 60 * KIB : 0);
        bow_result_fini(&result);
    }
    expect_one_connection(limits);
}

/* Bounds */

static void expect_no_server(size_t n, const char *words)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_transport_error error = {.text = ""};
    struct bow_server *server = NULL;

    options.max_header_bytes = n;
    options.error = &error;
    assert_int_equal(bow_server_new(&options, &server), -EINVAL);
    expect_words(error.text, words);
}

static void expect_no_client(size_t n, const char *words)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {.text = ""};
    struct bow_client *client = NULL;

    options.target = "127.0.0.1:1";
    options.max_header_bytes = n;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    expect_words(error.text, words);
}

static void test_option_out_of_bounds_is_refused(void **state)
{
    static const char low[] = "options.max_header_bytes is 2047; from 2048 "
                              "(BOW_LIMIT_HEADER_BYTES_MIN) to 131072";
    static const char high[] = "options.max_header_bytes is 131073; from 2048";

    (void)state;
    expect_no_server(BOW_LIMIT_HEADER_BYTES_MIN - 1, low);
    expect_no_client(BOW_LIMIT_HEADER_BYTES_MIN - 1, low);
    expect_no_server(BOW_LIMIT_HEADER_BYTES_MAX + 1, high);
    expect_no_client(BOW_LIMIT_HEADER_BYTES_MAX + 1, high);
}

static void test_least_limit_lets_plain_calls_through(void **state)
{
    struct limits *limits = *state;

    make_pair(limits, BOW_LIMIT_HEADER_BYTES_MIN, BOW_LIMIT_HEADER_BYTES_MIN);
    expect_plain(limits);
    expect_plain(limits);
    expect_one_connection(limits);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_request_above_the_default_is_taken_where_it_is_allowed),
        TEST(test_largest_request_is_taken),
        TEST(test_many_entries_are_taken_in_their_order),
        TEST(test_request_above_what_the_server_takes_is_not_sent),
        TEST(test_value_that_http2_cannot_carry_is_not_sent),
        TEST(test_request_above_a_small_limit_is_refused),
        TEST(test_first_request_above_a_small_limit_is_refused_there),
        TEST(test_answer_above_the_default_is_taken_where_it_is_allowed),
        TEST(test_initial_metadata_above_what_the_client_takes_is_not_sent),
        TEST(test_answer_above_a_small_limit_ends_its_call_alone),
        TEST(test_trailing_metadata_above_a_small_limit),
        TEST(test_long_status_fits_what_the_client_takes),
        TEST(test_details_above_the_default_are_taken_where_it_is_allowed),
        TEST(test_trailing_metadata_above_what_the_client_takes_is_not_sent),
        TEST(test_trailing_metadata_of_a_stream_above_what_the_client_takes),
        TEST(test_value_that_http2_cannot_carry_is_not_in_trailers),
        TEST(test_option_out_of_bounds_is_refused),
        TEST(test_least_limit_lets_plain_calls_through),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
