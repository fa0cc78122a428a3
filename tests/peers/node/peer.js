// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's implementation for Node as a peer of Bowline, for peers.py: see its top for the arguments.
'use strict';
const grpc = require('@grpc/grpc-js');

const same = (bytes) => bytes;
const say = {
  path: '/peers.Echo/Say', requestStream: false, responseStream: false,
  requestSerialize: same, requestDeserialize: same,
  responseSerialize: same, responseDeserialize: same,
};

// A Message as it travels: field 1, its length, its body.
function message(slot, bytes) {
  const length = [];
  let rest = bytes;
  for (; rest > 127; rest >>= 7) {
    length.push((rest & 127) | 128);
  }
  const body = String(slot).padStart(10, '0').padEnd(bytes, 'x').slice(0, bytes);
  return Buffer.concat([Buffer.from([10, ...length, rest]), Buffer.from(body)]);
}

function serve(maxAgeMs) {
  const server = new grpc.Server(maxAgeMs > 0 ? { 'grpc.max_connection_age_ms': maxAgeMs } : {});
  server.addService({ say }, { say: (call, done) => done(null, call.request) });
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) {
      throw error;
    }
    console.log(port);
  });
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}

class Run {
  constructor(target, inFlight, bytes, seconds) {
    this.client = new grpc.Client(target, grpc.credentials.createInsecure());
    this.calls = 0;
    this.failed = 0;
    this.ended = 0;
    this.error = '';
    this.running = inFlight;
    this.start = Date.now();
    this.end = this.start + seconds * 1000;
    this.watch();
    for (let i = 0; i < inFlight; i++) {
      this.call(message(i, bytes));
    }
  }

  // Counts how often the channel was ready and then was not.
  watch() {
    const channel = this.client.getChannel();
    const before = channel.getConnectivityState(false);
    channel.watchConnectivityState(before, Infinity, (error) => {
      if (error || this.running === 0) {
        return;
      }
      this.ended += before === grpc.connectivityState.READY;
      this.watch();
    });
  }

  call(request) {
    if (Date.now() >= this.end) {
      this.leave();
      return;
    }
    const deadline = Date.now() + 30000;
    this.client.makeUnaryRequest(say.path, same, same, request, { deadline }, (error, reply) => {
      this.calls++;
      if (error) {
        this.fail(error.message);
      } else if (!reply.equals(request)) {
        this.fail("the reply is another call's");
      }
      this.call(request);
    });
  }

  fail(text) {
    if (this.failed++ === 0) {
      this.error = text;
    }
  }

  leave() {
    if (--this.running === 0) {
      const seconds = (Date.now() - this.start) / 1000;
      this.client.close();
      console.log(this.calls, this.failed, this.ended, seconds, this.error);
    }
  }
}

const [role, ...words] = process.argv.slice(2);
if (role === 'server') {
  serve(Number(words[0]));
} else {
  new Run(words[0], ...words.slice(1).map(Number));
}
