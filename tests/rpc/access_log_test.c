/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An access log of a server: what its lines say, that nobody can forge one, and what becomes of
 * them where nobody reads.
 */

#include "access_lines.h"
#include "span_sink.h"
#include "tests/support/forks.h"

#include <bowline/access_log.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define PIPE_BYTES 4096
#define MIN_BYTES 4096

static struct calls *calls; /* of the running test */
static struct bow_access_log *log_;
static struct bow_tracer *tracer; /* for the server that is made next; NULL: none */
static struct access_lines lines;

static uint64_t noon(void *user)
{
    (void)user;
    return UINT64_C(1772366400123456789); /* 2026-03-01T12:00:00.123456789Z */
}

static int setup(void **state)
{
    calls_setup_bare(state);
    calls = *state;
    access_lines_init(&lines, calls);
    return 0;
}

static void serve(const struct bow_access_log_options *options)
{
    struct bow_server_options server_options;
    struct bow_client_options client_options;
    struct bow_interceptor interceptor;

    calls_server_options(calls, &server_options);
    assert_int_equal(bow_access_log_new(options, &log_), 0);
    bow_access_log_intercept(log_, &interceptor);
    calls->server = calls_make_server(calls, &server_options);
    assert_int_equal(bow_server_intercept(calls->server, &interceptor), 0);
    if (tracer != NULL) {
        bow_tracer_intercept(tracer, &interceptor);
        bow_tracer_unref(tracer);
        tracer = NULL;
        assert_int_equal(bow_server_intercept(calls->server, &interceptor), 0);
    }
    assert_int_equal(calls_open_server(calls, calls->server), 0);
    calls_client_options(calls, &client_options);
    calls->client = calls_new_client(calls, &client_options);
}

static int teardown(void **state)
{
    bow_client_free(calls->client);
    calls->client = NULL;
    calls_kill_server(calls);
    bow_access_log_unref(log_);
    return calls_teardown(state);
}

static void say(const char *id, char *text, enum bow_code code)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_metadata_entry entry = {"x-request-id",
                                       {(const uint8_t *)id, id != NULL ? strlen(id) : 0}};
    const struct bow_metadata metadata = {&entry, id != NULL};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.text = text;
    request.code = (uint32_t)code;
    options.metadata = &metadata;
    options.timeout_ns = 10000 * MS;
    (void)calls__echo__say__call(calls->client, &request, &options, &result);
    assert_int_equal(result.status.code, code);
    bow_result_fini(&result);
}

static struct bow_access_log_options to_callback(void)
{
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;

    options.context = calls->context;
    options.line = access_lines_add;
    options.user = &lines;
    options.unix_ns = noon;
    return options;
}

/* The line, but for the address, and with its times as "N". */
static void expect_line(const char *before_peer, const char *after_peer)
{
    char seen[4096];
    char *to = seen;

    calls_wait(calls, &lines.n, 1);
    assert_int_equal(strncmp(lines.text, before_peer, strlen(before_peer)), 0);
    const char *at = lines.text + strlen(before_peer);
    at += strcspn(at, " \"");
    while (*at != '\0') {
        bool is_time = strncmp(at, "us=", 3) == 0 || strncmp(at, "us\":", 4) == 0;
        *to++ = *at++;
        if (is_time) {
            size_t n = strcspn(at, "=:") + 1;
            memcpy(to, at, n);
            to += n;
            *to++ = 'N';
            at += n + strspn(at + n, "0123456789");
        }
    }
    *to = '\0';
    assert_string_equal(seen, after_peer);
}

static void test_access_log_writes_text(void **state)
{
    struct bow_access_log_options options = to_callback();
    char expected[256];

    (void)state;
    serve(&options);
    say("req-7", "abc", BOW_OK);
    snprintf(expected, sizeof(expected),
             " %s /calls.Echo/Say OK in=1/5 out=1/5 us=N left_us=N id=\"req-7\" message=\"\"\n",
             calls_is_grpc() ? "grpc" : "native");
    expect_line("2026-03-01T12:00:00.123456Z ", expected);
}

