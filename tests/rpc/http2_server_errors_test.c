/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a server says to clients that do wrong, byte by byte. */
#include "rpc/http2/state.h"
#include "tests/rpc/http2_fed_server.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_broken(struct fed_server *t, const char *why)
{
    assert_int_equal(fed_server_feed(t), -EPROTO);
    assert_string_equal(t->pair.server.session->failure.bytes, why);
    assert_true(t->pair.server.session->ops->is_done(t->pair.server.session));
}

static void test_http1_request_is_named(void **state)
{
    struct fed_server *t = *state;
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    bytes_put(&t->in, request, sizeof(request) - 1);
    expect_broken(t, "the client does not begin with HTTP/2's preface but with "
                     "\"GET / HTTP/1.1\\x0d\\x0aHost: lo\"");
    assert_true(fed_server_says(t,
                                "GOAWAY 0 0 1 the client does not begin with HTTP/2's preface but "
                                "with \"GET / HTTP/1.1\\x0d\\x0aHost: lo\"\n"));
}

/* Also when nothing else was sent before (RFC 9113, 3.4). */
static void test_what_comes_first_is_settings(void **state)
{
    struct fed_server *t = *state;

    bytes_put(&t->in, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
    assert_int_equal(fed_server_feed(t), -EPROTO);
    assert_int_equal(strncmp(t->text, "SETTINGS 0\nGOAWAY 0 ", 20), 0);
}

static void test_garbage_after_the_preface_is_named(void **state)
{
    struct fed_server *t = *state;

    bytes_put(&t->in, HTTP2_PREFACE, sizeof(HTTP2_PREFACE) - 1);
    bytes_put(&t->in, "\xFF\xFE garbage, and more of it", 26);
    expect_broken(t, "HTTP/2 PROTOCOL_ERROR by the peer: SETTINGS expected (near a frame of type "
                     "0 on stream 0)");
    assert_true(fed_server_says(t, "GOAWAY 0 0 1 SETTINGS expected\n"));
}

static void expect_bad_frame(uint8_t type, uint8_t flags, uint32_t stream, size_t len,
                             const char *why)
{
    static const uint8_t zeros[70000];
    struct fed_server *t = NULL;

    fed_server_setup((void **)&t);
    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, type, flags, stream, zeros, len);
    expect_broken(t, why);
    assert_true(fed_server_says(t, "GOAWAY 0 1 "));
    assert_true(t->pair.server.session->failure_code == BOW_INTERNAL);
    fed_server_teardown((void **)&t);
}

static void test_wrong_frame_sizes_are_named(void **state)
{
    (void)state;
    expect_bad_frame(3, 0, 1, 3,
                     "HTTP/2 FRAME_SIZE_ERROR by the peer:  (near a frame of type 1 on stream 1)");
    expect_bad_frame(4, 0, 0, 5,
                     "HTTP/2 FRAME_SIZE_ERROR by the peer:  (near a frame of type 1 on stream 1)");
    expect_bad_frame(6, 0, 0, 7,
                     "HTTP/2 FRAME_SIZE_ERROR by the peer:  (near a frame of type 1 on stream 1)");
    expect_bad_frame(8, 0, 1, 3,
                     "HTTP/2 FRAME_SIZE_ERROR by the peer:  (near a frame of type 1 on stream 1)");
    expect_bad_frame(0, 0, 1, 65537,
                     "HTTP/2 FRAME_SIZE_ERROR by the peer: too large frame size (near a frame of "
                     "type 1 on stream 1)");
    expect_bad_frame(0, 0, 0, 4,
                     "HTTP/2 PROTOCOL_ERROR by the peer: DATA: stream_id == 0 (near a frame of "
                     "type 1 on stream 1)");
}

static void test_broken_compression_is_named(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    /* An index far beyond the table. */
    bytes_frame(&t->in, 1, 4 | 1, 1, "\xFF\xFF\xFF\x7F", 4);
    expect_broken(t, "HTTP/2 COMPRESSION_ERROR by the peer:  (near a frame of type 1 on stream 1)");
}

