/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The service of echo.proto, a server and a client for it, and ways to wait.
 */

#include "call_fixture.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 20

static bool is_grpc;
static bool is_unix;
static bool is_inproc;

void calls_choose(int argc, char **argv)
{
    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    is_unix = argc > 2 && strcmp(argv[2], "unix") == 0;
    is_inproc = argc > 2 && strcmp(argv[2], "inproc") == 0;
}

bool calls_is_grpc(void)
{
    return is_grpc;
}

bool calls_is_unix(void)
{
    return is_unix;
}

bool calls_has_port(void)
{
    return !is_unix && !is_inproc;
}

/* Waiting */

static struct timespec patience(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    return until;
}

void calls_wait(struct calls *t, const int *counter, int n)
{
    struct timespec until = patience();
    int rc = 0;

    pthread_mutex_lock(&t->lock);
    while (*counter < n && rc == 0) {
        rc = pthread_cond_timedwait(&t->changed, &t->lock, &until);
    }
    int reached = *counter;
    pthread_mutex_unlock(&t->lock);
    assert_true(reached >= n);
}

void calls_wait_server_metric(struct calls *t, size_t offset, uint64_t n)
{
    struct timespec until = patience();
    struct timespec now;
    uint64_t value = 0;

    do {
        struct bow_metrics metrics = BOW_METRICS_INIT;
        assert_int_equal(bow_server_metrics(t->server, &metrics), 0);
        memcpy(&value, (const char *)&metrics + offset, sizeof(value));
        clock_gettime(CLOCK_REALTIME, &now);
    } while (value != n && now.tv_sec < until.tv_sec);
    assert_int_equal(value, n);
}

struct refused {
    enum bow_refusal refusal;
    uint64_t n;
};

static void add_refused(const struct bow_method_metrics *method, void *user)
{
    struct refused *refused = user;

    refused->n += method->refused[refused->refusal];
}

uint64_t calls_n_refused(const struct bow_server *server, enum bow_refusal refusal)
{
    struct refused refused = {refusal, 0};

    bow_server_each_method(server, add_refused, &refused);
    return refused.n;
}

static void note(struct calls *t, int *counter)
{
    pthread_mutex_lock(&t->lock);
    (*counter)++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* The service */

int calls_reply(struct bow_call *call, uint64_t number)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    return calls__echo__say__reply(call, &reply);
}

void calls_hold_loop(uint64_t ns)
{
    struct timespec begin;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000 * MS + (uint64_t)now.tv_nsec -
                 (uint64_t)begin.tv_nsec <
             ns);
}

void calls_let_go(struct calls *t)
{
    note(t, &t->n_let_go);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct calls *t = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    note(t, &t->n_said);
    if (strcmp(request->text, "busy") == 0) {
        calls_hold_loop(50 * MS);
    }
    if (strcmp(request->text, "wait") == 0) {
        calls_wait(t, &t->n_let_go, 1);
        calls_hold_loop(450 * MS);
    }
    if (request->code != 0) {
        (void)bow_call_fail(call, (enum bow_code)request->code, "asked to fail: %s", request->text);
        return;
    }
    reply.number = request->number;
    reply.text = request->text;
    reply.payload = request->payload;
    if (request->reply_bytes > 0) {
        reply.payload.len = request->reply_bytes;
        reply.payload.data = bow_call_alloc(call, request->reply_bytes);
        if (reply.payload.data != NULL) {
            memset(reply.payload.data, (int)request->number, request->reply_bytes);
        }
    }
    int rc = calls__echo__say__reply(call, &reply);
    pthread_mutex_lock(&t->lock);
    t->say_rc = rc;
    pthread_mutex_unlock(&t->lock);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    struct calls *t = user;

    pthread_mutex_lock(&t->lock);
    bool answers = t->answers_cancel;
    t->why = why;
    pthread_mutex_unlock(&t->lock);
    if (answers) {
        t->cancel_reply_rc = calls_reply(call, 0);
    }
    note(t, &t->n_cancelled);
}

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct calls *t = user;

    (void)request;
    bow_call_on_cancel(call, on_cancel, t);
    pthread_mutex_lock(&t->lock);
    t->held[t->n_held++] = call;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

struct bow_call *calls_take_held(struct calls *t)
{
    calls_wait(t, &t->n_held, 1);
    pthread_mutex_lock(&t->lock);
    struct bow_call *call = t->held[0];
    t->n_held--;
    memmove(&t->held[0], &t->held[1], (size_t)t->n_held * sizeof(t->held[0]));
    pthread_mutex_unlock(&t->lock);
    return call;
}

static void *answer_elsewhere(void *call)
{
    assert_int_equal(calls_reply(call, 77), 0);
    return NULL;
}

static void later(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct calls *t = user;

    (void)request;
    pthread_mutex_lock(&t->lock);
    pthread_t *helper = &t->helpers[t->n_helpers++];
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(pthread_create(helper, NULL, answer_elsewhere, call), 0);
}

static const struct calls__echo__handlers handlers = {.say = say, .hold = hold, .later = later};

void calls_on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct calls *t = user;

    (void)reply;
    pthread_mutex_lock(&t->lock);
    bow_result_fini(&t->result);
    bow_result_move(&t->result, result);
    t->n_failed += t->result.status.code != BOW_OK;
    pthread_mutex_unlock(&t->lock);
    note(t, &t->n_done);
}

/* Server and client */

