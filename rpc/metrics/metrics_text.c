/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The metrics of a server or client, family by family: those that gRPC's OpenTelemetry metrics have
 * (proposal A66) under their names, and Bowline's own. A row of a table here has a row of
 * docs/metrics.md.
 */

#include "rpc/metrics/metrics_text.h"
#include "rpc/metrics/bounds.h"
#include "rpc/metrics/text_writer.h"
#include <bowline/status.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct page {
    const struct bow__metrics_owner *owner;
    struct bow__text_writer writer;
};

static void begin(struct page *page, const char *suffix)
{
    bow__text_writer_begin(&page->writer, suffix);
    if (page->owner->target != NULL) {
        bow__text_writer_label(&page->writer, "grpc_target", page->owner->target);
    }
}

/* Totals */

enum side { SERVER = 1, CLIENT = 2, BOTH = 3 };

struct total {
    size_t offset; /* in struct bow_metrics */
    unsigned sides;
    struct bow__family families[2]; /* the server's, the client's */
};

#define TOTAL(member, sides, type, name, unit, help)                                               \
    {                                                                                              \
        offsetof(struct bow_metrics, member), sides,                                               \
        {                                                                                          \
            {"bowline_server_" name, unit, help, type},                                            \
            {                                                                                      \
                "bowline_client_" name, unit, help, type                                           \
            }                                                                                      \
        }                                                                                          \
    }

static const struct total totals[] = {
    TOTAL(connections_opened, BOTH, BOW__COUNTER, "connections_opened", NULL,
          "Connections that were made."),
    TOTAL(connections_closed, BOTH, BOW__COUNTER, "connections_closed", NULL,
          "Connections that have ended, for whatever reason."),
    TOTAL(connections_refused, SERVER, BOW__COUNTER, "connections_refused", NULL,
          "Connections over max_connections."),
    TOTAL(connections_idle, BOTH, BOW__COUNTER, "connections_idle", NULL,
          "Connections ended after idle_timeout_ns."),
    TOTAL(connections_aged, SERVER, BOW__COUNTER, "connections_aged", NULL,
          "Connections ended after max_age_ns."),
    TOTAL(connections_stalled, BOTH, BOW__COUNTER, "connections_stalled", NULL,
          "Connections ended after write_timeout_ns: the peer took nothing."),
    TOTAL(connections_untaken, SERVER, BOW__COUNTER, "connections_untaken", NULL,
          "Connections ended for want of max_queued_reply_bytes."),
    TOTAL(bad_prefaces, SERVER, BOW__COUNTER, "bad_prefaces", NULL,
          "Connections whose first bytes were of no protocol that is spoken."),
    TOTAL(first_frame_timeouts, SERVER, BOW__COUNTER, "first_frame_timeouts", NULL,
          "Connections ended because their first frame did not come in time."),
    TOTAL(protocol_errors, BOTH, BOW__COUNTER, "protocol_errors", NULL,
          "Connections ended because the peer broke the protocol."),
    TOTAL(heartbeats_sent, BOTH, BOW__COUNTER, "heartbeats_sent", NULL,
          "Peers asked for a sign of life."),
    TOTAL(heartbeats_lost, BOTH, BOW__COUNTER, "heartbeats_lost", NULL,
          "Connections ended because no sign of life came in time."),
    TOTAL(bytes_received, BOTH, BOW__COUNTER, "received_bytes", "bytes",
          "Bytes that came, frames included."),
    TOTAL(bytes_sent, BOTH, BOW__COUNTER, "sent_bytes", "bytes",
          "Bytes that were sent, frames included."),
    TOTAL(undecodable_messages, BOTH, BOW__COUNTER, "undecodable_messages", NULL,
          "Messages that did not inflate, or did not decode."),
    TOTAL(requests_refused, SERVER, BOW__COUNTER, "requests_refused", NULL,
          "Requests that were refused before a call was made of them, for no limit of calls."),
    TOTAL(calls_refused_bytes, SERVER, BOW__COUNTER, "in_flight_refusals", NULL,
          "Calls and messages of streams that found no room under max_bytes_in_flight."),
    TOTAL(calls_unanswered, SERVER, BOW__GAUGE, "calls_unanswered", NULL,
          "Calls that handlers hold though nobody waits for them any more."),
    TOTAL(calls_expired_unrun, SERVER, BOW__COUNTER, "calls_expired_unrun", NULL,
          "Calls whose deadline passed before their handler ran."),
    TOTAL(calls_delayed, SERVER, BOW__COUNTER, "calls_delayed", NULL,
          "Calls that waited before their handlers."),
    TOTAL(reloads, SERVER, BOW__COUNTER, "reloads", NULL, "Certificates read anew."),
    TOTAL(reloads_failed, SERVER, BOW__COUNTER, "reloads_failed", NULL,
          "Certificates that could not be read anew: the old ones go on."),
    TOTAL(connects_failed, CLIENT, BOW__COUNTER, "connects_failed", NULL,
          "Attempts to connect that failed."),
    TOTAL(reconnects, CLIENT, BOW__COUNTER, "reconnects", NULL,
          "Connections made in place of one that was lost."),
    TOTAL(calls_queued, CLIENT, BOW__GAUGE, "calls_queued", NULL,
          "Calls that wait for a connection or a stream."),
    TOTAL(calls_without_stream, CLIENT, BOW__COUNTER, "calls_without_stream", NULL,
          "Calls that waited because their server takes no more of them at once."),
    TOTAL(servers_unhealthy, CLIENT, BOW__COUNTER, "servers_unhealthy", NULL,
          "How often a server was found not to serve the service that is watched."),
};

