// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's implementation for Node in the public interoperability cases:
//
//     interop.js server --port=N [--use_tls=true --cert_file=FILE --key_file=FILE]
//     interop.js client --server_host=HOST --server_port=N --test_case=NAME [--use_tls=true --ca_file=FILE
//                       --server_host_override=NAME]
//
// A server prints its port and ends with its standard input. What Node cannot see is how a message came.
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const PROTO = path.join(__dirname, '../../interop/public/testing.proto');
const testing = grpc.loadPackageDefinition(
  loader.loadSync(PROTO, { keepCase: true, defaults: true })).grpc.testing;
const INITIAL = 'x-grpc-test-echo-initial';
const TRAILING = 'x-grpc-test-echo-trailing-bin';
const zeros = (size) => ({ body: Buffer.alloc(size) });

// The server

function echoMetadata(call) {
  const initial = call.metadata.get(INITIAL);
  if (initial.length > 0) {
    const back = new grpc.Metadata();
    back.set(INITIAL, initial[0]);
    call.sendMetadata(back);
  }
  const trailing = new grpc.Metadata();
  for (const value of call.metadata.get(TRAILING)) {
    trailing.add(TRAILING, value);
  }
  return trailing;
}

const askedFor = (request) =>
  (request.response_status && request.response_status.code
    ? { code: request.response_status.code, details: request.response_status.message } : null);

function unaryCall(call, done) {
  const trailing = echoMetadata(call);
  const { request } = call;
  const error = askedFor(request);
  const report = request.orca_per_query_report;
  if (report) {
    trailing.add('endpoint-load-metrics-bin', loadReport(report));
  }
  done(error, {
    payload: zeros(request.response_size),
    hostname: os.hostname(),
    server_id: request.fill_server_id ? `node-${process.pid}` : '',
  }, trailing);
}

// A LoadReport as it travels: two doubles, and entries of a name and a double.
function loadReport(asked) {
  const double = (field, value) => {
    const bytes = Buffer.alloc(9);
    bytes[0] = field << 3 | 1;
    bytes.writeDoubleLE(value, 1);
    return bytes;
  };
  const entry = (field, { key, value }) => {
    const body = Buffer.concat([Buffer.from([10, key.length]), Buffer.from(key), double(2, value)]);
    return Buffer.concat([Buffer.from([field << 3 | 2, body.length]), body]);
  };
  return Buffer.concat([
    double(1, asked.cpu_utilization), double(2, asked.memory_utilization),
    ...asked.request_cost.map((one) => entry(4, one)),
    ...asked.utilization.map((one) => entry(5, one))]);
}

function pour(call, request) {
  for (const { size } of request.response_parameters) {
    call.write({ payload: zeros(size) });
  }
}

function duplex(call) {
  const trailing = echoMetadata(call);
  call.on('data', (request) => {
    const error = askedFor(request);
    if (error) {
      call.emit('error', { ...error, metadata: trailing });
    } else {
      pour(call, request);
    }
  });
  call.on('end', () => call.end(trailing));
}

const handlers = {
  EmptyCall: (call, done) => done(null, {}, echoMetadata(call)),
  UnaryCall: unaryCall,
  CacheableUnaryCall: (call, done) => {
    const metadata = new grpc.Metadata();
    metadata.set('cache-control', 'max-age=60, public');
    call.sendMetadata(metadata);
    done(null, { payload: zeros(call.request.response_size) });
  },
  StreamingOutputCall: (call) => {
    const trailing = echoMetadata(call);
    pour(call, call.request);
    call.end(trailing);
  },
  StreamingInputCall: (call, done) => {
    let size = 0;
    call.on('data', (request) => {
      size += request.payload.body.length;
    });
    call.on('end', () => done(null, { aggregated_payload_size: size }));
  },
  FullDuplexCall: duplex,
  HalfDuplexCall: duplex,
};

function serve(flags) {
  const server = new grpc.Server();
  const definition = { ...testing.TestService.service };
  delete definition.UnimplementedCall;
  server.addService(definition, handlers);
  const credentials = flags.use_tls === 'true'
    ? grpc.ServerCredentials.createSsl(null, [{
      private_key: fs.readFileSync(flags.key_file), cert_chain: fs.readFileSync(flags.cert_file) }])
    : grpc.ServerCredentials.createInsecure();
  server.bindAsync(`127.0.0.1:${flags.port}`, credentials, (error, port) => {
    if (error) {
      throw error;
    }
    console.log(port);
  });
  process.on('SIGTERM', () => {}); // the input ends as well
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}

