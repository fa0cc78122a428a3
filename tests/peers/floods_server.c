/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Serves Echo to who is innocent and Lab to who means harm, on one loop, for peers_floods.py.
 * Prints its port; when SIGTERM has drained it, what it counted. Usage: floods_server ADDRESS
 */

#include "echo.bow.h"
#include "lab.bow.h"
#include <bowline/call.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_REPLY_BYTES (1u << 20)
#define GRACE_NS UINT64_C(100000000)

static void say(struct bow_call *call, const Peers__Message *request, void *user)
{
    (void)user;
    peers__echo__say__reply(call, request);
}

/* The reply has as many bytes as the request asks for. */
static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    Lab__Blob reply = LAB__BLOB__INIT;

    (void)user;
    reply.body = request->body;
    if (request->reply_bytes > 0 && request->reply_bytes <= MAX_REPLY_BYTES) {
        reply.body.len = request->reply_bytes;
        reply.body.data = bow_call_alloc(call, reply.body.len);
        if (reply.body.data == NULL) {
            return; /* it is RESOURCE_EXHAUSTED by that */
        }
        memset(reply.body.data, 0, reply.body.len);
    }
    lab__lab__echo__reply(call, &reply);
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
    (void)user;
    bow_call_on_cancel(call, on_given_up, NULL);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

static void print_counters(struct bow_server *server)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    if (bow_server_metrics(server, &metrics) != 0) {
        return;
    }
    printf("started=%" PRIu64 " ended=%" PRIu64 " opened=%" PRIu64 " received=%" PRIu64
           " protocol_errors=%" PRIu64 " bad_prefaces=%" PRIu64 "\n",
           metrics.calls_started, metrics.calls_ended, metrics.connections_opened,
           metrics.bytes_received, metrics.protocol_errors, metrics.bad_prefaces);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server;

    options.listen = argc == 2 ? argv[1] : NULL;
    options.on_started = on_started;
    options.grace_ns = GRACE_NS;
    if (bow_server_new(&options, &server) != 0 ||
        peers__echo__serve(server, &(struct peers__echo__handlers){.say = say}, NULL) != 0 ||
        lab__lab__serve(server, &(struct lab__lab__handlers){.echo = echo, .hang = hang}, NULL) !=
            0) {
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    print_counters(server);
    bow_server_free(server);
    return rc != 0;
}