static void test_other_methods_get_405(void **state)
{
    struct fed_server *t = *state;
    const char *fields[] = {":method: GET",
                            ":scheme: http",
                            ":path: /a.B/C",
                            ":authority: t",
                            "content-type: application/grpc",
                            NULL};

    bytes_preface(&t->in);
    bytes_headers(&t->in, 4 | 1, 1, fields);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(fed_server_says(t, "HEADERS 1 end :status=405\n"));
    assert_int_equal(t->pair.server.session->requests_refused, 1);
    side_expect(&t->pair.server, "");
}

static void expect_content_type(const char *field, bool accepted)
{
    struct fed_server *t = NULL;
    const char *fields[] = {":method: POST", ":scheme: http", ":path: /a.B/C",
                            ":authority: t", field,           NULL};

    fed_server_setup((void **)&t);
    bytes_preface(&t->in);
    bytes_headers(&t->in, 4, 1, fields);
    assert_int_equal(fed_server_feed(t), 0);
    side_expect(&t->pair.server, accepted ? "open 1 /a.B/C\n" : "");
    assert_int_equal(t->pair.server.session->requests_refused, accepted ? 0 : 1);
    /* A client that sends on is told to stop. */
    assert_true(fed_server_says(t, "HEADERS 1 end :status=415\nRST_STREAM 1 0\n") != accepted);
    fed_server_teardown((void **)&t);
}

static void test_other_content_types_get_415(void **state)
{
    (void)state;
    expect_content_type("content-type: application/grpc", true);
    expect_content_type("content-type: application/grpc+proto", true);
    expect_content_type("content-type: application/grpc;charset=utf-8", true);
    expect_content_type("content-type: application/grpc+proto;v=1", true);
    expect_content_type("content-type: application/grpc-web", false);
    expect_content_type("content-type: application/grpc+json", false);
    expect_content_type("content-type: application/grp", false);
    expect_content_type("content-type: application/json", false);
    expect_content_type("x: y", false);
}

static void expect_status(struct fed_server *t, const char *status, const char *message)
{
    char *line = NULL;

    assert_true(asprintf(&line, " grpc-status=%s grpc-message=%s\n", status, message) > 0);
    if (!fed_server_says(t, line)) {
        print_error("expected \"%s\" in:\n%s", line, t->text);
    }
    assert_true(fed_server_says(t, line));
    free(line);
}

static void test_time_left_is_read(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, (const char *[]){"grpc-timeout: 250m", NULL});
    bytes_request(&t->in, 4, 3, (const char *[]){"grpc-timeout: 0n", NULL});
    bytes_request(&t->in, 4, 5, (const char *[]){"grpc-timeout: 99999999H", NULL});
    assert_int_equal(fed_server_feed(t), 0);
    side_expect(&t->pair.server, "open 1 /a.B/C 250000000\nopen 3 /a.B/C 0\nopen 5 /a.B/C\n");
}

static void test_malformed_timeout_is_refused(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4 | 1, 1, (const char *[]){"grpc-timeout: 123456789S", NULL});
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, "13", "grpc-timeout is malformed: \"123456789S\"");
    side_expect(&t->pair.server, "");
}

static void test_header_beyond_the_limit_is_refused(void **state)
{
    struct fed_server *t = *state;
    static char fields[2][9000];

    for (size_t i = 0; i < 2; i++) {
        memset(fields[i], 'v', sizeof(fields[i]) - 1);
        memcpy(fields[i], "x-key: ", 7);
    }
    bytes_preface(&t->in);
    /* Larger frames are allowed from here on. */
    bytes_frame(&t->in, 4, 1, 0, NULL, 0);
    bytes_request(&t->in, 4 | 1, 1, (const char *[]){fields[0], NULL});
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(side_has(&t->pair.server, "open 1 /a.B/C x-key=vvv"));
    assert_true(side_has(&t->pair.server, "vvv\nhalf_close 1\n"));
    side_clear(&t->pair.server);
    bytes_request(&t->in, 4 | 1, 3, (const char *[]){fields[0], fields[1], NULL});
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, "8",
                  "header of 18332 bytes exceeds the server's max_header_bytes (16384): raise it "
                  "there, or send less metadata");
    side_expect(&t->pair.server, "refused /a.B/C max_header_bytes\n");
}

