/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The echo server through generated stubs, on one loop; when its messages are counted it has
 * streams, too. Arguments: service.h. */

#include "counted_system.h"
#include "echo.bow.h"
#include "service.h"
#include <bowline/call.h>
#include <bowline/call_stream.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    struct service service;
    char *text; /* what a stream sends */
};

static void unary(struct bow_call *call, const Bench__Text *request, void *user)
{
    Bench__Text reply = BENCH__TEXT__INIT;
    (void)user;
    reply.text = request->text;
    bench__echo__unary__reply(call, &reply);
}

static void unary_counted(struct bow_call *call, const Bench__Text *request, void *user)
{
    struct counted *counted = user;
    unary(call, request, NULL);
    service_count(&counted->service, 1);
}

/* As much as the stream takes now. */
static void on_writable(struct bench__fan__listen__call call, void *user)
{
    struct counted *counted = user;
    struct service *service = &counted->service;
    Bench__Text message = BENCH__TEXT__INIT;
    message.text = counted->text;
    while (service->n_done < service->n_warmup + service->n_calls) {
        if (bench__fan__listen__send(call, &message) != 0) {
            return;
        }
        service_count(service, 1);
    }
    (void)bench__fan__listen__finish(call);
}

static void listen_to(struct bench__fan__listen__call call, const Bench__Text *request, void *user)
{
    static const struct bench__fan__listen__call_events events = {.on_writable = on_writable};
    (void)request;
    if (bench__fan__listen__listen(call, &events, user) == 0) {
        on_writable(call, user);
    }
}

static int serve(struct bow_server *server, struct counted *counted)
{
    if (counted->service.n_calls == 0) {
        return bench__echo__serve(server, &(struct bench__echo__handlers){.unary = unary}, NULL);
    }
    counted->text = calloc((size_t)counted->service.text_bytes + 1, 1);
    if (counted->text == NULL) {
        return -1;
    }
    memset(counted->text, 'x', counted->service.text_bytes);
    int rc = bench__echo__serve(server, &(struct bench__echo__handlers){.unary = unary_counted},
                                counted);
    return rc != 0 ? rc
                   : bench__fan__serve(server, &(struct bench__fan__handlers){.listen = listen_to},
                                       counted);
}

int main(int argc, char **argv)
{
    struct counted counted = {0};
    struct io_counts *io = &counted.service.io;
    struct bow_system system = counted_system(io);
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;
    service_parse(&counted.service, argc, argv);
    if (counted.service.n_calls > 0) {
        counted_system_poller(&system, io);
    }
    context_options.system = &system;
    options.listen = counted.service.listen;
    if (bow_context_new(&context_options, &options.context) != 0 ||
        bow_server_new(&options, &server) != 0 || serve(server, &counted) != 0) {
        fprintf(stderr, "bowline_server: cannot serve at '%s'\n", counted.service.listen);
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "bowline_server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_context_unref(options.context);
    free(counted.text);
    service_print(&counted.service);
    return rc != 0;
}
