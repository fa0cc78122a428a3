/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Answers of HTTP/1.1: whole, byte by byte, cut off, too large, and what is none. */
#include "tools/bowline/http_answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int read_all(const char *text, bool is_over, struct http_answer *ret_answer, char *ret_body)
{
    size_t len = strlen(text);
    char *bytes = malloc(len + 1); /* of its own, for the sanitizer to watch */

    assert_non_null(bytes);
    memcpy(bytes, text, len);
    int rc = http_answer_read(bytes, len, is_over, ret_answer);
    if (rc == 0) {
        memcpy(ret_body, ret_answer->body.data, ret_answer->body.len);
        ret_body[ret_answer->body.len] = '\0';
    }
    free(bytes);
    return rc;
}

/* Each beginning of it asks for more, and is none when nothing more comes. */
static void assert_whole(const char *text, int status, const char *expected)
{
    struct http_answer answer = {0};
    char body[200];
    char begin[400];

    assert_int_equal(read_all(text, false, &answer, body), 0);
    assert_int_equal(answer.status, status);
    assert_string_equal(body, expected);
    for (size_t n = 0; n < strlen(text); n++) {
        snprintf(begin, n + 1, "%s", text);
        answer.status = -1;
        assert_int_equal(read_all(begin, false, &answer, body), -EAGAIN);
        assert_int_equal(read_all(begin, true, &answer, body), -EBADMSG);
        assert_int_equal(answer.status, -1);
    }
}

static void test_http_answer_with_length(void **state)
{
    (void)state;
    assert_whole("HTTP/1.1 200 OK\r\nContent-Type: x\r\ncontent-length:  5 \r\n\r\nhello", 200,
                 "hello");
    assert_whole("HTTP/1.0 404 Not Found\nContent-Length: 1\n\n.", 404, ".");
}

static void test_http_answer_in_chunks(void **state)
{
    (void)state;
    assert_whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
                 "5\r\nhello\r\nB;what=ever\r\n, my world!\r\n0\r\n",
                 200, "hello, my world!");
}

static void test_http_answer_until_the_end(void **state)
{
    struct http_answer answer = {0};
    char body[200];
    const char *text = "HTTP/1.1 200 OK\r\n\r\nhel";

    (void)state;
    assert_int_equal(read_all(text, false, &answer, body), -EAGAIN);
    assert_int_equal(read_all(text, true, &answer, body), 0);
    assert_string_equal(body, "hel");
}

static void test_http_answer_of_nothing(void **state)
{
    struct http_answer answer = {0};

    (void)state;
    assert_int_equal(http_answer_read(NULL, 0, false, &answer), -EAGAIN);
    assert_int_equal(http_answer_read(NULL, 0, true, &answer), -EBADMSG);
}

static void test_http_answer_none_is_refused(void **state)
{
    static const char *const texts[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1  200\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "\r\n\r\n",
        "\xb0OW\1",
        "\x15\3\1",
        "SSH-2.0",
        "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n",
    };
    struct http_answer answer = {0};
    char body[200];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (read_all(texts[i], false, &answer, body) != -EBADMSG) {
            fail_msg("%zu: \"%s\"", i, texts[i]);
        }
    }
}

static void test_http_answer_too_large_is_refused(void **state)
{
    static char head[HTTP_MAX_HEAD_BYTES + 100];
    struct http_answer answer = {0};
    char body[200];
    int n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nX: ");

    (void)state;
    memset(head + n, 'x', sizeof(head) - 1 - (size_t)n);
    assert_int_equal(read_all(head, false, &answer, body), -EMSGSIZE);
    assert_int_equal(
        read_all("HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n", false, &answer, body),
        -EMSGSIZE);
    assert_int_equal(
        read_all("HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n", false, &answer, body),
        -EAGAIN);
    assert_int_equal(read_all("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                              false, &answer, body),
                     -EMSGSIZE);
    assert_int_equal(
        read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                 false, &answer, body),
        -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_answer_with_length),
        cmocka_unit_test(test_http_answer_in_chunks),
        cmocka_unit_test(test_http_answer_until_the_end),
        cmocka_unit_test(test_http_answer_of_nothing),
        cmocka_unit_test(test_http_answer_none_is_refused),
        cmocka_unit_test(test_http_answer_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
