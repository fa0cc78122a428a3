/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Responses of HTTP/1.1: what their heads say of the body, by what was asked; chunks and trailers.
 */
#include "rpc/http1/response.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char bytes[1024];
static struct bow__http1_writer writer;

static void begin(int status)
{
    bow__http1_writer_init(&writer, bytes, sizeof(bytes) - 1);
    bow__http1_write_status(&writer, status);
}

static void assert_written(const char *text)
{
    assert_int_equal(writer.error, 0);
    bytes[writer.len] = '\0';
    assert_string_equal(bytes, text);
}

static const struct bow__http1_asked get = {.minor = 1, .keep_alive = true};
static const struct bow__http1_asked head = {.is_head = true, .minor = 1, .keep_alive = true};

static void test_http1_response_length_is_said(void **state)
{
    (void)state;
    begin(200);
    bow__http1_write_field(&writer, "Content-Type", "text/plain");
    assert_int_equal(bow__http1_end_head(&writer, 200, &get, 5), BOW__HTTP1_SENDS_LENGTH);
    assert_written("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
}

/* RFC 9110 section 9.3.2: as GET would have said, and nothing of the body. */
static void test_http1_response_to_head_has_no_body(void **state)
{
    struct bow__http1_asked asked = head;

    (void)state;
    begin(200);
    assert_int_equal(bow__http1_end_head(&writer, 200, &asked, 5), BOW__HTTP1_SENDS_NOTHING);
    assert_written("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    begin(200);
    assert_int_equal(bow__http1_end_head_open(&writer, 200, &asked), BOW__HTTP1_SENDS_NOTHING);
    assert_written("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

/* RFC 9110 section 6.4.1, RFC 9112 section 6.1. */
static void test_http1_response_without_body_says_no_length(void **state)
{
    static const int statuses[] = {100, 204, 304};
    struct bow__http1_asked asked = get;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin(statuses[i]);
        assert_int_equal(bow__http1_end_head_open(&writer, statuses[i], &asked),
                         BOW__HTTP1_SENDS_NOTHING);
        bytes[writer.len] = '\0';
        assert_null(strstr(bytes, "Content-Length"));
        assert_null(strstr(bytes, "Transfer-Encoding"));
    }
}

/* RFC 9112 section 9.3. */
static void test_http1_response_says_whether_the_connection_goes_on(void **state)
{
    const struct bow__http1_asked closing = {.minor = 1};
    const struct bow__http1_asked old = {.minor = 0, .keep_alive = true};

    (void)state;
    begin(400);
    bow__http1_end_head(&writer, 400, &closing, 0);
    assert_written("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    begin(200);
    bow__http1_end_head(&writer, 200, &old, 0);
    assert_written("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
}

/* RFC 9112 section 7.1. */
static void test_http1_response_goes_in_chunks(void **state)
{
    struct bow__http1_asked asked = get;

    (void)state;
    begin(200);
    assert_int_equal(bow__http1_end_head_open(&writer, 200, &asked), BOW__HTTP1_SENDS_CHUNKS);
    bow__http1_write_chunk(&writer, 0x1af);
    bow__http1_write_chunk_end(&writer);
    bow__http1_write_last_chunk(&writer);
    bow__http1_write_field(&writer, "Grpc-Status", "0");
    bow__http1_write_end(&writer);
    assert_written("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1af\r\n\r\n0\r\n"
                   "Grpc-Status: 0\r\n\r\n");
}

/* RFC 9112 section 6.1: no chunks to who speaks HTTP/1.0. */
static void test_http1_response_to_http_1_0_ends_with_the_connection(void **state)
{
    struct bow__http1_asked old = {.minor = 0, .keep_alive = true};

    (void)state;
    begin(200);
    assert_int_equal(bow__http1_end_head_open(&writer, 200, &old), BOW__HTTP1_SENDS_TO_CLOSE);
    assert_false(old.keep_alive);
    assert_written("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

/* A value that came from a peer must not begin a field or a response of its own. */
static void test_http1_response_is_not_split(void **state)
{
    static const char *const fields[][2] = {{"A", "b\r\nC: d"}, {"A", "b\n"}, {"A", "b\r"},
                                            {"A:", "b"},        {"A b", "c"}, {"", "b"},
                                            {"A\r\nB", "c"}};

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        begin(200);
        size_t len = writer.len;
        bow__http1_write_field(&writer, fields[i][0], fields[i][1]);
        assert_int_equal(writer.error, -EINVAL);
        assert_int_equal(writer.len, len);
    }
    begin(200);
    bow__http1_write_chunk(&writer, 0); /* which would be the last */
    assert_int_equal(writer.error, -EINVAL);
}

static void test_http1_response_keeps_to_its_memory(void **state)
{
    uint8_t exact[38];
    struct bow__http1_asked asked = get;

    (void)state;
    for (size_t size = 0; size <= sizeof(exact); size++) {
        uint8_t *room = malloc(size > 0 ? size : 1);
        assert_non_null(room);
        bow__http1_writer_init(&writer, room, size);
        bow__http1_write_status(&writer, 200);
        bow__http1_end_head(&writer, 200, &asked, 0);
        assert_int_equal(writer.error, size < sizeof(exact) ? -ENOBUFS : 0);
        free(room);
    }
}

static void test_http1_response_knows_its_request(void **state)
{
    static struct bow__http1_request request;
    struct bow__http1_error error;
    const char *text = "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

    (void)state;
    assert_int_equal(bow__http1_request_decode(
                         (struct bow_slice){(const uint8_t *)text, strlen(text)}, &request, &error),
                     0);
    struct bow__http1_asked asked = bow__http1_asked_of(&request);
    assert_true(asked.is_head && asked.keep_alive && asked.minor == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http1_response_length_is_said),
        cmocka_unit_test(test_http1_response_to_head_has_no_body),
        cmocka_unit_test(test_http1_response_without_body_says_no_length),
        cmocka_unit_test(test_http1_response_says_whether_the_connection_goes_on),
        cmocka_unit_test(test_http1_response_goes_in_chunks),
        cmocka_unit_test(test_http1_response_to_http_1_0_ends_with_the_connection),
        cmocka_unit_test(test_http1_response_is_not_split),
        cmocka_unit_test(test_http1_response_keeps_to_its_memory),
        cmocka_unit_test(test_http1_response_knows_its_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
