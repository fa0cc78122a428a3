/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_TRACED_TRACING_H
#define BOWLINE_EXAMPLES_TRACED_TRACING_H

/* A tracer whose spans go to a collector, as each program of this example has one. */

#include <bowline/context.h>
#include <bowline/interceptor.h>
#include <bowline/otel.h>
#include <bowline/tracer.h>

struct tracing {
    struct bow_otel_exporter *exporter;
    struct bow_tracer *tracer;
};

/** Returns 0; else it has said what is wrong. */
int tracing_start(struct tracing *tracing, struct bow_context *context, const char *service,
                  const char *collector);

/** Send what waits, for five seconds at most. After servers and clients have gone. */
void tracing_stop(struct tracing *tracing);

#endif
