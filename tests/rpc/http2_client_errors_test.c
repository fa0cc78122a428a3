/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a client makes of servers' answers, byte by byte. */
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES ((size_t)64 << 10)
#define GRPC_TYPE "content-type: application/grpc"
/* A google.rpc.Status: code 8, "busy", a google.rpc.RetryInfo of 1.5 s. */
#define RETRY_INFO                                                                                 \
    "grpc-status-details-bin: "                                                                    \
    "CAgSBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ=="

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes in;
    struct bytes out;
    char text[TEXT_BYTES];
    uint64_t key;
};

/* One call is on its way; the server's SETTINGS are the first thing in `in`. */
static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", 1500000, &t->key), 0);
    t->out.len = side_drain(&t->pair.client, t->out.data, sizeof(t->out.data));
    /* Frames only: the preface goes. */
    t->out.len -= sizeof(HTTP2_PREFACE) - 1;
    memmove(t->out.data, t->out.data + sizeof(HTTP2_PREFACE) - 1, t->out.len);
    bytes_frame(&t->in, 4, 0, 0, NULL, 0);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    pair_end(&t->pair);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static int feed_in(struct fixture *t)
{
    int rc = side_feed(&t->pair.client, t->in.data, t->in.len, SIZE_MAX);

    t->in.len = 0;
    t->out.len +=
        side_drain(&t->pair.client, t->out.data + t->out.len, sizeof(t->out.data) - t->out.len);
    bytes_print(&t->out, t->text, TEXT_BYTES);
    return rc;
}

static void answer(struct fixture *t, uint8_t flags, const char *const *fields)
{
    bytes_headers(&t->in, 4 | flags, 1, fields);
}

static void test_request_is_as_grpc_wants_it(void **state)
{
    struct fixture *t = *state;

    bytes_print(&t->out, t->text, TEXT_BYTES);
    assert_string_equal(t->text,
                        "SETTINGS 0\n"
                        "WINDOW_UPDATE 0 983041\n"
                        "HEADERS 1 :method=POST :scheme=http :path=/a.B/C :authority=test:1 "
                        "te=trailers content-type=application/grpc "
                        "user-agent=grpc-c-bowline/0.1.0 grpc-accept-encoding=identity "
                        "grpc-timeout=1500000n\n"
                        "DATA 1 end 6\n");
}

static void test_http1_answer_is_named(void **state)
{
    struct fixture *t = *state;
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

    t->in.len = 0;
    bytes_put(&t->in, text, sizeof(text) - 1);
    assert_int_equal(feed_in(t), -EPROTO);
    assert_string_equal(
        t->pair.client.session->failure.bytes,
        "the peer does not speak HTTP/2: it began with \"HTTP/1.1 400 Bad Request\" "
        "(SETTINGS expected)");
    assert_int_equal(t->pair.client.session->failure_code, BOW_UNAVAILABLE);
    /* The calls are the host's to end. */
    side_expect(&t->pair.client, "");
}

static void expect_end(const char *const *fields, bool end, const char *status)
{
    struct fixture *t = NULL;

    set_up((void **)&t);
    answer(t, end ? 1 : 0, fields);
    assert_int_equal(feed_in(t), 0);
    assert_true(side_has(&t->pair.client, "ready\n"));
    if (!side_has(&t->pair.client, status)) {
        print_error("expected \"%s\" in:\n%s", status, t->pair.client.log);
    }
    assert_true(side_has(&t->pair.client, status));
    assert_int_equal(t->pair.client.n_ended, 1);
    tear_down((void **)&t);
}

#define FIELDS(...) ((const char *[]){__VA_ARGS__, NULL})

static void test_status_f63_that_is_none_is_quoted(void **state)
{
    (void)state;
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 99"), true,
               "status 1 UNKNOWN the answer's grpc-status \"99\" is none of gRPC's\n");
    expect_end(
        FIELDS(":status: 200", GRPC_TYPE, "grpc-status: NOT_FOUND", "grpc-message: no shop"), true,
        "status 1 UNKNOWN the answer's grpc-status \"NOT_FOUND\" is none of gRPC's: no shop\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: -1"), true,
               "status 1 UNKNOWN the answer's grpc-status \"-1\" is none of gRPC's\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: ", "grpc-status: 5"), true,
               "status 1 NOT_FOUND the answer's grpc-status \"\" is none of gRPC's\n");
}

