/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls over HTTP/1.1 in a session by itself: what waits for what, the times that a client has, how
 * a connection ends. */

#include "tests/support/alloc.h"
#include "tests/web/web_host.h"
#include <bowline/limits.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

#define HEAD "POST /web.Shop/Say HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
#define SAY HEAD "content-length: 14\r\n\r\n{\"name\":\"Ada\"}"
#define HOLD HEAD "content-length: 12\r\n\r\n{\"name\":\"h\"}"
#define OK_ADA                                                                                     \
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 14\r\n\r\n"              \
    "{\"text\":\"Ada\"}"
#define OK_MARK                                                                                    \
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n"              \
    "{\"text\":\"!\"}"

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct web_host host;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    web_host_begin(&t->host, t->context);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    web_host_end(&t->host);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static ssize_t feed(struct fixture *t, const char *text)
{
    return web_host_feed(&t->host, text, strlen(text), strlen(text));
}

static uint64_t next_time(const struct fixture *t)
{
    return t->host.session->ops->next_time(t->host.session);
}

static int on_time(struct fixture *t, uint64_t at)
{
    t->host.now_ns = at;
    int rc = t->host.session->ops->on_time(t->host.session, at);
    web_host_drain(&t->host);
    return rc;
}

static bool is_done(const struct fixture *t)
{
    return t->host.session->ops->is_done(t->host.session);
}

static bool is_clogged(const struct fixture *t)
{
    return t->host.session->ops->is_clogged(t->host.session);
}

static void test_web_http1_request_at_each_cut_is_answered_the_same(void **state)
{
    struct fixture *t = *state;
    size_t n = strlen(SAY SAY);

    for (size_t step = 1; step <= n; step++) {
        t->host.n_out = 0;
        assert_int_equal(web_host_feed(&t->host, SAY SAY, n, step), n);
        assert_string_equal(t->host.out, OK_ADA OK_ADA);
    }
}

static void test_web_http1_request_waits_for_the_answer_before(void **state)
{
    struct fixture *t = *state;

    assert_int_equal(feed(t, HOLD SAY), strlen(HOLD));
    assert_string_equal(t->host.out, "");
    assert_true(is_clogged(t)); /* so that the host does not read */
    assert_int_equal(t->host.session->ops->next_time(t->host.session), BOW_NEVER);
    web_host_answer(&t->host);
    assert_string_equal(t->host.out, OK_MARK);
    assert_false(is_clogged(t));
    assert_int_equal(feed(t, SAY), strlen(SAY));
    assert_string_equal(t->host.out, OK_MARK OK_ADA);
}

static void test_web_http1_requests_wait_while_answers_do_not_leave(void **state)
{
    struct fixture *t = *state;
    struct bow__session *session = t->host.session;
    size_t n_fed = 0;

    /* Without a drain between. */
    while (!is_clogged(t) && n_fed < 10000) {
        ssize_t used = session->ops->feed(session, (const uint8_t *)SAY, strlen(SAY), SECOND_NS);
        n_fed += used > 0 ? 1 : 0;
        (void)bow__work_next_turn(&session->work);
    }
    size_t n_out = session->ops->unsent(session);
    assert_true(n_out >= 64u << 10 && n_out <= 192u << 10);
    web_host_drain(&t->host);
    assert_false(is_clogged(t));
}

static void test_web_http1_head_that_comes_slowly_ends_by_a_limit(void **state)
{
    struct fixture *t = *state;
    uint64_t begun = t->host.now_ns;
    size_t used = 0;

    /* A byte a second, each of which is life. */
    for (size_t n = 1; n < 10; n++) {
        ssize_t rc = t->host.session->ops->feed(t->host.session, (const uint8_t *)HEAD + used,
                                                n - used, t->host.now_ns);
        assert_true(rc >= 0);
        used += (size_t)rc;
        assert_int_equal(next_time(t), begun + BOW_LIMIT_HTTP1_REQUEST_NS);
        t->host.now_ns += SECOND_NS;
    }
    assert_int_equal(on_time(t, begun + BOW_LIMIT_HTTP1_REQUEST_NS), -ETIMEDOUT);
    assert_non_null(strstr(t->host.session->failure.bytes, "BOW_LIMIT_HTTP1_REQUEST_NS"));
    assert_memory_equal(t->host.out, "HTTP/1.1 408 Request Timeout\r\n", 30);
    assert_true(is_done(t));
}

static void test_web_http1_body_that_does_not_come_ends_by_the_limit(void **state)
{
    struct fixture *t = *state;

    assert_true(feed(t, HEAD "content-length: 14\r\n\r\n{") > 0);
    uint64_t until = t->host.now_ns + BOW_LIMIT_HTTP1_REQUEST_NS;
    assert_int_equal(next_time(t), until);
    assert_int_equal(on_time(t, until - 1), 0);
    assert_int_equal(on_time(t, until), -ETIMEDOUT);
}

/* `more`, and `more` again a second later, each of which is life: until the limit all the same. */
static void drip(struct fixture *t, const char *more)
{
    char bytes[64];
    size_t n_bytes = 0;
    uint64_t until = t->host.now_ns + BOW_LIMIT_HTTP1_REQUEST_NS;

    while (t->host.now_ns + SECOND_NS < until) {
        /* What the session leaves its host gives again. */
        memcpy(bytes + n_bytes, more, strlen(more));
        n_bytes += strlen(more);
        ssize_t used = t->host.session->ops->feed(t->host.session, (const uint8_t *)bytes, n_bytes,
                                                  t->host.now_ns);
        assert_true(used >= 0);
        n_bytes -= (size_t)used;
        memmove(bytes, bytes + used, n_bytes);
        assert_int_equal(next_time(t), until);
        t->host.now_ns += SECOND_NS;
    }
    assert_int_equal(on_time(t, until), -ETIMEDOUT);
    assert_non_null(strstr(t->host.session->failure.bytes, "BOW_LIMIT_HTTP1_REQUEST_NS"));
    assert_true(is_done(t));
}

/* Of a request that is refused by its head. */
static void expect_bound_behind_the_answer(struct fixture *t, const char *begin, const char *more)
{
    web_host_end(&t->host);
    web_host_begin(&t->host, t->context);
    assert_true(feed(t, begin) > 0);
    assert_memory_equal(t->host.out, "HTTP/1.1 501", 12);
    drip(t, more);
}

static void test_web_http1_rest_that_comes_slowly_behind_the_answer_ends_by_the_limit(void **state)
{
#define REFUSED "POST /web.Shop/Nope HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    struct fixture *t = *state;

    expect_bound_behind_the_answer(t, REFUSED "content-length: 1000\r\n\r\n", "{");
    expect_bound_behind_the_answer(t, REFUSED "transfer-encoding: chunked\r\n\r\n", "1\r\n \r\n");
    expect_bound_behind_the_answer(t, REFUSED "transfer-encoding: chunked\r\n\r\n1;", "e");
    expect_bound_behind_the_answer(t, REFUSED "transfer-encoding: chunked\r\n\r\n0\r\nA: ", "b");
#undef REFUSED
}

/* Its host has ended it at a time that the session is not told. */
static void test_web_http1_rest_of_a_stream_that_has_ended_is_bounded(void **state)
{
    struct fixture *t = *state;

    assert_true(feed(t, "POST /web.Shop/Gather HTTP/1.1\r\nhost: a\r\n"
                        "content-type: application/connect+json\r\n"
                        "content-length: 1000\r\n\r\n") > 0);
    t->host.now_ns += 1000 * SECOND_NS;
    const struct bow_status enough = {.code = BOW_ABORTED, .message = "enough"};
    t->host.session->ops->finish(t->host.session, t->host.key, &enough);
    t->host.key = 0;
    web_host_drain(&t->host);
    assert_int_equal(on_time(t, t->host.now_ns), 0);
    assert_false(is_done(t));
    drip(t, "x");
}

/* Where such a request ends two readers may tell differently: none of it is served, nor what is
 * behind it. */
static void test_web_http1_smuggling_opens_no_call(void **state)
{
    static const struct {
        const char *bytes;
        const char *words;
    } rows[] = {
        {HEAD "content-length: 14\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "both"},
        {HEAD "content-length: 14\r\ncontent-length: 0\r\n\r\n", "more than one Content-Length"},
        {HEAD "content-length: 14, 14\r\n\r\n", "the Content-Length is no number"},
        {HEAD "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "not chunked alone"},
        {HEAD "x: y\r\n content-length: 14\r\n\r\n", "obs-fold"},
        {HEAD "content-length : 14\r\n\r\n", "a blank before the colon"},
        {HEAD "content-length: 14\n\r\n", "a line feed without carriage return"},
        {HEAD "x: y\rcontent-length: 14\r\n\r\n", "a carriage return without line feed"},
        {HEAD "host: b\r\n\r\n", "more than one Host"},
        {"POST http:///web.Shop/Say HTTP/1.1\r\nhost: a\r\n\r\n", "the target of the request"},
    };
    struct fixture *t = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[1024];
        int n = snprintf(bytes, sizeof(bytes), "%s%s", rows[i].bytes, SAY);
        web_host_end(&t->host);
        web_host_begin(&t->host, t->context);
        (void)web_host_feed(&t->host, bytes, (size_t)n, (size_t)n);
        web_host_drain(&t->host);
        assert_int_equal(t->host.n_opened, 0);
        assert_true(strncmp(t->host.out, "HTTP/1.1 400", 12) == 0 ||
                    strncmp(t->host.out, "HTTP/1.1 501", 12) == 0);
        if (strstr(t->host.out, rows[i].words) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", t->host.out, rows[i].words);
        }
        assert_true(is_done(t));
    }
}

static void test_web_http1_stream_of_a_client_may_take_its_time(void **state)
{
    struct fixture *t = *state;

    assert_true(feed(t, "POST /web.Shop/Gather HTTP/1.1\r\nhost: a\r\n"
                        "content-type: application/connect+json\r\n"
                        "transfer-encoding: chunked\r\n\r\n") > 0);
    assert_int_equal(next_time(t), BOW_NEVER);
}

static void test_web_http1_silent_connection_is_closed_in_good_order(void **state)
{
    struct fixture *t = *state;

    feed(t, SAY);
    uint64_t until = t->host.now_ns + 80 * SECOND_NS; /* heartbeat and its time-out */
    assert_int_equal(next_time(t), until);
    assert_false(is_done(t));
    assert_int_equal(on_time(t, until), 0);
    assert_true(is_done(t));
}

static void test_web_http1_time_stands_still_while_the_host_does_not_read(void **state)
{
    struct fixture *t = *state;

    t->host.session->ops->set_reading(t->host.session, false, t->host.now_ns);
    assert_int_equal(next_time(t), BOW_NEVER);
    t->host.now_ns += 1000 * SECOND_NS;
    t->host.session->ops->set_reading(t->host.session, true, t->host.now_ns);
    assert_int_equal(next_time(t), t->host.now_ns + 80 * SECOND_NS);
}

static void test_web_http1_goaway_lets_the_call_end_and_says_close(void **state)
{
    struct fixture *t = *state;
    const struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "drain"};

    feed(t, HOLD);
    t->host.session->ops->goaway(t->host.session, &reason);
    assert_false(is_done(t));
    web_host_answer(&t->host);
    assert_non_null(strstr(t->host.out, "Connection: close\r\n"));
    assert_true(is_done(t));
}

static void test_web_http1_goaway_ends_a_connection_without_a_call(void **state)
{
    struct fixture *t = *state;
    const struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "drain"};

    feed(t, SAY);
    t->host.session->ops->goaway(t->host.session, &reason);
    assert_true(is_done(t));
    assert_true(feed(t, SAY) > 0);
    assert_int_equal(t->host.n_opened, 1);
}

static void test_web_http1_cut_tells_the_client(void **state)
{
    struct fixture *t = *state;
    const struct bow_status status = {.code = BOW_UNAVAILABLE, .message = "the grace is over"};

    feed(t, HOLD);
    t->host.session->ops->cut(t->host.session, &status);
    web_host_drain(&t->host);
    assert_int_equal(t->host.n_reset, 1);
    assert_memory_equal(t->host.out, "HTTP/1.1 503 ", 13);
    assert_non_null(strstr(t->host.out, "the grace is over"));
    assert_true(is_done(t));
}

static void test_web_http1_early_answer_ends_the_connection_unless_the_body_is_short(void **state)
{
    struct fixture *t = *state;

    feed(t, "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
            "content-length: 2\r\n\r\n{}" SAY);
    assert_memory_equal(t->host.out, "HTTP/1.1 501 ", 13);
    assert_non_null(strstr(t->host.out, OK_ADA));
    t->host.n_out = 0;
    feed(t, "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
            "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n");
    assert_non_null(strstr(t->host.out, "Connection: close\r\n"));
    assert_false(is_done(t));
    feed(t, "0\r\n\r\n" SAY);
    assert_true(is_done(t));
    assert_null(strstr(t->host.out, "Ada"));
}

static void test_web_http1_old_client_gets_its_stream_to_the_end_of_the_connection(void **state)
{
    struct fixture *t = *state;

    feed(t, "POST /web.Shop/Pour HTTP/1.0\r\ncontent-type: application/connect+json\r\n"
            "content-length: 7\r\n\r\n");
    (void)web_host_feed(&t->host, "\0\0\0\0\2{}", 7, 7);
    assert_non_null(strstr(t->host.out, "Connection: close\r\n"));
    assert_null(strstr(t->host.out, "chunked"));
    assert_true(is_done(t));
}

#define PAGE_HEAD                                                                                  \
    "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n"                                \
    "content-security-policy: default-src 'none'\r\ncache-control: no-cache\r\n"                   \
    "referrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\nContent-Length: 9\r\n\r\n"
#define GET_PAGE "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

static void test_web_http1_page_is_answered_at_each_cut_between_calls(void **state)
{
    struct fixture *t = *state;
    size_t n = strlen(GET_PAGE SAY);

    for (size_t step = 1; step <= n; step++) {
        t->host.n_out = 0;
        assert_int_equal(web_host_feed(&t->host, GET_PAGE SAY, n, step), n);
        assert_string_equal(t->host.out, PAGE_HEAD WEB_HOST_PAGE OK_ADA);
    }
    assert_int_equal(t->host.n_opened, n); /* the page was none */
}

static void test_web_http1_page_without_its_bytes_is_head(void **state)
{
    struct fixture *t = *state;

    (void)feed(t, "HEAD /?a HTTP/1.1\r\nhost: a\r\n\r\n" SAY);
    assert_string_equal(t->host.out, PAGE_HEAD OK_ADA);
}

static void expect_status(struct fixture *t, const char *request, const char *status)
{
    t->host.n_out = 0;
    (void)feed(t, request);
    assert_memory_equal(t->host.out, status, strlen(status));
}

static void test_web_http1_page_is_nowhere_else(void **state)
{
    struct fixture *t = *state;

    expect_status(t, "GET /a HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 415");
    expect_status(t, "HEAD /a HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 405");
    expect_status(t, "PUT / HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 405");
    t->host.web.page = NULL;
    expect_status(t, GET_PAGE, "HTTP/1.1 415");
}

static void test_web_http1_page_that_is_not_read_is_asked_for_no_more(void **state)
{
    struct fixture *t = *state;
    struct bow__session *session = t->host.session;
    size_t n_fed = 0;

    while (!is_clogged(t) && n_fed < 100000) {
        ssize_t used =
            session->ops->feed(session, (const uint8_t *)GET_PAGE, strlen(GET_PAGE), SECOND_NS);
        n_fed += used > 0 ? 1 : 0;
        (void)bow__work_next_turn(&session->work);
    }
    assert_true(n_fed < 100000);
    assert_true(session->ops->unsent(session) < (size_t)1 << 20);
}

static void test_web_http1_without_memory_no_call_is_lost(void **state)
{
    struct fixture *t = *state;

    for (uint64_t n = 1; n < 40; n++) {
        web_host_end(&t->host);
        web_host_begin(&t->host, t->context);
        t->alloc.fail_at = t->alloc.n_calls + n;
        (void)web_host_feed(&t->host, GET_PAGE SAY, strlen(GET_PAGE SAY), 7);
        t->alloc.fail_at = 0;
    }
}

static void expect_refused(struct fixture *t, const char *text, const char *status)
{
    char line[32];

    web_host_end(&t->host);
    web_host_begin(&t->host, t->context);
    feed(t, text);
    (void)snprintf(line, sizeof(line), "HTTP/1.1 %s ", status);
    assert_memory_equal(t->host.out, line, strlen(line));
    assert_int_equal(t->host.session->requests_refused, status[0] == '2' ? 0 : 1);
    assert_int_equal(t->host.n_opened, 0);
}

static void expect_metadata(struct fixture *t, const char *field, const char *metadata)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "%s%s\r\ncontent-length: 2\r\n\r\n{}", HEAD, field);
    feed(t, text);
    assert_string_equal(t->host.metadata, metadata);
}

