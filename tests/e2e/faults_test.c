/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What befalls a server's machine: its process is stopped, and does not read what is sent, or
 * killed; or the cable is pulled. Deadlines hold meanwhile, for calls that wait in any place; each
 * call completes once; and the client finds back by itself.
 *
 *     faults_test LAB_SERVER native|grpc [strict]
 *
 * With `strict` the time by which calls are late is checked too.
 */

#include "lab.h"
#include "lab_process.h"
#include <bowline/stream.h>
#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define N_EACH 20u
#define LATE_NS (10 * LAB_MS)
#define PATIENCE_NS (60000 * LAB_MS)
/* Not much: what a stopped server does not read fills it. */
#define SEND_BUFFER_BYTES 8192
#define LARGE_BYTES ((size_t)512 << 10)

static const char *program;
static const char *prefix = "";
static bool is_strict;
static bool is_isolated;

enum kind {
    SMALL = 0, /* a unary call that the server has, or cannot get */
    LARGE,     /* one whose request does not fit the socket */
    SILENT,    /* a stream on which nothing is said */
    POURING,   /* one that sends all that it may */
    N_KINDS,
};

static const char *const kind_names[] = {"small calls", "large calls", "silent streams",
                                         "pouring streams"};

struct faults;

struct one {
    struct faults *t;
    enum kind kind;
    atomic_uint n_done;
    atomic_uint n_messages;
    uint64_t started_at;
    uint64_t timeout_ns;
    uint64_t done_at;
    enum bow_code code;
    char message[256];
    struct lab__lab__chat__stream stream;
    atomic_uint n_begun;
};

struct faults {
    struct lab_process server;
    struct bow_system system;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client *client;
    atomic_uint n_full; /* times that the socket did not take all */
};

static uint8_t large[LARGE_BYTES];

/* The client */

static int small_socket(void *user, int domain, int type, int protocol)
{
    int bytes = SEND_BUFFER_BYTES;
    (void)user;
    int fd = bow_system_default()->socket(NULL, domain, type, protocol);

    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
    return fd;
}

static ssize_t counted_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    struct faults *t = user;
    size_t n_all = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        n_all += message->msg_iov[i].iov_len;
    }
    ssize_t n = bow_system_default()->sendmsg(NULL, fd, message, flags);
    if (n == -EAGAIN || (n >= 0 && (size_t)n < n_all)) {
        atomic_fetch_add(&t->n_full, 1);
    }
    return n;
}

static void begin(struct faults *t)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[64];

    t->system = *bow_system_default();
    t->system.user = t; /* its functions but ours have no use for it */
    t->system.socket = small_socket;
    t->system.sendmsg = counted_sendmsg;
    atomic_init(&t->n_full, 0);
    context_options.system = &t->system;
    assert_int_equal(bow_context_new(&context_options, &t->context), 0);
    assert_int_equal(bow_loop_new(t->context, NULL, &t->loop), 0);
    snprintf(target, sizeof(target), "%s%s:%u", prefix, t->server.host, t->server.port);
    options.context = t->context;
    options.loop = t->loop;
    options.target = target;
    options.plaintext = true;
    options.backoff_max_ns = 200 * LAB_MS;
    options.connect_timeout_ns = 500 * LAB_MS;
    options.heartbeat_ns = 500 * LAB_MS;
    options.heartbeat_timeout_ns = t->server.cable[0] != '\0' ? 500 * LAB_MS : PATIENCE_NS;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
}

static void end(struct faults *t)
{
    bow_client_free(t->client);
    bow_loop_unref(t->loop);
    assert_int_equal(bow_context_bytes(t->context), 0);
    bow_context_unref(t->context);
    lab_process_kill(&t->server);
}

/* Calls */

static void note_end(struct one *one, const struct bow_result *result)
{
    one->done_at = lab_now_ns();
    one->code = result->status.code;
    snprintf(one->message, sizeof(one->message), "%s", result->status.message);
    atomic_fetch_add(&one->n_done, 1);
}

static void on_done(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    (void)reply;
    note_end(user, result);
}

static void on_message(struct lab__lab__chat__stream stream, const Lab__Blob *message, void *user)
{
    struct one *one = user;

    (void)stream;
    (void)message;
    atomic_fetch_add(&one->n_messages, 1);
}

