/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Metrics as OTLP's messages, and where they wait. See the header. */

#include "otel/report.h"
#include "otel/attributes.h"
#include "otel/span_message.h"
#include "rpc/metrics/bounds.h"

#include <bowline/client.h>
#include <bowline/status.h>
#include <errno.h>
#include <string.h>

#define MAX_BYTES ((size_t)16 << 20) /* of one report */
#define MAX_ATTRIBUTES 3u

/* Points of a metric, whose number is known at the end. */
struct point {
    struct point *next; /* the one before */
    union {
        Bow__Otel__NumberDataPoint number;
        Bow__Otel__HistogramDataPoint histogram;
    };
};

struct points {
    struct point *newest;
    size_t n;
};

struct maker {
    struct bow_arena *arena;
    const struct bow__otel_report_head *head;
    const char *target; /* of a client, else NULL */
    double *time_bounds;
    double *size_bounds;
    struct points points; /* of the metric that is being made */
    enum bow_method_time what;
    uint64_t n_points;
};

/* Points */

static struct point *add_point(struct maker *maker)
{
    struct point *point = bow_arena_alloc(maker->arena, sizeof(*point));

    if (point != NULL) {
        point->next = maker->points.newest;
        maker->points.newest = point;
        maker->points.n++;
        maker->n_points++;
    }
    return point;
}

