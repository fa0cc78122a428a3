/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_H
#define BOWLINE_OTEL_H

/*
 * libbowline-otel: sends spans (<bowline/tracer.h>), and metrics (<bowline/metrics.h>), to
 * OpenTelemetry's Collector, or to any other server of its protocol, OTLP over gRPC.
 *
 *     loops: spans that have ended ──► queue, bounded ──► batches ──► the collector
 *                                        │ full              │ refused, given up
 *                                        ▼                   ▼
 *                                      dropped, counted    lost, counted
 *
 * Nothing here makes a call or a loop wait: what the queue has no room for is dropped. A batch that
 * the collector cannot take now (UNAVAILABLE, DEADLINE_EXCEEDED, and others that OTLP names;
 * RESOURCE_EXHAUSTED with a RetryInfo) is sent again, after the time that it asks for or pauses
 * that grow; meanwhile the queue fills.
 *
 *     struct bow_otel_options options = BOW_OTEL_OPTIONS_INIT;
 *     struct bow_tracer_options tracing = BOW_TRACER_OPTIONS_INIT;
 *     struct bow_otel_exporter *exporter;
 *     struct bow_tracer *tracer;
 *     options.context = context;
 *     options.service_name = "checkout";
 *     int rc = bow_otel_exporter_new(&options, &exporter);
 *     ...
 *     tracing.context = context;
 *     bow_otel_trace(exporter, &tracing);
 *     rc = bow_tracer_new(&tracing, &tracer);
 *     ...                                                   serve, call
 *     rc = bow_otel_exporter_stop(exporter, 5000000000);    what waits goes, within five seconds
 *     bow_otel_exporter_unref(exporter);
 */

#include <bowline/compression.h>
#include <bowline/tracer.h>
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_client;
struct bow_loop;
struct bow_otel_exporter;
struct bow_security;
struct bow_server;

/** What a resource has beside its name: "deployment.environment.name", "prod". UTF-8. */
struct bow_otel_attribute {
    const char *key;
    const char *value;
};

/** What an exporter is made with; begin with BOW_OTEL_OPTIONS_INIT. */
struct bow_otel_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* shared; not NULL */
    const char *target;          /* the collector, over gRPC: "HOST:PORT" or what <bowline/client.h>
                                    names otherwise; copied; NULL: "127.0.0.1:4317" */
    const char *service_name;    /* service.name of the resource; copied; not NULL */
    const struct bow_otel_attribute *attributes; /* further ones of it; copied */
    size_t n_attributes;
    struct bow_loop *loop;         /* where it sends; shared; NULL: on a thread of its own */
    struct bow_security *security; /* as a client's; shared; NULL: none */
    bool plaintext;                /* as a client's: allow it to more than loopback */
    const struct bow_interceptor *const *interceptors; /* of its calls, to send a token say; taken
                                                          on success. No tracer's */
    size_t n_interceptors;
    enum bow_compression compression; /* of what is sent; default: off */
    uint64_t delay_ns;                /* a span waits for others so long at most; 0: 1 s */
    uint32_t max_batch_spans;         /* of one export, about; so many go without delay; 0: 512 */
    uint32_t max_spans;  /* that wait, or are being sent; beyond that they are dropped; 0: 8192 */
    size_t max_bytes;    /* likewise, of memory; 0: 8 MiB */
    uint64_t timeout_ns; /* of one try; 0: 10 s */
    uint64_t backoff_min_ns; /* the first pause after a try that failed; 0: 1 s */
    uint64_t backoff_max_ns; /* 0: 30 s; pauses double, with ± 20 % jitter */
    uint64_t give_up_ns;     /* a batch that could not be sent for so long is lost; 0: 5 min */
    struct bow_transport_error *error; /* NULL, or filled when making it fails; borrowed */
};

#define BOW_OTEL_OPTIONS_INIT BOW__INIT(struct bow_otel_options, )

