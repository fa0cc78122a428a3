/* SPDX-License-Identifier: 0BSD */
/* Owns the tracer and the exporter. Knows nothing of parcels. */

#include "tracing.h"
#include <stdio.h>

#define SECOND UINT64_C(1000000000)

int tracing_start(struct tracing *tracing, struct bow_context *context, const char *service,
                  const char *collector)
{
    struct bow_otel_options options = BOW_OTEL_OPTIONS_INIT;
    struct bow_tracer_options tracer_options = BOW_TRACER_OPTIONS_INIT;
    struct bow_transport_error error;

    options.context = context;
    options.target = collector;
    options.service_name = service;
    options.error = &error;
    if (bow_otel_exporter_new(&options, &tracing->exporter) < 0) {
        fprintf(stderr, "%s: %s\n", service, error.text);
        return -1;
    }
    tracer_options.context = context;
    tracer_options.message_events = true;
    bow_otel_trace(tracing->exporter, &tracer_options);
    if (bow_tracer_new(&tracer_options, &tracing->tracer) < 0) {
        tracer_options.release(tracer_options.user);
        fprintf(stderr, "%s: out of memory\n", service);
        return -1;
    }
    return 0;
}

void tracing_stop(struct tracing *tracing)
{
    bow_tracer_unref(tracing->tracer);
    if (tracing->exporter != NULL && bow_otel_exporter_stop(tracing->exporter, 5 * SECOND) < 0) {
        fprintf(stderr, "the collector did not take all spans\n");
    }
    bow_otel_exporter_unref(tracing->exporter);
}
