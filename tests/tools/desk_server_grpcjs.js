// SPDX-License-Identifier: Apache-2.0 OR MIT
// desk.proto served by grpc-js, without reflection. usage: desk_server_grpcjs.js desk.proto
'use strict';
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const desk = grpc.loadPackageDefinition(loader.loadSync(process.argv[2], {longs: String})).desk;
const server = new grpc.Server();

server.addService(desk.Desk.service, {
  Echo: (call, done) => done(null, call.request),
  Work: (call, done) => call.request.failCode
    ? done({code: call.request.failCode, details: 'as was asked'})
    : done(null, {text: 'done'}),
  Sum: (call, done) => {
    let sum = 0;
    call.on('data', (note) => { sum += Number(note.number); });
    call.on('end', () => done(null, {number: sum}));
  },
  Count: (call) => {
    for (let number = 1; number <= call.request.n; number++) {
      call.write({number});
    }
    call.end();
  },
  Chat: (call) => {
    call.on('data', (note) => call.write(note));
    call.on('end', () => call.end());
  },
});
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) {
    throw error;
  }
  console.log(`listening on 127.0.0.1, port ${port}`);
});
