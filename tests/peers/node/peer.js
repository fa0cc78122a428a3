// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's implementation for Node as a peer of Bowline, for peers.py: see its top for the arguments.
'use strict';
const grpc = require('@grpc/grpc-js');
const readline = require('readline');

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

const talk = { ...say, path: '/peers.Echo/Talk', requestStream: true, responseStream: true };
const MAX_OUTSTANDING = 16; // messages of a stream that have not come back yet

// Each message goes back. Who does not read what comes back is not read from.
function echo(call) {
  call.on('data', (message) => {
    if (!call.write(message)) {
      call.pause();
    }
  });
  call.on('drain', () => call.resume());
  call.on('end', () => call.end());
}

function serve(maxAgeMs) {
  const server = new grpc.Server(maxAgeMs > 0 ? { 'grpc.max_connection_age_ms': maxAgeMs } : {});
  server.addService({ say, talk }, { say: (call, done) => done(null, call.request), talk: echo });
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) {
      throw error;
    }
    console.log(port);
  });
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}

// Makes unary calls, or with messages streams of so many.
class Run {
  constructor(target, inFlight, bytes, seconds, messages = 0) {
    this.client = new grpc.Client(target, grpc.credentials.createInsecure());
    this.calls = 0;
    this.failed = 0;
    this.ended = 0;
    this.error = '';
    this.running = inFlight;
    const streams = Array.from({ length: messages > 0 ? inFlight : 0 }, (_, i) =>
      Array.from({ length: messages }, (__, k) => message(i * messages + k, bytes)));
    this.start = Date.now();
    this.end = this.start + seconds * 1000;
    this.watch();
    for (let i = 0; i < inFlight; i++) {
      if (messages > 0) {
        this.stream(streams[i]);
      } else {
        this.call(message(i, bytes));
      }
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

  // Opens a stream on which messages are to come back, as many as there is time for; then the next.
  stream(messages) {
    if (Date.now() >= this.end) {
      this.leave();
      return;
    }
    const deadline = Date.now() + 60000;
    const call = this.client.makeBidiStreamRequest(talk.path, same, same, { deadline });
    let [sent, back, halfClosed, full, readAll, status] = [0, 0, false, false, false, null];
    const send = () => {
      while (!halfClosed) {
        if (sent === messages.length || (sent > 0 && Date.now() >= this.end)) {
          halfClosed = true;
          call.end();
        } else if (sent - back < MAX_OUTSTANDING && !full) {
          full = !call.write(messages[sent++]);
        } else {
          return;
        }
      }
    };
    // The status may come before the last messages have been read; behind an error none are.
    const close = () => {
      if (status === null || (status.code === grpc.status.OK && !readAll)) {
        return;
      }
      if (status.code !== grpc.status.OK) {
        this.fail(`${status.code}: ${status.details}`);
      } else if (back !== sent) {
        this.fail('messages did not come back');
      }
      status = null; // an end may follow an error
      this.stream(messages);
    };
    call.on('drain', () => {
      full = false;
      send();
    });
    call.on('data', (reply) => {
      this.calls++;
      if (back === sent || !reply.equals(messages[back])) {
        this.fail('the message is another one');
      }
      back++;
      send();
    });
    call.on('end', () => {
      readAll = true;
      close();
    });
    call.on('error', () => {}); // the status says it
    call.on('status', (said) => {
      status = said;
      close();
    });
    send();
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

// Makes one call after the other with a pause, for each line of so many seconds.
class PacedRun extends Run {
  constructor(target, bytes) {
    super(target, 0, bytes, 0);
    this.running = 1; // so that ends count
    this.request = message(0, bytes);
  }

  once() {
    const deadline = Date.now() + 30000;
    return new Promise((done) => {
      this.client.makeUnaryRequest(say.path, same, same, this.request, { deadline },
        (error, reply) => {
          if (error) {
            this.fail(error.message);
          } else if (!reply.equals(this.request)) {
            this.fail("the reply is another call's");
          }
          done();
        });
    });
  }

  async window(seconds) {
    const took = [];
    const endedBefore = this.ended;
    const start = performance.now();
    this.failed = 0;
    this.error = '';
    while (performance.now() < start + seconds * 1000) {
      const begin = performance.now();
      await this.once();
      took.push(Math.round((performance.now() - begin) * 1000));
      await new Promise((done) => setTimeout(done, 1));
    }
    const whole = (performance.now() - start) / 1000;
    console.log(took.length, this.failed, this.ended - endedBefore, whole, this.error);
    console.log(took.join(' '));
  }
}

async function pace(target, bytes) {
  const run = new PacedRun(target, bytes);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await run.window(Number(line));
  }
  run.running = 0;
  run.client.close();
}

function main(role, ...words) {
  if (role === 'ready') {
    console.log('ready');
    process.stdin.once('data', () => {
      process.stdin.pause();
      main(...words);
    });
  } else if (role === 'server') {
    serve(Number(words[0]));
  } else if (role === 'paced') {
    pace(words[0], Number(words[1]));
  } else {
    new Run(words[0], ...words.slice(1).map(Number));
  }
}

main(...process.argv.slice(2));