/* One field of 4000 bytes goes into the table; a byte each repeats it. */
static void test_header_bomb_ends_the_connection(void **state)
{
    struct fed_server *t = *state;
    static struct bytes block;
    uint8_t indexed = 0x80 | 62;
    char value[3900];

    block.len = 0;
    memset(value, 'v', sizeof(value));
    bytes_put(&block, "\x40\x01x\x7F\xBD\x1D", 6); /* 3900 = 127 + 0x3D + (0x1D << 7) */
    bytes_put(&block, value, sizeof(value));
    for (size_t i = 0; i < 100; i++) {
        bytes_put(&block, &indexed, 1);
    }
    bytes_preface(&t->in);
    bytes_frame(&t->in, 1, 4 | 1, 1, block.data, block.len);
    assert_int_equal(fed_server_feed(t), -EMSGSIZE);
    assert_true(fed_server_says(
        t, "GOAWAY 0 1 11 header block of more than 16 times max_header_bytes (16384)\n"));
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
}

static void test_f30_claim_beyond_the_limit_is_refused_without_memory(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    size_t n_before = bow_context_bytes(t->context);
    bytes_frame(&t->in, 0, 0, 1, "\0\xFF\xFF\xFF\xFFxxxx", 9);
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, "8",
                  "message of 4294967295 bytes exceeds the server's max_message_bytes (4194304)");
    assert_true(fed_server_says(t, "RST_STREAM 1 0\n"));
    side_expect(&t->pair.server, "open 1 /a.B/C\nreset 1 RESOURCE_EXHAUSTED message of 4294967295 "
                                 "bytes exceeds the server's max_message_bytes (4194304)\n");
    assert_true(bow_context_bytes(t->context) < n_before + 16384);
}

static void test_claim_within_the_limit_costs_what_has_come(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    size_t n_before = bow_context_bytes(t->context);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\x40\0\0xxxx", 9);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(bow_context_bytes(t->context) - n_before < 70000);
}

static void expect_prefix_refused(const char *encoding, const char *prefix, const char *status,
                                  const char *message)
{
    struct fed_server *t = NULL;

    fed_server_setup((void **)&t);
    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, (const char *[]){encoding, NULL});
    bytes_frame(&t->in, 0, 1, 1, prefix, 5);
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, status, message);
    assert_true(fed_server_says(t, "grpc-accept-encoding=identity"));
    assert_true(side_has(&t->pair.server, "open 1 /a.B/C\nreset 1 "));
    fed_server_teardown((void **)&t);
}

static void test_bad_prefixes_are_refused(void **state)
{
    (void)state;
    expect_prefix_refused(NULL, "\2\0\0\0\0", "13",
                          "message prefix has flags 0x02, only 0x01 is known");
    expect_prefix_refused(NULL, "\1\0\0\0\0", "13",
                          "message is marked compressed without a grpc-encoding in use");
    expect_prefix_refused("grpc-encoding: identity", "\1\0\0\0\0", "13",
                          "message is marked compressed without a grpc-encoding in use");
    expect_prefix_refused("grpc-encoding: gzip", "\1\0\0\0\0", "12",
                          "message is compressed with grpc-encoding \"gzip\", which is not "
                          "supported (supported: identity)");
    expect_prefix_refused("grpc-encoding: snappy", "\1\0\0\0\0", "12",
                          "message is compressed with grpc-encoding \"snappy\", which is not "
                          "supported (supported: identity)");
}

static void test_stream_that_ends_inside_a_message_is_refused(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, 0, 1, 1, "\0\0\0\0\5hel", 8);
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, "13",
                  "the stream ended inside a message: 5 of its 5 prefix bytes, 3 of 5 bytes came");
    bytes_request(&t->in, 4, 3, NULL);
    bytes_frame(&t->in, 0, 1, 3, "\0\0\0", 3);
    assert_int_equal(fed_server_feed(t), 0);
    expect_status(t, "13",
                  "the stream ended inside a message: 3 of its 5 prefix bytes, 0 of 0 bytes came");
}