static void test_access_log_writes_json(void **state)
{
    struct bow_access_log_options options = to_callback();
    char expected[512];

    (void)state;
    options.json = true;
    serve(&options);
    say(NULL, "", BOW_NOT_FOUND);
    snprintf(
        expected, sizeof(expected),
        "\",\"protocol\":\"%s\",\"method\":\"/calls.Echo/Say\",\"code\":\"NOT_FOUND\",\"in\":1,"
        "\"in_bytes\":2,\"out\":0,\"out_bytes\":0,\"us\":N,\"left_us\":N,\"id\":\"\","
        "\"message\":\"asked to fail: \"}\n",
        calls_is_grpc() ? "grpc" : "native");
    expect_line("{\"time\":\"2026-03-01T12:00:00.123456Z\",\"peer\":\"", expected);
}

/* A server with a tracer too; or without. */
static void expect_span(bool json, bool traced, const char *pattern)
{
    struct bow_access_log_options options = to_callback();
    struct span_sink *sink = span_sink_new(calls);
    struct bow_tracer_options tracer_options = span_sink_options(sink);
    char expected[256];

    options.json = json;
    options.fields = BOW_ACCESS_LOG_TRACE;
    tracer = traced ? span_sink_trace(sink, &tracer_options) : NULL;
    serve(&options);
    say("x", "abc", BOW_OK);
    calls_wait(calls, &lines.n, 1);
    if (traced) {
        char trace_id[BOW_TRACE_ID_TEXT_BYTES];
        char span_id[BOW_SPAN_ID_TEXT_BYTES];
        span_sink_wait(sink, 1);
        bow_trace_id_write(&sink->spans[0].span.context, trace_id);
        bow_span_id_write(&sink->spans[0].span.context, span_id);
        (void)snprintf(expected, sizeof(expected), pattern, trace_id, span_id);
    } else {
        (void)snprintf(expected, sizeof(expected), "%s", pattern);
    }
    assert_string_equal(lines.text + strlen(lines.text) - strlen(expected), expected);
    calls_kill_server(calls);
    span_sink_free(sink, traced);
}

static void test_access_log_names_the_span(void **state)
{
    (void)state;
    expect_span(false, true, " message=\"\" trace_id=%s span_id=%s\n");
}

static void test_access_log_names_the_span_in_json(void **state)
{
    (void)state;
    expect_span(true, true, ",\"message\":\"\",\"trace_id\":\"%s\",\"span_id\":\"%s\"}\n");
}

static void test_access_log_without_a_span_says_so(void **state)
{
    (void)state;
    expect_span(false, false, " message=\"\" trace_id=- span_id=-\n");
}

static void test_access_log_without_a_span_says_so_in_json(void **state)
{
    (void)state;
    expect_span(true, false, ",\"message\":\"\",\"trace_id\":\"\",\"span_id\":\"\"}\n");
}

/* The id and the message are the client's choice. */
static void test_access_log_line_cannot_be_forged(void **state)
{
    struct bow_access_log_options options = to_callback();
    char evil[] = "x\"\n2026 forged \x1b[2J\\ \xC3\xBC";

    (void)state;
    for (int json = 0; json < 2; json++) {
        options.json = json == 1;
        options.context = calls->context;
        serve(&options);
        say("a\" id=\"b\\", evil, BOW_ABORTED);
        calls_wait(calls, &lines.n, 1);
        assert_ptr_equal(strchr(lines.text, '\n'), lines.text + strlen(lines.text) - 1);
        assert_non_null(strstr(lines.text, "\"a\\u0022 id=\\u0022b\\u005c\""));
        assert_non_null(strstr(lines.text,
                               "\"asked to fail: x\\u0022\\u000a2026 forged \\u001b[2J\\u005c "
                               "\\u00c3\\u00bc\""));
        if (json == 0) {
            void *again = calls;
            assert_int_equal(teardown(&again), 0);
            assert_int_equal(setup(state), 0);
        }
    }
}

