/* SPDX-License-Identifier: 0BSD */
/* Hands a parcel to the first: the trace begins here. Usage: traced-client FIRST COLLECTOR */

#include "relay.bow.h"
#include "tracing.h"
#include <bowline/client.h>
#include <stdio.h>

static int hand_over(struct bow_context *context, const char *target, const struct tracing *tracing)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_interceptor interceptor;
    const struct bow_interceptor *interceptors[] = {&interceptor};
    struct bow_client *client;
    struct bow_result result = BOW_RESULT_INIT;
    Traced__Parcel parcel = TRACED__PARCEL__INIT;
    options.context = context;
    options.target = target;
    options.error = &error;
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    bow_tracer_intercept(tracing->tracer, &interceptor);
    if (bow_client_new(&options, &client) < 0) {
        fprintf(stderr, "traced-client: %s\n", error.text);
        interceptor.release(interceptor.user);
        return -1;
    }
    const Traced__Receipt *receipt = traced__relay__pass__call(client, &parcel, NULL, &result);
    if (receipt != NULL) {
        printf("by the hands of %s\n", receipt->hands);
    } else {
        fprintf(stderr, "traced-client: %s: %s\n", bow_code_name(result.status.code),
                result.status.message);
    }
    int rc = receipt != NULL ? 0 : -1;
    bow_result_fini(&result);
    bow_client_free(client);
    return rc;
}

int main(int argc, char **argv)
{
    struct tracing tracing = {NULL, NULL};
    struct bow_context *context;
    if (argc < 3) {
        fprintf(stderr, "usage: %s FIRST COLLECTOR\n", argv[0]);
        return 2;
    }
    if (bow_context_new(NULL, &context) < 0) {
        return 1;
    }
    int rc = tracing_start(&tracing, context, "client", argv[2]);
    if (rc == 0) {
        rc = hand_over(context, argv[1], &tracing);
    }
    tracing_stop(&tracing);
    bow_context_unref(context);
    return rc == 0 ? 0 : 1;
}