static void write_totals(struct page *page)
{
    bool is_client = page->owner->target != NULL;
    struct bow_metrics all = BOW_METRICS_INIT;
    uint64_t value;

    page->owner->totals(page->owner->owner, &all);
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        const struct total *total = &totals[i];
        if ((total->sides & (is_client ? CLIENT : SERVER)) == 0) {
            continue;
        }
        bow__text_writer_family(&page->writer, &total->families[is_client]);
        memcpy(&value, (const char *)&all + total->offset, sizeof(value));
        begin(page, "");
        bow__text_writer_value(&page->writer, value);
    }
}

/* Histograms */

static void write_times(struct page *page, const struct bow_histogram *times,
                        void (*labels)(struct page *page, const void *user), const void *user)
{
    uint64_t n = 0;
    size_t bucket = 0;

    for (size_t i = 0; i < BOW__N_TIME_BOUNDS; i++) {
        for (; bow__time_bound_counts(i, bucket); bucket++) {
            n += times->buckets[bucket];
        }
        begin(page, "_bucket");
        labels(page, user);
        bow__text_writer_le(&page->writer, bow__time_bounds_ns[i] / BOW__S,
                            bow__time_bounds_ns[i] % BOW__S);
        bow__text_writer_value(&page->writer, n);
    }
    begin(page, "_bucket");
    labels(page, user);
    bow__text_writer_le_infinite(&page->writer);
    bow__text_writer_value(&page->writer, times->count);
    begin(page, "_sum");
    labels(page, user);
    bow__text_writer_value_ns(&page->writer, times->sum);
    begin(page, "_count");
    labels(page, user);
    bow__text_writer_value(&page->writer, times->count);
}

static void label_method(struct page *page, const void *user)
{
    const struct bow_method_metrics *method = user;
    const char *path = method->path;

    bow__text_writer_label(&page->writer, "grpc_method",
                           strcmp(path, "*") == 0 ? "other" : path + (path[0] == '/'));
}

