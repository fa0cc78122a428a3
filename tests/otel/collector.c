/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A server of OTLP for tests. */

#include "collector.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Spans as texts */

static void append(char *to, size_t size, const char *format, ...) BOW_PRINTF(3, 4);

static void append(char *to, size_t size, const char *format, ...)
{
    size_t len = strlen(to);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(to + len, size - len, format, args);
    va_end(args);
}

static void append_attributes(char *to, size_t size, Bow__Otel__KeyValue *const *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const Bow__Otel__AnyValue *value = pairs[i]->value;
        if (value->value_case == BOW__OTEL__ANY_VALUE__VALUE_STRING_VALUE) {
            append(to, size, "%s=%s;", pairs[i]->key, value->string_value);
        } else {
            append(to, size, "%s=%" PRId64 ";", pairs[i]->key, value->int_value);
        }
    }
}

static void append_hex(char *to, size_t size, const ProtobufCBinaryData *bytes)
{
    for (size_t i = 0; i < bytes->len; i++) {
        append(to, size, "%02x", bytes->data[i]);
    }
}

static void keep(struct collected *kept, const Bow__Otel__Span *span)
{
    append_hex(kept->span_id, sizeof(kept->span_id), &span->span_id);
    append_hex(kept->parent_id, sizeof(kept->parent_id), &span->parent_span_id);
    append(kept->name, sizeof(kept->name), "%s", span->name);
    append(kept->trace_state, sizeof(kept->trace_state), "%s", span->trace_state);
    kept->kind = (int)span->kind;
    kept->status = (int)span->status->code;
    append(kept->message, sizeof(kept->message), "%s", span->status->message);
    kept->flags = span->flags;
    kept->start_ns = span->start_time_unix_nano;
    kept->end_ns = span->end_time_unix_nano;
    append_attributes(kept->attributes, sizeof(kept->attributes), span->attributes,
                      span->n_attributes);
    for (size_t i = 0; i < span->n_events; i++) {
        append(kept->events, sizeof(kept->events), "%s ", span->events[i]->name);
        append_attributes(kept->events, sizeof(kept->events), span->events[i]->attributes,
                          span->events[i]->n_attributes);
        append(kept->events, sizeof(kept->events), "|");
    }
    kept->n_events_dropped = span->dropped_events_count;
}

static const char *service_of(const Bow__Otel__Resource *resource)
{
    for (size_t i = 0; i < resource->n_attributes; i++) {
        if (strcmp(resource->attributes[i]->key, "service.name") == 0) {
            return resource->attributes[i]->value->string_value;
        }
    }
    return "";
}

static void keep_all(struct collector *collector,
                     const Bow__Otel__ExportTraceServiceRequest *request)
{
    const Bow__Otel__ResourceSpans *resource = request->resource_spans[0];
    const Bow__Otel__ScopeSpans *scope = resource->scope_spans[0];

    collector->resource[0] = '\0';
    append_attributes(collector->resource, sizeof(collector->resource),
                      resource->resource->attributes, resource->resource->n_attributes);
    (void)snprintf(collector->scope, sizeof(collector->scope), "%s %s", scope->scope->name,
                   scope->scope->version);
    for (size_t i = 0; i < scope->n_spans; i++) {
        struct collected *kept = &collector->spans[collector->n_spans];
        assert_true(collector->n_spans < COLLECTOR_SPANS);
        *kept = (struct collected){.kind = 0};
        append_hex(kept->trace_id, sizeof(kept->trace_id), &scope->spans[i]->trace_id);
        if (collector->only == NULL || strcmp(collector->only, kept->trace_id) == 0) {
            append(kept->service, sizeof(kept->service), "%s", service_of(resource->resource));
            keep(kept, scope->spans[i]);
            collector->n_spans++;
        }
    }
}

/* Answers */

static void answer(struct collector *collector, struct bow_call *call)
{
    Bow__Otel__ExportTraceServiceResponse response = BOW__OTEL__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    Bow__Otel__ExportTracePartialSuccess partial = BOW__OTEL__EXPORT_TRACE_PARTIAL_SUCCESS__INIT;

    if (collector->n_rejected != 0 || collector->text != NULL) {
        partial.rejected_spans = collector->n_rejected;
        partial.error_message = collector->text != NULL ? collector->text : "";
        response.partial_success = &partial;
    }
    (void)bow__otel__trace_service__export__reply(call, &response);
}

static void refuse(const struct collector *collector, struct bow_call *call)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = collector->code;
    status.message = "not now";
    status.retry_after_ns = collector->retry_after_ns;
    (void)bow_call_fail_status(call, &status);
}