static void test_access_log_cuts_what_is_long(void **state)
{
    struct bow_access_log_options options = to_callback();
    char id[1024];
    char text[2048];

    (void)state;
    memset(id, '"', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    memset(text, '\x01', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    serve(&options);
    say(id, text, BOW_ABORTED);
    calls_wait(calls, &lines.n, 1);
    assert_non_null(strstr(lines.text, "\\u0022...\" message=\"asked to fail: \\u0001"));
    assert_string_equal(lines.text + strlen(lines.text) - strlen("\\u0001...\"\n"),
                        "\\u0001...\"\n");
    assert_true(strlen(lines.text) < 2400);
}

/* Descriptors */

static struct bow_access_log_options to_pipe(int *ret_ends)
{
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;

    assert_int_equal(pipe2(ret_ends, O_CLOEXEC), 0);
    assert_true(fcntl(ret_ends[1], F_SETPIPE_SZ, PIPE_BYTES) >= 0);
    options.context = calls->context;
    options.fd = ret_ends[1];
    options.buffer_bytes = MIN_BYTES;
    options.unix_ns = noon;
    return options;
}

/* What one read of a pipe gives, without waiting for more than a first byte. */
static size_t read_some(int fd, char *to, size_t size)
{
    ssize_t n = read(fd, to, size - 1);

    assert_true(n >= 0);
    to[n] = '\0';
    return (size_t)n;
}

static int count_lines(const char *text)
{
    int n = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++) {
        n++;
    }
    return n;
}

static void test_access_log_goes_to_a_descriptor_behind_the_turn(void **state)
{
    int ends[2];
    char text[PIPE_BYTES + 1];
    struct bow_access_log_options options = to_pipe(ends);

    (void)state;
    serve(&options);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    say("one", "abc", BOW_OK);
    (void)read_some(ends[0], text, sizeof(text));
    assert_int_equal(count_lines(text), 1);
    assert_non_null(strstr(text, "id=\"one\""));
    close(ends[0]);
    close(ends[1]);
}

static void test_access_log_that_nobody_reads_drops_and_counts(void **state)
{
    enum { N = 200 };
    int ends[2];
    char text[PIPE_BYTES + 1];
    struct bow_access_log_options options = to_pipe(ends);
    int n_read = 0;

    (void)state;
    serve(&options);
    for (int i = 0; i < N; i++) {
        say("same", "abc", BOW_OK);
    }
    uint64_t dropped = bow_access_log_dropped(log_);
    assert_true(dropped > 0 && dropped < N);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (n_read < N - (int)dropped) {
        ssize_t n = read(ends[0], text, sizeof(text) - 1);
        if (n > 0) {
            text[n] = '\0';
            n_read += count_lines(text);
        } else {
            (void)bow_access_log_flush(log_);
        }
    }
    assert_int_equal(n_read + (int)bow_access_log_dropped(log_), N);
    assert_int_equal(bow_access_log_flush(log_), 0);
    say("later", "abc", BOW_OK); /* and on it goes */
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    (void)read_some(ends[0], text, sizeof(text));
    assert_non_null(strstr(text, "id=\"later\""));
    close(ends[0]);
    close(ends[1]);
}

/* A disk that fills up in the middle of a line, and has room again. */
static void test_access_log_line_that_was_cut_is_ended_before_the_next(void **state)
{
    enum { CUT = 40 };
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;
    struct rlimit before;
    char text[2048] = "";

    (void)state;
    options.context = calls->context;
    options.fd = memfd_create("log", MFD_CLOEXEC);
    options.unix_ns = noon;
    assert_true(options.fd >= 0);
    serve(&options);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit full = {CUT, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (int i = 0; i < 3; i++) {
        say("lost", "abc", BOW_OK);
        (void)bow_access_log_flush(log_);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    say("kept", "abc", BOW_OK);
    assert_int_equal(bow_access_log_flush(log_), 0);
    assert_true(pread(options.fd, text, sizeof(text) - 1, 0) > CUT);
    assert_int_equal(text[CUT], '\n');
    assert_int_equal(strncmp(text + CUT + 1, "2026-", 5), 0);
    assert_non_null(strstr(text + CUT + 1, "id=\"kept\""));
    assert_int_equal(count_lines(text), 2);
    assert_int_equal(bow_access_log_dropped(log_), 3);
    close(options.fd);
}

static void test_access_log_whose_reader_has_gone_kills_nobody(void **state)
{
    int ends[2];
    struct bow_access_log_options options = to_pipe(ends);
    sigset_t pending;

    (void)state;
    serve(&options);
    close(ends[0]);
    say("one", "abc", BOW_OK);
    say("two", "abc", BOW_OK);
    say("three", "abc", BOW_OK);
    (void)bow_access_log_flush(log_);
    assert_int_equal(bow_access_log_dropped(log_), 3);
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    close(ends[1]);
}

static void test_access_log_waits_for_nothing_at_its_end(void **state)
{
    int ends[2];
    struct bow_access_log_options options = to_pipe(ends);

    (void)state;
    serve(&options);
    for (int i = 0; i < 60; i++) {
        say("same", "abc", BOW_OK);
    }
    /* The teardown finds the pipe full, a flush posted, and nobody who reads. */
    close(ends[1]);
    void *again = calls;
    assert_int_equal(teardown(&again), 0);
    close(ends[0]);
    assert_int_equal(setup(state), 0);
    options = to_callback();
    serve(&options);
}

static void test_access_log_options_are_checked(void **state)
{
    struct bow_access_log_options options = to_callback();
    struct bow_access_log *none = NULL;

    (void)state;
    options.context = NULL;
    assert_int_equal(bow_access_log_new(&options, &none), -EINVAL);
    options.context = calls->context;
    options.fd = 1;
    assert_int_equal(bow_access_log_new(&options, &none), -EINVAL);
    options.line = NULL;
    options.buffer_bytes = 100;
    assert_int_equal(bow_access_log_new(&options, &none), -EINVAL);
    options.buffer_bytes = 0;
    options.fd = 1 << 20;
    assert_int_equal(bow_access_log_new(&options, &none), -EBADF);
    options = to_callback();
    serve(&options);
}

/* What waits in one that the parent has used are the parent's lines. */
static void test_access_log_f60_that_was_used_is_refused_in_the_child(void **state)
{
    int ends[2];
    struct bow_access_log_options options = to_pipe(ends);
    struct bow_access_log *log = NULL;
    struct forks forks;

    (void)state;
    for (int is_used = 0; is_used < 2; is_used++) {
        assert_int_equal(bow_access_log_new(&options, &log), 0);
        if (is_used) {
            assert_int_equal(bow_access_log_flush(log), 0);
        }
        forks_begin(&forks, NULL, 0);
        if (forks.pid == 0) {
            FORKS_EXPECT(bow_access_log_flush(log) == (is_used ? -ECHILD : 0));
            bow_access_log_unref(log);
            _exit(0);
        }
        forks_end(&forks);
        assert_int_equal(bow_access_log_flush(log), 0);
        bow_access_log_unref(log);
    }
    close(ends[0]);
    close(ends[1]);
    options = to_callback();
    serve(&options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_access_log_writes_text),
        TEST(test_access_log_writes_json),
        TEST(test_access_log_names_the_span),
        TEST(test_access_log_names_the_span_in_json),
        TEST(test_access_log_without_a_span_says_so),
        TEST(test_access_log_without_a_span_says_so_in_json),
        TEST(test_access_log_line_cannot_be_forged),
        TEST(test_access_log_cuts_what_is_long),
        TEST(test_access_log_goes_to_a_descriptor_behind_the_turn),
        TEST(test_access_log_that_nobody_reads_drops_and_counts),
        TEST(test_access_log_line_that_was_cut_is_ended_before_the_next),
        TEST(test_access_log_whose_reader_has_gone_kills_nobody),
        TEST(test_access_log_waits_for_nothing_at_its_end),
        TEST(test_access_log_options_are_checked),
        TEST(test_access_log_f60_that_was_used_is_refused_in_the_child),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
