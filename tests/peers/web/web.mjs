// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls the service of tests/web/web.proto as Connect's client for Node does, and as gRPC-Web's
// does that pages of browsers use: each protocol, codec and version of HTTP.
//
//     node web.mjs PORT DESCRIPTORS          NODE_MODULES names where packages are
//
// DESCRIPTORS is what protoc --descriptor_set_out wrote.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_MODULES}/none.js`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { createFileRegistry, fromBinary, toBinary, create } = await load("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = await load("@bufbuild/protobuf/wkt");
const { Code, ConnectError, createClient } = await load("@connectrpc/connect");
const { createConnectTransport, createGrpcTransport, createGrpcWebTransport } =
  await load("@connectrpc/connect-node");
globalThis.XMLHttpRequest = require("xhr2");
const grpcWeb = require("grpc-web");

const [port, descriptors] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const Shop = registry.getService("web.Shop");
const baseUrl = `http://127.0.0.1:${port}`;

let passed = 0;
let failed = 0;

async function attempt(name, test) {
  try {
    await test();
    passed++;
  } catch (error) {
    failed++;
    console.log(`${name}: ${error.stack}`);
  }
}

async function all(stream) {
  const found = [];
  for await (const message of stream) {
    found.push(message);
  }
  return found;
}

async function fails(promise, code) {
  const error = await promise.then(() => assert.fail("it did not fail"), (reason) => reason);
  assert.equal(ConnectError.from(error).code, code, String(error));
  return ConnectError.from(error);
}

async function* each(...requests) {
  yield* requests;
}

async function unary(client) {
  const headers = new Headers({ "echo-a": "1", "echo-b-bin": "AP8" });
  let initial;
  let trailing;
  const reply = await client.say(
    { name: "Ada", large: 12345678901n, body: new Uint8Array([1, 2]) },
    { headers, onHeader: (found) => (initial = found), onTrailer: (found) => (trailing = found) },
  );
  assert.equal(reply.text, "Hello, Ada");
  assert.equal(reply.large, 12345678901n);
  assert.deepEqual([...reply.body], [1, 2]);
  assert.equal(initial.get("echo-a"), "1");
  assert.equal(trailing.get("echo-b-bin"), "AP8");
}

async function large(client) {
  const body = new Uint8Array(1 << 20).fill(7);
  const reply = await client.say({ body, compress: true });
  assert.equal(Buffer.compare(Buffer.from(reply.body), Buffer.from(body)), 0);
}

async function errors(client) {
  // A google.rpc.Status with a detail of type a.B, and code and message once more.
  const message = "no ünicorn";
  const text = Buffer.from(message);
  const details = Buffer.concat([
    Buffer.from([0x08, 5, 0x12, text.length]), text, Buffer.from("1a0b0a05782f612e4212020801", "hex"),
  ]);
  const error = await fails(client.say({ code: 5, message, details }), Code.NotFound);
  assert.equal(error.rawMessage, message);
  assert.equal(error.details.length, 1);
  assert.equal(error.details[0].type, "a.B");
  await fails(client.say({ hang: true }, { timeoutMs: 100 }), Code.DeadlineExceeded);
}

async function streams(client) {
  const poured = await all(client.pour({ name: "Ada", count: 300 }));
  assert.deepEqual(poured.map((reply) => reply.number), [...Array(300).keys()]);
  const found = [];
  const error = await fails(
    (async () => {
      for await (const reply of client.pour({ count: 2, code: 9, message: "no more" })) {
        found.push(reply.number);
      }
    })(),
    Code.FailedPrecondition,
  );
  assert.deepEqual(found, [0, 1]);
  assert.equal(error.rawMessage, "no more");
}

async function clientStreams(client) {
  const reply = await client.gather(each({ body: new Uint8Array(3) }, {}, { body: new Uint8Array(2) }));
  assert.equal(reply.number, 3);
  assert.equal(reply.large, 5n);
}

async function bothWays(client) {
  const replies = await all(client.chat(each({ name: "a" }, { name: "b" })));
  assert.deepEqual(replies.map((reply) => reply.text), ["Hello, a", "Hello, b"]);
}