static void on_export(struct bow_call *call, const Bow__Otel__ExportTraceServiceRequest *request,
                      void *user)
{
    struct collector *collector = user;
    struct calls *t = collector->t;

    pthread_mutex_lock(&t->lock);
    bool fails = collector->n_to_fail > 0;
    bool holds = collector->holds && !fails;
    collector->n_exports++;
    if (fails) {
        collector->n_to_fail--;
    } else {
        keep_all(collector, request);
    }
    if (holds) {
        assert_true(collector->n_held < COLLECTOR_HELD);
        collector->held[collector->n_held++] = call;
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (fails) {
        refuse(collector, call);
    } else if (!holds) {
        answer(collector, call);
    }
}

/* Metrics */

static void keep_sum(struct collector *collector, const Bow__Otel__Metric *metric)
{
    for (size_t i = 0; i < metric->sum->n_data_points; i++) {
        const Bow__Otel__NumberDataPoint *point = metric->sum->data_points[i];
        assert_true(metric->sum->is_monotonic);
        append(collector->metrics, sizeof(collector->metrics), "%s %s ", metric->name,
               metric->unit);
        append_attributes(collector->metrics, sizeof(collector->metrics), point->attributes,
                          point->n_attributes);
        append(collector->metrics, sizeof(collector->metrics), " = %" PRId64 "\n", point->as_int);
    }
}

static void keep_histogram(struct collector *collector, const Bow__Otel__Metric *metric)
{
    for (size_t i = 0; i < metric->histogram->n_data_points; i++) {
        const Bow__Otel__HistogramDataPoint *point = metric->histogram->data_points[i];
        uint64_t n = 0;
        assert_int_equal(point->n_bucket_counts, point->n_explicit_bounds + 1);
        assert_true(point->start_time_unix_nano < point->time_unix_nano);
        append(collector->metrics, sizeof(collector->metrics), "%s %s ", metric->name,
               metric->unit);
        append_attributes(collector->metrics, sizeof(collector->metrics), point->attributes,
                          point->n_attributes);
        append(collector->metrics, sizeof(collector->metrics), " = %" PRIu64, point->count);
        for (size_t k = 0; k < point->n_bucket_counts; k++) {
            n += point->bucket_counts[k];
        }
        assert_int_equal(n, point->count);
        append(collector->metrics, sizeof(collector->metrics), point->sum > 0 ? "\n" : " of 0\n");
    }
}

static void on_metrics(struct bow_call *call, const Bow__Otel__ExportMetricsServiceRequest *request,
                       void *user)
{
    struct collector *collector = user;
    struct calls *t = collector->t;
    const Bow__Otel__ScopeMetrics *scope = request->resource_metrics[0]->scope_metrics[0];
    Bow__Otel__ExportMetricsServiceResponse response =
        BOW__OTEL__EXPORT_METRICS_SERVICE_RESPONSE__INIT;

    pthread_mutex_lock(&t->lock);
    collector->metrics[0] = '\0';
    for (size_t i = 0; i < scope->n_metrics; i++) {
        if (scope->metrics[i]->data_case == BOW__OTEL__METRIC__DATA_SUM) {
            keep_sum(collector, scope->metrics[i]);
        } else {
            keep_histogram(collector, scope->metrics[i]);
        }
    }
    collector->n_reports++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    (void)bow__otel__metrics_service__export__reply(call, &response);
}

void collector_start(struct collector *collector, struct calls *t, const char *address)
{
    static const struct bow__otel__trace_service__handlers handlers = {.export_ = on_export};
    static const struct bow__otel__metrics_service__handlers metrics = {.export_ = on_metrics};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    collector->t = t;
    options.context = t->context;
    options.listen = address;
    options.grace_ns = 1;
    assert_int_equal(bow_server_new(&options, &collector->server), 0);
    assert_int_equal(bow__otel__trace_service__serve(collector->server, &handlers, collector), 0);
    assert_int_equal(bow__otel__metrics_service__serve(collector->server, &metrics, collector), 0);
    if (bow_server_start(collector->server) != 0) {
        fail_msg("%s", bow_server_error(collector->server));
    }
    (void)snprintf(collector->address, sizeof(collector->address), "127.0.0.1:%u",
                   bow_server_port(collector->server));
}

void collector_stop(struct collector *collector)
{
    collector_release(collector);
    bow_server_free(collector->server);
    collector->server = NULL;
}

void collector_release(struct collector *collector)
{
    pthread_mutex_lock(&collector->t->lock);
    int n = collector->n_held;
    collector->n_held = 0;
    collector->holds = false;
    pthread_mutex_unlock(&collector->t->lock);
    for (int i = 0; i < n; i++) {
        answer(collector, collector->held[i]);
    }
}

const struct collected *collector_find(const struct collector *collector, const char *service,
                                       const char *name, int kind)
{
    const struct collected *found = NULL;

    for (int i = 0; i < collector->n_spans; i++) {
        const struct collected *span = &collector->spans[i];
        if (strcmp(span->name, name) == 0 && span->kind == kind &&
            (service == NULL || strcmp(span->service, service) == 0)) {
            assert_null(found);
            found = span;
        }
    }
    if (found == NULL) {
        fail_msg("there is no span %s of %s, kind %d", name, service, kind);
    }
    return found;
}
