/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operations listener by plain sockets: what it answers, what it refuses, and that neither
 * calls nor peers that do not get on hold it up. What HTTP/1.1 is, is http1_parser_test.c's.
 */

#include "call_fixture.h"

#include <arpa/inet.h>
#include <bowline/health.h>
#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A path of its own for each test: a name of the abstract space needs no file. */
static char address[128];

static void name_address(void)
{
    static int n;

    snprintf(address, sizeof(address), "unix-abstract:bowline-operations-%d-%d", (int)getpid(),
             n++);
}

static int connect_operations(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *name = address + strlen("unix-abstract:");

    memcpy(to.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static char answer[1 << 20];

/* All that comes until the peer ends. */
static const char *read_all(int fd)
{
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, answer + len, sizeof(answer) - len - 1)) > 0) {
        len += (size_t)n;
    }
    answer[len] = '\0';
    return answer;
}

static const char *ask_with(const char *method, const char *target, const char *fields)
{
    char request[4096];
    int fd = connect_operations();

    snprintf(request, sizeof(request),
             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", method, target,
             fields);
    send_text(fd, request);
    read_all(fd);
    close(fd);
    return answer;
}

static const char *get(const char *target)
{
    return ask_with("GET", target, "");
}

static void assert_has(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" is not in\n%s", words, text);
    }
}

static void assert_status(const char *text, const char *status)
{
    char line[64];

    snprintf(line, sizeof(line), "HTTP/1.1 %s\r\n", status);
    if (strncmp(text, line, strlen(line)) != 0) {
        fail_msg("not %s:\n%s", status, text);
    }
}

static void start(struct calls *t, void (*change)(struct bow_server_options *options))
{
    struct bow_server_options options;

    name_address();
    calls_server_options(t, &options);
    options.operations_listen = address;
    if (change != NULL) {
        change(&options);
    }
    t->server = calls_start_server(t, &options);
}

static void new_client(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

static void start_hold(struct calls *t, int n)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, n);
}

static void end_hold(struct calls *t, int n_done)
{
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, n_done);
}

/* Probes */

static void test_operations_probes_say_ok(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_status(get("/livez"), "200 OK");
    assert_has(answer, "\r\n\r\nok\n");
    assert_status(get("/readyz"), "200 OK");
    assert_has(answer, "\r\n\r\n(server): SERVING\n");
    assert_has(answer, "calls.Echo: SERVING\n");
    assert_status(get("/healthz?format=json"), "200 OK");
    assert_has(answer, "Content-Type: application/json\r\n");
    assert_has(answer, "{\"service\":\"calls.Echo\",\"state\":\"SERVING\"}");
    assert_has(answer, "\"status\":\"ok\",\"draining\":false}");
    assert_has(get("/livez?format=json"), "Content-Type: application/json\r\n");
    assert_has(answer, "\r\n\r\n{\"status\":\"ok\",\"draining\":false}");
}

static void test_operations_health_is_told_for_each_service(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_int_equal(bow_health_set(t->server, "calls.Echo", BOW_HEALTH_NOT_SERVING), 0);
    assert_status(get("/healthz"), "503 Service Unavailable");
    assert_has(answer, "calls.Echo: NOT_SERVING\n");
    assert_status(get("/readyz"), "200 OK"); /* the server as such does */
    assert_status(get("/readyz?service=calls.Echo"), "503 Service Unavailable");
    assert_status(get("/readyz?service=calls.Other"), "503 Service Unavailable");
    assert_has(answer, "calls.Other: SERVICE_UNKNOWN\n");
    char target[512];
    snprintf(target, sizeof(target), "/readyz?service=%0300d", 0); /* longer than is looked for */
    assert_status(get(target), "503 Service Unavailable");
    assert_int_equal(bow_health_set(t->server, "", BOW_HEALTH_NOT_SERVING), 0);
    assert_status(get("/readyz"), "503 Service Unavailable");
    assert_status(get("/livez"), "200 OK");
}

static void without_health(struct bow_server_options *options)
{
    options->no_health = true;
}

static void test_operations_without_health_ready_is_not_draining(void **state)
{
    struct calls *t = *state;

    start(t, without_health);
    assert_status(get("/readyz"), "200 OK");
    assert_status(get("/healthz"), "200 OK");
}

static void with_grace(struct bow_server_options *options)
{
    options->grace_ns = 60000 * MS;
}

