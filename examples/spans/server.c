/* SPDX-License-Identifier: 0BSD */
/* Takes OpenTelemetry spans in and counts them by service name. */

#include "print.h"
#include "trace_service.bow.h"
#include "tree.h"
#include <bowline/call.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SERVICES 64u /* more share the last row: a peer must not make the table grow */
#define MAX_NAME_BYTES 48u
#define MS UINT64_C(1000000)

static const char usage[] =
    "usage: spans-server [-v] [-t] [-m EXPORTS] [-r MILLISECONDS] [ADDRESS]\n"
    "  -v  print each span\n"
    "  -t  print traces as trees, at the end\n"
    "  -m  take so many exports at a time, and refuse more\n"
    "  -r  have who was refused come again after so long; else a second\n";

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

struct collector {
    struct bow_server_options options;
    struct table table;
    bool is_verbose;
    struct tree *tree; /* NULL: nobody wants it */
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

static void take_spans(struct collector *collector, const ResourceSpans *spans)
{
    const char *service = service_name(spans);
    struct row *row = find_row(&collector->table, service);

    for (size_t i = 0; i < spans->n_scope_spans; i++) {
        const ScopeSpans *scope = spans->scope_spans[i];
        for (size_t k = 0; k < scope->n_spans; k++) {
            count_span(row, scope->spans[k]);
            if (collector->is_verbose) {
                print_span(service, scope->spans[k]);
            }
            if (collector->tree != NULL) {
                tree_add(collector->tree, service, scope->spans[k]);
            }
        }
    }
}

static void on_export(struct bow_call *call, const ExportRequest *request, void *user)
{
    ExportResponse response =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    struct collector *collector = user;
    collector->table.n_requests++;
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        take_spans(collector, request->resource_spans[i]);
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
}

static void print_totals(const struct collector *collector, const struct bow_server *server)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    (void)bow_server_metrics(server, &metrics);
    print_table(&collector->table);
    printf("%" PRIu64 " export calls, %" PRIu64 " refused for load, %" PRIu64 " bytes received\n",
           collector->table.n_requests, metrics.calls_refused_server, metrics.bytes_received);
}

static void on_started(struct bow_server *server, void *user)
{
    const struct collector *collector = user;
    printf("listening on %s, port %d\n", collector->options.listen, (int)bow_server_port(server));
    fflush(stdout);
}

static bool parse(struct collector *collector, int argc, char **argv)
{
    static struct tree tree;
    int option;

    while ((option = getopt(argc, argv, "vtm:r:")) != -1) {
        switch (option) {
        case 'v':
            collector->is_verbose = true;
            break;
        case 't':
            collector->tree = &tree;
            break;
        case 'm':
            collector->options.max_server_calls = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            collector->options.retry_after_ns = strtoull(optarg, NULL, 10) * MS;
            break;
        default:
            return false;
        }
    }
    collector->options.listen = argc > optind ? argv[optind] : "127.0.0.1:4317"; /* OTLP's port */
    return argc <= optind + 1;
}

int main(int argc, char **argv)
{
    struct collector collector = {.options = BOW_SERVER_OPTIONS_INIT};
    struct opentelemetry__proto__collector__trace__v1__trace_service__handlers handlers = {
        .export_ = on_export};
    struct bow_server *server;

    if (!parse(&collector, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    collector.options.on_started = on_started;
    collector.options.started_user = &collector;
    if (bow_server_new(&collector.options, &server) != 0) {
        fprintf(stderr, "spans-server: out of memory\n");
        return 1;
    }
    int rc = opentelemetry__proto__collector__trace__v1__trace_service__serve(server, &handlers,
                                                                              &collector);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "spans-server: %s\n", bow_server_error(server));
    }
    if (collector.tree != NULL) {
        tree_print(collector.tree);
    }
    print_totals(&collector, server);
    bow_server_free(server);
    return rc == 0 ? 0 : 1;
}