static void write_sizes(struct page *page, const struct bow_method_metrics *method,
                        const struct bow_sizes *sizes)
{
    uint64_t n = 0;
    unsigned bucket = 0;

    for (size_t i = 0; i < BOW__N_SIZE_BOUNDS; i++) {
        for (; bucket <= bow__size_bound_bits[i]; bucket++) {
            n += sizes->buckets[bucket];
        }
        begin(page, "_bucket");
        label_method(page, method);
        bow__text_writer_le(&page->writer, UINT64_C(1) << bow__size_bound_bits[i], 0);
        bow__text_writer_value(&page->writer, n);
    }
    begin(page, "_bucket");
    label_method(page, method);
    bow__text_writer_le_infinite(&page->writer);
    bow__text_writer_value(&page->writer, sizes->count);
    begin(page, "_sum");
    label_method(page, method);
    bow__text_writer_value(&page->writer, sizes->sum);
    begin(page, "_count");
    label_method(page, method);
    bow__text_writer_value(&page->writer, sizes->count);
}

/* Methods */

struct method_family {
    unsigned sides;
    struct bow__family families[2]; /* the server's, the client's */
    bow_method_metrics_fn visit;    /* with the page */
};

static void write_number(struct page *page, const struct bow_method_metrics *method, uint64_t n)
{
    begin(page, "");
    label_method(page, method);
    bow__text_writer_value(&page->writer, n);
}

static void visit_started(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->started);
}

static void visit_attempts(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->attempts);
}

static void visit_retries(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->retries);
}

static void visit_in_flight(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->in_flight);
}

static void visit_cancelled(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->cancelled);
}

static void visit_stalls(const struct bow_method_metrics *method, void *user)
{
    write_number(user, method, method->stalls);
}

static void visit_refused(const struct bow_method_metrics *method, void *user)
{
    struct page *page = user;

    for (unsigned i = 0; i < BOW_N_REFUSALS; i++) {
        if (method->refused[i] > 0) {
            begin(page, "");
            label_method(page, method);
            bow__text_writer_label(&page->writer, "limit", bow_refusal_name(i));
            bow__text_writer_value(&page->writer, method->refused[i]);
        }
    }
}

static void visit_received(const struct bow_method_metrics *method, void *user)
{
    if (method->received.count > 0) {
        write_sizes(user, method, &method->received);
    }
}

static void visit_sent(const struct bow_method_metrics *method, void *user)
{
    if (method->sent.count > 0) {
        write_sizes(user, method, &method->sent);
    }
}

struct method_status {
    const struct bow_method_metrics *method;
    const char *status;
};

static void label_status(struct page *page, const void *user)
{
    const struct method_status *labels = user;

    label_method(page, labels->method);
    bow__text_writer_label(&page->writer, "grpc_status", labels->status);
}

static void write_times_by_status(struct page *page, const struct bow_method_metrics *method,
                                  enum bow_method_time what)
{
    struct bow_histogram times;

    for (unsigned code = 0; code < BOW_N_CODES; code++) {
        struct method_status labels = {method, bow_code_name((enum bow_code)code)};
        bow_method_metrics_times(method, what, code, &times);
        if (times.count > 0) {
            write_times(page, &times, label_status, &labels);
        }
    }
}

static void visit_call_times(const struct bow_method_metrics *method, void *user)
{
    write_times_by_status(user, method, BOW_TIME_CALL);
}

static void visit_attempt_times(const struct bow_method_metrics *method, void *user)
{
    write_times_by_status(user, method, BOW_TIME_ATTEMPT);
}

static void visit_queue_times(const struct bow_method_metrics *method, void *user)
{
    struct bow_histogram times;

    bow_method_metrics_times(method, BOW_TIME_QUEUE, BOW_N_CODES, &times);
    if (times.count > 0) {
        write_times(user, &times, label_method, method);
    }
}

#define SAME(type, name, unit, help)                                                               \
    {                                                                                              \
        {"bowline_server_" name, unit, help, type},                                                \
        {                                                                                          \
            "bowline_client_" name, unit, help, type                                               \
        }                                                                                          \
    }

