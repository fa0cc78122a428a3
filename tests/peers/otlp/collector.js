// SPDX-License-Identifier: Apache-2.0 OR MIT
// A collector made of gRPC for JavaScript and OpenTelemetry's own messages, for peers_otlp.py:
//
//     collector.js REFUSALS
//
// Refuses so many exports, in turn with UNAVAILABLE and with RESOURCE_EXHAUSTED and a RetryInfo, and takes those
// that follow; metrics it takes. Prints its port, then a line of JSON for each span and each point of a histogram that
// it takes, and for each refusal. What is
// encoded again has to be as long as it came: then there is nothing in it that OTLP does not know, but for each
// span's flags, which are newer than these messages.
'use strict';
const grpc = require('@grpc/grpc-js');
const protobuf = require('protobufjs');
const otlp = require('@opentelemetry/otlp-transformer/build/src/generated/root').opentelemetry.proto;

const FLAGS_BYTES = 6;
const traces = otlp.collector.trace.v1;
const metrics = otlp.collector.metrics.v1;
let refusals = Number(process.argv[2]);

const google = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }`, { keepCase: true }).root;
const encode = (type, value) => google.lookupType(type).encode(value).finish();

const say = (value) => console.log(JSON.stringify(value));
const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');
const number = (long) => Number(long ?? 0);

function attributes(pairs) {
  return Object.fromEntries((pairs ?? []).map(({ key, value }) => [
    key, value.stringValue ?? (value.intValue !== null && number(value.intValue)),
  ]));
}

function refuse(answer) {
  const error = { code: grpc.status.UNAVAILABLE, details: 'not now', metadata: new grpc.Metadata() };
  if (refusals % 2 === 0) {
    error.code = grpc.status.RESOURCE_EXHAUSTED;
    const delay = encode('RetryInfo', { retry_delay: { nanos: 5000000 } });
    error.metadata.set('grpc-status-details-bin', Buffer.from(encode('Status', {
      code: error.code,
      details: [{ type_url: 'type.googleapis.com/google.rpc.RetryInfo', value: delay }],
    })));
  }
  refusals--;
  say({ refused: grpc.status[error.code] });
  answer(error);
}

function take(request) {
  for (const { resource, scopeSpans, schemaUrl } of request.resourceSpans) {
    for (const { scope, spans } of scopeSpans) {
      for (const span of spans) {
        say({
          resource: attributes(resource.attributes), schema: schemaUrl, scope: scope.name,
          trace: hex(span.traceId), span: hex(span.spanId), parent: hex(span.parentSpanId),
          name: span.name, kind: otlp.trace.v1.Span.SpanKind[span.kind], status: number(span.status?.code),
          ns: number(span.endTimeUnixNano) - number(span.startTimeUnixNano),
          start_s: Math.floor(number(span.startTimeUnixNano) / 1e9),
          attributes: attributes(span.attributes),
          events: (span.events ?? []).map((event) => [event.name, attributes(event.attributes)]),
        });
      }
    }
  }
}

function takeMetrics(request) {
  for (const { resource, scopeMetrics } of request.resourceMetrics) {
    for (const metric of scopeMetrics.flatMap((scope) => scope.metrics)) {
      for (const point of metric.histogram?.dataPoints ?? []) {
        say({
          resource: attributes(resource.attributes), metric: metric.name, unit: metric.unit,
          count: number(point.count), sum: point.sum, bounds: point.explicitBounds.length,
          buckets: point.bucketCounts.map(number), attributes: attributes(point.attributes),
        });
      }
    }
  }
}

const bytes = (value) => value;
const raw = {
  requestStream: false, responseStream: false,
  requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes,
};
const server = new grpc.Server();
server.addService({
  Export: {
    path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export', ...raw,
  },
}, {
  Export({ request }, answer) {
    if (refusals > 0) {
      refuse(answer);
      return;
    }
    const decoded = traces.ExportTraceServiceRequest.decode(request);
    const again = traces.ExportTraceServiceRequest.encode(decoded).finish();
    const spans = decoded.resourceSpans[0].scopeSpans[0].spans.length;
    if (again.length + FLAGS_BYTES * spans !== request.length) {
      say({ error: `of ${request.length} bytes ${again.length} are known` });
    }
    take(decoded);
    answer(null, Buffer.from(traces.ExportTraceServiceResponse.encode(
      { partialSuccess: { rejectedSpans: 0, errorMessage: '' } }).finish()));
  },
});
server.addService({
  Export: { path: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export', ...raw },
}, {
  Export({ request }, answer) {
    const decoded = metrics.ExportMetricsServiceRequest.decode(request);
    const again = metrics.ExportMetricsServiceRequest.encode(decoded).finish();
    if (again.length !== request.length) {
      say({ error: `of ${request.length} bytes of metrics ${again.length} are known` });
    }
    takeMetrics(decoded);
    answer(null, Buffer.from(metrics.ExportMetricsServiceResponse.encode({}).finish()));
  },
});
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) {
    throw error;
  }
  console.log(port);
});
process.on('SIGTERM', () => server.forceShutdown());
