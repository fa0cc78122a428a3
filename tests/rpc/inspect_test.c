/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server and a client tell of their calls in flight: at each stage a call that stays there,
 * and the dump that names it. Over both protocols.
 */

#include "call_fixture.h"
#include "tests/rpc/serve_fixture.h"

#include <bowline/executor.h>
#include <bowline/inspect.h>
#include <bowline/interceptor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct text {
    size_t len;
    char bytes[65536];
};

static struct text dumped;

static int put(const char *text, size_t len, void *user)
{
    struct text *to = user;

    assert_true(len > 0 && len < sizeof(to->bytes) - to->len);
    memcpy(to->bytes + to->len, text, len);
    to->len += len;
    to->bytes[to->len] = '\0';
    return 0;
}

static const char *dump_server(struct bow_server *server, const struct bow_dump_options *options)
{
    dumped.len = 0;
    assert_int_equal(bow_server_dump(server, options, put, &dumped), 0);
    return dumped.bytes;
}

static const char *dump_client(struct bow_client *client, const struct bow_dump_options *options)
{
    dumped.len = 0;
    assert_int_equal(bow_client_dump(client, options, put, &dumped), 0);
    return dumped.bytes;
}

static void assert_has(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" is not in\n%s", words, text);
    }
}

static void assert_has_not(const char *text, const char *words)
{
    if (strstr(text, words) != NULL) {
        fail_msg("\"%s\" is in\n%s", words, text);
    }
}

static bool has_line(const char *text, const char *first, const char *second)
{
    for (const char *at = text; (at = strstr(at, first)) != NULL; at++) {
        const char *found = strstr(at, second);
        if (found != NULL && found < strchr(at, '\n')) {
            return true;
        }
    }
    return false;
}

/* A line of the dump that says both. */
static void assert_line(const char *text, const char *first, const char *second)
{
    if (!has_line(text, first, second)) {
        fail_msg("no line says \"%s\" and then \"%s\" in\n%s", first, second, text);
    }
}

static void start_hold(struct calls *t, int n)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, n);
}

static void start_say(struct calls *t, const char *text)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.text = (char *)(uintptr_t)text;
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
}

static void new_client(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

/* The dump, until it says that: for what no event tells the test of. */
static void wait_for_line(struct calls *t, bool of_server, const char *first, const char *second)
{
    for (int n_left = 2000; n_left > 0; n_left--) {
        const char *text = of_server ? dump_server(t->server, NULL) : dump_client(t->client, NULL);
        if (has_line(text, first, second)) {
            return;
        }
        usleep(1000);
    }
    assert_line(dumped.bytes, first, second);
}

/* Stages of a server's calls */

static void test_inspect_handler_that_hangs_is_named(void **state)
{
    struct calls *t = *state;

    start_hold(t, 1);
    const char *text = dump_server(t->server, NULL);
    assert_has(text, "server: 1 calls in flight (1 shown), 1 connections");
    assert_line(text, "call /calls.Echo/Hold with ", ": in the handler, for ");
    assert_line(text, "call /calls.Echo/Hold with ", " s left, 0 bytes wait");
    assert_line(text, "call /calls.Echo/Hold with ", calls_is_grpc() ? "(grpc)" : "(native)");
    assert_line(text, "connection from ", "open, 1 calls, 0 replies being sent");
    assert_line(text, "loop ", ": runs, 1 connections, 1 calls, ");
    text = dump_client(t->client, NULL);
    assert_has(text, "client: 1 calls in flight (1 shown), 1 connections");
    assert_line(text, "call /calls.Echo/Hold to ", ": waiting for the server, for ");
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_has(dump_server(t->server, NULL), "server: 0 calls in flight (0 shown), 1 connections");
    assert_has(dump_client(t->client, NULL), "client: 0 calls in flight (0 shown), 1 connections");
}

/* One that nobody waits for any more is counted, and not shown with a connection that it lost. */
static void test_inspect_abandoned_calls_are_counted(void **state)
{
    struct calls *t = *state;

    start_hold(t, 1);
    calls_free_client(t);
    calls_wait(t, &t->n_cancelled, 1);
    assert_has(dump_server(t->server, NULL), "1 calls with handlers that nobody waits for\n");
    assert_int_equal(calls_reply(calls_take_held(t), 1), -ECANCELED);
    assert_has(dump_server(t->server, NULL), " 0 calls with handlers that nobody waits for\n");
}

static void test_inspect_call_that_waits_for_a_thread_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    struct bow_server_options options;

    executor_options.n_threads = 1;
    assert_int_equal(bow_executor_new(t->context, &executor_options, &executor), 0);
    calls_server_options(t, &options);
    options.handlers_on = executor;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_say(t, "wait");
    calls_wait(t, &t->n_said, 1);
    start_say(t, "next");
    wait_for_line(t, true, "call /calls.Echo/Say with ", ": waiting for a thread, for ");
    assert_line(dumped.bytes, "call /calls.Echo/Say with ", ": in the handler, for ");
    calls_let_go(t);
    calls_wait(t, &t->n_done, 2);
    bow_executor_unref(executor);
}

