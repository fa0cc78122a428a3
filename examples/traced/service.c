/* SPDX-License-Identifier: 0BSD */
/*
 * One of the hands: it passes a parcel on to the next one, if there is one, and puts its name in
 * front of the receipt. Usage: traced-service NAME LISTEN COLLECTOR [NEXT]
 */

#include "relay.bow.h"
#include "tracing.h"
#include <bowline/access_log.h>
#include <bowline/call.h>
#include <bowline/client.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <stdio.h>
#include <unistd.h>

struct hand {
    const char *name;
    struct bow_client *next; /* NULL: the last one */
};

/* What belongs to the call while the next one has the parcel. */
struct passing {
    struct bow_call *call;
    const struct hand *hand;
};

static void on_receipt(struct bow_result *result, const Traced__Receipt *receipt, void *user)
{
    const struct passing *passing = user;
    Traced__Receipt ours = TRACED__RECEIPT__INIT;
    if (receipt == NULL) {
        bow_call_fail_status(passing->call, &result->status);
        return;
    }
    ours.hands = bow_call_printf(passing->call, "%s, %s", passing->hand->name, receipt->hands);
    traced__relay__pass__reply(passing->call, &ours);
}

static void pass(struct bow_call *call, const Traced__Parcel *parcel, void *user)
{
    const struct hand *hand = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Traced__Receipt receipt = TRACED__RECEIPT__INIT;
    if (hand->next == NULL) {
        receipt.hands = bow_call_strdup(call, hand->name);
        traced__relay__pass__reply(call, &receipt);
        return;
    }
    struct passing *passing = bow_call_alloc(call, sizeof(*passing));
    options.parent = call; /* one trace; one deadline; one end */
    if (passing != NULL) {
        *passing = (struct passing){call, hand};
    }
    if (passing == NULL ||
        traced__relay__pass__start(hand->next, parcel, &options, on_receipt, passing, NULL) < 0) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "%s has no hand free", hand->name);
    }
}

static int intercept(struct bow_server *server, struct bow_interceptor *interceptor)
{
    int rc = bow_server_intercept(server, interceptor);
    if (rc < 0) {
        interceptor->release(interceptor->user);
    }
    return rc;
}

/* The tracer first, so that all others are within its spans; a line of the log says which span. */
static int watch(struct bow_server *server, struct bow_context *context,
                 const struct tracing *tracing)
{
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;
    struct bow_interceptor interceptor;
    struct bow_access_log *log;
    bow_tracer_intercept(tracing->tracer, &interceptor);
    int rc = intercept(server, &interceptor);
    options.context = context;
    options.fd = STDOUT_FILENO;
    options.fields = BOW_ACCESS_LOG_TRACE;
    if (rc == 0) {
        rc = bow_access_log_new(&options, &log);
    }
    if (rc == 0) {
        bow_access_log_intercept(log, &interceptor);
        bow_access_log_unref(log);
        rc = intercept(server, &interceptor);
    }
    return rc;
}

static int connect_next(struct hand *hand, struct bow_context *context, struct bow_loop *loop,
                        const char *target, const struct tracing *tracing)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_interceptor interceptor;
    const struct bow_interceptor *interceptors[] = {&interceptor};
    options.context = context;
    options.loop = loop;
    options.target = target;
    options.error = &error;
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    bow_tracer_intercept(tracing->tracer, &interceptor);
    if (bow_client_new(&options, &hand->next) < 0) {
        fprintf(stderr, "%s: %s\n", hand->name, error.text);
        interceptor.release(interceptor.user);
        return -1;
    }
    return 0;
}

static void on_started(struct bow_server *server, void *user)
{
    printf("listening on %s, port %d\n", (const char *)user, (int)bow_server_port(server));
    fflush(stdout);
}

static int serve(struct bow_server *server, const struct hand *hand)
{
    const struct traced__relay__handlers handlers = {.pass = pass};
    int rc = traced__relay__serve(server, &handlers, (void *)(uintptr_t)hand);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", hand->name, bow_server_error(server));
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct tracing tracing = {NULL, NULL};
    struct bow_context *context;
    struct bow_server *server = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: %s NAME LISTEN COLLECTOR [NEXT]\n", argv[0]);
        return 2;
    }
    struct hand hand = {argv[1], NULL};
    loop_options.thread = BOW_LOOP_OWNER; /* the server's and the client's, on this thread */
    if (bow_context_new(NULL, &context) < 0 ||
        bow_loop_new(context, &loop_options, &options.loop) < 0) {
        return 1;
    }
    options.context = context;
    options.listen = argv[2];
    options.on_started = on_started;
    options.started_user = argv[2];
    int rc = tracing_start(&tracing, context, hand.name, argv[3]);
    options.metrics_interval_ns = 60 * UINT64_C(1000000000); /* and once at the end */
    options.on_metrics = bow_otel_server_metrics;
    options.metrics_user = tracing.exporter;
    if (rc == 0 && argc > 4) {
        rc = connect_next(&hand, context, options.loop, argv[4], &tracing);
    }
    if (rc == 0) {
        rc = bow_server_new(&options, &server);
    }
    if (rc == 0) {
        rc = watch(server, context, &tracing);
    }
    if (rc == 0) {
        rc = serve(server, &hand);
    }
    bow_server_free(server);
    bow_client_free(hand.next);
    bow_loop_unref(options.loop);
    tracing_stop(&tracing);
    bow_context_unref(context);
    return rc == 0 ? 0 : 1;
}