static const struct method_family method_families[] = {
    {SERVER,
     {{"grpc_server_call_started", NULL, "Calls that were started.", BOW__COUNTER}},
     visit_started},
    {CLIENT,
     {{NULL, NULL, NULL, BOW__COUNTER},
      {"grpc_client_attempt_started", NULL, "Attempts of calls that were started.", BOW__COUNTER}},
     visit_attempts},
    {BOTH,
     {{"grpc_server_call_duration_seconds", "seconds", "Time from a call's start to its end.",
       BOW__HISTOGRAM},
      {"grpc_client_call_duration_seconds", "seconds",
       "Time from a call's start to its end, with waiting and all attempts.", BOW__HISTOGRAM}},
     visit_call_times},
    {CLIENT,
     {{NULL, NULL, NULL, BOW__COUNTER},
      {"grpc_client_attempt_duration_seconds", "seconds",
       "Time from when a call was sent to the end of that attempt.", BOW__HISTOGRAM}},
     visit_attempt_times},
    {BOTH,
     {{"grpc_server_call_sent_total_compressed_message_size_bytes", "bytes",
       "Bytes of all messages that were sent in a call, compressed where they were.",
       BOW__HISTOGRAM},
      {"grpc_client_attempt_sent_total_compressed_message_size_bytes", "bytes",
       "Bytes of all messages that were sent in an attempt, compressed where they were.",
       BOW__HISTOGRAM}},
     visit_sent},
    {BOTH,
     {{"grpc_server_call_rcvd_total_compressed_message_size_bytes", "bytes",
       "Bytes of all messages that were received in a call, compressed where they were.",
       BOW__HISTOGRAM},
      {"grpc_client_attempt_rcvd_total_compressed_message_size_bytes", "bytes",
       "Bytes of all messages that were received in an attempt, compressed where they were.",
       BOW__HISTOGRAM}},
     visit_received},
    {CLIENT,
     {{NULL, NULL, NULL, BOW__COUNTER},
      {"bowline_client_calls_started", NULL, "Calls that were started.", BOW__COUNTER}},
     visit_started},
    {BOTH, SAME(BOW__GAUGE, "calls_in_flight", NULL, "Calls that have not ended."),
     visit_in_flight},
    {BOTH,
     SAME(BOW__COUNTER, "calls_refused", NULL, "Calls that were refused, by the limit they met."),
     visit_refused},
    {BOTH,
     {{"bowline_server_calls_cancelled", NULL, "Calls that their clients cancelled.", BOW__COUNTER},
      {"bowline_client_calls_cancelled", NULL, "Calls that the program cancelled.", BOW__COUNTER}},
     visit_cancelled},
    {CLIENT,
     {{NULL, NULL, NULL, BOW__COUNTER},
      {"bowline_client_calls_retried", NULL, "Attempts after the first of a call.", BOW__COUNTER}},
     visit_retries},
    {BOTH,
     {{"bowline_server_call_queue_duration_seconds", "seconds",
       "Time that calls waited before their handlers, or for a thread of their executor.",
       BOW__HISTOGRAM},
      {"bowline_client_call_queue_duration_seconds", "seconds",
       "Time that calls waited for a connection or a stream, of those that had to.",
       BOW__HISTOGRAM}},
     visit_queue_times},
    {BOTH,
     SAME(BOW__COUNTER, "stream_stalls", NULL,
          "How often a stream's sender had to wait for the peer to take what was sent."),
     visit_stalls},
};

static void write_methods(struct page *page)
{
    bool is_client = page->owner->target != NULL;

    for (size_t i = 0; i < sizeof(method_families) / sizeof(method_families[0]); i++) {
        const struct method_family *family = &method_families[i];
        if ((family->sides & (is_client ? CLIENT : SERVER)) != 0) {
            bow__text_writer_family(&page->writer, &family->families[is_client]);
            page->owner->each_method(page->owner->owner, family->visit, page);
        }
    }
}