static void on_start_hold(struct bow_interception *at, void *user)
{
    (void)user;
    assert_int_equal(bow_interception_hold(at), 0);
}

static void test_inspect_interceptor_that_holds_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_interceptor interceptor = BOW_INTERCEPTOR_INIT;
    struct bow_server_options options;

    interceptor.name = "doorman";
    interceptor.on_start = on_start_hold;
    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_intercept(t->server, &interceptor), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    new_client(t);
    start_say(t, "");
    wait_for_line(t, true, "call /calls.Echo/Say with ",
                  ": held by an interceptor (doorman), for ");
}

/* Above max_calls: a client that knows of it lets its calls wait, one that does not yet is served
 * later. */
static void test_inspect_call_above_max_calls_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.max_calls = 1;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t, 1);
    start_say(t, "");
    int n_left = 2000;
    while (strstr(dump_client(t->client, NULL), ": waiting for a stream, for ") == NULL &&
           strstr(dump_server(t->server, NULL),
                  ": waiting before the handler (handlers have max_calls (1) of its connection), "
                  "for ") == NULL) {
        assert_true(n_left-- > 0);
        usleep(1000);
    }
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 2);
}

/* Whenever there is room: until the window is full, however large it is. */
static void fill_window(struct serving *s, struct bow_call *call)
{
    (void)s;
    while (serve_send_sized(call, 1, 60000) == 0) {
    }
}

static void listen_and_fill(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    fill_window(s, call);
}

static void test_inspect_stream_without_credit_is_named(void **state)
{
    struct serving *s = *state;

    s->enter = listen_and_fill;
    s->in_writable = fill_window;
    serve_begin(s, SERVE_BOTH);
    wait_for_line(s->t, true, "call " SERVE_BOTH " with ",
                  ": waiting for flow-control credit, for ");
    assert_has_not(dumped.bytes, ", 0 bytes wait\n");
}

/* HTTP/1.1 has no stream for an answer that was given: what has not left is one all the same. */
static void test_inspect_reply_over_http1_that_is_not_read_is_counted(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    const char body[] = "\x20\x80\x80\x80\x08"; /* reply_bytes: 16 MiB */
    char request[256];
    char bytes[4096];

    calls_server_options(t, &options);
    options.protocols = BOW_PROTOCOL_CONNECT;
    t->server = calls_start_server(t, &options);
    int fd = calls_raw_connect(t);
    snprintf(request, sizeof(request),
             "POST /calls.Echo/Say HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
             "Content-Type: application/proto\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    wait_for_line(t, true, "connection from ", "the socket is full");
    assert_line(dumped.bytes, "connection from ", ", 0 calls, 1 replies being sent, ");
    assert_has_not(dumped.bytes, ", 0 bytes wait, the socket");
    while (read(fd, bytes, sizeof(bytes)) > 0) {
    }
    close(fd);
}

/* Stages of a client's calls */

static void test_inspect_call_that_waits_for_a_connection_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_choose_dead_address(t);
    new_client(t);
    options.wait_for_ready = true;
    assert_int_equal(calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL),
                     0);
    wait_for_line(
        t, false, "call /calls.Echo/Say to ",
        " (-): waiting for a connection (backing off after an attempt that failed), for ");
}