/* Who asks learns of the drain at once, and until its end. */
static void test_operations_ready_goes_down_as_the_drain_begins(void **state)
{
    struct calls *t = *state;

    start(t, with_grace);
    new_client(t);
    start_hold(t, 1);
    bow_server_stop(t->server);
    assert_status(get("/readyz"), "503 Service Unavailable");
    assert_has(answer, "unavailable: the server drains\n");
    assert_status(get("/livez"), "200 OK");
    assert_has(get("/debug/calls"), "call /calls.Echo/Hold with ");
    end_hold(t, 1);
    assert_int_equal(bow_server_join(t->server), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *name = address + strlen("unix-abstract:");
    memcpy(to.sun_path + 1, name, strlen(name));
    assert_int_equal(
        connect(fd, (struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
        -1);
    close(fd);
}

/* A connection that is open holds up no end. */
static void test_operations_end_with_open_connections(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    int idle = connect_operations();
    int begun = connect_operations();
    send_text(begun, "GET /livez HT");
    assert_status(get("/livez"), "200 OK");
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    read_all(idle);
    read_all(begun);
    close(idle);
    close(begun);
}

/* Debug */

static void test_operations_calls_are_shown_with_their_stage(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    new_client(t);
    start_hold(t, 1);
    assert_status(get("/debug/calls"), "200 OK");
    assert_has(answer, "Content-Type: text/plain; charset=utf-8\r\n");
    assert_has(answer, "call /calls.Echo/Hold with ");
    assert_has(answer, ": in the handler, for ");
    assert_status(ask_with("GET", "/debug/calls", "Accept: application/json\r\n"), "200 OK");
    assert_has(answer, "\"method\":\"/calls.Echo/Hold\"");
    assert_has(answer, "\"stage\":\"in the handler\"");
    assert_has(get("/debug/connections"), "connection from ");
    assert_has(get("/debug/loops"), "loop bow-server: runs, 1 connections, 1 calls, ");
    end_hold(t, 1);
    assert_has(get("/debug/methods"),
               "method /calls.Echo/Hold: 1 started, 1 ended, 0 not OK, 0 in flight");
    assert_has(get("/debug/all?format=json"), "\"methods\":[{\"method\":\"");
    assert_has(answer, "\"config\":{\"version\":\"");
    assert_has(answer, "\"counters\":{\"connections_opened\":");
    assert_has(answer, "\"loops\":[{\"name\":\"");
}

static void many_workers(struct bow_server_options *options)
{
    options->workers = 2;
}

/* The loop that accepts serves no calls where there are workers: it answers while they are held. */
static void test_operations_answer_while_workers_are_held(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    start(t, many_workers);
    new_client(t);
    request.text = (char *)"wait";
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
    calls_wait(t, &t->n_said, 1);
    assert_status(get("/livez"), "200 OK");
    assert_has(get("/debug/loops"), "2 loops (1 held)");
    assert_has(answer, ": HELD for ");
    calls_let_go(t);
    calls_wait(t, &t->n_done, 1);
}

/* What loops tell it later finds nobody. */
static void test_operations_asker_may_leave_before_the_answer(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    start(t, many_workers);
    new_client(t);
    request.text = (char *)"wait";
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
    calls_wait(t, &t->n_said, 1);
    for (int i = 0; i < 3; i++) {
        int fd = connect_operations();
        send_text(fd, "GET /debug/calls HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_status(get("/livez"), "200 OK");
        close(fd);
        assert_status(get("/livez"), "200 OK");
    }
    calls_let_go(t);
    calls_wait(t, &t->n_done, 1);
    assert_has(get("/debug/calls"), "0 calls in flight");
}

static void test_operations_end_with_their_loop(void **state)
{
    struct calls *t = *state;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_loop *loop = NULL;

    assert_int_equal(bow_loop_new(t->context, &loop_options, &loop), 0);
    name_address();
    calls_server_options(t, &options);
    options.operations_listen = address;
    options.loop = loop;
    t->server = calls_start_server(t, &options);
    int idle = connect_operations();
    assert_status(get("/livez"), "200 OK");
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_server_join(t->server), 0);
    assert_string_equal(read_all(idle), "");
    close(idle);
    calls_kill_server(t);
    bow_loop_unref(loop);
}

static void test_operations_config_is_shown_without_secrets(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_has(get("/debug/config"), "max_connections: 10000\n");
    assert_has(answer, "max_server_calls: none\n");
    assert_has(answer, "security_on_all: false\n");
    assert_has(get("/debug/config?format=json"), "\"max_server_calls\":null,");
}

static void test_operations_metrics_are_served_in_both_forms(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_status(get("/metrics"), "200 OK");
    assert_has(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    assert_has(answer, "# TYPE grpc_server_call_started_total counter\n");
    assert_null(strstr(answer, "# EOF"));
    ask_with("GET", "/metrics",
             "Accept: application/openmetrics-text; version=1.0.0, */*;q=0.1\r\n");
    assert_has(answer,
               "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
    assert_has(answer, "# EOF\n");
}

/* The page */

static void test_operations_page_loads_nothing_and_says_so(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_status(get("/"), "200 OK");
    assert_has(answer, "Content-Type: text/html; charset=utf-8\r\n");
    assert_has(answer, "Content-Security-Policy: default-src 'none'; script-src 'sha256-");
    assert_null(strstr(answer, "unsafe-inline"));
    assert_has(answer, "X-Content-Type-Options: nosniff\r\n");
    assert_has(answer, "<!doctype html>");
    assert_has(get("/livez"), "Content-Security-Policy: default-src 'none'; ");
}

/* HTTP */

static void test_operations_head_is_answered_without_a_body(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_status(ask_with("HEAD", "/livez", ""), "200 OK");
    assert_has(answer, "Content-Length: 3\r\n");
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

static void test_operations_other_methods_and_paths_are_refused(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    assert_status(ask_with("POST", "/livez", "Content-Length: 0\r\n"), "405 Method Not Allowed");
    assert_has(answer, "Allow: GET, HEAD\r\n");
    assert_status(ask_with("POST", "/livez", "Content-Length: 1\r\n"), "413 Content Too Large");
    assert_status(get("/etc/passwd"), "404 Not Found");
    assert_status(get("/livez/"), "404 Not Found");
    assert_status(get("x"), "400 Bad Request");
}

static void test_operations_requests_go_on_behind_each_other(void **state)
{
    struct calls *t = *state;
    int n = 0;

    start(t, NULL);
    int fd = connect_operations();
    send_text(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /debug/loops HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    read_all(fd);
    close(fd);
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 200 OK\r\n")) != NULL; at++) {
        n++;
    }
    assert_int_equal(n, 4);
    assert_true(strstr(answer, "\nok\n") < strstr(answer, "loop bow-server"));
    assert_true(strstr(answer, "loop bow-server") < strstr(answer, "(server): SERVING"));
}

static void test_operations_bad_requests_end_the_connection(void **state)
{
    struct calls *t = *state;

    start(t, NULL);
    int fd = connect_operations();
    send_text(fd, "GET /livez HTTP/1.1\r\nHost : h\r\n\r\nGET /livez HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_status(read_all(fd), "400 Bad Request");
    assert_has(answer, "Connection: close\r\n");
    assert_has(answer, "\r\n\r\na blank before the colon of a field\n");
    assert_null(strstr(answer, "200 OK"));
    close(fd);
}

/* Where such a request ends two readers may tell differently: what is behind it is no request. */
static void test_operations_smuggled_requests_are_not_answered(void **state)
{
#define HEAD "GET /livez HTTP/1.1\r\nHost: localhost\r\n"
    static const char *const heads[] = {
        HEAD "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
        HEAD "Content-Length: 0\r\nContent-Length: 1\r\n\r\n",
        HEAD "Content-Length: 0, 0\r\n\r\n",
        HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD "A: b\r\n Content-Length: 0\r\n\r\n",
        HEAD "Content-Length : 0\r\n\r\n",
        HEAD "A: b\nC: d\r\n\r\n",
        HEAD "A: b\rC: d\r\n\r\n",
        HEAD "Host: other\r\n\r\n",
        HEAD "Content-Length: 1\r\n\r\nG", /* a body, which none has here */
        HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nG\r\n0\r\n\r\n",
        HEAD "Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n",
        "GET http:///livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    };
    struct calls *t = *state;

    start(t, NULL);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        int fd = connect_operations();
        send_text(fd, heads[i]);
        send_text(fd, HEAD "\r\n");
        read_all(fd);
        if (strncmp(answer, "HTTP/1.1 4", 10) != 0 && strncmp(answer, "HTTP/1.1 501", 12) != 0) {
            fail_msg("%s\nis answered by\n%s", heads[i], answer);
        }
        assert_has(answer, "Connection: close\r\n");
        assert_null(strstr(answer, "200 OK"));
        close(fd);
    }
#undef HEAD
}

/* On TCP a browser may be made to ask in the name of another page. */
static uint16_t tcp_port;

static int connect_tcp(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(tcp_port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static const char *get_as(const char *host)
{
    char request[256];
    int fd = connect_tcp();

    snprintf(request, sizeof(request),
             "GET /livez HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
    send_text(fd, request);
    read_all(fd);
    close(fd);
    return answer;
}

static void test_operations_hosts_that_are_a_strangers_are_refused(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    tcp_port = free_port();
    snprintf(address, sizeof(address), "127.0.0.1:%u", tcp_port);
    calls_server_options(t, &options);
    options.operations_listen = address;
    options.operations_hosts = "metrics.example, other.example";
    t->server = calls_start_server(t, &options);
    static const char *const good[] = {"127.0.0.1", "127.0.0.1:9090",  "localhost:80",
                                       "LOCALHOST", "[::1]:9090",      "10.0.0.1",
                                       "",          "metrics.example", "Other.Example:80"};
    static const char *const bad[] = {"evil.example",      "localhost.evil.example",
                                      "127.0.0.1.evil",    "metrics.example.x",
                                      "x.metrics.example", "0x7f.1",
                                      "[::1].evil"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_status(get_as(good[i]), "200 OK");
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(get_as(bad[i]), "421 Misdirected Request");
    }
}

/* Bounds */

static void test_operations_connections_are_bounded(void **state)
{
    struct calls *t = *state;
    int fds[BOW_LIMIT_OPERATIONS_CONNECTIONS];

    start(t, NULL);
    for (size_t i = 0; i < BOW_LIMIT_OPERATIONS_CONNECTIONS; i++) {
        fds[i] = connect_operations();
    }
    int more = connect_operations();
    assert_string_equal(read_all(more), "");
    close(more);
    for (size_t i = 0; i < BOW_LIMIT_OPERATIONS_CONNECTIONS; i++) {
        send_text(fds[i], "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_status(read_all(fds[i]), "200 OK");
        close(fds[i]);
    }
}

/* Time that a test lets go by: at once, and without waiting for it. */
static _Atomic(uint64_t) passed_ns;
static uint64_t (*real_now_ns)(void *user);

static uint64_t shifted_now_ns(void *user)
{
    return real_now_ns(user) + passed_ns;
}

static void start_with_time(struct calls *t)
{
    passed_ns = 0;
    real_now_ns = t->system.now_ns;
    t->system.now_ns = shifted_now_ns;
    start(t, NULL);
}

/* The loop sleeps by the real clock: a request has it look. */
static void let_pass(uint64_t ns)
{
    passed_ns += ns;
    assert_status(get("/livez"), "200 OK");
}

static void test_operations_slow_request_ends(void **state)
{
    struct calls *t = *state;

    start_with_time(t);
    int slow = connect_operations();
    int silent = connect_operations();
    int in_time = connect_operations();
    int endless = connect_operations(); /* its head is there, and trailers come for ever */
    send_text(slow, "GET /livez HTTP/1.1\r\nHost: ");
    send_text(endless, "GET /livez HTTP/1.1\r\nHost: localhost\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n0\r\nA: ");
    send_text(in_time, "GET /livez HTTP/1.1\r\nHost: ");
    let_pass(0); /* it has read them */
    let_pass(BOW_LIMIT_OPERATIONS_REQUEST_NS / 2);
    send_text(slow, "l"); /* a byte at a time is no more time */
    send_text(endless, "b");
    send_text(in_time, "l\r\nConnection: close\r\n\r\n");
    assert_status(read_all(in_time), "200 OK");
    let_pass(BOW_LIMIT_OPERATIONS_REQUEST_NS / 2 + 1000 * MS);
    assert_string_equal(read_all(slow), "");
    assert_string_equal(read_all(silent), "");
    assert_string_equal(read_all(endless), "");
    close(endless);
    close(slow);
    close(silent);
    close(in_time);
}

static void test_operations_idle_connection_ends(void **state)
{
    struct calls *t = *state;
    char some[1024];

    start_with_time(t);
    int fd = connect_operations();
    send_text(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(read(fd, some, sizeof(some)) > 0);
    let_pass(BOW_LIMIT_OPERATIONS_IDLE_NS - 1000 * MS);
    send_text(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(read(fd, some, sizeof(some)) > 0);
    let_pass(BOW_LIMIT_OPERATIONS_IDLE_NS + 1000 * MS);
    assert_int_equal(read(fd, some, sizeof(some)), 0);
    close(fd);
}

/* What it asks for waits with the answer that it does not take. */
static void test_operations_peer_that_does_not_read_ends(void **state)
{
    struct calls *t = *state;

    start_with_time(t);
    int fd = connect_operations();
    for (int i = 0; i < 400; i++) {
        send_text(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let_pass(0);
    let_pass(BOW_LIMIT_OPERATIONS_SEND_NS + 1000 * MS);
    read_all(fd);
    int n = 0;
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 200 OK\r\n")) != NULL; at++) {
        n++;
    }
    assert_true(n > 0 && n < 400);
    close(fd);
}

static void test_operations_not_beyond_this_host_unless_told(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.operations_listen = "*:0";
    assert_int_equal(calls_try_server(t, &options, &t->server), -EPERM);
    assert_has(bow_server_error(t->server),
               "listening for operations on *:0: it can be reached from "
               "other hosts");
    assert_has(bow_server_error(t->server), "options.operations_exposed = true");
    bow_server_free(t->server);
    options.operations_exposed = true;
    assert_int_equal(calls_try_server(t, &options, &t->server), 0);
}

/* Which port it got is told, to the end. */
static void test_operations_address_of_any_port_is_told(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.operations_listen = "127.0.0.1:0";
    t->server = calls_make_server(t, &options);
    assert_string_equal(bow_server_operations_addresses(t->server), "");
    assert_int_equal(calls_open_server(t, t->server), 0);
    unsigned port = 0;
    assert_int_equal(sscanf(bow_server_operations_addresses(t->server), "127.0.0.1:%u", &port), 1);
    assert_true(port != 0 && port != bow_server_port(t->server));
    tcp_port = (uint16_t)port;
    assert_status(get_as("127.0.0.1"), "200 OK");
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_string_equal(bow_server_operations_addresses(t->server), address);
}

static void test_operations_address_that_is_taken_fails_the_start(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_server *second = NULL;

    start(t, NULL);
    calls_server_options(t, &options);
    char other[128];
    calls_name_address(other, sizeof(other));
    options.listen = other;
    options.operations_listen = address;
    assert_int_equal(calls_try_server(t, &options, &second), -EADDRINUSE);
    assert_has(bow_server_error(second), "the operations listener: ");
    bow_server_free(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_operations_probes_say_ok),
        TEST(test_operations_health_is_told_for_each_service),
        TEST(test_operations_without_health_ready_is_not_draining),
        TEST(test_operations_ready_goes_down_as_the_drain_begins),
        TEST(test_operations_end_with_open_connections),
        TEST(test_operations_calls_are_shown_with_their_stage),
        TEST(test_operations_answer_while_workers_are_held),
        TEST(test_operations_asker_may_leave_before_the_answer),
        TEST(test_operations_end_with_their_loop),
        TEST(test_operations_config_is_shown_without_secrets),
        TEST(test_operations_metrics_are_served_in_both_forms),
        TEST(test_operations_page_loads_nothing_and_says_so),
        TEST(test_operations_head_is_answered_without_a_body),
        TEST(test_operations_other_methods_and_paths_are_refused),
        TEST(test_operations_requests_go_on_behind_each_other),
        TEST(test_operations_bad_requests_end_the_connection),
        TEST(test_operations_smuggled_requests_are_not_answered),
        TEST(test_operations_hosts_that_are_a_strangers_are_refused),
        TEST(test_operations_connections_are_bounded),
        TEST(test_operations_slow_request_ends),
        TEST(test_operations_idle_connection_ends),
        TEST(test_operations_peer_that_does_not_read_ends),
        TEST(test_operations_not_beyond_this_host_unless_told),
        TEST(test_operations_address_of_any_port_is_told),
        TEST(test_operations_address_that_is_taken_fails_the_start),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
