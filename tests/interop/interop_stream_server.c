/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Streams service in C, for grpc_python_stream_client.py. Prints its port. Usage:
 * interop_stream_server ADDRESS */

#include "interop_streams.bow.h"
#include <bowline/call_stream.h>
#include <bowline/server.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef InteropStreams__Request Request;
typedef InteropStreams__Reply Reply;

static atomic_uint n_poured;
static atomic_uint n_gathering;
static atomic_uint n_cancelled;

static bool add(struct bow_call *call, const struct bow_metadata_entry *entry)
{
    return bow_call_add_initial(call, entry->key, entry->value) == 0 &&
           bow_call_add_trailing(call, entry->key, entry->value) == 0;
}

static void echo_metadata(struct bow_call *call)
{
    const struct bow_metadata *metadata = bow_call_metadata(call);

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        if (strncmp(entry->key, "echo-", 5) == 0 && !add(call, entry)) {
            fprintf(stderr, "no metadata: %s\n", entry->key);
        }
    }
}

static void fail_as_asked(struct bow_call *call, const Request *request)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = (enum bow_code)request->code;
    status.message = request->message;
    status.details = (struct bow_slice){request->details.data, request->details.len};
    bow_call_fail_status(call, &status);
}

static void count_end(const struct bow_status *status)
{
    if (status->code == BOW_CANCELLED || status->code == BOW_DEADLINE_EXCEEDED) {
        atomic_fetch_add(&n_cancelled, 1);
    }
}

/* Gather */

struct sum {
    uint32_t n;
    uint64_t n_bytes;
    bool hangs;
};

static void gather_end(struct interop_streams__streams__gather__call call, const struct sum *sum)
{
    Reply reply = INTEROP_STREAMS__REPLY__INIT;

    reply.number = sum->n;
    reply.n_bytes = sum->n_bytes;
    interop_streams__streams__gather__reply(call, &reply);
}

static void gather_message(struct interop_streams__streams__gather__call call,
                           const Request *message, void *user)
{
    struct sum *sum = user;

    if (message->code != 0) {
        fail_as_asked(call.call, message);
        return;
    }
    sum->n++;
    sum->n_bytes += message->body.len;
    sum->hangs = message->hang;
    atomic_fetch_add(&n_gathering, message->hang);
    if (message->enough) {
        gather_end(call, sum);
    }
}

static void gather_half_close(struct interop_streams__streams__gather__call call, void *user)
{
    const struct sum *sum = user;

    if (!sum->hangs) {
        gather_end(call, sum);
    }
}

static void gather_closed(struct interop_streams__streams__gather__call call,
                          const struct bow_status *status, void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void gather(struct interop_streams__streams__gather__call call, void *user)
{
    static const struct interop_streams__streams__gather__call_events events = {
        .on_message = gather_message,
        .on_half_close = gather_half_close,
        .on_closed = gather_closed,
    };
    struct sum *sum = bow_call_alloc(call.call, sizeof(*sum));

    (void)user;
    if (sum == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    *sum = (struct sum){0};
    echo_metadata(call.call);
    interop_streams__streams__gather__listen(call, &events, sum);
}

/* Pour */

struct pouring {
    Request request; /* without its texts' memory */
    Reply reply;
};

static void pour_on(struct interop_streams__streams__pour__call call, void *user)
{
    struct pouring *pouring = user;

    while (pouring->reply.number < pouring->request.count) {
        pouring->reply.number++;
        if (interop_streams__streams__pour__send(call, &pouring->reply) < 0) {
            pouring->reply.number--;
            return;
        }
        atomic_store(&n_poured, pouring->reply.number);
    }
    if (pouring->request.code != 0) {
        fail_as_asked(call.call, &pouring->request);
    } else if (!pouring->request.hang) {
        interop_streams__streams__pour__finish(call);
    }
}

static void pour_closed(struct interop_streams__streams__pour__call call,
                        const struct bow_status *status, void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void pour(struct interop_streams__streams__pour__call call, const Request *request,
                 void *user)
{
    static const struct interop_streams__streams__pour__call_events events = {
        .on_writable = pour_on,
        .on_closed = pour_closed,
    };
    struct pouring *pouring = bow_call_alloc(call.call, sizeof(*pouring));
    uint8_t *body = bow_call_alloc(call.call, request->reply_bytes + 1);

    (void)user;
    if (pouring == NULL || body == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    memset(body, 'r', request->reply_bytes);
    *pouring = (struct pouring){.request = *request, .reply = INTEROP_STREAMS__REPLY__INIT};
    pouring->request.message = bow_call_strdup(call.call, request->message);
    pouring->request.details.len = 0;
    pouring->reply.body = (ProtobufCBinaryData){request->reply_bytes, body};
    echo_metadata(call.call);
    interop_streams__streams__pour__listen(call, &events, pouring);
    pour_on(call, pouring);
}

/* Both */

static void both_message(struct interop_streams__streams__both__call call, const Request *message,
                         void *user)
{
    struct sum *sum = user;
    Reply reply = INTEROP_STREAMS__REPLY__INIT;

    if (message->code != 0) {
        fail_as_asked(call.call, message);
        return;
    }
    reply.number = ++sum->n;
    reply.body = message->body;
    /* It was writable, or the call would be paused. */
    if (!message->hang && interop_streams__streams__both__send(call, &reply) < 0) {
        fprintf(stderr, "not sent: %u\n", reply.number);
    }
    if (message->enough) {
        interop_streams__streams__both__finish(call);
        return;
    }
    if (!bow_call_is_writable(call.call)) {
        bow_call_pause(call.call);
    }
}

static void both_writable(struct interop_streams__streams__both__call call, void *user)
{
    (void)user;
    bow_call_resume(call.call);
}

static void both_half_close(struct interop_streams__streams__both__call call, void *user)
{
    (void)user;
    interop_streams__streams__both__finish(call);
}

static void both_closed(struct interop_streams__streams__both__call call,
                        const struct bow_status *status, void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void both(struct interop_streams__streams__both__call call, void *user)
{
    static const struct interop_streams__streams__both__call_events events = {
        .on_message = both_message,
        .on_half_close = both_half_close,
        .on_writable = both_writable,
        .on_closed = both_closed,
    };
    struct sum *sum = bow_call_alloc(call.call, sizeof(*sum));

    (void)user;
    if (sum == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    *sum = (struct sum){0};
    echo_metadata(call.call);
    interop_streams__streams__both__listen(call, &events, sum);
}

static void state(struct bow_call *call, const Request *request, void *user)
{
    Reply reply = INTEROP_STREAMS__REPLY__INIT;

    (void)request;
    (void)user;
    reply.n_poured = atomic_load(&n_poured);
    reply.n_gathering = atomic_load(&n_gathering);
    reply.n_cancelled = atomic_load(&n_cancelled);
    interop_streams__streams__state__reply(call, &reply);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct interop_streams__streams__handlers handlers = {
        .gather = gather, .pour = pour, .both = both, .state = state};
    struct bow_server *server;

    options.listen = argc == 2 ? argv[1] : NULL;
    if (bow_server_new(&options, &server) != 0 ||
        interop_streams__streams__serve(server, &handlers, NULL) != 0) {
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
