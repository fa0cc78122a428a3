/* SPDX-License-Identifier: 0BSD */
/* Exports 1,000 generated spans in batches of 100. Usage: spans-client ADDRESS [SERVICE] */

#include "trace_service.bow.h"
#include <bowline/client.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N_SPANS 1000u
#define BATCH 100u

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest ExportRequest;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse ExportResponse;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope Scope;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Resource__V1__Resource Resource;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans ResourceSpans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans ScopeSpans;
typedef Opentelemetry__Proto__Trace__V1__Span Span;
typedef Opentelemetry__Proto__Trace__V1__Status Status;

/* One span and all that it points to, so that a batch is one array. */
struct record {
    Span span;
    Status status;
    AnyValue value;
    KeyValue attribute;
    KeyValue *attributes[1];
    char name[32];
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

static void fill(struct record *record, uint32_t index, uint64_t now_ns)
{
    *record = (struct record){.span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT,
                              .status = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__INIT,
                              .value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT,
                              .attribute = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT};
    snprintf(record->name, sizeof(record->name), "GET /item/%u", index);
    memcpy(record->trace_id, &now_ns, sizeof(now_ns));
    memcpy(record->span_id, &index, sizeof(index));
    record->value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    record->value.int_value = index % 10 == 0 ? 500 : 200;
    record->attribute.key = "http.status_code";
    record->attribute.value = &record->value;
    record->attributes[0] = &record->attribute;
    record->status.code =
        index % 10 == 0 ? OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR
                        : OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_OK;
    record->span.trace_id = (ProtobufCBinaryData){sizeof(record->trace_id), record->trace_id};
    record->span.span_id = (ProtobufCBinaryData){sizeof(record->span_id), record->span_id};
    record->span.name = record->name;
    record->span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    record->span.start_time_unix_nano = now_ns;
    record->span.end_time_unix_nano = now_ns + 1000000u + index;
    record->span.n_attributes = 1;
    record->span.attributes = record->attributes;
    record->span.status = &record->status;
}

static int export_batch(struct bow_client *client, char *service, uint32_t first)
{
    static struct record records[BATCH];
    Span *spans[BATCH];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (uint32_t i = 0; i < BATCH; i++) {
        fill(&records[i], first + i, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
        spans[i] = &records[i].span;
    }
    AnyValue name = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    name.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    name.string_value = service;
    KeyValue service_name = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    service_name.key = "service.name";
    service_name.value = &name;
    Resource resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
    resource.n_attributes = 1;
    resource.attributes = (KeyValue *[]){&service_name};
    Scope scope = OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT;
    scope.name = "spans-client";
    ScopeSpans scope_spans = OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT;
    scope_spans.scope = &scope;
    scope_spans.n_spans = BATCH;
    scope_spans.spans = spans;
    ResourceSpans resource_spans = OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT;
    resource_spans.resource = &resource;
    resource_spans.n_scope_spans = 1;
    resource_spans.scope_spans = (ScopeSpans *[]){&scope_spans};
    ExportRequest request =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    request.n_resource_spans = 1;
    request.resource_spans = (ResourceSpans *[]){&resource_spans};

    struct bow_result result = BOW_RESULT_INIT;
    const ExportResponse *response =
        opentelemetry__proto__collector__trace__v1__trace_service__export__call(client, &request,
                                                                                NULL, &result);
    if (response == NULL) {
        fprintf(stderr, "spans-client: %s: %s\n", bow_code_name(result.status.code),
                result.status.message);
    }
    bow_result_fini(&result);
    return response == NULL ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_client *client;
    char unnamed[] = "checkout";
    int rc = 0;

    options.target = argv[1];
    options.error = &error;
    if (argc < 2) {
        fprintf(stderr, "usage: %s ADDRESS [SERVICE]\n", argv[0]);
        return 2;
    }
    if (bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "spans-client: %s\n", error.text);
        return 2;
    }
    for (uint32_t first = 0; first < N_SPANS && rc == 0; first += BATCH) {
        rc = export_batch(client, argc > 2 ? argv[2] : unnamed, first);
    }
    bow_client_free(client);
    if (rc == 0) {
        printf("exported %u spans\n", N_SPANS);
    }
    return rc == 0 ? 0 : 1;
}