// The client

const options = () => ({ deadline: Date.now() + 20000 });
const large = (more) => ({ response_size: 314159, payload: zeros(271828), ...more });

// Ends with { error, response, initial, trailing }.
function unary(client, name, request, metadata = new grpc.Metadata()) {
  return new Promise((done) => {
    const told = {};
    const call = client[name](request, metadata, options(), (error, response) => {
      Object.assign(told, { error, response });
    });
    call.on('metadata', (initial) => {
      told.initial = initial;
    });
    call.on('status', (status) => {
      told.trailing = status.metadata;
      setImmediate(() => done(told));
    });
  });
}

async function expectUnary(client, name, request) {
  const { error, response } = await unary(client, name, request);
  assert.ifError(error);
  return response;
}

function expectLarge(response) {
  assert(response.payload.body.equals(Buffer.alloc(314159)));
}

// A stream's sizes, status and metadata; `steps` are sent one by one, each when the one before is answered.
function exchange(client, steps, { metadata = new grpc.Metadata(), cancelAfter, end = true,
                                   timeout = 20000 } = {}) {
  return new Promise((done) => {
    const told = { sizes: [] };
    const call = client.FullDuplexCall(metadata, { deadline: Date.now() + timeout });
    const next = () => {
      if (steps.length > 0) {
        call.write(steps.shift());
      } else if (end) {
        call.end();
      }
    };
    call.on('metadata', (initial) => {
      told.initial = initial;
    });
    call.on('data', (response) => {
      told.sizes.push(response.payload.body.length);
      if (told.sizes.length === cancelAfter) {
        call.cancel();
      } else {
        next();
      }
    });
    call.on('error', () => {});
    call.on('status', (status) => done({ ...told, status }));
    next();
  });
}

const step = (size, asked) => ({ payload: zeros(size), response_parameters: [{ size: asked }] });
const failing = (message) => ({ response_status: { code: 2, message } });

function input(client, sizes, cancel) {
  return new Promise((done) => {
    const call = client.StreamingInputCall(new grpc.Metadata(), options(),
      (error, response) => done({ error, response }));
    sizes.forEach((size) => call.write({ payload: zeros(size) }));
    if (cancel) {
      call.cancel();
    } else {
      call.end();
    }
  });
}

function output(client, sizes) {
  return new Promise((done) => {
    const came = [];
    const call = client.StreamingOutputCall(
      { response_parameters: sizes }, new grpc.Metadata(), options());
    call.on('data', (response) => came.push(response.payload.body.length));
    call.on('error', () => {});
    call.on('status', (status) => done({ came, status }));
  });
}

async function expectStreamed(client, parameters) {
  const { came, status } = await output(client, parameters);
  assert.strictEqual(status.code, grpc.status.OK, status.details);
  assert.deepStrictEqual(came, parameters.map(({ size }) => size));
}

function expectMetadata({ initial, trailing }) {
  assert.deepStrictEqual(initial.get(INITIAL), ['test_initial_metadata_value']);
  assert.deepStrictEqual(trailing.get(TRAILING), [Buffer.from([0xab, 0xab, 0xab])]);
}

async function expectFails(client, message) {
  const { error } = await unary(client, 'UnaryCall', failing(message));
  assert.strictEqual(error.code, grpc.status.UNKNOWN);
  assert.strictEqual(error.details, message);
}