static void test_web_http1_binary_values_that_were_joined_are_several(void **state)
{
    struct fixture *t = *state;

    expect_metadata(t, "A-Bin: YQ==,Yg==", " a-bin=a a-bin=b");
    expect_metadata(t, "a-bin: YQ, Yg , AP8", " a-bin=a a-bin=b a-bin=.0.255");
    expect_metadata(t, "a-bin: YQ,!,Yg=", " a-bin=a");
    expect_metadata(t, "a-bin: YQ,,Yg", " a-bin=a a-bin= a-bin=b");
    expect_metadata(t, "a-bin: YWI=\r\na-bin: Yw", " a-bin=ab a-bin=c");
    expect_metadata(t, "a: YQ==,Yg==", " a=YQ.61.61.44Yg.61.61");
}

static void test_web_http1_binary_values_that_were_joined_count_each(void **state)
{
    struct fixture *t = *state;
    char text[512];

    (void)snprintf(text, sizeof(text), "%sa-bin: %0*d\r\n\r\n", HEAD, 97, 0);
    memset(strstr(text, "000"), ',', 97); /* 98 values, and two other fields */
    feed(t, text);
    assert_int_equal(t->host.n_opened, 1);
    (void)snprintf(text, sizeof(text), "%sa-bin: %0*d\r\n\r\n", HEAD, 98, 0);
    memset(strstr(text, "000"), ',', 98);
    expect_refused(t, text, "431");
}

