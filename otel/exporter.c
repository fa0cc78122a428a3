/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The exporter: when what waits is sent, how it is made and ends, who waits for it.
 *
 * Design. Loops push into the queue and look at `attention`: IDLE, nobody is going to look; TIMED,
 * the delay's timer will; BUSY, somebody will when the batch has ended. In the first case, and in
 * the second when there is enough for a batch, they post the work task, of which there is one, and
 * `is_posted` says whether it is under way. `attention` is stored before the queue is looked at
 * again, and read after the push, each with a fence between (seq_cst), so that one of both sees the
 * other. All else is the loop's, but for counts (relaxed) and what flush() waits for: `n_settled`,
 * which goes up under the lock whenever nothing waits.
 *
 * Who drops the last reference posts the closing task: from then on whatever finds nothing being
 * sent, and no work posted, frees the exporter. The exporter's reference to the loop is dropped by
 * who dropped that one, which for a thread of our own is the loop's last one, and so waits for all
 * of this.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/options.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.bow.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.bow.h"
#include "otel/report.h"
#include "otel/resource.h"
#include "otel/sender.h"
#include "otel/span_message.h"
#include "otel/span_queue.h"
#include "rpc/core/codec/utf8.h"
#include "transport/address/transport_error.h"
#include <bowline/loop.h>
#include <bowline/otel.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define DEFAULT_TARGET "127.0.0.1:4317"
#define DEFAULT_SPANS 8192u
#define DEFAULT_BATCH 512u
#define DEFAULT_BYTES ((size_t)8 << 20)
#define MIN_BYTES ((size_t)64 << 10)
#define BATCH_BYTES ((size_t)1 << 20) /* of memory; on the wire it is less */
#define RESOURCE_BYTES ((size_t)1 << 20)
#define PREFIX "grpc:"

enum attention { IDLE, TIMED, BUSY };

struct bow_otel_exporter {
    struct bow_context *context;
    struct bow_otel_options options; /* its texts are not ours */
    char *target;                    /* with PREFIX */
    struct bow_arena *arena;         /* the resource's */
    Bow__Otel__Resource *resource;
    struct bow_loop *loop;
    struct bow_client *client;
    atomic_uint refs;

    struct bow__otel_span_queue queue;
    _Atomic(enum attention) attention;
    atomic_bool is_posted;
    struct bow_task work;
    atomic_bool is_stopped;
    atomic_uint n_flushers;
    _Atomic(uint64_t) log_due_ns;

    struct bow__otel_sender sender;   /* of spans */
    struct bow__otel_parcel *parcels; /* being sent */
    uint64_t start_unix_ns;
    struct bow__otel_report_queue reports;
    struct bow__otel_sender report_sender;
    struct bow__otel_report *report; /* being sent */
    struct bow_timer delay;
    struct bow_task closing;
    bool is_closing;
    bool is_due; /* the delay is over */
    bool is_stepping;
    bool steps_again;

    pthread_mutex_t lock;
    pthread_cond_t settled;
    uint64_t n_settled;