static void on_closed(struct lab__lab__chat__stream stream, struct bow_result *result, void *user)
{
    (void)stream;
    note_end(user, result);
}

static void open_chat(struct faults *t, struct one *one, const struct bow_call_options *options)
{
    static const struct lab__lab__chat__stream_events events = {
        .on_message = on_message,
        .on_closed = on_closed,
    };

    assert_int_equal(lab__lab__chat__open(t->client, options, &events, one, &one->stream), 0);
}

static int say(struct one *one, size_t n_bytes)
{
    Lab__Blob message = LAB__BLOB__INIT;

    message.body.data = large;
    message.body.len = n_bytes;
    return lab__lab__chat__stream_send(one->stream, &message);
}

/* On the loop, where a stream cannot end before it has been filled. */
static int begin_stream(void *user)
{
    struct one *one = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    int rc = 0;

    options.timeout_ns = one->timeout_ns;
    options.wait_for_ready = true;
    one->started_at = lab_now_ns();
    open_chat(one->t, one, &options);
    while (one->kind == POURING && rc == 0) {
        rc = say(one, 4096);
    }
    assert_true(rc == 0 || rc == -EAGAIN);
    atomic_fetch_add(&one->n_begun, 1);
    return 0;
}

/* Its end may come from then on. */
static void start(struct faults *t, struct one *one)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;

    one->t = t;
    if (one->kind == SILENT || one->kind == POURING) {
        assert_int_equal(bow_loop_execute(t->loop, "stream", begin_stream, one), 0);
        return;
    }
    options.timeout_ns = one->timeout_ns;
    options.wait_for_ready = true;
    request.body.data = large;
    request.body.len = one->kind == LARGE ? LARGE_BYTES : 0;
    one->started_at = lab_now_ns();
    assert_int_equal(lab__lab__hang__start(t->client, &request, &options, on_done, one, NULL), 0);
}

static void expect(struct one *one, enum bow_code code, uint64_t timeout_ns)
{
    if (!lab_wait_count(&one->n_done, 1, timeout_ns)) {
        fail_msg("a call did not end");
    }
    if (one->code != code) {
        fail_msg("%s: %s", bow_code_name(one->code), one->message);
    }
}

/* N_EACH of each kind, with deadlines one after the other. None comes early. */
static void deadlines_hold(struct faults *t, const char *when)
{
    static struct one calls[N_KINDS * N_EACH];
    uint64_t late[N_EACH];

    memset(calls, 0, sizeof(calls));
    for (unsigned i = 0; i < N_KINDS * N_EACH; i++) {
        calls[i].kind = (enum kind)(i % N_KINDS);
        calls[i].timeout_ns = (100 + 2 * i) * LAB_MS;
        start(t, &calls[i]);
    }
    for (unsigned i = 0; i < N_KINDS * N_EACH; i++) {
        expect(&calls[i], BOW_DEADLINE_EXCEEDED, PATIENCE_NS);
        assert_true(calls[i].done_at >= calls[i].started_at + calls[i].timeout_ns);
    }
    for (unsigned kind = 0; kind < N_KINDS; kind++) {
        for (unsigned i = 0; i < N_EACH; i++) {
            const struct one *one = &calls[i * N_KINDS + kind];
            late[i] = one->done_at - one->started_at - one->timeout_ns;
        }
        uint64_t median = lab_median(late, N_EACH);
        print_message("%s, %s: median %lu us late\n", when, kind_names[kind],
                      (unsigned long)(median / 1000));
        assert_true(!is_strict || lab_is_instrumented() || median <= LATE_NS);
    }
    /* Nothing comes a second time: all that could has come when a later call is over. */
    for (unsigned i = 0; i < N_KINDS * N_EACH; i++) {
        assert_int_equal(atomic_load(&calls[i].n_done), 1);
        bow_stream_unref(calls[i].stream.stream);
    }
}

static void start_echo(struct faults *t, struct one *echo)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;

    memset(echo, 0, sizeof(*echo));
    options.timeout_ns = PATIENCE_NS;
    options.wait_for_ready = true;
    assert_int_equal(lab__lab__echo__start(t->client, &request, &options, on_done, echo, NULL), 0);
}

static void expect_echo(struct faults *t)
{
    static struct one echo;

    start_echo(t, &echo);
    expect(&echo, BOW_OK, PATIENCE_NS);
}