static void test_web_http1_refused_requests_are_counted(void **state)
{
    static char large[80 << 10];
    struct fixture *t = *state;

    expect_refused(t, "PUT /web.Shop/Say HTTP/1.1\r\nhost: a\r\n\r\n", "405");
    expect_refused(t, "POST /web.Shop/Say HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n\r\n",
                   "415");
    expect_refused(t, HEAD "connect-timeout-ms: x\r\n\r\n", "400");
    expect_refused(t, HEAD "grpc-timeout: x\r\n\r\n", "400");
    expect_refused(t, "POST /web.Shop/Say HTTP/1.1\r\nho st: a\r\n\r\n", "400");
    (void)snprintf(large, sizeof(large), "%sx: %070000d\r\n\r\n", HEAD, 0);
    expect_refused(t, large, "431");
    expect_refused(t, GET_PAGE, "200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_web_http1_request_at_each_cut_is_answered_the_same),
        TEST(test_web_http1_request_waits_for_the_answer_before),
        TEST(test_web_http1_requests_wait_while_answers_do_not_leave),
        TEST(test_web_http1_head_that_comes_slowly_ends_by_a_limit),
        TEST(test_web_http1_body_that_does_not_come_ends_by_the_limit),
        TEST(test_web_http1_rest_that_comes_slowly_behind_the_answer_ends_by_the_limit),
        TEST(test_web_http1_rest_of_a_stream_that_has_ended_is_bounded),
        TEST(test_web_http1_smuggling_opens_no_call),
        TEST(test_web_http1_stream_of_a_client_may_take_its_time),
        TEST(test_web_http1_silent_connection_is_closed_in_good_order),
        TEST(test_web_http1_time_stands_still_while_the_host_does_not_read),
        TEST(test_web_http1_goaway_lets_the_call_end_and_says_close),
        TEST(test_web_http1_goaway_ends_a_connection_without_a_call),
        TEST(test_web_http1_cut_tells_the_client),
        TEST(test_web_http1_early_answer_ends_the_connection_unless_the_body_is_short),
        TEST(test_web_http1_old_client_gets_its_stream_to_the_end_of_the_connection),
        TEST(test_web_http1_page_is_answered_at_each_cut_between_calls),
        TEST(test_web_http1_page_without_its_bytes_is_head),
        TEST(test_web_http1_page_is_nowhere_else),
        TEST(test_web_http1_page_that_is_not_read_is_asked_for_no_more),
        TEST(test_web_http1_without_memory_no_call_is_lost),
        TEST(test_web_http1_binary_values_that_were_joined_are_several),
        TEST(test_web_http1_binary_values_that_were_joined_count_each),
        TEST(test_web_http1_refused_requests_are_counted),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