static const char *dup(struct bow_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = bow_arena_alloc(arena, size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* `status` NULL: it is of all of them. */
static bool add_attributes(const struct maker *maker, const struct bow_method_metrics *method,
                           const char *status, struct bow__otel_attributes *list)
{
    const char *path =
        strcmp(method->path, "*") == 0 ? "other" : method->path + (method->path[0] == '/');
    const char *name = dup(maker->arena, path);

    if (name == NULL || bow__otel_attributes_init(list, maker->arena, MAX_ATTRIBUTES) < 0) {
        return false;
    }
    bow__otel_add_text(list, "grpc.method", name);
    if (maker->target != NULL) {
        bow__otel_add_text(list, "grpc.target", maker->target);
    }
    if (status != NULL) {
        bow__otel_add_text(list, "grpc.status", status);
    }
    return true;
}

static void add_number(struct maker *maker, const struct bow_method_metrics *method, uint64_t value)
{
    struct bow__otel_attributes list;
    struct point *point = add_attributes(maker, method, NULL, &list) ? add_point(maker) : NULL;

    if (point == NULL) {
        return;
    }
    point->number = (Bow__Otel__NumberDataPoint)BOW__OTEL__NUMBER_DATA_POINT__INIT;
    point->number.start_time_unix_nano = maker->head->start_unix_ns;
    point->number.time_unix_nano = maker->head->now_unix_ns;
    point->number.value_case = BOW__OTEL__NUMBER_DATA_POINT__VALUE_AS_INT;
    point->number.as_int = (int64_t)value;
    point->number.n_attributes = list.n;
    point->number.attributes = list.list;
}

/* Returns its buckets, of which there is one more than bounds; NULL out of memory. */
static uint64_t *add_histogram(struct maker *maker, const struct bow_method_metrics *method,
                               const char *status, double *bounds, size_t n_bounds, uint64_t count,
                               double sum)
{
    struct bow__otel_attributes list;
    uint64_t *buckets = bow_arena_alloc(maker->arena, (n_bounds + 1) * sizeof(*buckets));
    struct point *point =
        buckets != NULL && add_attributes(maker, method, status, &list) ? add_point(maker) : NULL;

    if (point == NULL) {
        return NULL;
    }
    memset(buckets, 0, (n_bounds + 1) * sizeof(*buckets));
    point->histogram = (Bow__Otel__HistogramDataPoint)BOW__OTEL__HISTOGRAM_DATA_POINT__INIT;
    point->histogram.start_time_unix_nano = maker->head->start_unix_ns;
    point->histogram.time_unix_nano = maker->head->now_unix_ns;
    point->histogram.count = count;
    point->histogram._sum_case = BOW__OTEL__HISTOGRAM_DATA_POINT___SUM_SUM;
    point->histogram.sum = sum;
    point->histogram.n_bucket_counts = n_bounds + 1;
    point->histogram.bucket_counts = buckets;
    point->histogram.n_explicit_bounds = n_bounds;
    point->histogram.explicit_bounds = bounds;
    point->histogram.n_attributes = list.n;
    point->histogram.attributes = list.list;
    return buckets;
}

static void add_times(struct maker *maker, const struct bow_method_metrics *method,
                      const struct bow_histogram *times, const char *status)
{
    uint64_t *buckets = add_histogram(maker, method, status, maker->time_bounds, BOW__N_TIME_BOUNDS,
                                      times->count, (double)times->sum / (double)BOW__S);
    size_t i = 0;

    for (size_t bucket = 0; buckets != NULL && bucket < BOW_HISTOGRAM_BUCKETS; bucket++) {
        if (times->buckets[bucket] > 0) {
            while (i < BOW__N_TIME_BOUNDS && !bow__time_bound_counts(i, bucket)) {
                i++;
            }
            buckets[i] += times->buckets[bucket];
        }
    }
}

static void add_sizes(struct maker *maker, const struct bow_method_metrics *method,
                      const struct bow_sizes *sizes)
{
    uint64_t *buckets = sizes->count > 0
                            ? add_histogram(maker, method, NULL, maker->size_bounds,
                                            BOW__N_SIZE_BOUNDS, sizes->count, (double)sizes->sum)
                            : NULL;
    size_t i = 0;

    for (unsigned bucket = 0; buckets != NULL && bucket < BOW_N_SIZES; bucket++) {
        while (i < BOW__N_SIZE_BOUNDS && bucket > bow__size_bound_bits[i]) {
            i++;
        }
        buckets[i] += sizes->buckets[bucket];
    }
}

/* Metrics: a row each */

static void visit_started(const struct bow_method_metrics *method, void *user)
{
    add_number(user, method, method->started);
}

static void visit_attempts(const struct bow_method_metrics *method, void *user)
{
    add_number(user, method, method->attempts);
}

static void visit_times(const struct bow_method_metrics *method, void *user)
{
    struct maker *maker = user;
    struct bow_histogram times;

    for (unsigned code = 0; code < BOW_N_CODES; code++) {
        bow_method_metrics_times(method, maker->what, code, &times);
        if (times.count > 0) {
            add_times(maker, method, &times, bow_code_name((enum bow_code)code));
        }
    }
}

static void visit_sent(const struct bow_method_metrics *method, void *user)
{
    add_sizes(user, method, &method->sent);
}

static void visit_received(const struct bow_method_metrics *method, void *user)
{
    add_sizes(user, method, &method->received);
}

struct family {
    const char *name;
    const char *unit;
    const char *description;
    bow_method_metrics_fn visit;
    enum bow_method_time what;
    bool is_sum;
};

#define BYTES_SENT "Bytes of all messages that were sent, compressed where they were."
#define BYTES_RECEIVED "Bytes of all messages that were received, compressed where they were."

static const struct family server_families[] = {
    {"grpc.server.call.started", "{call}", "Calls that were started.", visit_started, BOW_TIME_CALL,
     true},
    {"grpc.server.call.duration", "s", "Time from a call's start to its end.", visit_times,
     BOW_TIME_CALL, false},
    {"grpc.server.call.sent_total_compressed_message_size", "By", BYTES_SENT, visit_sent,
     BOW_TIME_CALL, false},
    {"grpc.server.call.rcvd_total_compressed_message_size", "By", BYTES_RECEIVED, visit_received,
     BOW_TIME_CALL, false},
};

static const struct family client_families[] = {
    {"grpc.client.attempt.started", "{attempt}", "Attempts of calls that were started.",
     visit_attempts, BOW_TIME_ATTEMPT, true},
    {"grpc.client.call.duration", "s",
     "Time from a call's start to its end, with waiting and all attempts.", visit_times,
     BOW_TIME_CALL, false},
    {"grpc.client.attempt.duration", "s",
     "Time from when a call was sent to the end of that attempt.", visit_times, BOW_TIME_ATTEMPT,
     false},
    {"grpc.client.attempt.sent_total_compressed_message_size", "By", BYTES_SENT, visit_sent,
     BOW_TIME_ATTEMPT, false},
    {"grpc.client.attempt.rcvd_total_compressed_message_size", "By", BYTES_RECEIVED, visit_received,
     BOW_TIME_ATTEMPT, false},
};

#define MAX_FAMILIES 5u
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(N_OF(server_families) <= MAX_FAMILIES && N_OF(client_families) <= MAX_FAMILIES,
               "there is room for all of them");

/* A report with all that is in it once. */
struct frame {
    struct bow__otel_report report;
    Bow__Otel__ExportMetricsServiceRequest request;
    Bow__Otel__ResourceMetrics resource_metrics;
    Bow__Otel__ResourceMetrics *resource_list[1];
    Bow__Otel__ScopeMetrics scope_metrics;
    Bow__Otel__ScopeMetrics *scope_list[1];
    Bow__Otel__InstrumentationScope scope;
    Bow__Otel__Metric metrics[MAX_FAMILIES];
    Bow__Otel__Metric *metric_list[MAX_FAMILIES];
    Bow__Otel__Sum sums[MAX_FAMILIES];
    Bow__Otel__Histogram histograms[MAX_FAMILIES];
    double time_bounds[BOW__N_TIME_BOUNDS];
    double size_bounds[BOW__N_SIZE_BOUNDS];
};

static bool fill_sum(const struct maker *maker, Bow__Otel__Metric *metric, Bow__Otel__Sum *sum)
{
    size_t n = maker->points.n;

    *sum = (Bow__Otel__Sum)BOW__OTEL__SUM__INIT;
    sum->is_monotonic = true;
    sum->aggregation_temporality =
        BOW__OTEL__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
    sum->data_points = bow_arena_alloc(maker->arena, n * sizeof(Bow__Otel__NumberDataPoint *));
    if (sum->data_points == NULL) {
        return false;
    }
    sum->n_data_points = n;
    for (struct point *point = maker->points.newest; point != NULL; point = point->next) {
        sum->data_points[--n] = &point->number;
    }
    metric->data_case = BOW__OTEL__METRIC__DATA_SUM;
    metric->sum = sum;
    return true;
}

static bool fill_histogram(const struct maker *maker, Bow__Otel__Metric *metric,
                           Bow__Otel__Histogram *histogram)
{
    size_t n = maker->points.n;

    *histogram = (Bow__Otel__Histogram)BOW__OTEL__HISTOGRAM__INIT;
    histogram->aggregation_temporality =
        BOW__OTEL__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
    histogram->data_points =
        bow_arena_alloc(maker->arena, n * sizeof(Bow__Otel__HistogramDataPoint *));
    if (histogram->data_points == NULL) {
        return false;
    }
    histogram->n_data_points = n;
    for (struct point *point = maker->points.newest; point != NULL; point = point->next) {
        histogram->data_points[--n] = &point->histogram;
    }
    metric->data_case = BOW__OTEL__METRIC__DATA_HISTOGRAM;
    metric->histogram = histogram;
    return true;
}

/* One that has points, in the place of number `i`. */
static bool fill_metric(const struct maker *maker, const struct family *family, struct frame *frame,
                        size_t i)
{
    Bow__Otel__Metric *metric = &frame->metrics[i];

    *metric = (Bow__Otel__Metric)BOW__OTEL__METRIC__INIT;
    metric->name = family->name;
    metric->unit = family->unit;
    metric->description = family->description;
    frame->metric_list[i] = metric;
    return family->is_sum ? fill_sum(maker, metric, &frame->sums[i])
                          : fill_histogram(maker, metric, &frame->histograms[i]);
}

static void fill_bounds(struct frame *frame)
{
    for (size_t i = 0; i < BOW__N_TIME_BOUNDS; i++) {
        frame->time_bounds[i] = (double)bow__time_bounds_ns[i] / (double)BOW__S;
    }
    for (size_t i = 0; i < BOW__N_SIZE_BOUNDS; i++) {
        frame->size_bounds[i] = (double)(UINT64_C(1) << bow__size_bound_bits[i]);
    }
}

static struct frame *make_frame(struct bow_arena *arena, const struct bow__otel_report_head *head)
{
    struct frame *frame = bow_arena_alloc(arena, sizeof(*frame));

    if (frame == NULL) {
        return NULL;
    }
    *frame = (struct frame){
        .report = {.arena = arena, .request = &frame->request},
        .request = BOW__OTEL__EXPORT_METRICS_SERVICE_REQUEST__INIT,
        .resource_metrics = BOW__OTEL__RESOURCE_METRICS__INIT,
        .resource_list = {&frame->resource_metrics},
        .scope_metrics = BOW__OTEL__SCOPE_METRICS__INIT,
        .scope_list = {&frame->scope_metrics},
        .scope = BOW__OTEL__INSTRUMENTATION_SCOPE__INIT,
    };
    frame->scope.name = "bowline";
    frame->scope.version = BOW__VERSION;
    frame->scope_metrics.scope = &frame->scope;
    frame->scope_metrics.metrics = frame->metric_list;
    frame->resource_metrics.resource = head->resource;
    frame->resource_metrics.n_scope_metrics = 1;
    frame->resource_metrics.scope_metrics = frame->scope_list;
    frame->resource_metrics.schema_url = BOW__OTEL_SCHEMA_URL;
    frame->request.n_resource_metrics = 1;
    frame->request.resource_metrics = frame->resource_list;
    fill_bounds(frame);
    return frame;
}

/* Returns the number of points; 0: there are none, or there was no memory, as the arena says. */
static uint64_t
fill(struct frame *frame, struct maker *maker, const struct family *families, size_t n,
     void (*each)(const void *owner, struct maker *maker, bow_method_metrics_fn visit),
     const void *owner)
{
    for (size_t i = 0; i < n; i++) {
        maker->points = (struct points){NULL, 0};
        maker->what = families[i].what;
        each(owner, maker, families[i].visit);
        if (maker->points.n > 0 &&
            !fill_metric(maker, &families[i], frame, frame->scope_metrics.n_metrics++)) {
            return 0;
        }
    }
    return bow_arena_failed(maker->arena) ? 0 : maker->n_points;
}

static int make(struct bow_context *context, const struct bow__otel_report_head *head,
                const char *target,
                void (*each)(const void *owner, struct maker *maker, bow_method_metrics_fn visit),
                const void *owner, struct bow__otel_report **ret_report)
{
    bool is_client = target != NULL;
    struct bow_arena *arena = bow_arena_new(context, MAX_BYTES);
    struct frame *frame = arena != NULL ? make_frame(arena, head) : NULL;

    if (frame != NULL) {
        struct maker maker = {
            .arena = arena,
            .head = head,
            .target = is_client ? dup(arena, target) : NULL,
            .time_bounds = frame->time_bounds,
            .size_bounds = frame->size_bounds,
        };
        frame->report.n_points =
            is_client ? fill(frame, &maker, client_families, N_OF(client_families), each, owner)
                      : fill(frame, &maker, server_families, N_OF(server_families), each, owner);
    }
    int rc = frame == NULL || bow_arena_failed(arena) ? -ENOMEM : 0;
    if (rc < 0 || frame->report.n_points == 0) {
        bow_arena_free(arena);
        return rc;
    }
    *ret_report = &frame->report;
    return 0;
}

static void each_of_server(const void *owner, struct maker *maker, bow_method_metrics_fn visit)
{
    bow_server_each_method(owner, visit, maker);
}

static void each_of_client(const void *owner, struct maker *maker, bow_method_metrics_fn visit)
{
    bow_client_each_method(owner, visit, maker);
}

int bow__otel_report_server(struct bow_context *context, const struct bow__otel_report_head *head,
                            const struct bow_server *server, struct bow__otel_report **ret_report)
{
    return make(context, head, NULL, each_of_server, server, ret_report);
}

int bow__otel_report_client(struct bow_context *context, const struct bow__otel_report_head *head,
                            const struct bow_client *client, struct bow__otel_report **ret_report)
{
    return make(context, head, bow_client_target(client), each_of_client, client, ret_report);
}

/* Waiting */

bool bow__otel_report_push(struct bow__otel_report_queue *queue, struct bow__otel_report *report)
{
    if (atomic_fetch_add_explicit(&queue->n, 1, memory_order_relaxed) >= BOW__OTEL_REPORTS) {
        bow__otel_report_free(queue, report);
        return false;
    }
    report->next = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->pushed, &report->next, report,
                                                  memory_order_release, memory_order_relaxed)) {
    }
    return true;
}

static void collect(struct bow__otel_report_queue *queue)
{
    struct bow__otel_report *newest =
        atomic_exchange_explicit(&queue->pushed, NULL, memory_order_acquire);
    struct bow__otel_report **last = &queue->first;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    while (newest != NULL) { /* each in front of those that are newer */
        struct bow__otel_report *next = newest->next;
        newest->next = *last;
        *last = newest;
        newest = next;
    }
}

struct bow__otel_report *bow__otel_report_take(struct bow__otel_report_queue *queue)
{
    collect(queue);
    struct bow__otel_report *oldest = queue->first;
    if (oldest != NULL) {
        queue->first = oldest->next;
    }
    return oldest;
}

void bow__otel_report_free(struct bow__otel_report_queue *queue, struct bow__otel_report *report)
{
    if (report != NULL) {
        atomic_fetch_sub_explicit(&queue->n, 1, memory_order_relaxed);
        bow_arena_free(report->arena);
    }
}

void bow__otel_report_queue_fini(struct bow__otel_report_queue *queue)
{
    struct bow__otel_report *left;

    while ((left = bow__otel_report_take(queue)) != NULL) {
        bow__otel_report_free(queue, left);
    }
}