static void test_inspect_interceptor_of_a_client_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_interceptor interceptor = BOW_INTERCEPTOR_INIT;
    const struct bow_interceptor *interceptors[] = {&interceptor};
    struct bow_client_options options;

    interceptor.name = "tokens";
    interceptor.on_start = on_start_hold;
    calls_choose_dead_address(t);
    calls_client_options(t, &options);
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    t->client = calls_new_client(t, &options);
    start_say(t, "");
    wait_for_line(t, false, "call /calls.Echo/Say to ", ": held by an interceptor (tokens), for ");
}

/* Loops */

/* A loop that is held does not hold up who asks; what it tells later is dropped. */
static void test_inspect_held_loop_is_told_and_not_waited_for(void **state)
{
    struct calls *t = *state;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;

    options.wait_ns = 1;
    start_say(t, "wait");
    calls_wait(t, &t->n_said, 1);
    const char *text = dump_server(t->server, &options);
    assert_has(text, "1 loops (1 held)");
    assert_line(text, "loop ", ": HELD for ");
    options.format = BOW_DUMP_JSON;
    assert_has(dump_server(t->server, &options), "\"state\":\"held\"");
    calls_let_go(t);
    calls_wait(t, &t->n_done, 1);
    assert_has(dump_server(t->server, NULL), "1 loops (0 held)");
}

struct inside {
    struct calls *t;
    int rc;
};

static int dump_inside(void *user)
{
    struct inside *inside = user;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;

    dumped.len = 0;
    inside->rc = bow_client_dump(inside->t->client, &options, put, &dumped);
    pthread_mutex_lock(&inside->t->lock);
    inside->t->n_done++;
    pthread_cond_broadcast(&inside->t->changed);
    pthread_mutex_unlock(&inside->t->lock);
    return 0;
}

/* On the loop itself there is nobody to wait for. */
static void test_inspect_on_the_loop_itself_does_not_wait(void **state)
{
    struct calls *t = *state;
    struct inside inside = {.t = t, .rc = 1};

    start_hold(t, 1);
    assert_int_equal(bow_loop_execute(t->loop, "dump", dump_inside, &inside), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(inside.rc, 0);
    assert_has(dumped.bytes, "1 loops (0 held)");
    assert_line(dumped.bytes, "call /calls.Echo/Hold to ", ": waiting for the server, for ");
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 2);
}

static void test_inspect_all_workers_are_asked(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.workers = 3;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t, 1);
    const char *text = dump_server(t->server, NULL);
    assert_has(text,
               "server: 1 calls in flight (1 shown), 1 connections (1 shown), 3 loops (0 held)");
    assert_line(text, "call /calls.Echo/Hold with ", ": in the handler, for ");
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
}

/* The form */

static void test_inspect_shows_the_oldest_calls(void **state)
{
    struct calls *t = *state;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;
    uint64_t age_us[3];

    for (int n = 1; n <= 40; n++) {
        start_hold(t, n);
    }
    options.max_calls = 3;
    options.format = BOW_DUMP_JSON;
    options.parts = BOW_DUMP_CALLS;
    const char *text = dump_server(t->server, &options);
    assert_has(text, "\"n_calls\":40,");
    assert_has_not(text, "\"loops\"");
    assert_has_not(text, "\"connections\":[");
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "\"age_us\":");
        assert_non_null(at);
        age_us[i] = strtoull(at += strlen("\"age_us\":"), NULL, 10);
    }
    assert_null(strstr(at, "\"age_us\":"));
    assert_true(age_us[0] >= age_us[1] && age_us[1] >= age_us[2]);
    options.max_calls = 0;
    at = dump_server(t->server, &options);
    for (int i = 0; i < 40; i++) {
        at = strstr(at, "\"age_us\":");
        assert_non_null(at++);
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    }
    calls_wait(t, &t->n_done, 40);
}

