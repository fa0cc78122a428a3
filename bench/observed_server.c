/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The echo server with all on that tells of it: an operations listener, and a tracer whose spans go
 * nowhere. Usage: observed_server HOST:PORT RATIO, of traces that are sampled; "none": no tracer.
 */

#include "echo.bow.h"
#include <bowline/call.h>
#include <bowline/context.h>
#include <bowline/interceptor.h>
#include <bowline/server.h>
#include <bowline/tracer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void unary(struct bow_call *call, const Bench__Text *request, void *user)
{
    Bench__Text reply = BENCH__TEXT__INIT;

    (void)user;
    reply.text = request->text;
    bench__echo__unary__reply(call, &reply);
}

static void take_spans(const struct bow_span *spans, size_t n, void *user)
{
    (void)spans;
    (void)user;
    (void)n;
}

static int trace(struct bow_context *context, struct bow_server *server, const char *ratio)
{
    struct bow_tracer_options options = BOW_TRACER_OPTIONS_INIT;
    struct bow_interceptor interceptor;
    struct bow_tracer *tracer = NULL;

    if (strcmp(ratio, "none") == 0) {
        return 0;
    }
    options.context = context;
    options.ratio = strtod(ratio, NULL);
    options.spans = take_spans;
    int rc = bow_tracer_new(&options, &tracer);
    if (rc == 0) {
        bow_tracer_intercept(tracer, &interceptor);
        rc = bow_server_intercept(server, &interceptor);
        bow_tracer_unref(tracer);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    if (argc != 3) {
        fprintf(stderr, "usage: %s HOST:PORT RATIO\n", argv[0]);
        return 2;
    }
    options.listen = argv[1];
    options.operations_listen = "127.0.0.1:0";
    if (bow_context_new(NULL, &options.context) != 0 || bow_server_new(&options, &server) != 0 ||
        bench__echo__serve(server, &(struct bench__echo__handlers){.unary = unary}, NULL) != 0 ||
        trace(options.context, server, argv[2]) != 0) {
        fprintf(stderr, "observed_server: cannot serve at '%s'\n", argv[1]);
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "observed_server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_context_unref(options.context);
    return rc != 0;
}