const cases = {
  empty_unary: (client) => expectUnary(client, 'EmptyCall', {}),
  large_unary: async (client) => expectLarge(await expectUnary(client, 'UnaryCall', large())),
  cacheable_unary: async (client) => {
    const one = await expectUnary(client, 'CacheableUnaryCall', { payload: { body: Buffer.from('1') } });
    const other = await expectUnary(client, 'CacheableUnaryCall', { payload: { body: Buffer.from('1') } });
    assert(one.payload.body.equals(other.payload.body));
  },
  server_compressed_unary: async (client) => {
    for (const value of [true, false]) {
      expectLarge(await expectUnary(client, 'UnaryCall', large({ response_compressed: { value } })));
    }
  },
  client_streaming: async (client) => {
    const { error, response } = await input(client, [27182, 8, 1828, 45904]);
    assert.ifError(error);
    assert.strictEqual(response.aggregated_payload_size, 74922);
  },
  server_streaming: (client) =>
    expectStreamed(client, [{ size: 31415 }, { size: 9 }, { size: 2653 }, { size: 58979 }]),
  server_compressed_streaming: (client) => expectStreamed(client, [
    { size: 31415, compressed: { value: true } }, { size: 92653, compressed: { value: false } }]),
  ping_pong: async (client) => {
    const { sizes, status } = await exchange(
      client, [step(27182, 31415), step(8, 9), step(1828, 2653), step(45904, 58979)]);
    assert.strictEqual(status.code, grpc.status.OK, status.details);
    assert.deepStrictEqual(sizes, [31415, 9, 2653, 58979]);
  },
  empty_stream: async (client) => {
    const { sizes, status } = await exchange(client, []);
    assert.strictEqual(status.code, grpc.status.OK, status.details);
    assert.deepStrictEqual(sizes, []);
  },
  custom_metadata: async (client) => {
    const metadata = new grpc.Metadata();
    metadata.set(INITIAL, 'test_initial_metadata_value');
    metadata.set(TRAILING, Buffer.from([0xab, 0xab, 0xab]));
    const one = await unary(client, 'UnaryCall', large(), metadata);
    assert.ifError(one.error);
    expectMetadata(one);
    const { initial, status } = await exchange(client, [step(271828, 314159)], { metadata });
    assert.strictEqual(status.code, grpc.status.OK, status.details);
    expectMetadata({ initial, trailing: status.metadata });
  },
  status_code_and_message: async (client) => {
    await expectFails(client, 'test status message');
    const { status } = await exchange(client, [failing('test status message')]);
    assert.strictEqual(status.code, grpc.status.UNKNOWN);
    assert.strictEqual(status.details, 'test status message');
  },
  special_status_message: (client) =>
    expectFails(client, '\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \u{1f608}\t\n'),
  unimplemented_method: async (client) => {
    const { error } = await unary(client, 'UnimplementedCall', {});
    assert.strictEqual(error.code, grpc.status.UNIMPLEMENTED);
  },
  cancel_after_begin: async (client) => {
    const { error } = await input(client, [], true);
    assert.strictEqual(error.code, grpc.status.CANCELLED);
  },
  cancel_after_first_response: async (client) => {
    const { status } = await exchange(client, [step(27182, 31415)], { cancelAfter: 1 });
    assert.strictEqual(status.code, grpc.status.CANCELLED);
  },
  timeout_on_sleeping_server: async (client) => {
    const { status } = await exchange(client, [{ payload: zeros(27182) }], { end: false, timeout: 1 });
    assert.strictEqual(status.code, grpc.status.DEADLINE_EXCEEDED, status.details);
  },
  pick_first_unary: async (client) => {
    const ids = new Set();
    for (let i = 0; i < 100; i++) {
      ids.add((await expectUnary(client, 'UnaryCall', { fill_server_id: true })).server_id);
    }
    assert(ids.size === 1 && !ids.has(''));
  },
  orca_per_rpc: async (client) => {
    const asked = {
      cpu_utilization: 0.8210, memory_utilization: 0.5847,
      request_cost: [{ key: 'cost', value: 3456.32 }], utilization: [{ key: 'util', value: 0.30499 }],
    };
    const { error, trailing } = await unary(client, 'UnaryCall', { orca_per_query_report: asked });
    assert.ifError(error);
    const [report] = trailing.get('endpoint-load-metrics-bin');
    assert(report.equals(loadReport(asked)));
  },
};

async function runCase(flags) {
  if (flags.test_case === 'list') {
    console.log(Object.keys(cases).join('\n'));
    return;
  }
  const secure = flags.use_tls === 'true';
  const client = new testing.TestService(
    `${flags.server_host}:${flags.server_port}`,
    secure ? grpc.credentials.createSsl(fs.readFileSync(flags.ca_file)) : grpc.credentials.createInsecure(),
    secure ? { 'grpc.ssl_target_name_override': flags.server_host_override } : {});
  await cases[flags.test_case](client);
  client.close();
}

const [role, ...words] = process.argv.slice(2);
const flags = Object.fromEntries(words.map((word) => word.slice(2).split(/=(.*)/s).slice(0, 2)));
if (role === 'server') {
  serve(flags);
} else {
  runCase(flags).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}