static void test_fault_after_the_answer_began_is_its_status(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(side_send(&t->pair.server, 1, 0, "part"), 0);
    bytes_frame(&t->in, 0, 0, 1, "\7\0\0\0\0", 5);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(
        fed_server_says(t, "HEADERS 1 end grpc-status=13 grpc-message=message prefix has flags"));
    assert_false(fed_server_says(t, "DATA"));
    assert_true(fed_server_says(t, "RST_STREAM 1 0\n"));
    side_expect(&t->pair.server, "open 1 /a.B/C\nreset 1 INTERNAL message prefix has flags 0x07, "
                                 "only 0x01 is known\n");
}

static void test_status_fits_what_the_peer_takes(void **state)
{
    struct fed_server *t = *state;
    struct bow__session *server = t->pair.server.session;
    static uint8_t details[3000];
    struct bow_status status = {
        .code = BOW_NOT_FOUND, .message = t->text, .details = {details, sizeof(details)}};

    bytes_put(&t->in, HTTP2_PREFACE, sizeof(HTTP2_PREFACE) - 1);
    /* Headers of 4096 bytes at most. */
    bytes_frame(&t->in, 4, 0, 0, "\0\6\0\0\x10\0", 6);
    bytes_request(&t->in, 4 | 1, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    memset(t->text, '%', 2000);
    t->text[2000] = '\0';
    assert_int_equal(server->ops->finish(server, 1, &status), 0);
    assert_int_equal(fed_server_feed(t), 0);
    /* A third of 3072, each of three bytes; the details had no room at all. */
    const char *message = strstr(t->text, "grpc-message=");
    assert_non_null(message);
    assert_int_equal(strcspn(message, "\n"), strlen("grpc-message=") + 3072);
    assert_false(fed_server_says(t, "grpc-status-details-bin"));
}

static void test_padded_data_is_taken(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, 0, 8 | 1, 1, "\3\0\0\0\0\2hi\0\0\0", 11);
    assert_int_equal(fed_server_feed(t), 0);
    /* Padding hides that these were the last bytes until the frame is over. */
    side_expect(&t->pair.server, "open 1 /a.B/C\nmessage 1 2 hi\nhalf_close 1\n");
}

static void begin_with_max_calls(struct fed_server *t, uint32_t max_calls)
{
    pair_end(&t->pair);
    pair_init(&t->pair, t->context);
    struct bow__session_options options = pair_options(&t->pair, &t->pair.server, true);
    options.max_calls = max_calls;
    assert_int_equal(side_begin(&t->pair.server, &options), 0);
    options = pair_options(&t->pair, &t->pair.client, false);
    assert_int_equal(side_begin(&t->pair.client, &options), 0);
    bytes_preface(&t->in);
}

static void acknowledge_settings(struct fed_server *t)
{
    assert_int_equal(fed_server_feed(t), 0);
    bytes_frame(&t->in, 4, 1, 0, NULL, 0);
}

static void count_refused(const struct fed_server *t, uint32_t from, uint32_t n)
{
    char line[64];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "RST_STREAM %u 7\n", from + 2 * i);
        if (!fed_server_says(t, line)) {
            fail_msg("stream %u was not refused", from + 2 * i);
        }
    }
}

static void test_calls_beyond_max_calls_are_refused(void **state)
{
    struct fed_server *t = *state;

    begin_with_max_calls(t, 1);
    acknowledge_settings(t);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_request(&t->in, 4, 3, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(fed_server_says(t, "RST_STREAM 3 7\n"));
    side_expect(&t->pair.server, "open 1 /a.B/C\nrefused  max_calls\n");
}

/* Feed what there is, and let go of what comes out. */
static void feed_in_silence(struct fed_server *t)
{
    assert_int_equal(side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX), 0);
    t->in.len = 0;
    side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
}

