/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server with an operations listener and something to show: calls that come all the time, some of
 * which fail, two that hang, one that waits for a thread, a stream whose client does not read, and
 * a client whose calls wait for a server that is not there.
 *
 *     operations_server LISTEN OPERATIONS        says "ready" when it serves; until SIGTERM
 */

#include "protos/echo.bow.h"

#include <bowline/client.h>
#include <bowline/executor.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_NS UINT64_C(2000000)

struct load {
    struct bow_client *client;
    struct bow_client *lost; /* its server is not there */
    struct bow_loop *loop;
    struct calls__echo__stream__stream unread;
    struct bow_timer timer;
    unsigned n;
};

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "operations_server: %s\n", what);
        exit(1);
    }
}

/* The service */

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)user;
    if (request->code != 0) {
        (void)bow_call_fail(call, (enum bow_code)request->code, "asked to");
        return;
    }
    reply.number = request->number;
    (void)calls__echo__say__reply(call, &reply);
}

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)call;
    (void)request;
    (void)user;
}

/* Runs on the executor, which has one thread: the first holds it, until nobody waits for it. */
static void later(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)request;
    (void)user;
    while (!bow_call_is_cancelled(call)) {
        usleep(10000);
    }
    (void)bow_call_fail(call, BOW_CANCELLED, "nobody waits");
}

/* Sends for as long as there is room: until the client's window is full. */
static void pour(struct calls__echo__stream__call call, void *user)
{
    static uint8_t payload[10000];
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)user;
    reply.payload.data = payload;
    reply.payload.len = sizeof(payload);
    while (calls__echo__stream__send(call, &reply) == 0) {
    }
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_writable = pour};

    calls__echo__stream__listen(call, &events, user);
    pour(call, user);
}

/* The load */

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    (void)result;
    (void)reply;
    (void)user;
}

static void tick(struct bow_timer *timer, void *user)
{
    struct load *load = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = ++load->n;
    request.code = load->n % 40 == 0 ? BOW_NOT_FOUND : 0;
    (void)!calls__echo__say__start(load->client, &request, NULL, on_done, load, NULL);
    bow_timer_start(timer, PERIOD_NS);
}

static int begin(void *user)
{
    struct load *load = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = UINT64_C(3600) * 1000000000u;
    for (int i = 0; i < 2; i++) {
        (void)!calls__echo__hold__start(load->client, &request, &options, on_done, load, NULL);
        (void)!calls__echo__later__start(load->client, &request, &options, on_done, load, NULL);
    }
    /* In the blocking style, and nobody receives. */
    (void)!calls__echo__stream__open(load->client, &options, NULL, NULL, &load->unread);
    options.wait_for_ready = true;
    (void)!calls__echo__say__start(load->lost, &request, &options, on_done, load, NULL);
    bow_timer_init(&load->timer, load->loop, tick, load);
    bow_timer_start(&load->timer, PERIOD_NS);
    return 0;
}

static void on_started(struct bow_server *server, void *user)
{
    struct load *load = user;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    char target[64];

    snprintf(target, sizeof(target), "%s127.0.0.1:%u", getenv("GRPC") != NULL ? "grpc:" : "",
             bow_server_port(server));
    loop_options.name = "load";
    require(bow_context_new(&context_options, &context) == 0, "no context");
    require(bow_loop_new(context, &loop_options, &load->loop) == 0, "no loop");
    options.context = context;
    options.loop = load->loop;
    options.target = target;
    require(bow_client_new(&options, &load->client) == 0, "no client");
    options.target = "127.0.0.1:1";
    require(bow_client_new(&options, &load->lost) == 0, "no client");
    require(bow_loop_execute(load->loop, "load", begin, load) == 0, "no load");
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct calls__echo__handlers handlers = {
        .say = say, .hold = hold, .later = later, .stream = stream};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_executor *executor = NULL;
    struct bow_server *server = NULL;
    struct load load = {0};

    require(argc == 3, "operations_server LISTEN OPERATIONS");
    require(bow_context_new(&context_options, &context) == 0, "no context");
    executor_options.n_threads = 1;
    require(bow_executor_new(context, &executor_options, &executor) == 0, "no executor");
    options.listen = argv[1];
    options.operations_listen = argv[2];
    options.workers = 2;
    options.grace_ns = 1;
    options.max_deadline_ns = UINT64_C(3600) * 1000000000u;
    options.max_server_calls = 1000;
    options.dump_on_sigusr1 = true;
    options.on_started = on_started;
    options.started_user = &load;
    require(bow_server_new(&options, &server) == 0, "no server");
    require(calls__echo__serve(server, &handlers, NULL) == 0, "no service");
    require(bow_server_bind(server, "calls.Echo/Later", executor) == 0, "not bound");
    int rc = bow_server_run(server);
    if (rc < 0) {
        fprintf(stderr, "operations_server: %s\n", bow_server_error(server));
    }
    /* Calls that are held, and the load, end with the process. */
    _exit(rc == 0 ? 0 : 1);
}