static void test_inspect_json_is_one_object(void **state)
{
    struct calls *t = *state;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;

    options.format = BOW_DUMP_JSON;
    start_hold(t, 1);
    const char *text = dump_server(t->server, &options);
    assert_ptr_equal(strstr(text, "{\"n_calls\":1,\"n_connections\":1,\"n_abandoned_calls\":0,"
                                  "\"n_loops\":1,\"n_held_loops\":0,\"loops\":[{\"name\":\""),
                     text);
    assert_has(text, "\"calls\":[{\"method\":\"/calls.Echo/Hold\",\"peer\":\"");
    assert_has(text, "\"stage\":\"in the handler\",\"detail\":null,\"age_us\":");
    assert_string_equal(text + dumped.len - strlen("\"waiting_bytes\":0}]}\n"),
                        "\"waiting_bytes\":0}]}\n");
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
}

static int refuse(const char *text, size_t len, void *user)
{
    int *n = user;

    (void)text;
    (void)len;
    (*n)++;
    return -EPIPE;
}

static void test_inspect_ends_with_who_takes_nothing(void **state)
{
    struct calls *t = *state;
    int n = 0;

    for (int i = 1; i <= 30; i++) {
        start_hold(t, i);
    }
    assert_int_equal(bow_server_dump(t->server, NULL, refuse, &n), -EPIPE);
    assert_int_equal(n, 1);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    }
    calls_wait(t, &t->n_done, 30);
}

static void test_inspect_writes_to_a_descriptor(void **state)
{
    struct calls *t = *state;
    char text[4096];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(bow_server_dump_fd(t->server, NULL, ends[1]), 0);
    assert_int_equal(bow_client_dump_fd(t->client, NULL, ends[1]), 0);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_has(text, "server: 0 calls in flight");
    assert_has(text, "client: 0 calls in flight");
    close(ends[0]);
    assert_int_equal(bow_server_dump_fd(t->server, NULL, ends[1]), -EBADF);
}

static void test_inspect_refuses_unknown_options(void **state)
{
    struct calls *t = *state;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;

    options.format = (enum bow_dump_format)7;
    assert_int_equal(bow_server_dump(t->server, &options, put, &dumped), -EINVAL);
    options.format = BOW_DUMP_TEXT;
    options.parts = 64;
    assert_int_equal(bow_client_dump(t->client, &options, put, &dumped), -EINVAL);
    options.size = 3;
    assert_int_equal(bow_server_dump(t->server, &options, put, &dumped), -EINVAL);
}

/* Nobody is connected, so nobody else allocates; that a snapshot tells less then is
 * snapshot_test.c's. */
static void test_inspect_without_memory_says_so(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    assert_has(dump_server(t->server, NULL), "server: 0 calls in flight");
    t->alloc.fail_at = t->alloc.n_calls + 1;
    dumped.len = 0;
    assert_int_equal(bow_server_dump(t->server, NULL, put, &dumped), -ENOMEM);
    assert_int_equal(dumped.len, 0);
    t->alloc.fail_at = 0;
    assert_has(dump_server(t->server, NULL), "server: 0 calls in flight");
}

static void test_inspect_server_that_has_not_started_has_nothing(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_has(dump_server(t->server, NULL),
               "server: 0 calls in flight (0 shown), 0 connections (0 "
               "shown), 0 loops (0 held)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)
#define SERVE(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_inspect_handler_that_hangs_is_named),
        TEST(test_inspect_abandoned_calls_are_counted),
        BARE(test_inspect_call_that_waits_for_a_thread_is_named),
        BARE(test_inspect_interceptor_that_holds_is_named),
        BARE(test_inspect_call_above_max_calls_is_named),
        SERVE(test_inspect_stream_without_credit_is_named),
        BARE(test_inspect_reply_over_http1_that_is_not_read_is_counted),
        BARE(test_inspect_call_that_waits_for_a_connection_is_named),
        BARE(test_inspect_interceptor_of_a_client_is_named),
        TEST(test_inspect_held_loop_is_told_and_not_waited_for),
        TEST(test_inspect_on_the_loop_itself_does_not_wait),
        BARE(test_inspect_all_workers_are_asked),
        TEST(test_inspect_shows_the_oldest_calls),
        TEST(test_inspect_json_is_one_object),
        TEST(test_inspect_ends_with_who_takes_nothing),
        TEST(test_inspect_writes_to_a_descriptor),
        TEST(test_inspect_refuses_unknown_options),
        BARE(test_inspect_without_memory_says_so),
        BARE(test_inspect_server_that_has_not_started_has_nothing),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