async function cancels(client) {
  const before = (await client.say({})).nCancelled;
  const stop = new AbortController();
  const call = client.say({ hang: true }, { signal: stop.signal });
  setTimeout(() => stop.abort(), 100);
  await fails(call, Code.Canceled);
  while ((await client.say({})).nCancelled === before) {
    // until the server has heard of it
  }
}

const transports = [];
for (const httpVersion of ["1.1", "2"]) {
  for (const useBinaryFormat of [false, true]) {
    const codec = useBinaryFormat ? "proto" : "json";
    const options = { baseUrl, httpVersion, useBinaryFormat };
    transports.push([`connect ${codec} ${httpVersion}`, createConnectTransport(options), httpVersion]);
    transports.push([
      `connect ${codec} ${httpVersion} gzip, get`,
      createConnectTransport({
        ...options,
        useHttpGet: true,
        compressMinBytes: 0,
        sendCompression: (await load("@connectrpc/connect-node")).compressionGzip,
      }),
      httpVersion,
    ]);
  }
  transports.push([
    `grpc-web ${httpVersion}`,
    createGrpcWebTransport({ baseUrl, httpVersion }),
    httpVersion,
  ]);
}
transports.push(["grpc", createGrpcTransport({ baseUrl }), "2"]);

for (const [name, transport, httpVersion] of transports) {
  const client = createClient(Shop, transport);
  await attempt(`${name}: unary`, () => unary(client));
  await attempt(`${name}: get`, async () =>
    assert.equal((await client.look({ name: "Ada" })).text, "Hello, Ada"));
  await attempt(`${name}: large`, () => large(client));
  await attempt(`${name}: errors`, () => errors(client));
  await attempt(`${name}: streams`, () => streams(client));
  await attempt(`${name}: client streams`, () => clientStreams(client));
  await attempt(`${name}: cancels`, () => cancels(client));
  if (httpVersion === "2") {
    await attempt(`${name}: both ways`, () => bothWays(client));
  }
}

// gRPC-Web's own client, as in a page

const Request = registry.getMessage("web.Request");
const Reply = registry.getMessage("web.Reply");

function method(name, type) {
  return new grpcWeb.MethodDescriptor(
    `/web.Shop/${name}`, type, Object, Object,
    (request) => toBinary(Request, create(Request, request)),
    (bytes) => fromBinary(Reply, bytes),
  );
}

for (const format of ["text", "binary"]) {
  const client = new grpcWeb.GrpcWebClientBase({ format });
  await attempt(`grpc-web's client, ${format}: unary`, () =>
    new Promise((resolve, reject) => {
      client.rpcCall(`${baseUrl}/web.Shop/Say`, { name: "Ada" }, { "echo-a": "1" },
        method("Say", grpcWeb.MethodType.UNARY), (error, reply) => {
          if (error) {
            reject(error);
            return;
          }
          assert.equal(reply.text, "Hello, Ada");
          resolve();
        });
    }));
  await attempt(`grpc-web's client, ${format}: error`, () =>
    new Promise((resolve) => {
      client.rpcCall(`${baseUrl}/web.Shop/Say`, { code: 5, message: "no 100%" }, {},
        method("Say", grpcWeb.MethodType.UNARY), (error) => {
          assert.equal(error.code, 5);
          assert.equal(error.message, "no 100%");
          resolve();
        });
    }));
}

// Streams of that client are read as text while they come.
await attempt("grpc-web's client, text: stream", () =>
  new Promise((resolve, reject) => {
    const numbers = [];
    const client = new grpcWeb.GrpcWebClientBase({ format: "text" });
    const stream = client.serverStreaming(`${baseUrl}/web.Shop/Pour`, { name: "Ada", count: 100 }, {},
      method("Pour", grpcWeb.MethodType.SERVER_STREAMING));
    stream.on("data", (reply) => numbers.push(reply.number));
    stream.on("error", reject);
    stream.on("end", () => {
      assert.deepEqual(numbers, [...Array(100).keys()]);
      resolve();
    });
  }));

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