static void test_status_alone_ends_the_call(void **state)
{
    (void)state;
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 5", "grpc-message: no%20%25"), true,
               "status 1 NOT_FOUND no %\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 0"), true, "status 1 OK\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 3",
                      "grpc-status-details-bin: aGVsbG8", "grpc-retry-pushback-ms: 7"),
               true, "status 1 INVALID_ARGUMENT [hello] retry 7000000\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 3", "grpc-status-details-bin: !!",
                      "grpc-retry-pushback-ms: -1"),
               true, "status 1 INVALID_ARGUMENT retry 18446744073709551615\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 3", RETRY_INFO,
                      "grpc-retry-pushback-ms: 7"),
               true, "] retry 7000000\n");
    /* What gRPC says counts, whatever HTTP says. */
    expect_end(FIELDS(":status: 503", GRPC_TYPE, "grpc-status: 7"), true,
               "status 1 PERMISSION_DENIED\n");
}

/* Servers of other makes say when to come again only there. */
static void test_retry_info_f67_is_when_to_come_again(void **state)
{
    (void)state;
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 8", RETRY_INFO), true,
               "] retry 1500000000\n");
    /* "Do not come again", in the trailer, goes before it. */
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 8", RETRY_INFO,
                      "grpc-retry-pushback-ms: -1"),
               true, "\xca\xb5\xee\x01] retry 18446744073709551615\n");
}

static void test_missing_status_is_taken_from_http(void **state)
{
    (void)state;
    expect_end(FIELDS(":status: 404"), true,
               "status 1 UNIMPLEMENTED HTTP status 404 without grpc-status\n");
    expect_end(FIELDS(":status: 503"), false,
               "status 1 UNAVAILABLE HTTP status 503 without grpc-status\n");
    expect_end(FIELDS(":status: 200", GRPC_TYPE), true,
               "status 1 UNKNOWN the answer has no grpc-status\n");
    expect_end(FIELDS(":status: 200", "content-type: text/html"), false,
               "status 1 UNKNOWN the answer's content-type is not application/grpc\n");
}

/* gRPC lets servers have them, though RFC 9113 (8.2.1) does not; a message's own stay. */
static void test_blanks_around_values_are_stripped(void **state)
{
    (void)state;
    expect_end(FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 3", "grpc-message:  no ",
                      "front:  a", "both: \t b c \t ", "blank:  "),
               true, "status 1 INVALID_ARGUMENT  no  front=a both=b c blank=\n");
}

static void test_initial_metadata_has_its_blanks_stripped(void **state)
{
    struct fixture *t = *state;

    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE, "first:  1\t"));
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1y", 6);
    answer(t, 1, FIELDS("grpc-status: 0", "last: 2 "));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nheaders 1 first=1\nmessage 1 1 y\nstatus 1 OK last=2\n");
}

static void test_informational_answers_are_skipped(void **state)
{
    struct fixture *t = *state;

    answer(t, 0, FIELDS(":status: 103"));
    answer(t, 1, FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 0"));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 OK\n");
}

static void test_data_without_trailers_is_no_answer(void **state)
{
    struct fixture *t = *state;

    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE));
    bytes_frame(&t->in, 0, 1, 1, "\0\0\0\0\1y", 6);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nmessage 1 1 y\nstatus 1 UNKNOWN the peer ended the stream "
                                 "without grpc-status\n");
}

static void test_ok_inside_a_message_is_an_error(void **state)
{
    struct fixture *t = *state;

    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE));
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\2y", 6);
    answer(t, 1, FIELDS("grpc-status: 0"));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 INTERNAL the answer ended inside a message\n");
}

/* nghttp2 resets the stream without a word: the event comes when the reset has left. */
static void test_more_data_than_announced_is_an_error(void **state)
{
    struct fixture *t = *state;

    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE, "content-length: 3"));
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1y", 6);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client,
                "ready\nstatus 1 INTERNAL stream reset by this side with PROTOCOL_ERROR (1)\n");
}

