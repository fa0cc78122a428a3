/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The Lab service over TCP, TLS and a Unix socket, as a program that the soak attacks and restarts.
 * Connections have an age, so that some are drained at any time. Prints its ports; after SIGTERM it
 * fails when a byte of its context is left.
 * Usage: soak_server PORT TLS_PORT UNIX_PATH CERTIFICATE KEY [executor]
 */

#include "lab.bow.h"
#include <bowline/call.h>
#include <bowline/context.h>
#include <bowline/executor.h>
#include <bowline/server.h>
#include <bowline/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define SECOND_NS UINT64_C(1000000000)

/* A byte for each place, so that what is lost or of another is seen. */
static bool fill(struct bow_call *call, const Lab__Blob *asked, Lab__Blob *reply)
{
    reply->id = asked->id;
    reply->body = asked->body;
    if (asked->reply_bytes == 0) {
        return true;
    }
    reply->body.len = asked->reply_bytes;
    reply->body.data = bow_call_alloc(call, reply->body.len);
    if (reply->body.data == NULL) {
        (void)bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory for the reply");
        return false;
    }
    memset(reply->body.data, (int)(asked->id & 0xff), reply->body.len);
    return true;
}

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    Lab__Blob reply = LAB__BLOB__INIT;

    (void)user;
    if (fill(call, request, &reply)) {
        lab__lab__echo__reply(call, &reply);
    }
}

static void on_given_up(struct bow_call *call, enum bow_code why, void *user)
{
    (void)why;
    (void)user;
    (void)bow_call_fail(call, BOW_ABORTED, "nobody waits any more");
}

static void hang(struct bow_call *call, const Lab__Blob *request, void *user)
{
    (void)request;
    bow_call_on_cancel(call, on_given_up, user);
}

/* Each message is answered by one of the length that it asks for; while there is no room for more,
 * none is read. */
static void on_said(struct lab__lab__chat__call call, const Lab__Blob *message, void *user)
{
    static const uint8_t zeros[MIB];
    Lab__Blob reply = LAB__BLOB__INIT;

    (void)user;
    reply.id = message->id;
    reply.body.data = (uint8_t *)(uintptr_t)zeros;
    reply.body.len = message->reply_bytes < sizeof(zeros) ? message->reply_bytes : sizeof(zeros);
    if (lab__lab__chat__send(call, &reply) != 0) {
        (void)bow_call_fail(call.call, BOW_INTERNAL, "no room to answer");
        return;
    }
    if (!bow_call_is_writable(call.call)) {
        bow_call_pause(call.call);
    }
}

static void on_room(struct lab__lab__chat__call call, void *user)
{
    (void)user;
    bow_call_resume(call.call);
}

static void on_all_said(struct lab__lab__chat__call call, void *user)
{
    (void)user;
    (void)lab__lab__chat__finish(call);
}

static void chat(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {
        .on_message = on_said,
        .on_half_close = on_all_said,
        .on_writable = on_room,
    };

    (void)lab__lab__chat__listen(call, &events, user);
}

static struct bow_tls_context *certified(struct bow_context *context, char **argv)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context *tls = NULL;
    struct bow_tls_error error;

    options.side = BOW_TLS_SERVER;
    options.certificate.certificate_file = argv[4];
    options.certificate.key_file = argv[5];
    if (bow_tls_context_new(context, &options, &tls, &error) < 0) {
        fprintf(stderr, "soak_server: %s\n", error.text);
    }
    return tls;
}

static bool listen_on(struct bow_server *server, struct bow_security *security, char *const *argv)
{
    struct bow_listen_options options = BOW_LISTEN_OPTIONS_INIT;
    char address[256];

    options.address = address;
    snprintf(address, sizeof(address), "127.0.0.1:%s", argv[1]);
    if (bow_server_listen(server, &options) != 0) {
        return false;
    }
    options.security = security;
    snprintf(address, sizeof(address), "127.0.0.1:%s", argv[2]);
    if (bow_server_listen(server, &options) != 0) {
        return false;
    }
    options.security = NULL;
    snprintf(address, sizeof(address), "unix:%s", argv[3]);
    return bow_server_listen(server, &options) == 0;
}

static void on_started(struct bow_server *server, void *user)
{
    (void)server;
    (void)user;
    puts("serving");
    fflush(stdout);
}

static int serve(struct bow_context *context, struct bow_executor *executor, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .hang = hang, .chat = chat};
    struct bow_tls_context *tls = certified(context, argv);
    struct bow_server *server = NULL;

    options.context = context;
    options.workers = 1;
    options.max_age_ns = 5 * SECOND_NS;
    options.lame_duck_ns = SECOND_NS / 10;
    options.grace_ns = 30 * SECOND_NS;
    options.write_timeout_ns = 10 * SECOND_NS;
    options.max_queued_reply_bytes = 64 * MIB;
    options.max_waiting_calls = 8192; /* who means harm asks for half as many at once */
    options.on_started = on_started;
    if (tls == NULL || bow_server_new(&options, &server) != 0 ||
        lab__lab__serve(server, &handlers, NULL) != 0 ||
        (executor != NULL && bow_server_bind(server, "lab.Lab/Echo", executor) != 0) ||
        !listen_on(server, bow_tls_security(tls), argv)) {
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "soak_server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_tls_context_unref(tls);
    return rc != 0;
}

int main(int argc, char **argv)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_executor *executor = NULL;

    if (argc < 6 || bow_context_new(NULL, &context) != 0 ||
        (argc > 6 && bow_executor_new(context, &options, &executor) != 0)) {
        fprintf(stderr, "usage: %s PORT TLS_PORT UNIX_PATH CERTIFICATE KEY [executor]\n", argv[0]);
        return 2;
    }
    int rc = serve(context, executor, argv);
    if (executor != NULL) {
        bow_executor_shutdown(executor, 0, 0);
        rc |= bow_executor_join(executor, BOW_NEVER);
        bow_executor_unref(executor);
    }
    if (bow_context_bytes(context) != 0) {
        fprintf(stderr, "soak_server: %zu bytes are left\n", bow_context_bytes(context));
        rc = 3;
    }
    bow_context_unref(context);
    return rc;
}