static uint32_t request_until(struct fed_server *t, uint32_t id, uint32_t end)
{
    for (; id < end; id += 2) {
        bytes_request(&t->in, 5, id, NULL);
        feed_in_silence(t);
    }
    return id;
}

static void test_calls_of_a_client_that_does_not_know_max_calls_are_taken(void **state)
{
    struct fed_server *t = *state;

    begin_with_max_calls(t, 2);
    const struct bow__session *server = t->pair.server.session;
    t->pair.server.is_muted = true;
    uint32_t id = request_until(t, 1, 2 * BOW_LIMIT_EARLY_CALLS);
    assert_int_equal(server->n_streams, BOW_LIMIT_EARLY_CALLS);
    assert_int_equal(server->calls_refused, 0);
    id = request_until(t, id, id + 2);
    assert_int_equal(server->calls_refused, 1);
}

static void test_calls_of_a_client_that_has_heard_of_max_calls_are_refused_above_it(void **state)
{
    struct fed_server *t = *state;

    begin_with_max_calls(t, 2);
    const struct bow__session *server = t->pair.server.session;
    t->pair.server.is_muted = true;
    uint32_t id = request_until(t, 1, 2 * 10);
    assert_int_equal(server->n_streams, 10);
    bytes_frame(&t->in, 4, 1, 0, NULL, 0);
    id = request_until(t, id, id + 2);
    assert_int_equal(server->n_streams, 10);
    assert_int_equal(server->calls_refused, 1);
}

/* What nghttp2 goes by is not what the peer is told. */
static void test_f40_settings_say_max_calls(void **state)
{
    struct fed_server *t = *state;
    static const uint8_t entry[] = {0, 3, 0x01, 0x02, 0x03, 0x04};

    begin_with_max_calls(t, 0x01020304);
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(t->out.data[3], 4); /* SETTINGS */
    assert_non_null(memmem(t->out.data, 9 + t->out.data[2], entry, sizeof(entry)));
}

/* A stream error (RFC 9113, 5.1.2): those within the limit are answered, and so are later ones. */
static void test_f40_calls_above_an_acknowledged_limit_are_refused_alone(void **state)
{
    struct fed_server *t = *state;
    struct side *server = &t->pair.server;
    static const struct bow_status ok = BOW_STATUS_OK_INIT;

    begin_with_max_calls(t, 8);
    assert_int_equal(fed_server_feed(t), 0);
    bytes_frame(&t->in, 4, 1, 0, NULL, 0); /* acknowledged */
    for (uint32_t i = 0; i < 8 + 400; i++) {
        bytes_request(&t->in, 4, 2 * i + 1, NULL);
        bytes_frame(&t->in, 0, 1, 2 * i + 1, "\0\0\0\0\2hi", 7);
    }
    server->is_muted = true;
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(server->n_open, 8);
    assert_int_equal(server->session->calls_refused, 400);
    count_refused(t, 17, 400);
    for (uint64_t key = 1; key < 16; key += 2) {
        assert_int_equal(server->session->ops->finish(server->session, key, &ok), 0);
    }
    bytes_request(&t->in, 5, 1001, NULL);
    assert_int_equal(fed_server_feed(t), 0); /* its slots are free when the answers have left */
    bytes_request(&t->in, 5, 1003, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(fed_server_says(t, "HEADERS 15 end :status=200"));
    assert_non_null(bow__map_get(&((struct bow__http2_session *)server->session)->by_key, 1003));
    assert_false(fed_server_says(t, "GOAWAY"));
}

/* What the refused ones had sent before they knew is no fault either. */
static void test_f40_messages_of_refused_calls_are_forgiven(void **state)
{
    struct fed_server *t = *state;

    begin_with_max_calls(t, 1);
    acknowledge_settings(t);
    struct bow__http2_session *session = (struct bow__http2_session *)t->pair.server.session;
    bytes_request(&t->in, 4, 1, NULL);
    for (uint32_t i = 0; i < 100; i++) {
        bytes_request(&t->in, 4, 2 * i + 3, NULL);
    }
    t->pair.server.is_muted = true;
    assert_int_equal(fed_server_feed(t), 0);
    for (uint32_t i = 0; i < 100; i++) {
        bytes_frame(&t->in, 0, 1, 2 * i + 3, "\0\0\0\0\2hi", 7);
    }
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(session->lates.n, 0);
}

static void expect_flood(struct fed_server *t, const char *why)
{
    assert_int_equal(fed_server_feed(t), -EPROTO);
    assert_string_equal(t->pair.server.session->failure.bytes, why);
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
    assert_true(fed_server_says(t, "GOAWAY 0 "));
    assert_true(fed_server_says(t, " 11 "));
    assert_true(fed_server_says(t, why));
}

static void test_f40_flood_above_max_calls_is_bounded(void **state)
{
    struct fed_server *t = *state;
    uint32_t n = BOW_LIMIT_REFUSED_CALLS_PER_SECOND;

    begin_with_max_calls(t, 1);
    acknowledge_settings(t);
    t->pair.server.is_muted = true;
    bytes_request(&t->in, 4, 1, NULL);
    for (uint32_t i = 0; i <= n; i++) {
        bytes_request(&t->in, 5, 2 * i + 3, NULL);
        if (i % 500 == 499 || i == n) {
            assert_int_equal(side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX),
                             i == n ? -EPROTO : 0);
            t->in.len = 0;
            side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
        }
    }
    assert_string_equal(t->pair.server.session->failure.bytes,
                        "more calls above max_calls in a second than "
                        "BOW_LIMIT_REFUSED_CALLS_PER_SECOND (10000)");
}

