/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Interop service in C, for grpc_python_client.py. Prints its port. Usage: interop_server
 * ADDRESS */

#include "interop.bow.h"
#include <bowline/call.h>
#include <bowline/loop.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Calls of Hang at a time. */
#define MAX_HANGS 3
#define SLOW_NS UINT64_C(300000000)
#define MAX_HEADER_BYTES ((size_t)32 << 10)

static atomic_uint n_cancelled;

static void note_bytes(const struct bow_method_metrics *metrics, void *user)
{
    Interop__Reply *reply = user;

    if (strcmp(metrics->path, "/interop.Interop/Echo") == 0) {
        reply->n_counted = metrics->ended[BOW_OK];
        reply->bytes_in = metrics->bytes_in;
        reply->bytes_out = metrics->bytes_out;
    }
}

/* The key "x-back" comes back, before the reply and behind it. */
static int send_back(struct bow_call *call)
{
    const struct bow_slice *value = bow_metadata_find(bow_call_metadata(call), "x-back");

    if (value == NULL) {
        return 0;
    }
    int rc = bow_call_add_initial(call, "x-first", *value);
    return rc < 0 ? rc : bow_call_add_trailing(call, "x-last", *value);
}

static void echo(struct bow_call *call, const Interop__Request *request, void *user)
{
    Interop__Reply reply = INTEROP__REPLY__INIT;

    reply.body = request->body;
    reply.came_compressed = bow_call_request_was_compressed(call);
    if (send_back(call) < 0) {
        bow_call_fail(call, BOW_INTERNAL, "the metadata cannot be sent back");
        return;
    }
    bow_server_each_method(*(struct bow_server **)user, note_bytes, &reply);
    if (strcmp(request->message, "compress") == 0 && bow_call_compress(call, true) < 0) {
        bow_call_fail(call, BOW_INTERNAL, "the reply cannot be compressed");
        return;
    }
    reply.n_cancelled = atomic_load(&n_cancelled);
    reply.time_left_ns = bow_call_deadline(call) - bow_loop_now(bow_call_loop(call));
    if (request->reply_bytes > 0) {
        reply.body.data = bow_call_alloc(call, request->reply_bytes);
        reply.body.len = reply.body.data != NULL ? request->reply_bytes : 0;
        memset(reply.body.data != NULL ? reply.body.data : (uint8_t *)"", 'r', reply.body.len);
    }
    interop__interop__echo__reply(call, &reply);
}

static void fail(struct bow_call *call, const Interop__Request *request, void *user)
{
    (void)user;
    bow_call_fail(call, (enum bow_code)request->code, "%s", request->message);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    (void)user;
    atomic_fetch_add(&n_cancelled, 1);
    bow_call_fail(call, why, "nobody waits");
}

static void hang(struct bow_call *call, const Interop__Request *request, void *user)
{
    (void)request;
    (void)user;
    bow_call_on_cancel(call, on_cancel, NULL);
}

static void answer_slow(struct bow_timer *timer, void *user)
{
    Interop__Reply reply = INTEROP__REPLY__INIT;

    (void)timer;
    interop__interop__slow__reply(user, &reply);
}

static void slow(struct bow_call *call, const Interop__Request *request, void *user)
{
    struct bow_timer *timer = bow_call_alloc(call, sizeof(*timer));

    (void)request;
    (void)user;
    if (timer == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    bow_timer_init(timer, bow_call_loop(call), answer_slow, call);
    bow_timer_start(timer, SLOW_NS);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct interop__interop__handlers handlers = {
        .echo = echo, .fail = fail, .hang = hang, .slow = slow};
    struct bow_server *server;

    options.listen = argc == 2 ? argv[1] : NULL;
    options.retry_after_ns = UINT64_C(2500000000);
    options.max_header_bytes = MAX_HEADER_BYTES;
    if (bow_server_new(&options, &server) != 0 ||
        interop__interop__serve(server, &handlers, &server) != 0 ||
        bow_server_limit_calls(server, "interop.Interop/Hang", MAX_HANGS) != 0) {
        return 2;
    }
    /* Who knows the port may end it at once: what comes before bow_server_run() waits for it. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int rc = bow_server_start(server);
    if (rc == 0) {
        printf("%u\n", bow_server_port(server));
        fflush(stdout);
        rc = bow_server_run(server);
    } else {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
