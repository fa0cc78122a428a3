/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of HTTP/1.1 out of bytes: each row is a request and what is made of it, whole, byte by
 * byte and cut in two at each place. Rows name the section that asks for it: of RFC 9112, or 9110
 * with its number.
 */
#include "tests/rpc/http1_transcript.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOST "Host: h\r\n"
#define POST "POST /p HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_HEAD "POST /p host=h keep fields=Host:h|Transfer-Encoding:chunked\n"

struct row {
    const char *section;
    const char *bytes;
    const char *made; /* the transcript; of a refusal its beginning */
};

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static struct http1_transcript whole;
static struct http1_transcript cut;

static void assert_same(const char *bytes, size_t at)
{
    if (strcmp(whole.text, cut.text) != 0) {
        fail_msg("%s\n, cut at %zu:\n%s\nwhole:\n%s", bytes, at, cut.text, whole.text);
    }
}

/* Make `whole` of the bytes, and the same of them however they come. */
static void feed_in_all_ways(struct bow_slice bytes, const char *shown)
{
    http1_transcript_init(&whole, NULL);
    http1_transcript_feed_steps(&whole, bytes, bytes.len);
    http1_transcript_init(&cut, NULL);
    http1_transcript_feed_steps(&cut, bytes, 1);
    assert_same(shown, 1);
    for (size_t at = 1; at < bytes.len; at++) {
        http1_transcript_init(&cut, NULL);
        size_t n = http1_transcript_feed(&cut, (struct bow_slice){bytes.data, at});
        http1_transcript_feed_steps(&cut, (struct bow_slice){bytes.data + n, bytes.len - n},
                                    bytes.len);
        assert_same(shown, at);
    }
}

