/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The service of web.proto for clients of other makes. Prints its port. Usage:
 * web_server ADDRESS [ORIGINS [LIMIT_BYTES [OPERATIONS]]]
 *
 * At "/" is a page of 256 KiB of "<p>". Metadata whose keys begin with "echo-" goes back both ways.
 */

#include "web.bow.h"
#include <bowline/access_log.h>
#include <bowline/call_stream.h>
#include <bowline/context.h>
#include <bowline/limits.h>
#include <bowline/server.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef Web__Request Request;
typedef Web__Reply Reply;

static atomic_uint n_cancelled;

static void echo_metadata(struct bow_call *call)
{
    const struct bow_metadata *metadata = bow_call_metadata(call);

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        if (strncmp(entry->key, "echo-", 5) == 0 &&
            (bow_call_add_initial(call, entry->key, entry->value) < 0 ||
             bow_call_add_trailing(call, entry->key, entry->value) < 0)) {
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
    (void)bow_call_fail_status(call, &status);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    (void)why;
    (void)user;
    atomic_fetch_add(&n_cancelled, 1);
    (void)bow_call_fail(call, BOW_CANCELLED, "gone");
}

static void answer(struct bow_call *call, const Request *request, Reply *reply)
{
    reply->text = bow_call_printf(call, "Hello, %s", request->name);
    if (strcmp(request->message, "no text") == 0) {
        reply->text = bow_call_printf(call, "%s", "\xff"); /* which JSON has no form for */
    }
    reply->number = request->count;
    reply->body = request->body;
    reply->large = request->large;
    reply->was_compressed = bow_call_request_was_compressed(call);
    reply->n_cancelled = atomic_load(&n_cancelled);
    if (request->compress && bow_call_compress(call, true) < 0) {
        fprintf(stderr, "no compression\n");
    }
}

static void say(struct bow_call *call, const Request *request, void *user)
{
    Reply reply = WEB__REPLY__INIT;

    (void)user;
    echo_metadata(call);
    if (request->hang) {
        bow_call_on_cancel(call, on_cancel, NULL);
        return;
    }
    if (request->code != 0) {
        fail_as_asked(call, request);
        return;
    }
    answer(call, request, &reply);
    (void)web__shop__say__reply(call, &reply);
}

/* Streams */

struct pouring {
    const Request *request;
    uint32_t n;
    bool is_done;
};

static void pour_on(struct web__shop__pour__call call, struct pouring *pouring)
{
    Reply reply = WEB__REPLY__INIT;

    answer(call.call, pouring->request, &reply);
    while (!pouring->is_done && bow_call_is_writable(call.call)) {
        if (pouring->n == pouring->request->count) {
            pouring->is_done = true;
            if (pouring->request->code != 0) {
                fail_as_asked(call.call, pouring->request);
            } else if (!pouring->request->hang) {
                (void)web__shop__pour__finish(call);
            }
            return;
        }
        reply.number = pouring->n++;
        if (web__shop__pour__send(call, &reply) < 0) {
            return;
        }
    }
}

static void pour_writable(struct web__shop__pour__call call, void *user)
{
    pour_on(call, user);
}

static void count_end(const struct bow_status *status)
{
    atomic_fetch_add(&n_cancelled, status->code == BOW_CANCELLED ? 1u : 0u);
}

static void pour_closed(struct web__shop__pour__call call, const struct bow_status *status,
                        void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void pour(struct web__shop__pour__call call, const Request *request, void *user)
{
    static const struct web__shop__pour__call_events events = {
        .on_writable = pour_writable,
        .on_closed = pour_closed,
    };
    struct pouring *pouring = bow_call_alloc(call.call, sizeof(*pouring));

    (void)user;
    if (pouring == NULL) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    *pouring = (struct pouring){.request = request};
    echo_metadata(call.call);
    web__shop__pour__listen(call, &events, pouring);
    pour_on(call, pouring);
}

struct sum {
    uint32_t n;
    size_t n_bytes;
};

static void gather_message(struct web__shop__gather__call call, const Request *message, void *user)
{
    struct sum *sum = user;

    if (message->code != 0) {
        fail_as_asked(call.call, message);
        return;
    }
    sum->n++;
    sum->n_bytes += message->body.len;
}

static void gather_half_close(struct web__shop__gather__call call, void *user)
{
    const struct sum *sum = user;
    Reply reply = WEB__REPLY__INIT;

    reply.number = sum->n;
    reply.large = (int64_t)sum->n_bytes;
    (void)web__shop__gather__reply(call, &reply);
}

static void gather_closed(struct web__shop__gather__call call, const struct bow_status *status,
                          void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void gather(struct web__shop__gather__call call, void *user)
{
    static const struct web__shop__gather__call_events events = {
        .on_message = gather_message,
        .on_half_close = gather_half_close,
        .on_closed = gather_closed,
    };
    struct sum *sum = bow_call_alloc(call.call, sizeof(*sum));

    (void)user;
    if (sum == NULL) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    *sum = (struct sum){0};
    echo_metadata(call.call);
    web__shop__gather__listen(call, &events, sum);
}

static void chat_message(struct web__shop__chat__call call, const Request *message, void *user)
{
    Reply reply = WEB__REPLY__INIT;

    (void)user;
    if (message->code != 0) {
        fail_as_asked(call.call, message);
        return;
    }
    answer(call.call, message, &reply);
    if (web__shop__chat__send(call, &reply) < 0) {
        fprintf(stderr, "a chat is not read\n");
    }
}

static void chat_half_close(struct web__shop__chat__call call, void *user)
{
    (void)user;
    (void)web__shop__chat__finish(call);
}

static void chat_closed(struct web__shop__chat__call call, const struct bow_status *status,
                        void *user)
{
    (void)call;
    (void)user;
    count_end(status);
}

static void chat(struct web__shop__chat__call call, void *user)
{
    static const struct web__shop__chat__call_events events = {
        .on_message = chat_message,
        .on_half_close = chat_half_close,
        .on_closed = chat_closed,
    };

    (void)user;
    echo_metadata(call.call);
    web__shop__chat__listen(call, &events, NULL);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

/* To stderr, where the tests find by which protocol a call came. */
static int log_calls(struct bow_server *server, struct bow_context *context)
{
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;
    struct bow_access_log *log = NULL;
    struct bow_interceptor interceptor;

    options.context = context;
    options.fd = STDERR_FILENO;
    int rc = bow_access_log_new(&options, &log);
    if (rc < 0) {
        return rc;
    }
    bow_access_log_intercept(log, &interceptor);
    rc = bow_server_intercept(server, &interceptor);
    bow_access_log_unref(log);
    return rc;
}

static struct bow_slice make_page(void)
{
    static uint8_t page[BOW_LIMIT_WEB_PAGE_BYTES];

    for (size_t i = 0; i < sizeof(page); i++) {
        page[i] = (uint8_t) "<p>"[i % 3];
    }
    return (struct bow_slice){page, sizeof(page)};
}

int main(int argc, char **argv)
{
    static const struct web__shop__handlers handlers = {
        .look = say, .say = say, .pour = pour, .gather = gather, .chat = chat};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_server *server = NULL;

    if (bow_context_new(&context_options, &context) < 0) {
        return 1;
    }
    options.context = context;
    options.listen = argc > 1 ? argv[1] : "127.0.0.1:0";
    options.protocols =
        BOW_PROTOCOL_NATIVE | BOW_PROTOCOL_GRPC | BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB;
    options.web_origins = argc > 2 ? argv[2] : NULL;
    options.max_message_bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    options.web_page = make_page();
    options.operations_listen = argc > 4 ? argv[4] : NULL;
    options.reflection = true;
    options.on_started = on_started;
    if (bow_server_new(&options, &server) < 0 || log_calls(server, context) < 0 ||
        web__shop__serve(server, &handlers, NULL) < 0) {
        fprintf(stderr, "no server\n");
        return 1;
    }
    int rc = bow_server_run(server);
    if (rc < 0) {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_context_unref(context);
    return rc < 0;
}