static void expect_reset(uint8_t error, const char *status)
{
    struct fixture *t = NULL;
    uint8_t payload[4] = {0, 0, 0, error};

    set_up((void **)&t);
    bytes_frame(&t->in, 3, 0, 1, payload, 4);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, status);
    tear_down((void **)&t);
}

static void test_resets_map_to_codes(void **state)
{
    (void)state;
    expect_reset(7, "ready\nstatus 1 UNAVAILABLE stream reset by the peer with REFUSED_STREAM (7) "
                    "not_processed\n");
    expect_reset(8, "ready\nstatus 1 CANCELLED stream reset by the peer with CANCEL (8)\n");
    expect_reset(11, "ready\nstatus 1 RESOURCE_EXHAUSTED stream reset by the peer with "
                     "ENHANCE_YOUR_CALM (11)\n");
    expect_reset(0, "ready\nstatus 1 INTERNAL stream reset by the peer with NO_ERROR (0)\n");
    expect_reset(2, "ready\nstatus 1 INTERNAL stream reset by the peer with INTERNAL_ERROR (2)\n");
    expect_reset(12, "ready\nstatus 1 PERMISSION_DENIED stream reset by the peer with "
                     "INADEQUATE_SECURITY (12)\n");
}

static void test_reply_beyond_the_limit_is_refused_without_memory(void **state)
{
    struct fixture *t = *state;

    assert_int_equal(feed_in(t), 0);
    size_t n_before = bow_context_bytes(t->context);
    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE));
    bytes_frame(&t->in, 0, 0, 1, "\0\xFF\xFF\xFF\xFFxx", 7);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 RESOURCE_EXHAUSTED message of 4294967295 bytes "
                                 "exceeds the client's max_message_bytes (4194304)\n");
    assert_non_null(strstr(t->text, "RST_STREAM 1 8\n"));
    assert_true(bow_context_bytes(t->context) < n_before + 16384);
}

static void test_header_beyond_the_limit_is_refused(void **state)
{
    struct fixture *t = *state;
    static char fields[2][9000];

    for (size_t i = 0; i < 2; i++) {
        memset(fields[i], 'v', sizeof(fields[i]) - 1);
        memcpy(fields[i], "x-key: ", 7);
    }
    bytes_frame(&t->in, 4, 1, 0, NULL, 0);
    answer(t, 0, FIELDS(":status: 200", GRPC_TYPE, fields[0], fields[1]));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 RESOURCE_EXHAUSTED header of 18160 bytes exceeds "
                                 "the client's max_header_bytes (16384): raise it there, or send "
                                 "less metadata\n");
}

static void test_compressed_reply_is_an_error(void **state)
{
    struct fixture *t = *state;

    answer(t, 0,
           FIELDS(":status: 200", GRPC_TYPE,
                  "grpc-encoding: a-name-that-its-server-has-made-up-at-length"));
    bytes_frame(&t->in, 0, 0, 1, "\1\0\0\0\1y", 6);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 INTERNAL message is compressed with "
                                 "grpc-encoding \"a-name-that-its-server-has-made-...\", which "
                                 "is not supported (supported: identity)\n");
}

static void test_malformed_headers_end_the_call(void **state)
{
    struct fixture *t = *state;

    answer(t, 1, FIELDS("grpc-status: 0"));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\nstatus 1 INTERNAL invalid HTTP/2 frame of type 1: "
                                 "Violation in HTTP messaging rule\n");
    assert_non_null(strstr(t->text, "RST_STREAM 1 1\n"));
}

static void test_goaway_ends_what_was_not_taken(void **state)
{
    struct fixture *t = *state;
    uint64_t key = 0;

    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    assert_int_equal(feed_in(t), 0);
    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    /* The second was sent and is above the last id, the third still waits to be sent. */
    bytes_frame(&t->in, 7, 0, 0, "\0\0\0\1\0\0\0\0bye\n", 12);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client,
                "ready\n"
                "status 2 UNAVAILABLE the peer is going away: NO_ERROR: bye\\x0a not_processed\n"
                "status 3 UNAVAILABLE the peer is going away: NO_ERROR: bye\\x0a not_processed\n"
                "goaway the peer is going away: NO_ERROR: bye\\x0a\n");
    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), -EPIPE);
    struct bow__session *client = t->pair.client.session;
    assert_false(client->ops->can_open(client));
    assert_false(client->ops->is_done(client));
    /* The first goes on. */
    answer(t, 1, FIELDS(":status: 200", GRPC_TYPE, "grpc-status: 0"));
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "status 1 OK\n");
    assert_true(client->ops->is_done(client));
}