void calls_name_address(char *ret_address, size_t n_address)
{
    static int n;

    if (is_unix) {
        snprintf(ret_address, n_address, "unix-abstract:bowline-calls-%d-%d", (int)getpid(), n++);
    } else if (is_inproc) {
        snprintf(ret_address, n_address, "inproc:calls-%d", n++);
    } else {
        snprintf(ret_address, n_address, "127.0.0.1:0");
    }
}

static void set_target(struct calls *t)
{
    snprintf(t->target, sizeof(t->target), "%s%s", is_grpc ? "grpc:" : "", t->address);
}

void calls_server_options(struct calls *t, struct bow_server_options *ret_options)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.context = t->context;
    options.listen = t->address;
    options.grace_ns = 1; /* tests that want grace say so */
    *ret_options = options;
}

struct bow_server *calls_make_server(struct calls *t, const struct bow_server_options *options)
{
    struct bow_server *server = NULL;

    assert_int_equal(bow_server_new(options, &server), 0);
    assert_int_equal(calls__echo__serve(server, &handlers, t), 0);
    return server;
}

int calls_open_server(struct calls *t, struct bow_server *server)
{
    int rc = bow_server_start(server);

    if (calls_has_port()) {
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", bow_server_port(server));
    }
    set_target(t);
    return rc;
}

int calls_try_server(struct calls *t, const struct bow_server_options *options,
                     struct bow_server **ret_server)
{
    *ret_server = calls_make_server(t, options);
    return bow_server_start(*ret_server);
}

struct bow_server *calls_start_server(struct calls *t, const struct bow_server_options *options)
{
    struct bow_server *server = calls_make_server(t, options);

    int rc = calls_open_server(t, server);
    if (rc != 0) {
        fail_msg("start: %d: %s", rc, bow_server_error(server));
    }
    return server;
}

void calls_client_options(struct calls *t, struct bow_client_options *ret_options)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    options.context = t->context;
    options.target = t->target;
    options.loop = t->loop;
    *ret_options = options;
}

struct bow_client *calls_new_client(struct calls *t, const struct bow_client_options *options)
{
    struct bow_client *client = NULL;

    (void)t;
    assert_int_equal(bow_client_new(options, &client), 0);
    return client;
}

void calls_free_client(struct calls *t)
{
    bow_client_free(t->client);
    t->client = NULL;
}

void calls_kill_server(struct calls *t)
{
    bow_server_free(t->server);
    t->server = NULL;
}

static const char *resolved[2];

static int resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason)
{
    (void)user;
    (void)host;
    (void)ret_reason;
    assert_true(max >= 2);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET, resolved[i], &in.sin_addr), 1);
        memset(&addresses[i], 0, sizeof(addresses[i]));
        memcpy(&addresses[i].storage, &in, sizeof(in));
        addresses[i].len = sizeof(in);
    }
    return 2;
}

void calls_resolve_to(struct calls *t, const char *first, const char *second)
{
    resolved[0] = first;
    resolved[1] = second;
    t->system.resolve = resolve;
}

static socklen_t raw_address(const struct calls *t, struct sockaddr_storage *ret_address)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET};
    const char *colon = strchr(t->address, ':');

    if (is_unix) {
        size_t len = strlen(colon + 1);
        memcpy(un.sun_path + 1, colon + 1, len);
        memcpy(ret_address, &un, sizeof(un));
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    }
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)atoi(colon + 1));
    memcpy(ret_address, &in, sizeof(in));
    return sizeof(in);
}

static int raw_socket(void)
{
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

int calls_raw_connect(struct calls *t)
{
    struct sockaddr_storage address;
    socklen_t len = raw_address(t, &address);
    int fd = raw_socket();

    assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
    return fd;
}

int calls_raw_listen(struct calls *t)
{
    struct sockaddr_storage address;
    struct sockaddr_in bound;
    socklen_t bound_len = sizeof(bound);
    socklen_t len = raw_address(t, &address);
    int fd = raw_socket();

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    if (!is_unix) {
        assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &bound_len), 0);
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", ntohs(bound.sin_port));
    }
    set_target(t);
    return fd;
}

void calls_choose_dead_address(struct calls *t)
{
    close(calls_raw_listen(t));
}

int calls_setup_bare(void **state)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_result empty = BOW_RESULT_INIT;
    struct calls *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    test_alloc_init(&t->alloc);
    t->system = *bow_system_default();
    context_options.allocator = &t->alloc.allocator;
    context_options.system = &t->system;
    assert_int_equal(bow_context_new(&context_options, &t->context), 0);
    t->result = empty;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    calls_name_address(t->address, sizeof(t->address));
    assert_int_equal(bow_loop_new(t->context, &loop_options, &t->loop), 0);
    *state = t;
    return 0;
}

int calls_setup(void **state)
{
    struct bow_server_options server_options;
    struct bow_client_options client_options;

    calls_setup_bare(state);
    struct calls *t = *state;
    calls_server_options(t, &server_options);
    t->server = calls_start_server(t, &server_options);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    return 0;
}

int calls_teardown(void **state)
{
    struct calls *t = *state;

    for (int i = 0; i < t->n_helpers; i++) {
        pthread_join(t->helpers[i], NULL);
    }
    bow_client_free(t->client);
    bow_server_free(t->server);
    while (t->n_held > 0) {
        (void)calls_reply(calls_take_held(t), 0);
    }
    assert_int_equal(bow_loop_shutdown(t->loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(t->loop, BOW_NEVER), 0);
    bow_loop_unref(t->loop);
    bow_result_fini(&t->result);
    test_context_end(t->context, &t->alloc);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return 0;
}
