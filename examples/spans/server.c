/* SPDX-License-Identifier: 0BSD */
/* Takes OpenTelemetry spans in and counts them by service name. Usage: spans-server [ADDRESS] */

#include "trace_service.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_SERVICES 64u /* more share the last row: a peer must not make the table grow */
#define MAX_NAME_BYTES 48u

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest ExportRequest;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse ExportResponse;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans ResourceSpans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans ScopeSpans;
typedef Opentelemetry__Proto__Trace__V1__Span Span;

struct row {
    char service[MAX_NAME_BYTES];
    uint64_t n_spans;
    uint64_t n_errors;
    uint64_t total_ns;
};

struct table {
    struct row rows[MAX_SERVICES];
    size_t n_rows;
    uint64_t n_requests;
};

static const char *service_name(const ResourceSpans *spans)
{
    for (size_t i = 0; spans->resource != NULL && i < spans->resource->n_attributes; i++) {
        const KeyValue *attribute = spans->resource->attributes[i];
        if (strcmp(attribute->key, "service.name") == 0 && attribute->value != NULL &&
            attribute->value->value_case ==
                OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE) {
            return attribute->value->string_value;
        }
    }
    return "(unnamed)";
}

static struct row *find_row(struct table *table, const char *service)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        if (strncmp(table->rows[i].service, service, MAX_NAME_BYTES - 1) == 0) {
            return &table->rows[i];
        }
    }
    if (table->n_rows == MAX_SERVICES) {
        return &table->rows[MAX_SERVICES - 1];
    }
    struct row *row = &table->rows[table->n_rows++];
    snprintf(row->service, sizeof(row->service), "%s",
             table->n_rows == MAX_SERVICES ? "(others)" : service);
    return row;
}

static void count_span(struct row *row, const Span *span)
{
    row->n_spans++;
    if (span->status != NULL &&
        span->status->code ==
            OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR) {
        row->n_errors++;
    }
    if (span->end_time_unix_nano > span->start_time_unix_nano) {
        row->total_ns += span->end_time_unix_nano - span->start_time_unix_nano;
    }
}

static void on_export(struct bow_call *call, const ExportRequest *request, void *user)
{
    ExportResponse response =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    struct table *table = user;
    table->n_requests++;
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        const ResourceSpans *spans = request->resource_spans[i];
        struct row *row = find_row(table, service_name(spans));
        for (size_t k = 0; k < spans->n_scope_spans; k++) {
            const ScopeSpans *scope = spans->scope_spans[k];
            for (size_t n = 0; n < scope->n_spans; n++) {
                count_span(row, scope->spans[n]);
            }
        }
    }
    opentelemetry__proto__collector__trace__v1__trace_service__export__reply(call, &response);
}

static void print_table(const struct table *table)
{
    printf("%-*s %10s %8s %12s\n", (int)MAX_NAME_BYTES, "service", "spans", "errors", "mean ms");
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct row *row = &table->rows[i];
        double mean_ms = row->n_spans == 0 ? 0 : (double)row->total_ns / (double)row->n_spans / 1e6;
        printf("%-*s %10" PRIu64 " %8" PRIu64 " %12.3f\n", (int)MAX_NAME_BYTES, row->service,
               row->n_spans, row->n_errors, mean_ms);
    }
    printf("%" PRIu64 " export calls\n", table->n_requests);
}

static void on_started(struct bow_server *server, void *user)
{
    const struct bow_server_options *options = user;
    printf("listening on %s, port %d\n", options->listen, (int)bow_server_port(server));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct opentelemetry__proto__collector__trace__v1__trace_service__handlers handlers = {
        .export_ = on_export};
    struct bow_server *server;
    struct table table = {.n_rows = 0};

    options.listen = argc > 1 ? argv[1] : "127.0.0.1:4317"; /* OTLP's port for gRPC */
    options.on_started = on_started;
    options.started_user = &options;
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "spans-server: out of memory\n");
        return 1;
    }
    int rc =
        opentelemetry__proto__collector__trace__v1__trace_service__serve(server, &handlers, &table);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "spans-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    print_table(&table);
    return rc == 0 ? 0 : 1;
}
