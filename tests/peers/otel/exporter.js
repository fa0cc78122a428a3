// SPDX-License-Identifier: Apache-2.0 OR MIT
// OpenTelemetry's exporter for JavaScript, for peers_otel.py:
//
//     exporter.js PORT none|gzip SPANS BATCH CROWD alone|again
//
// Exports SPANS spans, BATCH of them at a time, and prints what became of the exports. With a CROWD so many
// calls are in progress on the server until each export was refused once. What is refused with a RetryInfo
// is lost (alone), or exported again after its delay.
'use strict';
const grpc = require('@grpc/grpc-js');
const protobuf = require('protobufjs');
const { SpanKind, SpanStatusCode } = require('@opentelemetry/api');
const { ExportResultCode } = require('@opentelemetry/core');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-grpc');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');

const [port, compression, spans, batch, crowd, mode] = process.argv.slice(2);
const N_EXPORTS = spans / batch;
const EXPORT = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
const CHECK = '/grpc.health.v1.Health/Check';

// What a status has beside its code and message, as far as it is read here.
const google = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }`, { keepCase: true }).root;
const decode = (type, bytes) => {
  const found = google.lookupType(type);
  return found.toObject(found.decode(bytes), { longs: Number, defaults: true });
};

// Milliseconds; null when the server has not asked to come again.
function retryDelay(error) {
  const bytes = error?.metadata?.get('grpc-status-details-bin')[0];
  const info = bytes && decode('Status', bytes).details.find(
    (any) => any.type_url === 'type.googleapis.com/google.rpc.RetryInfo');
  if (!info) {
    return null;
  }
  const delay = decode('RetryInfo', info.value).retry_delay;
  return delay.seconds * 1000 + delay.nanos / 1e6;
}

// OTLP's throttling, around an exporter that knows none: what is refused with a RetryInfo comes again after it.
class Throttled {
  constructor(exporter, onRefused) {
    this.exporter = exporter;
    this.onRefused = onRefused;
    this.told = { done: 0, lost: 0, refused: 0, delays: {}, errors: {} };
    this.exports = [];
  }

  export(batchOfSpans, done) {
    this.exports.push(new Promise((resolve) => {
      this.attempt(batchOfSpans, (result) => {
        this.count(result);
        done(result);
        resolve();
      });
    }));
  }

  attempt(batchOfSpans, end) {
    this.exporter.export(batchOfSpans, (result) => {
      const delay = retryDelay(result.error);
      if (delay !== null) {
        this.told.refused++;
        this.told.delays[delay] = (this.told.delays[delay] ?? 0) + 1;
        this.onRefused(this.told.refused);
      }
      if (delay !== null && mode === 'again') {
        setTimeout(() => this.attempt(batchOfSpans, end), delay);
      } else {
        end(result);
      }
    });
  }

  count({ code, error }) {
    if (code === ExportResultCode.SUCCESS) {
      this.told.done++;
      return;
    }
    const name = grpc.status[error?.code] ?? String(error);
    this.told.lost++;
    this.told.errors[name] = (this.told.errors[name] ?? 0) + 1;
  }

  forceFlush() {
    return Promise.all(this.exports);
  }

  async shutdown() {
    await this.forceFlush();
    await this.exporter.shutdown();
  }
}

// Calls whose message does not come. They are in progress once what was asked behind them is answered.
async function gather(n) {
  const bytes = (value) => value;
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const calls = Array.from({ length: n }, () =>
    client.makeClientStreamRequest(EXPORT, bytes, bytes, () => {}));
  await new Promise((resolve, reject) => {
    client.makeUnaryRequest(CHECK, bytes, bytes, Buffer.alloc(0),
      (error) => (error ? reject(error) : resolve()));
  });
  return () => {
    calls.forEach((call) => call.cancel());
    client.close();
  };
}

// peers_otel.py knows what these are.
function work(tracer) {
  for (let i = 0; i < spans; i++) {
    const span = tracer.startSpan(`work ${i}`, {
      kind: SpanKind.CLIENT,
      attributes: {
        index: i, middle: i + 0.5, even: i % 2 === 0, greeting: `Grüße\t${i}`, parts: ['a', `${i}`],
      },
    });
    if (i % 10 === 0) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: 'one of ten' });
    }
    span.end();
  }
}

async function main() {
  const disperse = await gather(Number(crowd));
  const exporter = new Throttled(
    new OTLPTraceExporter({
      url: `http://127.0.0.1:${port}`, compression, concurrencyLimit: 2 * N_EXPORTS,
    }),
    (n) => n === N_EXPORTS && disperse());
  const processor = new BatchSpanProcessor(exporter, {
    maxExportBatchSize: Number(batch), maxQueueSize: Number(spans),
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'checkout' }), spanProcessors: [processor],
  });
  work(provider.getTracer('exporter.js'));
  await processor.forceFlush().catch(() => {}); // what is lost is counted
  await provider.shutdown();
  disperse();
  console.log(JSON.stringify(exporter.told));
}

main();