static void test_settings_that_make_room_are_told(void **state)
{
    struct fixture *t = *state;
    struct bow__session *client = t->pair.client.session;

    t->in.len = 0;
    bytes_frame(&t->in, 4, 0, 0, "\0\3\0\0\0\1", 6);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\n");
    assert_false(client->ops->can_open(client));
    bytes_frame(&t->in, 4, 0, 0, "\0\3\0\0\0\2", 6);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\n");
    assert_true(client->ops->can_open(client));
}

static void test_first_settings_are_told_once(void **state)
{
    struct fixture *t = *state;
    uint64_t key = 0;

    /* As many as may be open before the server's SETTINGS say how many. */
    for (size_t i = 1; i < 100; i++) {
        assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    }
    assert_int_equal(side_call(&t->pair.client, "/a.B/C", "x", BOW_NEVER, &key), -EAGAIN);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\n");
}

static void test_second_goaway_is_not_told_again(void **state)
{
    struct fixture *t = *state;

    bytes_frame(&t->in, 7, 0, 0, "\x7F\xFF\xFF\xFF\0\0\0\0", 8);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client, "ready\ngoaway the peer is going away: NO_ERROR\n");
    bytes_frame(&t->in, 7, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(feed_in(t), 0);
    side_expect(&t->pair.client,
                "status 1 UNAVAILABLE the peer is going away: NO_ERROR not_processed\n");
}

static void test_f26_ids_used_up_retire_the_connection(void **state)
{
    struct fixture *t = *state;
    struct side *client = &t->pair.client;
    uint64_t key = 0;

    pair_end(&t->pair);
    pair_init(&t->pair, t->context);
    struct bow__session_options options = pair_options(&t->pair, client, false);
    options.first_key = INT32_MAX - 2;
    assert_int_equal(side_begin(client, &options), 0);
    options = pair_options(&t->pair, &t->pair.server, true);
    assert_int_equal(side_begin(&t->pair.server, &options), 0);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(&t->pair, SIZE_MAX);
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(&t->pair, SIZE_MAX);
    side_expect(client, "ready\ngoaway the connection's stream ids are used up\n");
    assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), -EPIPE);
    assert_int_equal(t->pair.server.n_open, 2);
    /* When its calls have ended, so has the connection. */
    assert_int_equal(side_send(&t->pair.server, INT32_MAX - 2, BOW__SEND_END, "y"), 0);
    assert_int_equal(side_send(&t->pair.server, INT32_MAX, BOW__SEND_END, "y"), 0);
    pair_run(&t->pair, SIZE_MAX);
    assert_true(client->session->ops->is_done(client->session));
    assert_true(t->pair.server.session->ops->is_done(t->pair.server.session));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_request_is_as_grpc_wants_it),
        TEST(test_http1_answer_is_named),
        cmocka_unit_test(test_status_f63_that_is_none_is_quoted),
        cmocka_unit_test(test_status_alone_ends_the_call),
        cmocka_unit_test(test_retry_info_f67_is_when_to_come_again),
        cmocka_unit_test(test_missing_status_is_taken_from_http),
        cmocka_unit_test(test_blanks_around_values_are_stripped),
        TEST(test_initial_metadata_has_its_blanks_stripped),
        TEST(test_informational_answers_are_skipped),
        TEST(test_data_without_trailers_is_no_answer),
        TEST(test_ok_inside_a_message_is_an_error),
        TEST(test_more_data_than_announced_is_an_error),
        cmocka_unit_test(test_resets_map_to_codes),
        TEST(test_reply_beyond_the_limit_is_refused_without_memory),
        TEST(test_header_beyond_the_limit_is_refused),
        TEST(test_compressed_reply_is_an_error),
        TEST(test_malformed_headers_end_the_call),
        TEST(test_goaway_ends_what_was_not_taken),
        TEST(test_settings_that_make_room_are_told),
        TEST(test_first_settings_are_told_once),
        TEST(test_second_goaway_is_not_told_again),
        TEST(test_f26_ids_used_up_retire_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
