/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_REPORT_H
#define BOWLINE_OTEL_REPORT_H

/*
 * What a server or client has counted, as OTLP's message, at one moment: made where it is counted,
 * and queued until it is sent. Names are those of gRPC's OpenTelemetry metrics (proposal A66), as
 * in <bowline/metrics_text.h>.
 *
 * Design. Reports are pushed on a stack (release) and taken by one loop (acquire), as parcels of
 * spans are. What they say is cumulative, so of those that find no room nothing is missed once a
 * later one has gone.
 */

#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include <bowline/arena.h>
#include <bowline/metrics.h>
#include <stdatomic.h>

/** Reports that wait, or are being sent; further ones are dropped. */
#define BOW__OTEL_REPORTS 16u

struct bow__otel_report {
    struct bow__otel_report *next;
    struct bow_arena *arena; /* in which it lies itself, with all of its message */
    Bow__Otel__ExportMetricsServiceRequest *request;
    uint64_t n_points;
};

/** What is said besides the numbers. */
struct bow__otel_report_head {
    Bow__Otel__Resource *resource; /* outlives the report */
    uint64_t start_unix_ns;
    uint64_t now_unix_ns;
};

struct bow__otel_report_queue {
    _Atomic(struct bow__otel_report *) pushed; /* the newest first */
    struct bow__otel_report *first;            /* the taker's, the oldest first */
    atomic_uint n;                             /* relaxed */
};

/** Make one of a server, or of a client: NULL stays when nothing has been counted. Returns 0; or
 * -ENOMEM, also for one that would take more than 16 MiB. Thread: any. */
int bow__otel_report_server(struct bow_context *context, const struct bow__otel_report_head *head,
                            const struct bow_server *server, struct bow__otel_report **ret_report);
int bow__otel_report_client(struct bow_context *context, const struct bow__otel_report_head *head,
                            const struct bow_client *client, struct bow__otel_report **ret_report);

/** Returns whether there was room; else it is freed. Thread: any. */
bool bow__otel_report_push(struct bow__otel_report_queue *queue, struct bow__otel_report *report);
/** The oldest, or NULL; it counts until it is freed. The taker's thread. */
struct bow__otel_report *bow__otel_report_take(struct bow__otel_report_queue *queue);
/** Free one that was taken; NULL is allowed. */
void bow__otel_report_free(struct bow__otel_report_queue *queue, struct bow__otel_report *report);
/** Free all that wait. */
void bow__otel_report_queue_fini(struct bow__otel_report_queue *queue);

#endif