/** What has become of spans, since the exporter was made. */
struct bow_otel_stats {
    size_t size;              /* sizeof this struct, set by the INIT */
    uint64_t spans_waiting;   /* now: in the queue, or being sent */
    uint64_t bytes_waiting;   /* their memory */
    uint64_t spans_exported;  /* the collector has them */
    uint64_t spans_dropped;   /* the queue had no room, or the exporter had been stopped */
    uint64_t spans_rejected;  /* by the collector, of batches that it took (partial_success) */
    uint64_t spans_lost;      /* of batches that it refused for good, or that were given up */
    uint64_t exports;         /* batches that were begun to be sent */
    uint64_t retries;         /* tries after the first */
    uint64_t points_exported; /* of metrics: the collector has them */
    uint64_t points_rejected; /* by the collector, of reports that it took */
    uint64_t points_lost;     /* of reports that it refused for good, or that were given up */
    uint64_t reports_dropped; /* sixteen waited already, or there was no memory (16 MiB at most) for
                                 one; the next one that goes says the same and more */
};

#define BOW_OTEL_STATS_INIT BOW__INIT(struct bow_otel_stats, )

/**
 * Make an exporter. It connects when there is something to send.
 *
 * Thread:  any
 * Owns:    gives `*ret_exporter`, drop it with bow_otel_exporter_unref(); takes the interceptors on
 *          success
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no context, no service_name, an attribute
 *          without key or value, a text that is no UTF-8, less room than one batch); else as
 *          bow_client_new() and bow_loop_new(). `*options->error` says why
 */
BOW_EXPORT BOW_MUST_USE int bow_otel_exporter_new(const struct bow_otel_options *options,
                                                  struct bow_otel_exporter **ret_exporter);

/**
 * Have the tracer that is made of `*options` give its spans to `exporter`: sets `spans`, `user` and
 * `release`, and takes a reference, which release drops. For one tracer; there may be several.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_otel_trace(struct bow_otel_exporter *exporter,
                               struct bow_tracer_options *options);

/**
 * Send what a server, or a client, has counted: for on_metrics of its options, with the exporter as
 * metrics_user, which has to outlive it.
 *
 *     options.metrics_interval_ns = 60000000000;
 *     options.on_metrics = bow_otel_server_metrics;
 *     options.metrics_user = exporter;
 *
 * The metrics are those of gRPC (proposal A66), cumulative since the exporter was made:
 * grpc.server.call.started, .duration, .sent_total_compressed_message_size and
 * .rcvd_total_compressed_message_size; grpc.client.call.duration, grpc.client.attempt.started,
 * .duration and both sizes. Attributes are grpc.method, grpc.target of a client, and of durations
 * grpc.status. Of several servers of one process each needs an exporter of its own.
 *
 * Thread:  any that on_metrics may run on
 */
BOW_EXPORT void bow_otel_server_metrics(const struct bow_server *server, void *exporter);
/** The same of a client. */
BOW_EXPORT void bow_otel_client_metrics(const struct bow_client *client, void *exporter);

/**
 * Send what waits now, and wait for that, for `timeout_ns` at most. Spans of calls that ended in
 * the turn that a loop is in may come too late for it. On the thread of an owner's loop that sends
 * (options.loop) the loop is run meanwhile. Real time counts, whatever the context's clock says.
 *
 * Thread:  any but a callback of the loop that sends
 * Returns: 0: nothing waits any more, whatever has become of it; -ETIMEDOUT; -EDEADLK in a callback
 *          of that loop; -ESHUTDOWN when it has shut down; -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_otel_exporter_flush(struct bow_otel_exporter *exporter,
                                                    uint64_t timeout_ns);

/**
 * Flush, and take no more: what comes from now on is dropped, and what is left after the time is
 * lost. Idempotent. Thread and results as bow_otel_exporter_flush(), and it is stopped in any case.
 */
BOW_EXPORT int bow_otel_exporter_stop(struct bow_otel_exporter *exporter, uint64_t timeout_ns);

/** Fill `*ret_stats`, whose `size` is set, as by BOW_OTEL_STATS_INIT. Thread: any. Returns: 0;
 * -EINVAL for a size that is not known. */
BOW_EXPORT int bow_otel_exporter_stats(const struct bow_otel_exporter *exporter,
                                       struct bow_otel_stats *ret_stats);

/** Take one more reference. Thread: any. Returns: `exporter`. */
BOW_EXPORT struct bow_otel_exporter *bow_otel_exporter_ref(struct bow_otel_exporter *exporter);
/** Drop a reference; with the last one what waits is lost: flush or stop it before. Waits for the
 * exporter's own thread, if it has one. NULL is allowed. Thread: any. */
BOW_EXPORT void bow_otel_exporter_unref(struct bow_otel_exporter *exporter);

#ifdef __cplusplus
}
#endif
#endif
