#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's own server, in Python, is called by a Bowline client.

Usage: grpc_python_server.py CLIENT_TEST; needs interop_pb2.py on PYTHONPATH. Runs CLIENT_TEST with
two servers' targets, of which the second takes no compression but deflate, and exits as it does.
"""
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc

import interop_pb2

IDENTITY_AND_DEFLATE = 0b011
CODES = {code.value[0]: code for code in grpc.StatusCode}


class Interop:
    def __init__(self):
        self.lock = threading.Lock()
        self.n_cancelled = 0
        self.n_hanging = 0
        self.n_failed = 0

    def flaky(self, words, context):
        """"flaky N [MS]": fails N times, asking to wait for MS, and then tells how often the client
        says that it has tried."""
        with self.lock:
            fails = self.n_failed < int(words[1])
            self.n_failed = self.n_failed + 1 if fails else 0
        if fails:
            if len(words) > 2:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", words[2]),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "flaky")
        said = dict(context.invocation_metadata()).get("grpc-previous-rpc-attempts", "none")
        return interop_pb2.Reply(body=said.encode())

    def echo(self, request, context):
        if request.message.startswith("flaky "):
            return self.flaky(request.message.split(), context)
        body = b"r" * request.reply_bytes if request.reply_bytes else request.body
        left = context.time_remaining()
        for key, value in context.invocation_metadata():
            if key == "x-back":
                context.send_initial_metadata((("x-first", value),))
                context.set_trailing_metadata((("x-last", value),))
        if request.message == "compress":
            context.set_compression(grpc.Compression.Gzip)
        elif request.message == "deflate":
            context.set_compression(grpc.Compression.Deflate)
        with self.lock:
            return interop_pb2.Reply(
                body=body,
                # Without a deadline it is None or, by version, infinite or decades.
                time_left_ns=int(left * 1e9) if left is not None and left < 1e6 else 0,
                n_cancelled=self.n_cancelled,
                n_hanging=self.n_hanging,
            )

    def fail(self, request, context):
        if request.body:
            context.set_trailing_metadata((("grpc-status-details-bin", request.body),))
        context.abort(CODES[request.code], request.message)

    def hang(self, request, context):
        ended = threading.Event()
        with self.lock:
            self.n_hanging += 1
        if context.add_callback(ended.set):
            ended.wait(30)
        with self.lock:
            self.n_cancelled += 1
        return interop_pb2.Reply()

    def slow(self, request, context):
        time.sleep(0.3)
        return interop_pb2.Reply()


def handler_of(function):
    return grpc.unary_unary_rpc_method_handler(
        function,
        request_deserializer=interop_pb2.Request.FromString,
        response_serializer=interop_pb2.Reply.SerializeToString,
    )


def make_server(options):
    interop = Interop()
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        # Fewer than the client has calls, so that some wait for a slot.
        options=[("grpc.max_concurrent_streams", 100), ("grpc.max_send_message_length", -1),
                 ("grpc.max_metadata_size", 32 << 10), *options],
    )
    methods = {
        "Echo": interop.echo, "Fail": interop.fail, "Hang": interop.hang, "Slow": interop.slow,
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "interop.Interop", {name: handler_of(function) for name, function in methods.items()}),))
    return server


def main(client_test):
    servers = [make_server([]), make_server([
        ("grpc.compression_enabled_algorithms_bitset", IDENTITY_AND_DEFLATE)])]
    ports = [server.add_insecure_port("127.0.0.1:0") for server in servers]
    for server in servers:
        server.start()
    targets = [f"grpc:127.0.0.1:{port}" for port in ports]
    rc = subprocess.run([client_test, *targets], check=False).returncode
    for server in servers:
        server.stop(None).wait()
    return rc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