    atomic_uint_fast64_t n_exported;
    atomic_uint_fast64_t n_dropped;
    atomic_uint_fast64_t n_rejected;
    atomic_uint_fast64_t n_lost;
    atomic_uint_fast64_t n_points_exported;
    atomic_uint_fast64_t n_points_rejected;
    atomic_uint_fast64_t n_points_lost;
    atomic_uint_fast64_t n_reports_dropped;
};

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t counted(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Posting work */

/* Returns 0, or as bow_loop_post(). Thread: any. */
static int wake(struct bow_otel_exporter *exporter)
{
    if (atomic_exchange(&exporter->is_posted, true)) {
        return 0;
    }
    int rc = bow_loop_post(exporter->loop, &exporter->work);
    if (rc < 0) {
        atomic_store(&exporter->is_posted, false);
    }
    return rc;
}

static void set_attention(struct bow_otel_exporter *exporter, enum attention attention)
{
    atomic_store_explicit(&exporter->attention, attention, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Taking spans; on their loops */

static void drop(struct bow_otel_exporter *exporter, size_t n)
{
    count(&exporter->n_dropped, n);
    if (bow__log_is_due(&exporter->log_due_ns, bow_loop_now(exporter->loop))) {
        bow__log(exporter->context, BOW_LOG_WARNING,
                 "exporting spans to %s: there is no room for more (max_spans %u, max_bytes %zu), "
                 "%" PRIu64 " are dropped so far",
                 exporter->target, exporter->options.max_spans, exporter->options.max_bytes,
                 counted(&exporter->n_dropped));
    }
}

static void on_spans(const struct bow_span *spans, size_t n, void *user)
{
    struct bow_otel_exporter *exporter = user;

    if (atomic_load_explicit(&exporter->is_stopped, memory_order_relaxed)) {
        count(&exporter->n_dropped, n);
        return;
    }
    uint64_t n_waiting = bow__otel_span_queue_push(&exporter->queue, spans, n);
    if (n_waiting == 0) {
        drop(exporter, n);
        return;
    }
    atomic_thread_fence(memory_order_seq_cst);
    enum attention attention = atomic_load_explicit(&exporter->attention, memory_order_relaxed);
    if (attention == IDLE ||
        (attention == TIMED && n_waiting >= exporter->options.max_batch_spans)) {
        (void)wake(exporter); /* a loop that has ended sends nothing */
    }
}

/* As a signal */

static struct bow_otel_exporter *exporter_of(struct bow__otel_sender *sender)
{
    return BOW__CONTAINER(sender, struct bow_otel_exporter, sender);
}

static size_t count_parcels(const struct bow__otel_parcel *parcels)
{
    size_t n = 0;

    for (; parcels != NULL; parcels = parcels->next) {
        n += parcels->n;
    }
    return n;
}

static void lose(struct bow_otel_exporter *exporter, struct bow__otel_parcel *parcels)
{
    count(&exporter->n_lost, count_parcels(parcels));
    bow__otel_span_queue_free(&exporter->queue, parcels);
}

static uint64_t take_spans(struct bow__otel_sender *sender, struct bow_arena *arena,
                           const ProtobufCMessage **ret_request)
{
    struct bow_otel_exporter *exporter = exporter_of(sender);
    struct bow__otel_parcel *parcels =
        bow__otel_span_queue_take(&exporter->queue, exporter->options.max_batch_spans, BATCH_BYTES);

    if (parcels == NULL) {
        return 0;
    }
    Bow__Otel__ExportTraceServiceRequest *request =
        arena != NULL ? bow__otel_span_message(arena, exporter->resource, parcels) : NULL;
    if (request == NULL) {
        lose(exporter, parcels);
        return 0;
    }
    *ret_request = &request->base;
    exporter->parcels = parcels;
    return count_parcels(parcels);
}

static int64_t rejected_spans(const ProtobufCMessage *reply, const char **ret_text)
{
    const Bow__Otel__ExportTraceServiceResponse *response =
        (const Bow__Otel__ExportTraceServiceResponse *)reply;

    if (response->partial_success == NULL) {
        return 0;
    }
    *ret_text = response->partial_success->error_message;
    return response->partial_success->rejected_spans;
}

static void ended(struct bow__otel_sender *sender, enum bow__otel_fate fate, uint64_t n_items,
                  uint64_t n_rejected)
{
    struct bow_otel_exporter *exporter = exporter_of(sender);
    struct bow__otel_parcel *parcels = exporter->parcels;

    exporter->parcels = NULL;
    if (fate == BOW__OTEL_LOST) {
        lose(exporter, parcels);
        return;
    }
    count(&exporter->n_exported, n_items - n_rejected);
    count(&exporter->n_rejected, n_rejected);
    bow__otel_span_queue_free(&exporter->queue, parcels);
}

static void step(struct bow_otel_exporter *exporter);

static void on_idle(struct bow__otel_sender *sender)
{
    step(exporter_of(sender));
}

/* Metrics, as another */

static uint64_t unix_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static struct bow__otel_report_head head_of(const struct bow_otel_exporter *exporter)
{
    return (struct bow__otel_report_head){
        .resource = exporter->resource,
        .start_unix_ns = exporter->start_unix_ns,
        .now_unix_ns = unix_now(),
    };
}

/* NULL without an error: nothing was counted so far. */
static void push_report(struct bow_otel_exporter *exporter, int rc, struct bow__otel_report *report)
{
    if (report != NULL && bow__otel_report_push(&exporter->reports, report)) {
        (void)wake(exporter);
    } else {
        count(&exporter->n_reports_dropped, rc < 0 || report != NULL);
    }
}

void bow_otel_server_metrics(const struct bow_server *server, void *user)
{
    struct bow_otel_exporter *exporter = user;
    const struct bow__otel_report_head head = head_of(exporter);
    struct bow__otel_report *report = NULL;

    int rc = bow__otel_report_server(exporter->context, &head, server, &report);
    push_report(exporter, rc, report);
}

void bow_otel_client_metrics(const struct bow_client *client, void *user)
{
    struct bow_otel_exporter *exporter = user;
    const struct bow__otel_report_head head = head_of(exporter);
    struct bow__otel_report *report = NULL;

    int rc = bow__otel_report_client(exporter->context, &head, client, &report);
    push_report(exporter, rc, report);
}

static struct bow_otel_exporter *exporter_of_reports(struct bow__otel_sender *sender)
{
    return BOW__CONTAINER(sender, struct bow_otel_exporter, report_sender);
}

static uint64_t take_report(struct bow__otel_sender *sender, struct bow_arena *arena,
                            const ProtobufCMessage **ret_request)
{
    struct bow_otel_exporter *exporter = exporter_of_reports(sender);

    (void)arena;
    exporter->report = bow__otel_report_take(&exporter->reports);
    if (exporter->report == NULL) {
        return 0;
    }
    *ret_request = &exporter->report->request->base;
    return exporter->report->n_points;
}

static int64_t rejected_points(const ProtobufCMessage *reply, const char **ret_text)
{
    const Bow__Otel__ExportMetricsServiceResponse *response =
        (const Bow__Otel__ExportMetricsServiceResponse *)reply;

    if (response->partial_success == NULL) {
        return 0;
    }
    *ret_text = response->partial_success->error_message;
    return response->partial_success->rejected_data_points;
}

static void report_ended(struct bow__otel_sender *sender, enum bow__otel_fate fate,
                         uint64_t n_items, uint64_t n_rejected)
{
    struct bow_otel_exporter *exporter = exporter_of_reports(sender);

    if (fate == BOW__OTEL_LOST) {
        count(&exporter->n_points_lost, n_items);
    } else {
        count(&exporter->n_points_exported, n_items - n_rejected);
        count(&exporter->n_points_rejected, n_rejected);
    }
    bow__otel_report_free(&exporter->reports, exporter->report);
    exporter->report = NULL;
}

static void on_report_idle(struct bow__otel_sender *sender)
{
    step(exporter_of_reports(sender));
}

/* What is done next; on the loop that sends */

static bool has_flushers(struct bow_otel_exporter *exporter)
{
    return atomic_load(&exporter->n_flushers) > 0;
}

static void settle(struct bow_otel_exporter *exporter)
{
    pthread_mutex_lock(&exporter->lock);
    exporter->n_settled++;
    pthread_cond_broadcast(&exporter->settled);
    pthread_mutex_unlock(&exporter->lock);
}

/* A flush is to hear of what is just being pushed. */
static void wait_for_more(struct bow_otel_exporter *exporter)
{
    if (!bow_timer_is_armed(&exporter->delay)) {
        bow_timer_start(&exporter->delay, exporter->options.delay_ns);
    }
    set_attention(exporter, has_flushers(exporter) ? IDLE : TIMED);
}

static void lose_all(struct bow_otel_exporter *exporter)
{
    struct bow__otel_parcel *left =
        bow__otel_span_queue_take(&exporter->queue, UINT64_MAX, SIZE_MAX);

    bow_timer_stop(&exporter->delay);
    lose(exporter, left);
    bow__otel_sender_end(&exporter->sender);
    bow__otel_sender_end(&exporter->report_sender);
    bow__otel_report_queue_fini(&exporter->reports);
}

static void send_some(struct bow_otel_exporter *exporter)
{
    bow_timer_stop(&exporter->delay);
    set_attention(exporter, BUSY);
    bow__otel_sender_go(&exporter->sender);
    if (exporter->sender.state == BOW__OTEL_IDLE && !exporter->steps_again) {
        wait_for_more(exporter); /* what is counted is not there yet */
    }
}

static void step_spans(struct bow_otel_exporter *exporter, bool is_due)
{
    uint64_t n = bow__otel_span_queue_count(&exporter->queue);

    if (exporter->sender.state != BOW__OTEL_IDLE) {
        return;
    }
    if (n == 0) {
        set_attention(exporter, IDLE);
        exporter->steps_again |= bow__otel_span_queue_count(&exporter->queue) > 0;
    } else if (is_due || n >= exporter->options.max_batch_spans || has_flushers(exporter)) {
        send_some(exporter);
    } else {
        wait_for_more(exporter);
    }
}

static bool is_sending(const struct bow_otel_exporter *exporter)
{
    return exporter->sender.state != BOW__OTEL_IDLE ||
           exporter->report_sender.state != BOW__OTEL_IDLE;
}

static bool has_nothing(struct bow_otel_exporter *exporter)
{
    return bow__otel_span_queue_count(&exporter->queue) == 0 &&
           atomic_load_explicit(&exporter->reports.n, memory_order_relaxed) == 0;
}

/* Reports go as they come: whoever pushes one says so. */
static void step_once(struct bow_otel_exporter *exporter)
{
    bool is_due = exporter->is_due;

    exporter->is_due = false;
    if (atomic_load(&exporter->is_stopped)) {
        lose_all(exporter);
    }
    bow__otel_sender_go(&exporter->report_sender);
    step_spans(exporter, is_due);
    if (!exporter->steps_again && !is_sending(exporter) && has_nothing(exporter)) {
        settle(exporter);
    }
}

static void finish(struct bow_otel_exporter *exporter);

/* The exporter may be gone afterwards. */
static void step(struct bow_otel_exporter *exporter)
{
    if (exporter->is_stepping) {
        exporter->steps_again = true;
        return;
    }
    exporter->is_stepping = true;
    do {
        exporter->steps_again = false;
        step_once(exporter);
    } while (exporter->steps_again);
    exporter->is_stepping = false;
    if (exporter->is_closing && !is_sending(exporter) && !atomic_load(&exporter->is_posted)) {
        finish(exporter);
    }
}

static int work_task(void *user)
{
    struct bow_otel_exporter *exporter = user;

    atomic_store(&exporter->is_posted, false);
    step(exporter);
    return 0;
}

static int closing_task(void *user)
{
    struct bow_otel_exporter *exporter = user;

    exporter->is_closing = true;
    step(exporter);
    return 0;
}

static void on_delay(struct bow_timer *timer, void *user)
{
    struct bow_otel_exporter *exporter = user;

    (void)timer;
    exporter->is_due = true;
    step(exporter);
}

/* Flushing */

static uint64_t monotonic_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t settled_so_far(struct bow_otel_exporter *exporter)
{
    pthread_mutex_lock(&exporter->lock);
    uint64_t n = exporter->n_settled;
    pthread_mutex_unlock(&exporter->lock);
    return n;
}

static int wait_settled(struct bow_otel_exporter *exporter, uint64_t before, uint64_t end_ns)
{
    const struct timespec end = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
    int rc = 0;

    pthread_mutex_lock(&exporter->lock);
    while (exporter->n_settled == before && rc == 0) {
        rc = end_ns == BOW_NEVER
                 ? pthread_cond_wait(&exporter->settled, &exporter->lock)
                 : pthread_cond_timedwait(&exporter->settled, &exporter->lock, &end);
    }
    rc = exporter->n_settled != before ? 0 : -ETIMEDOUT;
    pthread_mutex_unlock(&exporter->lock);
    return rc;
}

/* On the loop's own thread, which is to be an owner's and in no callback. */
static int run_until_settled(struct bow_otel_exporter *exporter, uint64_t before, uint64_t end_ns)
{
    while (settled_so_far(exporter) == before) {
        uint64_t now_ns = monotonic_now();
        if (now_ns >= end_ns) {
            return -ETIMEDOUT;
        }
        if (bow_loop_run_once(exporter->loop, end_ns == BOW_NEVER ? BOW_NEVER : end_ns - now_ns) <
            0) {
            return -EDEADLK;
        }
    }
    return 0;
}

/* After fork() the lock may be held for ever; posting says so before it is touched. */
int bow_otel_exporter_flush(struct bow_otel_exporter *exporter, uint64_t timeout_ns)
{
    uint64_t end_ns =
        timeout_ns == BOW_NEVER ? BOW_NEVER : bow__time_add(monotonic_now(), timeout_ns);

    int rc = wake(exporter);
    if (rc < 0) {
        return rc;
    }
    uint64_t before = settled_so_far(exporter);
    atomic_fetch_add(&exporter->n_flushers, 1);
    rc = wake(exporter); /* the first one may have run by now */
    if (rc == 0) {
        rc = bow_loop_in_loop(exporter->loop) ? run_until_settled(exporter, before, end_ns)
                                              : wait_settled(exporter, before, end_ns);
    }
    atomic_fetch_sub(&exporter->n_flushers, 1);
    return rc;
}

int bow_otel_exporter_stop(struct bow_otel_exporter *exporter, uint64_t timeout_ns)
{
    int rc = bow_otel_exporter_flush(exporter, timeout_ns);

    atomic_store(&exporter->is_stopped, true);
    (void)wake(exporter);
    return rc;
}

/* For tracers, and for people */

static void release(void *user)
{
    bow_otel_exporter_unref(user);
}

void bow_otel_trace(struct bow_otel_exporter *exporter, struct bow_tracer_options *options)
{
    options->spans = on_spans;
    options->user = bow_otel_exporter_ref(exporter);
    options->release = release;
}

int bow_otel_exporter_stats(const struct bow_otel_exporter *exporter,
                            struct bow_otel_stats *ret_stats)
{
    const struct bow_otel_stats known = {
        .size = sizeof(known),
        .spans_waiting = bow__otel_span_queue_count(&exporter->queue),
        .bytes_waiting = counted(&exporter->queue.n_bytes),
        .spans_exported = counted(&exporter->n_exported),
        .spans_dropped = counted(&exporter->n_dropped),
        .spans_rejected = counted(&exporter->n_rejected),
        .spans_lost = counted(&exporter->n_lost),
        .exports = counted(&exporter->sender.n_batches),
        .retries = counted(&exporter->sender.n_retries),
        .points_exported = counted(&exporter->n_points_exported),
        .points_rejected = counted(&exporter->n_points_rejected),
        .points_lost = counted(&exporter->n_points_lost),
        .reports_dropped = counted(&exporter->n_reports_dropped),
    };
    size_t size = ret_stats->size;

    if (size < sizeof(size) || size > sizeof(known)) {
        return -EINVAL;
    }
    memcpy(ret_stats, &known, size);
    ret_stats->size = size;
    return 0;
}

/* Life */

static void free_all(struct bow_otel_exporter *exporter)
{
    struct bow_context *context = exporter->context;

    bow__otel_span_queue_fini(&exporter->queue);
    bow__otel_report_queue_fini(&exporter->reports);
    bow_arena_free(exporter->arena);
    if (exporter->target != NULL) {
        bow__free(context, exporter->target, strlen(exporter->target) + 1);
    }
    pthread_cond_destroy(&exporter->settled);
    pthread_mutex_destroy(&exporter->lock);
    bow__free(context, exporter, sizeof(*exporter));
    bow_context_unref(context);
}

/* Nothing is being sent. */
static void finish(struct bow_otel_exporter *exporter)
{
    bow_timer_stop(&exporter->delay);
    bow_client_free(exporter->client);
    free_all(exporter);
}

struct bow_otel_exporter *bow_otel_exporter_ref(struct bow_otel_exporter *exporter)
{
    atomic_fetch_add_explicit(&exporter->refs, 1, memory_order_relaxed);
    return exporter;
}

/* The loop takes no more work: what it had has ended, or does so later in its last turn. */
static void close_without_loop(struct bow_otel_exporter *exporter, int rc)
{
    if (rc == -ESHUTDOWN && !bow_loop_in_loop(exporter->loop) &&
        bow_loop_join(exporter->loop, BOW_NEVER) < 0) {
        return; /* nothing says that it has */
    }
    exporter->is_closing = true;
    bool has_call = exporter->sender.state == BOW__OTEL_SENDING ||
                    exporter->report_sender.state == BOW__OTEL_SENDING;
    if (!has_call || rc == -ECHILD) {
        bow__otel_span_queue_free(&exporter->queue, exporter->parcels);
        bow__otel_report_free(&exporter->reports, exporter->report);
        bow_arena_free(exporter->sender.arena);
        bow_arena_free(exporter->report_sender.arena);
        bow_client_free(exporter->client);
        free_all(exporter);
    }
}

void bow_otel_exporter_unref(struct bow_otel_exporter *exporter)
{
    if (exporter == NULL ||
        atomic_fetch_sub_explicit(&exporter->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_loop *loop = exporter->loop;
    atomic_store(&exporter->is_stopped, true);
    int rc = bow_loop_post(loop, &exporter->closing);
    if (rc < 0) {
        close_without_loop(exporter, rc);
    }
    (void)bow_loop_unref(loop);
}

/* Options */

static int refuse(const struct bow_otel_options *options, int rc, const char *what)
{
    return bow__transport_error(options->error, "making an exporter to",
                                options->target != NULL ? options->target : DEFAULT_TARGET, rc,
                                what);
}

static bool is_utf8(const char *text)
{
    size_t len = strlen(text);

    return bow__utf8_prefix((struct bow_slice){(const uint8_t *)text, len}, false) == len;
}

static bool are_good(const struct bow_otel_attribute *attributes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct bow_otel_attribute *attribute = &attributes[i];
        if (attribute->key == NULL || attribute->value == NULL || *attribute->key == '\0' ||
            !is_utf8(attribute->key) || !is_utf8(attribute->value)) {
            return false;
        }
    }
    return true;
}

static void set_defaults(struct bow_otel_options *options)
{
    options->target = options->target != NULL ? options->target : DEFAULT_TARGET;
    options->delay_ns = options->delay_ns > 0 ? options->delay_ns : SECOND_NS;
    options->max_batch_spans =
        options->max_batch_spans > 0 ? options->max_batch_spans : DEFAULT_BATCH;
    options->max_spans = options->max_spans > 0 ? options->max_spans : DEFAULT_SPANS;
    options->max_bytes = options->max_bytes > 0 ? options->max_bytes : DEFAULT_BYTES;
    options->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : 10 * SECOND_NS;
    options->backoff_min_ns = options->backoff_min_ns > 0 ? options->backoff_min_ns : SECOND_NS;
    options->backoff_max_ns =
        options->backoff_max_ns > 0 ? options->backoff_max_ns : 30 * SECOND_NS;
    options->give_up_ns = options->give_up_ns > 0 ? options->give_up_ns : 300 * SECOND_NS;
}

static int check(const struct bow_otel_options *options)
{
    if (options->context == NULL || options->service_name == NULL) {
        return refuse(options, -EINVAL, "set options.context and options.service_name");
    }
    if (!is_utf8(options->service_name) || !are_good(options->attributes, options->n_attributes)) {
        return refuse(options, -EINVAL,
                      "service_name, and the key and value of each attribute, are to be UTF-8");
    }
    if (options->max_spans < options->max_batch_spans || options->max_bytes < MIN_BYTES) {
        return refuse(options, -EINVAL,
                      "max_spans is less than max_batch_spans, or max_bytes than 64 KiB");
    }
    return 0;
}

static int read_options(const struct bow_otel_options *given, struct bow_otel_options *ret_options)
{
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);

    if (rc < 0) {
        return given != NULL && given->size == 0
                   ? refuse(given, rc, "begin the options with BOW_OTEL_OPTIONS_INIT")
                   : rc;
    }
    set_defaults(ret_options);
    return check(ret_options);
}

/* Making */

static int make_target(struct bow_otel_exporter *exporter, const char *target)
{
    bool has_prefix = strncmp(target, PREFIX, strlen(PREFIX)) == 0;
    size_t size = strlen(target) + 1 + (has_prefix ? 0 : strlen(PREFIX));

    exporter->target = bow__alloc(exporter->context, size);
    if (exporter->target == NULL) {
        return -ENOMEM;
    }
    (void)snprintf(exporter->target, size, "%s%s", has_prefix ? "" : PREFIX, target);
    return 0;
}

static int make_resource(struct bow_otel_exporter *exporter, const struct bow_otel_options *options)
{
    exporter->arena = bow_arena_new(exporter->context, RESOURCE_BYTES);
    exporter->resource =
        exporter->arena != NULL ? bow__otel_resource(exporter->arena, options) : NULL;
    return exporter->resource != NULL ? 0 : -ENOMEM;
}

static int make_loop(struct bow_otel_exporter *exporter, const struct bow_otel_options *options)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;

    if (options->loop != NULL) {
        exporter->loop = bow_loop_ref(options->loop);
        return 0;
    }
    loop_options.name = "bow-otel";
    return bow_loop_new(exporter->context, &loop_options, &exporter->loop);
}

/* The last that may fail: it takes the interceptors. */
static int make_client(struct bow_otel_exporter *exporter, const struct bow_otel_options *options)
{
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    client.context = exporter->context;
    client.target = exporter->target;
    client.loop = exporter->loop;
    client.security = options->security;
    client.plaintext = options->plaintext;
    client.interceptors = options->interceptors;
    client.n_interceptors = options->n_interceptors;
    client.compression = options->compression;
    client.error = options->error;
    return bow_client_new(&client, &exporter->client);
}

static int make_parts(struct bow_otel_exporter *exporter, const struct bow_otel_options *options)
{
    int rc = make_target(exporter, options->target);

    if (rc == 0) {
        rc = make_resource(exporter, options);
    }
    if (rc == 0) {
        rc = make_loop(exporter, options);
    }
    if (rc < 0) {
        return refuse(options, rc, NULL);
    }
    return make_client(exporter, options);
}

static void init(struct bow_otel_exporter *exporter, const struct bow_otel_options *options)
{
    pthread_condattr_t attributes;

    exporter->context = bow_context_ref(options->context);
    exporter->options = *options;
    exporter->start_unix_ns = unix_now();
    atomic_init(&exporter->refs, 1);
    bow_task_init(&exporter->work, "export", work_task, exporter);
    bow_task_init(&exporter->closing, "close exporter", closing_task, exporter);
    bow__otel_span_queue_init(&exporter->queue, exporter->context, options->max_spans,
                              options->max_bytes);
    pthread_mutex_init(&exporter->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&exporter->settled, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void init_sending(struct bow_otel_exporter *exporter)
{
    static const struct bow__otel_signal spans = {
        .items = "spans",
        .take = take_spans,
        .rejected = rejected_spans,
        .ended = ended,
        .on_idle = on_idle,
    };
    static const struct bow__otel_signal metrics = {
        .items = "metrics",
        .take = take_report,
        .rejected = rejected_points,
        .ended = report_ended,
        .on_idle = on_report_idle,
    };
    const struct bow__otel_sender_options options = {
        .timeout_ns = exporter->options.timeout_ns,
        .backoff_min_ns = exporter->options.backoff_min_ns,
        .backoff_max_ns = exporter->options.backoff_max_ns,
        .give_up_ns = exporter->options.give_up_ns,
    };

    bow__otel_sender_init(&exporter->sender, &spans, bow__otel__trace_service__export__method(),
                          exporter->context, exporter->client, exporter->loop, exporter->target,
                          &options);
    bow__otel_sender_init(&exporter->report_sender, &metrics,
                          bow__otel__metrics_service__export__method(), exporter->context,
                          exporter->client, exporter->loop, exporter->target, &options);
    bow_timer_init(&exporter->delay, exporter->loop, on_delay, exporter);
}

int bow_otel_exporter_new(const struct bow_otel_options *options,
                          struct bow_otel_exporter **ret_exporter)
{
    struct bow_otel_options known = BOW_OTEL_OPTIONS_INIT;

    int rc = read_options(options, &known);
    if (rc < 0) {
        return rc;
    }
    struct bow_otel_exporter *exporter = bow__alloc_zero(known.context, sizeof(*exporter));
    if (exporter == NULL) {
        return refuse(&known, -ENOMEM, NULL);
    }
    init(exporter, &known);
    rc = make_parts(exporter, &known);
    if (rc < 0) {
        if (exporter->loop != NULL) {
            (void)bow_loop_unref(exporter->loop);
        }
        free_all(exporter);
        return rc;
    }
    init_sending(exporter);
    *ret_exporter = exporter;
    return 0;
}