/* Loops */

struct loop_family {
    size_t offset; /* in struct bow_loop_stats */
    struct bow__family families[2];
};

#define LOOP(member, type, name, unit, help)                                                       \
    {                                                                                              \
        offsetof(struct bow_loop_stats, member), SAME(type, "loop_" name, unit, help)              \
    }

static const struct loop_family loop_families[] = {
    LOOP(turns, BOW__COUNTER, "turns", NULL, "Turns of the loop."),
    LOOP(io_ns, BOW__COUNTER, "io_seconds", "seconds", "Time spent on ready connections."),
    LOOP(task_ns, BOW__COUNTER, "task_seconds", "seconds", "Time spent on tasks and timers."),
    LOOP(max_turn_ns, BOW__GAUGE, "longest_turn_seconds", "seconds",
         "The longest turn so far, without its waiting."),
    LOOP(lag_ns, BOW__GAUGE, "lag_seconds", "seconds",
         "By how much the last timer that fired was late."),
    LOOP(max_lag_ns, BOW__GAUGE, "longest_lag_seconds", "seconds",
         "By how much a timer was late at most so far."),
    LOOP(holds, BOW__COUNTER, "holds", NULL,
         "Callbacks that held the loop for longer than its max_hold_ns."),
    LOOP(max_hold_ns, BOW__GAUGE, "longest_hold_seconds", "seconds",
         "The longest time that one callback held the loop; 0 without its max_hold_ns."),
    LOOP(channels, BOW__GAUGE, "connections", NULL, "Connections of the loop, whoever's."),
    LOOP(pending_tasks, BOW__GAUGE, "pending_tasks", NULL, "Tasks that wait for their turn."),
    LOOP(pending_timers, BOW__GAUGE, "pending_timers", NULL, "Timers that are armed."),
};

static void write_loop(struct page *page, const struct loop_family *family, uint32_t i,
                       const struct bow_loop *loop, bool is_time)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    uint64_t value = 0;

    (void)bow_loop_get_stats(loop, &stats);
    memcpy(&value, (const char *)&stats + family->offset, sizeof(value));
    begin(page, "");
    bow__text_writer_label_n(&page->writer, "loop", i);
    if (is_time) {
        bow__text_writer_value_ns(&page->writer, value);
    } else {
        bow__text_writer_value(&page->writer, value);
    }
}

static void write_loops(struct page *page)
{
    bool is_client = page->owner->target != NULL;
    const struct bow_loop *loop;

    for (size_t k = 0; k < sizeof(loop_families) / sizeof(loop_families[0]); k++) {
        const struct bow__family *family = &loop_families[k].families[is_client];
        bow__text_writer_family(&page->writer, family);
        for (uint32_t i = 0; (loop = page->owner->loop(page->owner->owner, i)) != NULL; i++) {
            write_loop(page, &loop_families[k], i, loop, family->unit != NULL);
        }
    }
}

/* The page */

const char *bow_metrics_content_type(enum bow_metrics_format format)
{
    switch (format) {
    case BOW_METRICS_PROMETHEUS:
        return "text/plain; version=0.0.4; charset=utf-8";
    case BOW_METRICS_OPENMETRICS:
        return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    }
    return NULL;
}

int bow__metrics_text_write(const struct bow__metrics_owner *owner, enum bow_metrics_format format,
                            bow_metrics_put_fn put, void *user)
{
    struct page page;

    if (bow_metrics_content_type(format) == NULL) {
        return -EINVAL;
    }
    page.owner = owner;
    bow__text_writer_init(&page.writer, format, put, user);
    write_methods(&page);
    write_totals(&page);
    write_loops(&page);
    return bow__text_writer_finish(&page.writer);
}
