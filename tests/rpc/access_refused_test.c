/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that a server refuses before they begin, in its access log: which limit it was, and that a
 * peer cannot fill the log with them.
 */

#include "access_lines.h"
#include "serve_fixture.h"

#include <bowline/access_log.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_REFUSED 3

static struct calls *calls; /* of the running test */
static struct bow_access_log *log_;
static struct bow_access_log_options log_options;
static uint64_t unix_ns;
static struct access_lines lines;

static uint64_t now(void *user)
{
    (void)user;
    pthread_mutex_lock(&calls->lock);
    uint64_t ns = unix_ns;
    pthread_mutex_unlock(&calls->lock);
    return ns;
}

static void intercept(struct serving *s)
{
    struct bow_interceptor interceptor;

    log_options.context = calls->context;
    assert_int_equal(bow_access_log_new(&log_options, &log_), 0);
    bow_access_log_intercept(log_, &interceptor);
    assert_int_equal(bow_server_intercept(s->t->server, &interceptor), 0);
}

static int setup(void **state)
{
    serve_setup_bare(state);
    struct serving *s = *state;
    calls = s->t;
    s->before_start = intercept;
    access_lines_init(&lines, calls);
    unix_ns = UINT64_C(1772366400000000000);
    log_options = (struct bow_access_log_options)BOW_ACCESS_LOG_OPTIONS_INIT;
    log_options.line = access_lines_add;
    log_options.user = &lines;
    log_options.unix_ns = now;
    log_options.max_refused_per_second = MAX_REFUSED;
    return 0;
}

static int teardown(void **state)
{
    struct serving *s = *state;

    if (s->has_peer) {
        session_peer_end(&s->peer);
        s->has_peer = false;
    }
    calls_kill_server(calls);
    bow_access_log_unref(log_);
    return serve_teardown(state);
}

static void start(struct serving *s, uint32_t max_server_calls)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_server_calls = max_server_calls;
    serve_start(s, &options);
    serve_connect(s);
}

static void keep(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void expect_in_log(const char *words)
{
    pthread_mutex_lock(&calls->lock);
    bool found = strstr(lines.text, words) != NULL;
    pthread_mutex_unlock(&calls->lock);
    if (!found) {
        fail_msg("\"%s\" is not in\n%s", words, lines.text);
    }
}

static void test_access_log_names_the_limit_of_a_refused_call(void **state)
{
    const struct bow_metadata_entry entry = {"x-request-id", {(const uint8_t *)"r7", 2}};
    const struct bow_metadata metadata = {&entry, 1};
    struct serving *s = *state;
    char expected[256];

    s->enter = keep;
    start(s, 1);
    serve_begin(s, SERVE_PLAIN);
    struct bow_call *first = s->call;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, &metadata);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "max_server_calls");
    calls_wait(calls, &lines.n, 1);
    snprintf(expected, sizeof(expected),
             " %s /calls.Kinds/Plain RESOURCE_EXHAUSTED in=0/0 out=0/0 us=0 left_us=- id=\"r7\" "
             "message=\"/calls.Kinds/Plain: the server is overloaded",
             calls_is_grpc() ? "grpc" : "native");
    expect_in_log(expected);
    expect_in_log("\" refused=max_server_calls unlogged=0\n");
    assert_int_equal(serve_reply(first, 1), 0);
    calls_wait(calls, &lines.n, 2);
    expect_in_log("/calls.Kinds/Plain OK in=1/");
}

static void limit_method(struct serving *s)
{
    intercept(s);
    assert_int_equal(bow_server_limit_calls(s->t->server, &SERVE_PLAIN[1], 1), 0);
}

static void test_access_log_names_the_limit_of_a_method(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    s->before_start = limit_method;
    log_options.json = true;
    start(s, 0);
    serve_begin(s, SERVE_PLAIN);
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "bow_server_limit_calls");
    calls_wait(calls, &lines.n, 1);
    expect_in_log("\"method\":\"/calls.Kinds/Plain\",\"code\":\"RESOURCE_EXHAUSTED\",\"in\":0,");
    expect_in_log("\"left_us\":null,");
    expect_in_log("\",\"refused\":\"bow_server_limit_calls\",\"unlogged\":0}\n");
    assert_int_equal(serve_reply(s->call, 1), 0);
}

static void test_access_log_has_calls_that_came_expired(void **state)
{
    struct serving *s = *state;

    start(s, 0);
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, 0, NULL);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "passed");
    calls_wait(calls, &lines.n, 1);
    expect_in_log("/calls.Kinds/Plain DEADLINE_EXCEEDED in=0/0");
    expect_in_log(" refused=expired unlogged=0\n");
}

/* The path is the peer's, and anything. */
static void test_access_log_escapes_the_path_of_an_unknown_method(void **state)
{
    struct serving *s = *state;

    start(s, 0);
    session_peer_begin_stream(&s->peer, calls_is_grpc() ? "/a\"b\\c" : "/a\"b\\c d\nOK", BOW_NEVER,
                              NULL);
    serve_expect_status(s, BOW_UNIMPLEMENTED, "unknown method");
    calls_wait(calls, &lines.n, 1);
    expect_in_log(calls_is_grpc() ? " /a\\u0022b\\u005cc UNIMPLEMENTED in=0/0"
                                  : " /a\\u0022b\\u005cc\\u0020d\\u000aOK UNIMPLEMENTED in=0/0");
    expect_in_log(" refused=unknown_method unlogged=0\n");
    assert_ptr_equal(strchr(lines.text, '\n'), lines.text + strlen(lines.text) - 1);
}

static void call_unknown(struct serving *s)
{
    int n = s->peer.n_ends;

    session_peer_begin_stream(&s->peer, "/no/method", BOW_NEVER, NULL);
    session_peer_wait(&s->peer, &s->peer.n_ends, n + 1);
    assert_int_equal(s->peer.code, BOW_UNIMPLEMENTED);
}

static void test_access_log_cannot_be_filled_with_refused_calls(void **state)
{
    struct serving *s = *state;

    start(s, 0);
    for (int i = 0; i < MAX_REFUSED + 5; i++) {
        call_unknown(s);
    }
    assert_int_equal(serve_count(s, &lines.n), MAX_REFUSED);
    pthread_mutex_lock(&calls->lock);
    unix_ns += UINT64_C(1000000000);
    pthread_mutex_unlock(&calls->lock);
    call_unknown(s);
    assert_int_equal(serve_count(s, &lines.n), MAX_REFUSED + 1);
    expect_in_log(" refused=unknown_method unlogged=5\n");
    call_unknown(s);
    assert_string_equal(lines.text + strlen(lines.text) - strlen("unlogged=0\n"), "unlogged=0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_access_log_names_the_limit_of_a_refused_call),
        TEST(test_access_log_names_the_limit_of_a_method),
        TEST(test_access_log_has_calls_that_came_expired),
        TEST(test_access_log_escapes_the_path_of_an_unknown_method),
        TEST(test_access_log_cannot_be_filled_with_refused_calls),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