static void test_f22_rapid_reset_is_bounded(void **state)
{
    struct fed_server *t = *state;

    t->pair.server.is_muted = true;
    bytes_preface(&t->in);
    for (uint32_t i = 0; i < BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        bytes_request(&t->in, 4, 2 * i + 1, NULL);
        bytes_frame(&t->in, 3, 0, 2 * i + 1, "\0\0\0\x08", 4);
    }
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(t->pair.server.n_ended, BOW_LIMIT_CANCELS_PER_SECOND);
    /* A second later as many are fine again. */
    t->pair.now_ns += UINT64_C(1000000000);
    bytes_request(&t->in, 4, 10001, NULL);
    bytes_frame(&t->in, 3, 0, 10001, "\0\0\0\x08", 4);
    assert_int_equal(fed_server_feed(t), 0);
    for (uint32_t i = 0; i < BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        bytes_request(&t->in, 4, 20001 + 2 * i, NULL);
        bytes_frame(&t->in, 3, 0, 20001 + 2 * i, "\0\0\0\x08", 4);
    }
    expect_flood(t, "more stream resets in a second than BOW_LIMIT_CANCELS_PER_SECOND (1000)");
}

/* Streams that the client makes us reset count as those that it resets. */
static void test_provoked_resets_are_bounded(void **state)
{
    struct fed_server *t = *state;

    t->pair.server.is_muted = true;
    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        bytes_request(&t->in, 4, 2 * i + 1, NULL);
        bytes_frame(&t->in, 8, 0, 2 * i + 1, "\x7F\xFF\xFF\xFF", 4);
    }
    expect_flood(t, "more stream resets in a second than BOW_LIMIT_CANCELS_PER_SECOND (1000)");
}

static void test_ping_flood_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_PINGS_PER_SECOND; i++) {
        bytes_frame(&t->in, 6, 0, 0, "12345678", 8);
    }
    expect_flood(t, "more PINGs in a second than BOW_LIMIT_PINGS_PER_SECOND (100)");
}

static void test_settings_flood_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i < BOW_LIMIT_SETTINGS_PER_SECOND; i++) {
        bytes_frame(&t->in, 4, 0, 0, NULL, 0);
    }
    expect_flood(t, "more SETTINGS in a second than BOW_LIMIT_SETTINGS_PER_SECOND (100)");
}

