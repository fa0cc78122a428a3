/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_OTEL_COLLECTOR_H
#define BOWLINE_TESTS_OTEL_COLLECTOR_H

/*
 * A server that takes spans in, keeps them as texts, and answers as a test wants. It is on a thread
 * of its own; what it counts is under the lock of the fixture of calls, and waited for there.
 */

#include "tests/rpc/call_fixture.h"

#include "opentelemetry/proto/collector/metrics/v1/metrics_service.bow.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.bow.h"

#define COLLECTOR_SPANS 512
#define COLLECTOR_HELD 16

struct collected {
    char service[64];
    char trace_id[33];
    char span_id[17];
    char parent_id[17]; /* "" for none */
    char name[64];
    char trace_state[64];
    int kind;
    int status; /* of enum StatusCode */
    char message[128];
    uint32_t flags;
    uint64_t start_ns;
    uint64_t end_ns;
    char attributes[1024]; /* "key=value;" */
    char events[1024];     /* "name key=value;…|" */
    uint32_t n_events_dropped;
};

struct collector {
    struct calls *t;
    struct bow_server *server;
    char address[64];

    int n_exports; /* calls that came, refused ones too */
    int n_spans;   /* of those that were taken */
    struct collected spans[COLLECTOR_SPANS];
    char resource[1024]; /* of the last export: "key=value;" */
    char scope[128];     /* "name version" */

    int n_reports; /* exports of metrics that were taken */
    /* Of the last one: "NAME UNIT ATTRIBUTES = VALUE", of a histogram "COUNT: BUCKET,…", a line
     * each. */
    char metrics[8192];

    /* What it does. */
    const char *only; /* keep spans of this trace; NULL: of all */
    int n_to_fail;    /* so many exports, with: */
    enum bow_code code;
    uint64_t retry_after_ns;
    int64_t n_rejected; /* partial_success, when not 0 or with a text */
    const char *text;
    bool holds; /* keep exports unanswered */
    struct bow_call *held[COLLECTOR_HELD];
    int n_held;
};

/** Start one at `address`, or at a port of its own: "127.0.0.1:0". */
void collector_start(struct collector *collector, struct calls *t, const char *address);
void collector_stop(struct collector *collector);

/** Answer what is held, and hold no more. */
void collector_release(struct collector *collector);

/** The only span of that name, kind (of enum SpanKind) and, unless NULL, service. */
const struct collected *collector_find(const struct collector *collector, const char *service,
                                       const char *name, int kind);

#endif
