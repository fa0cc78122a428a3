/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_SPAN_MESSAGE_H
#define BOWLINE_OTEL_SPAN_MESSAGE_H

/*
 * Spans as OTLP's messages: names, attributes and statuses by OpenTelemetry's semantic conventions
 * for RPC (https://opentelemetry.io/docs/specs/semconv/rpc/, of version 1.37). Knows nothing of
 * when they are sent.
 */

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "otel/span_queue.h"
#include <bowline/arena.h>

#define BOW__OTEL_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

/** A request with all spans of `parcels`, in `arena`; it points into them, and to `resource`. NULL
 * out of memory. */
Bow__Otel__ExportTraceServiceRequest *
bow__otel_span_message(struct bow_arena *arena, Bow__Otel__Resource *resource,
                       const struct bow__otel_parcel *parcels);

#endif