static void test_flood_of_empty_frames_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    for (uint32_t i = 0; i <= BOW_LIMIT_EMPTY_FRAMES_PER_SECOND; i++) {
        bytes_frame(&t->in, 0, 0, 1, NULL, 0);
    }
    expect_flood(t, "more empty frames in a second than BOW_LIMIT_EMPTY_FRAMES_PER_SECOND "
                    "(10000)");
}

static void test_flood_of_priorities_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_EMPTY_FRAMES_PER_SECOND; i++) {
        bytes_frame(&t->in, 2, 0, 1, "\0\0\0\0\1", 5);
    }
    expect_flood(t, "more empty frames in a second than BOW_LIMIT_EMPTY_FRAMES_PER_SECOND "
                    "(10000)");
}

static void test_continuation_flood_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 0, 1, NULL);
    for (size_t i = 0; i < 20; i++) {
        bytes_frame(&t->in, 9, 0, 1, "\0\1x\1y", 5);
    }
    expect_flood(t, "receiving over HTTP/2: Too many CONTINUATION frames following a HEADER frame "
                    "(after a frame of type 9 on stream 1)");
}

/* A client that asks without reading: its PINGs are under the rate, but the answers pile up. */
static void test_peer_that_asks_and_does_not_read_clogs(void **state)
{
    struct fed_server *t = *state;
    struct bow__session *server = t->pair.server.session;

    bytes_preface(&t->in);
    assert_int_equal(fed_server_feed(t), 0);
    size_t n_rounds = 0;
    /* Nothing is drained from here on. */
    for (; n_rounds < 6000 && !server->ops->is_clogged(server); n_rounds++) {
        bytes_frame(&t->in, 6, 0, 0, "12345678", 8);
        assert_int_equal(side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX), 0);
        t->in.len = 0;
        t->pair.now_ns += UINT64_C(20000000);
    }
    assert_true(server->ops->is_clogged(server));
    assert_true(n_rounds < 5000);
    /* Once it reads, all is well again. */
    side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
    assert_false(server->ops->is_clogged(server));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fed_server_setup, fed_server_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_http1_request_is_named),
        TEST(test_what_comes_first_is_settings),
        TEST(test_garbage_after_the_preface_is_named),
        cmocka_unit_test(test_wrong_frame_sizes_are_named),
        TEST(test_broken_compression_is_named),
        TEST(test_other_methods_get_405),
        cmocka_unit_test(test_other_content_types_get_415),
        TEST(test_time_left_is_read),
        TEST(test_malformed_timeout_is_refused),
        TEST(test_header_beyond_the_limit_is_refused),
        TEST(test_header_bomb_ends_the_connection),
        TEST(test_f30_claim_beyond_the_limit_is_refused_without_memory),
        TEST(test_claim_within_the_limit_costs_what_has_come),
        cmocka_unit_test(test_bad_prefixes_are_refused),
        TEST(test_stream_that_ends_inside_a_message_is_refused),
        TEST(test_fault_after_the_answer_began_is_its_status),
        TEST(test_status_fits_what_the_peer_takes),
        TEST(test_padded_data_is_taken),
        TEST(test_calls_beyond_max_calls_are_refused),
        TEST(test_calls_of_a_client_that_does_not_know_max_calls_are_taken),
        TEST(test_calls_of_a_client_that_has_heard_of_max_calls_are_refused_above_it),
        TEST(test_f40_settings_say_max_calls),
        TEST(test_f40_calls_above_an_acknowledged_limit_are_refused_alone),
        TEST(test_f40_messages_of_refused_calls_are_forgiven),
        TEST(test_f40_flood_above_max_calls_is_bounded),
        TEST(test_f22_rapid_reset_is_bounded),
        TEST(test_provoked_resets_are_bounded),
        TEST(test_ping_flood_is_bounded),
        TEST(test_settings_flood_is_bounded),
        TEST(test_flood_of_empty_frames_is_bounded),
        TEST(test_flood_of_priorities_is_bounded),
        TEST(test_continuation_flood_is_bounded),
        TEST(test_peer_that_asks_and_does_not_read_clogs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