/* A stream without a deadline, on which a message has gone there and back. */
static void begin_chat(struct faults *t, struct one *chat)
{
    memset(chat, 0, sizeof(*chat));
    chat->kind = SILENT;
    chat->timeout_ns = BOW_NEVER;
    start(t, chat);
    assert_true(lab_wait_count(&chat->n_begun, 1, PATIENCE_NS));
    assert_int_equal(say(chat, 10), 0);
    assert_true(lab_wait_count(&chat->n_messages, 1, PATIENCE_NS));
}

static void end_chat(struct one *chat, enum bow_code code)
{
    if (code == BOW_OK) {
        assert_int_equal(bow_stream_half_close(chat->stream.stream), 0);
    }
    expect(chat, code, PATIENCE_NS);
    assert_int_equal(say(chat, 10), -ECANCELED);
    bow_stream_unref(chat->stream.stream);
}

/* Tests */

static void test_faults_stopped_server(void **state)
{
    static struct one chat;
    struct faults t;

    (void)state;
    lab_process_start(&t.server, program, "127.0.0.1", 0);
    begin(&t);
    begin_chat(&t, &chat);
    lab_process_signal(&t.server, SIGSTOP);
    deadlines_hold(&t, "stopped");
    assert_true(atomic_load(&t.n_full) > 0);
    lab_process_signal(&t.server, SIGCONT);
    /* It is the same connection, and the stream on it goes on. */
    expect_echo(&t);
    assert_int_equal(say(&chat, 10), 0);
    assert_true(lab_wait_count(&chat.n_messages, 2, PATIENCE_NS));
    end_chat(&chat, BOW_OK);
    end(&t);
    assert_int_equal(atomic_load(&chat.n_done), 1);
}

static void test_faults_killed_server(void **state)
{
    static struct one chat;
    static struct one hung;
    static struct one waiting;
    struct faults t;

    (void)state;
    memset(&hung, 0, sizeof(hung));
    lab_process_start(&t.server, program, "127.0.0.1", 0);
    begin(&t);
    hung.timeout_ns = PATIENCE_NS;
    start(&t, &hung);
    begin_chat(&t, &chat);
    lab_process_kill(&t.server);
    end_chat(&chat, BOW_UNAVAILABLE);
    expect(&hung, BOW_UNAVAILABLE, PATIENCE_NS);
    deadlines_hold(&t, "killed");
    start_echo(&t, &waiting);
    lab_process_restart(&t.server);
    /* What has waited goes by itself. */
    expect(&waiting, BOW_OK, PATIENCE_NS);
    begin_chat(&t, &chat);
    end_chat(&chat, BOW_OK);
    end(&t);
    assert_int_equal(atomic_load(&chat.n_done), 1);
    assert_int_equal(atomic_load(&hung.n_done), 1);
}

static void test_faults_pulled_cable(void **state)
{
    static struct one chat;
    static struct one waiting;
    struct faults t;

    (void)state;
    if (!is_isolated) {
        print_message(
            "skipped: it takes the right to make network namespaces, veth, ip and nsenter\n");
        skip();
    }
    lab_process_start_apart(&t.server, program);
    begin(&t);
    begin_chat(&t, &chat);
    lab_process_plug(&t.server, false);
    deadlines_hold(&t, "cable pulled");
    /* Without a deadline it is the heartbeat that tells. */
    end_chat(&chat, BOW_UNAVAILABLE);
    deadlines_hold(&t, "connection lost");
    start_echo(&t, &waiting);
    lab_process_plug(&t.server, true);
    expect(&waiting, BOW_OK, PATIENCE_NS);
    begin_chat(&t, &chat);
    end_chat(&chat, BOW_OK);
    end(&t);
    assert_int_equal(atomic_load(&chat.n_done), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_stopped_server),
        cmocka_unit_test(test_faults_killed_server),
        cmocka_unit_test(test_faults_pulled_cable),
    };

    if (argc < 3) {
        fprintf(stderr, "usage: %s LAB_SERVER native|grpc [strict]\n", argv[0]);
        return 2;
    }
    program = argv[1];
    prefix = strcmp(argv[2], "grpc") == 0 ? "grpc:" : "";
    is_strict = argc > 3 && strcmp(argv[3], "strict") == 0;
    is_isolated = lab_process_isolate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