static void check_rows(const struct row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        feed_in_all_ways(slice_of(rows[i].bytes), rows[i].bytes);
        if (strcmp(whole.text, rows[i].made) != 0) {
            fail_msg("section %s: of\n%s\ncame\n%s\nnot\n%s", rows[i].section, rows[i].bytes,
                     whole.text, rows[i].made);
        }
    }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_http1_parser_requests_are_read(void **state)
{
    static const struct row rows[] = {
        {"3", "GET / HTTP/1.1\r\n" HOST "\r\n", "GET / host=h keep fields=Host:h\nend \n"},
        {"2.3", "GET / HTTP/1.0\r\n\r\n", "GET / host= close fields=\nend \n"},
        {"9110 2.5", "GET / HTTP/1.7\r\n" HOST "\r\n", "GET / host=h keep fields=Host:h\nend \n"},
        {"2.2", "\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET / host=h keep fields=Host:h\nend \n"},
        {"5", "GET / HTTP/1.1\r\nhOsT:h\r\nA: \t b c \t\r\nE:\r\nO: \xc3\xa4\r\n\r\n",
         "GET / host=h keep fields=hOsT:h|A:b c|E:|O:\xc3\xa4\nend \n"},
        {"6.2", POST "Content-Length: 5\r\n\r\nhello",
         "POST /p host=h keep fields=Host:h|Content-Length:5\nbody=hello\nend \n"},
        {"6.3", POST "Content-Length: 0\r\n\r\n",
         "POST /p host=h keep fields=Host:h|Content-Length:0\nend \n"},
        {"6.3", "GET / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
         "GET / host= close fields=Content-Length:2\nbody=ab\nend \n"},
        {"7.1", CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
         CHUNKED_HEAD "body=hello world\nend \n"},
        {"7.1", CHUNKED "00a\r\n0123456789\r\nB\r\nabcdefghijk\r\n000\r\n\r\n",
         CHUNKED_HEAD "body=0123456789abcdefghijk\nend \n"},
        {"7.1", CHUNKED "0\r\n\r\n", CHUNKED_HEAD "end \n"},
        {"7.1.1", CHUNKED "1;a\r\nx\r\n1 ;b=\"c d\"\r\ny\r\n0;e\r\n\r\n",
         CHUNKED_HEAD "body=xy\nend \n"},
        {"7.1.2", CHUNKED "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
         CHUNKED_HEAD "body=x\nend A:b|C:d\n"},
        {"7.1", POST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n",
         "POST /p host=h keep fields=Host:h|Transfer-Encoding:CHUNKED\nend \n"},
        {"9110 10.1.1", POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
         "POST /p host=h keep expects fields=Host:h|Expect:100-Continue|Content-Length:1\n"
         "body=x\nend \n"},
        {"9110 10.1.1", POST "Expect: 100-continue\r\n\r\n",
         "POST /p host=h keep fields=Host:h|Expect:100-continue\nend \n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_http1_parser_targets_are_read(void **state)
{
    static const struct row rows[] = {
        {"3.2.1", "GET /a/b?c=/d?e HTTP/1.1\r\n" HOST "\r\n",
         "GET /a/b?c=/d?e host=h keep fields=Host:h\nend \n"},
        {"3.2.1", "GET /a? HTTP/1.1\r\n" HOST "\r\n", "GET /a? host=h keep fields=Host:h\nend \n"},
        {"3.2.2", "GET http://x:8/a?b HTTP/1.1\r\n" HOST "\r\n",
         "GET /a?b host=x:8 keep fields=Host:h\nend \n"},
        {"3.2.2", "GET HTTPS://x?b HTTP/1.1\r\n" HOST "\r\n",
         "GET /?b host=x keep fields=Host:h\nend \n"},
        {"3.2.3", "CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n",
         "CONNECT  host=x:80 keep fields=Host:h\nend \n"},
        {"3.2.4", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
         "OPTIONS * host=h keep fields=Host:h\nend \n"},
        {"3.2", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / host= keep fields=Host:\nend \n"},
        {"3.2", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
         "GET / host=[::1]:80 keep fields=Host:[::1]:80\nend \n"},
        {"3.2", "GET * HTTP/1.1\r\n" HOST "\r\n", "400 the target of the request is no path\n"},
        {"3.2", "GET a HTTP/1.1\r\n" HOST "\r\n", "400 the target of the request is no path\n"},
        {"3.2", "GET x:80 HTTP/1.1\r\n" HOST "\r\n", "400 the target of the request is no path\n"},
        {"3.2.2", "GET http:///a HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has no host\n"},
        {"3.2.2", "GET http://u@x/a HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has no host\n"},
        {"3.2.3", "CONNECT /a HTTP/1.1\r\n" HOST "\r\n", "400 the target of CONNECT is no host\n"},
        {"3.2", "GET /a#b HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has a byte that none may have\n"},
        {"3.2", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has a byte that none may have\n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_http1_parser_connection_goes_on_or_not(void **state)
{
    static const struct row rows[] = {
        {"9.3", "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
         "GET / host=h close fields=Host:h|Connection:close\nend \n"},
        {"9.3", "GET / HTTP/1.1\r\n" HOST "Connection: a, ,CLOSE ,b\r\n\r\n",
         "GET / host=h close fields=Host:h|Connection:a, ,CLOSE ,b\nend \n"},
        {"9.3", "GET / HTTP/1.1\r\n" HOST "Connection: a\r\nConnection: close\r\n\r\n",
         "GET / host=h close fields=Host:h|Connection:a|Connection:close\nend \n"},
        {"9.3", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
         "GET / host= keep fields=Connection:Keep-Alive\nend \n"},
        {"9.3", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
         "GET / host= close fields=Connection:keep-alive, close\nend \n"},
        {"9.3.2", "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n",
         "GET /1 host=h keep fields=Host:h\nend \nGET /2 host=h keep fields=Host:h\nend \n"},
        {"9.3.2",
         CHUNKED "1\r\nx\r\n0\r\n\r\n\r\n" POST "Content-Length: 1\r\n\r\ny"
                 "GET /3 HTTP/1.1\r\n" HOST "\r\n",
         CHUNKED_HEAD "body=x\nend \nPOST /p host=h keep fields=Host:h|Content-Length:1\n"
                      "body=y\nend \nGET /3 host=h keep fields=Host:h\nend \n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* What could be read in two ways: by a proxy in the one, here in the other. */
static void test_http1_parser_smuggling_is_refused(void **state)
{
    static const struct row rows[] = {
        {"6.1", POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400 both Content-Length and Transfer-Encoding\n"},
        {"6.1", POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         "400 both Content-Length and Transfer-Encoding\n"},
        {"6.1", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400 a Transfer-Encoding in HTTP/1.0\n"},
        {"6.1", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400 more than one Transfer-Encoding\n"},
        {"6.1", POST "Transfer-Encoding: identity\r\n\r\n",
         "501 a Transfer-Encoding that is not chunked alone\n"},
        {"6.1", POST "Transfer-Encoding: gzip, chunked\r\n\r\n",
         "501 a Transfer-Encoding that is not chunked alone\n"},
        {"6.1", POST "Transfer-Encoding: chunked, chunked\r\n\r\n",
         "501 a Transfer-Encoding that is not chunked alone\n"},
        {"6.1", POST "Transfer-Encoding: \vchunked\r\n\r\n",
         "400 a control character in the value of a field\n"},
        {"6.3", POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
         "400 more than one Content-Length\n"},
        {"6.3", POST "Content-Length: 1, 1\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length: +1\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length: -1\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length: 0x1\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length: 1 1\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length:\r\n\r\n", "400 the Content-Length is no number\n"},
        {"6.3", POST "Content-Length: 18446744073709551617\r\n\r\n",
         "400 the Content-Length is no number\n"},
        {"2.2", "GET / HTTP/1.1\n" HOST "\r\n", "400 a line feed without carriage return\n"},
        {"2.2", "GET / HTTP/1.1\r\nHost: h\n\r\n", "400 a line feed without carriage return\n"},
        {"2.2", "GET / HTTP/1.1\r\n" HOST "\n", "400 a line feed without carriage return\n"},
        {"2.2", "\nGET / HTTP/1.1\r\n" HOST "\r\n", "400 a line feed without carriage return\n"},
        {"2.2", "GET / HTTP/1.1\r\nA: b\rC: d\r\n" HOST "\r\n",
         "400 a carriage return without line feed\n"},
        {"2.2", "GET / HTTP/1.1\r\r\n" HOST "\r\n", "400 a carriage return without line feed\n"},
        {"2.2", "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
         "400 more than one empty line before a request\n"},
        {"2.2", "GET / HTTP/1.1\r\n Host: h\r\n\r\n",
         "400 a line of the header begins with a blank (obs-fold)\n"},
        {"5.2", "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n",
         "400 a line of the header begins with a blank (obs-fold)\n"},
        {"5.2", "GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n",
         "400 a line of the header begins with a blank (obs-fold)\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n",
         "400 a blank before the colon of a field\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n",
         "400 a blank before the colon of a field\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST "A\r\n\r\n", "400 a line of the header has no colon\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", "400 the name of a field is no token\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST "A b: c\r\n\r\n",
         "400 the name of a field is no token\n"},
        {"5.1", "GET / HTTP/1.1\r\n" HOST "\xc3\xa4: c\r\n\r\n",
         "400 the name of a field is no token\n"},
        {"9110 5.5", "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n",
         "400 a control character in the value of a field\n"},
        {"9110 5.5", "GET / HTTP/1.1\r\n" HOST "A: b\x7f\r\n\r\n",
         "400 a control character in the value of a field\n"},
        {"3.2", "GET / HTTP/1.1\r\n\r\n", "400 no Host\n"},
        {"3.2", "GET / HTTP/1.1\r\n" HOST "Host: i\r\n\r\n", "400 more than one Host\n"},
        {"3.2", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
         "400 the Host is no name or address with a port\n"},
        {"3.2", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
         "400 the Host is no name or address with a port\n"},
        {"3.2", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
         "400 the Host is no name or address with a port\n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_http1_parser_bad_request_lines_are_refused(void **state)
{
    static const struct row rows[] = {
        {"3", "GET /\r\n" HOST "\r\n", "400 the request line is not method, target and version\n"},
        {"3", "GET\r\n\r\n", "400 the request line is not method, target and version\n"},
        {"3", "GET  / HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has a byte that none may have\n"},
        {"3", "GET / HTTP/1.1 \r\n" HOST "\r\n",
         "400 the request line does not end with a version of HTTP\n"},
        {"3", "GET /a b HTTP/1.1\r\n" HOST "\r\n",
         "400 the target of the request has a byte that none may have\n"},
        {"3", "GET\t/ HTTP/1.1\r\n" HOST "\r\n",
         "400 the request line is not method, target and version\n"},
        {"3.1", "G{T / HTTP/1.1\r\n" HOST "\r\n", "400 the method of the request is no token\n"},
        {"3.1", " / HTTP/1.1\r\n" HOST "\r\n", "400 the method of the request is no token\n"},
        {"2.3", "GET / http/1.1\r\n" HOST "\r\n",
         "400 the request line does not end with a version of HTTP\n"},
        {"2.3", "GET / HTTP/1.\r\n" HOST "\r\n",
         "400 the request line does not end with a version of HTTP\n"},
        {"2.3", "GET / HTTP/11.1\r\n" HOST "\r\n",
         "400 the request line does not end with a version of HTTP\n"},
        {"2.3", "GET / HTTP/2.0\r\n" HOST "\r\n",
         "505 the version of HTTP is none that is spoken here: 1.0, 1.1\n"},
        {"9110 10.1.1", POST "Expect: 200-ok\r\n\r\n",
         "417 an expectation that is not 100-continue\n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_http1_parser_bad_chunks_are_refused(void **state)
{
#define NO_NUMBER CHUNKED_HEAD "400 the size of a chunk is no hexadecimal number\n"
    static const struct row rows[] = {
        {"7.1", CHUNKED "\r\n", NO_NUMBER},
        {"7.1", CHUNKED "g\r\n", NO_NUMBER},
        {"7.1", CHUNKED "0x5\r\n", NO_NUMBER},
        {"7.1", CHUNKED "-1\r\n", NO_NUMBER},
        {"7.1", CHUNKED "+1\r\n", NO_NUMBER},
        {"7.1", CHUNKED " 1\r\n", NO_NUMBER},
        {"7.1", CHUNKED "1 \r\n", NO_NUMBER},
        {"7.1", CHUNKED "1 2\r\n", NO_NUMBER},
        {"7.1", CHUNKED "1_0\r\n", NO_NUMBER},
        {"7.1", CHUNKED ";a\r\n", NO_NUMBER},
        {"7.1.1", CHUNKED "1;a\x01\r\n", NO_NUMBER},
        {"7.1", CHUNKED "1\nx\r\n0\r\n\r\n",
         CHUNKED_HEAD "400 a line feed without carriage return\n"},
        {"7.1.1", CHUNKED "1;\n\r\nx", CHUNKED_HEAD "400 a line feed without carriage return\n"},
        {"7.1.1", CHUNKED "1;a\rb\r\nx", CHUNKED_HEAD "400 a carriage return without line feed\n"},
        {"7.1", CHUNKED "0000000000000001\r\n",
         CHUNKED_HEAD "400 the size of a chunk has too many digits\n"},
        {"7.1", CHUNKED "1\r\nxy\r\n0\r\n\r\n",
         CHUNKED_HEAD "body=x\n400 no CRLF behind the bytes of a chunk\n"},
        {"7.1", CHUNKED "1\r\nx\n0\r\n\r\n",
         CHUNKED_HEAD "body=x\n400 no CRLF behind the bytes of a chunk\n"},
        {"7.1", CHUNKED "1\r\nx\r0\r\n\r\n",
         CHUNKED_HEAD "body=x\n400 no CRLF behind the bytes of a chunk\n"},
        {"7.1", CHUNKED "fffffffffffffff\r\n",
         CHUNKED_HEAD "413 the body is longer than max_body_bytes\n"},
        {"9110 6.5.1", CHUNKED "0\r\nContent-Length: 1\r\n\r\n",
         CHUNKED_HEAD "400 a trailer that no trailer may be\n"},
        {"9110 6.5.1", CHUNKED "0\r\nA: b\r\ntransfer-encoding: chunked\r\n\r\n",
         CHUNKED_HEAD "400 a trailer that no trailer may be\n"},
        {"5.1", CHUNKED "0\r\nA : b\r\n\r\n",
         CHUNKED_HEAD "400 a blank before the colon of a field\n"},
        {"2.2", CHUNKED "0\r\n\n", CHUNKED_HEAD "400 a line feed without carriage return\n"},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_http1_parser_nul_is_refused(void **state)
{
    static const char *const before[] = {"GET /", "GET / HTTP/1.1\r\nA", "GET / HTTP/1.1\r\nA: b",
                                         CHUNKED "1;a"};
    char bytes[256];

    (void)state;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        size_t n = strlen(before[i]);
        memcpy(bytes, before[i], n);
        memcpy(bytes + n, "\0c\r\n", 4);
        feed_in_all_ways((struct bow_slice){(const uint8_t *)bytes, n + 4}, before[i]);
        assert_non_null(strstr(whole.text, "400 a NUL where there is text\n"));
    }
}

/* A string of `n` times `c`, between two texts. */
static struct bow_slice filled(char *bytes, const char *before, char c, size_t n,
                               const char *behind)
{
    size_t n_before = strlen(before);

    memcpy(bytes, before, n_before);
    memset(bytes + n_before, c, n);
    memcpy(bytes + n_before + n, behind, strlen(behind));
    return (struct bow_slice){(const uint8_t *)bytes, n_before + n + strlen(behind)};
}

static char large[65536];

static const char *made_of(struct bow_slice bytes, size_t step)
{
    http1_transcript_init(&whole, NULL);
    http1_transcript_feed_steps(&whole, bytes, step);
    return whole.text;
}

static void test_http1_parser_request_line_is_bounded(void **state)
{
    const size_t rest = strlen("GET / HTTP/1.1\r\n");
    static const size_t steps[] = {1000000, 1000, 1};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bow_slice bytes =
            filled(large, "GET /", 'a', BOW_LIMIT_HTTP1_REQUEST_LINE_BYTES - rest,
                   " HTTP/1.1\r\n" HOST "\r\n");
        assert_ptr_equal(strstr(made_of(bytes, steps[i]), "GET /aaa"), whole.text);
        bytes = filled(large, "GET /", 'a', BOW_LIMIT_HTTP1_REQUEST_LINE_BYTES - rest + 1,
                       " HTTP/1.1\r\n" HOST "\r\n");
        assert_string_equal(made_of(bytes, steps[i]),
                            "414 the request line is longer than max_line_bytes\n");
        /* It does not take its end to see that. */
        bytes = filled(large, "GET /", 'a', BOW_LIMIT_HTTP1_REQUEST_LINE_BYTES, "");
        assert_string_equal(made_of(bytes, steps[i]),
                            "414 the request line is longer than max_line_bytes\n");
    }
}

static void test_http1_parser_head_is_bounded(void **state)
{
    const char *before = "GET / HTTP/1.1\r\n" HOST "A: ";
    size_t room = BOW_LIMIT_HEADER_BYTES - strlen(before) - 4;
    static const size_t steps[] = {1000000, 1000, 1};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bow_slice bytes = filled(large, before, 'b', room, "\r\n\r\n");
        assert_ptr_equal(strstr(made_of(bytes, steps[i]), "GET / host=h"), whole.text);
        bytes = filled(large, before, 'b', room + 1, "\r\n\r\n");
        assert_string_equal(made_of(bytes, steps[i]),
                            "431 the fields are longer than max_head_bytes\n");
        bytes = filled(large, before, 'b', 2 * room, "");
        assert_string_equal(made_of(bytes, steps[i]),
                            "431 the fields are longer than max_head_bytes\n");
        bytes = filled(large, CHUNKED "0\r\nA: ", 'b', BOW_LIMIT_HEADER_BYTES, "\r\n\r\n");
        assert_string_equal(made_of(bytes, steps[i]),
                            CHUNKED_HEAD "431 the fields are longer than max_head_bytes\n");
    }
}

static size_t put_fields(char *bytes, const char *before, size_t n)
{
    size_t len = (size_t)sprintf(bytes, "%s", before);

    for (size_t i = 0; i < n; i++) {
        len += (size_t)sprintf(bytes + len, "A%zu:b\r\n", i);
    }
    return len + (size_t)sprintf(bytes + len, "\r\n");
}

static void test_http1_parser_number_of_fields_is_bounded(void **state)
{
    (void)state;
    size_t len = put_fields(large, "GET / HTTP/1.0\r\n", BOW_LIMIT_HTTP1_FIELDS);
    made_of((struct bow_slice){(const uint8_t *)large, len}, len);
    assert_non_null(strstr(whole.text, "|A99:b\nend \n"));
    len = put_fields(large, "GET / HTTP/1.0\r\n", BOW_LIMIT_HTTP1_FIELDS + 1);
    assert_string_equal(made_of((struct bow_slice){(const uint8_t *)large, len}, len),
                        "431 more fields than BOW_LIMIT_HTTP1_FIELDS\n");
    len = put_fields(large, CHUNKED "0\r\n", BOW_LIMIT_HTTP1_FIELDS + 1);
    assert_string_equal(made_of((struct bow_slice){(const uint8_t *)large, len}, len),
                        CHUNKED_HEAD "431 more fields than BOW_LIMIT_HTTP1_FIELDS\n");
}

static const char *made_within(uint64_t max_body_bytes, const char *bytes)
{
    struct bow__http1_limits limits = BOW__HTTP1_LIMITS_INIT;

    limits.max_body_bytes = max_body_bytes;
    http1_transcript_init(&whole, &limits);
    http1_transcript_feed_steps(&whole, slice_of(bytes), 1);
    return whole.text;
}

static void test_http1_parser_body_is_bounded(void **state)
{
    (void)state;
    assert_non_null(strstr(made_within(3, POST "Content-Length: 3\r\n\r\nabc"), "body=abc\nend"));
    assert_string_equal(made_within(2, POST "Content-Length: 3\r\n\r\nabc"),
                        "413 the body is longer than max_body_bytes\n");
    assert_non_null(
        strstr(made_within(3, CHUNKED "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"), "body=abc\nend"));
    assert_string_equal(made_within(2, CHUNKED "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
                        CHUNKED_HEAD "body=a\n413 the body is longer than max_body_bytes\n");
}

static void test_http1_parser_body_limit_by_head_is_kept(void **state)
{
    const struct bow_slice bytes = slice_of(POST "Content-Length: 3\r\n\r\nabc");
    struct bow__http1_parser parser;
    struct bow__http1_event event;

    (void)state;
    bow__http1_parser_init(&parser, NULL);
    assert_true(bow__http1_next(&parser, bytes, &event) > 0);
    assert_int_equal(bow__http1_parser_limit_body(&parser, 3), 0);
    assert_int_equal(bow__http1_parser_limit_body(&parser, 2), -EBADMSG);
    assert_int_equal(parser.error.status, 413);
}

static void test_http1_parser_chunk_extensions_are_bounded(void **state)
{
    const size_t most = BOW_LIMIT_HTTP1_CHUNK_EXTENSION_BYTES;
    const char *too_long =
        CHUNKED_HEAD "400 the chunk extensions are longer than max_framing_bytes\n";

    (void)state;
    made_of(filled(large, CHUNKED "1;", 'e', most - 1, "\r\nx\r\n0\r\n\r\n"), 1);
    assert_string_equal(whole.text, CHUNKED_HEAD "body=x\nend \n");
    made_of(filled(large, CHUNKED "1;", 'e', most - 1, "\r\nx\r\n0;\r\n\r\n"), 1);
    assert_non_null(strstr(whole.text, "400 the chunk extensions are longer"));
    assert_string_equal(
        made_of(filled(large, CHUNKED "1;", 'e', most, "\r\nx\r\n0\r\n\r\n"), 1000000), too_long);
    /* Nor does one without end wait for it; zeros before the size are as bad. */
    assert_string_equal(made_of(filled(large, CHUNKED "1;", 'e', 2 * most, ""), 1), too_long);
    assert_string_equal(made_of(filled(large, CHUNKED, '0', 2 * most, ""), 1), too_long);
}

/* A peer that sends a byte at a time does not have all of them looked through with each. */
static void test_http1_parser_no_byte_is_looked_at_twice(void **state)
{
    const struct bow_slice bytes = slice_of("GET / HTTP/1.1\r\nA: bcd");
    struct bow__http1_parser parser;
    struct bow__http1_event event;

    (void)state;
    bow__http1_parser_init(&parser, NULL);
    for (size_t len = 0; len <= bytes.len; len++) {
        assert_int_equal(bow__http1_next(&parser, (struct bow_slice){bytes.data, len}, &event),
                         -EAGAIN);
        assert_int_equal(parser.n_scanned, len);
    }
}

static void test_http1_parser_knows_where_a_connection_may_end(void **state)
{
    const char *bytes = "\r\n" CHUNKED "1\r\nx\r\n0\r\nA: b\r\n\r\n";
    size_t n = strlen(bytes);

    (void)state;
    http1_transcript_init(&whole, NULL);
    assert_true(bow__http1_parser_is_idle(&whole.parser));
    for (size_t len = 1, begin = 0; len <= n; len++) {
        begin += http1_transcript_feed(
            &whole, (struct bow_slice){(const uint8_t *)bytes + begin, len - begin});
        assert_int_equal(bow__http1_parser_is_idle(&whole.parser), len == 2 || len == n);
    }
}

static void test_http1_parser_stays_broken(void **state)
{
    struct bow__http1_parser parser;
    struct bow__http1_event event;

    (void)state;
    bow__http1_parser_init(&parser, NULL);
    assert_int_equal(bow__http1_next(&parser, slice_of("\n"), &event), -EBADMSG);
    assert_int_equal(bow__http1_next(&parser, slice_of("GET / HTTP/1.0\r\n\r\n"), &event),
                     -EBADMSG);
    assert_int_equal(parser.error.status, 400);
    assert_string_equal(parser.error.text, "a line feed without carriage return");
}

static void test_http1_fields_are_found_in_any_case_and_once(void **state)
{
    const char *block = "A: 1\r\nB: x, Y ,,z\r\na: 2\r\nc: 3\r\nb: w\r\n";
    static struct bow__http1_fields fields;
    struct bow__http1_error error;

    (void)state;
    assert_int_equal(bow__http1_fields_decode(slice_of(block), &fields, &error), 0);
    assert_int_equal(fields.n, 5);
    assert_int_equal(*bow__http1_fields_get(&fields, "C").data, '3');
    assert_null(bow__http1_fields_get(&fields, "A").data); /* which of them is not said */
    assert_null(bow__http1_fields_get(&fields, "d").data);
    assert_true(bow__http1_fields_list(&fields, "b", "y"));
    assert_true(bow__http1_fields_list(&fields, "b", "W"));
    assert_false(bow__http1_fields_list(&fields, "b", "x, Y"));
    assert_false(bow__http1_fields_list(&fields, "b", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http1_parser_requests_are_read),
        cmocka_unit_test(test_http1_parser_targets_are_read),
        cmocka_unit_test(test_http1_parser_connection_goes_on_or_not),
        cmocka_unit_test(test_http1_parser_smuggling_is_refused),
        cmocka_unit_test(test_http1_parser_bad_request_lines_are_refused),
        cmocka_unit_test(test_http1_parser_bad_chunks_are_refused),
        cmocka_unit_test(test_http1_parser_nul_is_refused),
        cmocka_unit_test(test_http1_parser_request_line_is_bounded),
        cmocka_unit_test(test_http1_parser_head_is_bounded),
        cmocka_unit_test(test_http1_parser_number_of_fields_is_bounded),
        cmocka_unit_test(test_http1_parser_body_is_bounded),
        cmocka_unit_test(test_http1_parser_body_limit_by_head_is_kept),
        cmocka_unit_test(test_http1_parser_chunk_extensions_are_bounded),
        cmocka_unit_test(test_http1_parser_no_byte_is_looked_at_twice),
        cmocka_unit_test(test_http1_parser_knows_where_a_connection_may_end),
        cmocka_unit_test(test_http1_parser_stays_broken),
        cmocka_unit_test(test_http1_fields_are_found_in_any_case_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
