#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's own server, in Python, is called by a Bowline client with streaming calls.

Usage: grpc_python_stream_server.py CLIENT_TEST; needs interop_streams_pb2.py on PYTHONPATH. Runs
CLIENT_TEST with the server's target and exits as it does.
"""
import subprocess
import sys
import threading
from concurrent import futures

import grpc

from interop_streams_pb2 import Reply, Request

CODES = {code.value[0]: code for code in grpc.StatusCode}


def value_of(entry):
    return f"  {entry.value} " if entry.key == "echo-padded" else entry.value


def echoed(context):
    return tuple((entry.key, value_of(entry)) for entry in context.invocation_metadata()
                 if entry.key.startswith("echo-"))


def wait_for_end(context):
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait(30)


class Streams:
    def __init__(self):
        self.lock = threading.Lock()
        self.n_poured = 0
        self.n_cancelled = 0
        self.n_gathering = 0

    def begin(self, context):
        def ended():
            # All are counted: gRPC may tell of a cancelled call's last request before it tells of
            # the cancel, and the handler then ends as if the client had half-closed.
            with self.lock:
                self.n_cancelled += 1

        if not context.add_callback(ended):
            ended()
        metadata = echoed(context)
        if metadata:
            context.send_initial_metadata(metadata)
            context.set_trailing_metadata(metadata)

    def fail(self, request, context):
        if request.details:
            context.set_trailing_metadata(
                echoed(context) + (("grpc-status-details-bin", request.details),))
        context.abort(CODES[request.code], request.message)

    def gather(self, requests, context):
        self.begin(context)
        number = n_bytes = 0
        for request in requests:
            if request.code:
                self.fail(request, context)
            number += 1
            n_bytes += len(request.body)
            if request.hang:
                with self.lock:
                    self.n_gathering += 1
                wait_for_end(context)
            if request.enough:
                break
        return Reply(number=number, n_bytes=n_bytes)

    def pour(self, request, context):
        self.begin(context)
        body = b"r" * request.reply_bytes
        for number in range(1, request.count + 1):
            yield Reply(number=number, body=body)
            with self.lock:
                self.n_poured = number
        if request.code:
            self.fail(request, context)
        if request.hang:
            wait_for_end(context)

    def both(self, requests, context):
        self.begin(context)
        number = 0
        for request in requests:
            if request.code:
                self.fail(request, context)
            number += 1
            if not request.hang:
                yield Reply(number=number, body=request.body)
            if request.enough:
                return

    def state(self, request, context):
        del request, context
        with self.lock:
            return Reply(n_poured=self.n_poured, n_cancelled=self.n_cancelled,
                         n_gathering=self.n_gathering)


def main(client_test):
    streams = Streams()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64),
                         options=[("grpc.max_send_message_length", -1)])
    serialization = {"request_deserializer": Request.FromString,
                     "response_serializer": Reply.SerializeToString}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "interop_streams.Streams", {
            "Gather": grpc.stream_unary_rpc_method_handler(streams.gather, **serialization),
            "Pour": grpc.unary_stream_rpc_method_handler(streams.pour, **serialization),
            "Both": grpc.stream_stream_rpc_method_handler(streams.both, **serialization),
            "State": grpc.unary_unary_rpc_method_handler(streams.state, **serialization),
        }),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    rc = subprocess.run([client_test, f"grpc:127.0.0.1:{port}"], check=False).returncode
    server.stop(None).wait()
    return rc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
