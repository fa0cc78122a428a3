#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gateway between gRPC's own client and server, which are not to notice it.

usage: gateway.py GATEWAY
"""
import sys
import threading
from concurrent import futures

import grpc

import example

N_CALLS = 200
MESSAGE = 32 * 1024
N_POURED = 4000  # messages of that size: more than all windows and queues on the way together


class Behind(grpc.GenericRpcHandler):
    """Methods of each kind, with messages of bytes."""

    def __init__(self):
        self.poured = 0
        self.cancelled = threading.Event()
        self.times_left = []

    def service(self, details):
        kinds = {
            "/any.Service/Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "/any.Service/Gather": grpc.stream_unary_rpc_method_handler(self.gather),
            "/any.Service/Pour": grpc.unary_stream_rpc_method_handler(self.pour),
            "/any.Service/Echo": grpc.stream_stream_rpc_method_handler(self.echo),
            "/any.Service/Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "/any.Service/Hold": grpc.unary_stream_rpc_method_handler(self.hold),
        }
        return kinds.get(details.method)

    def unary(self, request, context):
        self.times_left.append(context.time_remaining())
        asked = dict(context.invocation_metadata()).get("asked")
        if asked is not None:
            context.send_initial_metadata((("first", asked),))
            context.set_trailing_metadata((("last-bin", b"\0\xff"),))
        return request + b"!"

    def gather(self, requests, context):
        return b"".join(requests)

    def pour(self, request, context):
        for _ in range(N_POURED):
            self.poured += 1
            yield b"x" * MESSAGE

    def echo(self, requests, context):
        for request in requests:
            yield request

    def fail(self, request, context):
        context.set_trailing_metadata((("grpc-status-details-bin", b"\x08\x05\x12\x02no"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "no")

    def hold(self, request, context):
        context.add_callback(self.cancelled.set)
        yield b"held"
        self.cancelled.wait(example.PATIENCE_S)


def check_kinds(channel):
    unary = channel.unary_unary("/any.Service/Unary")
    assert unary(b"\xff\xfe") == b"\xff\xfe!"
    assert unary(b"") == b"!"
    parts = [bytes([n]) * 100 for n in range(200)]
    assert channel.stream_unary("/any.Service/Gather")(iter(parts)) == b"".join(parts)
    assert list(channel.stream_stream("/any.Service/Echo")(iter(parts))) == parts


def check_metadata(channel, behind):
    reply, call = channel.unary_unary("/any.Service/Unary").with_call(
        b"", timeout=50, metadata=(("asked", "this"),))
    assert reply == b"!"
    assert ("first", "this") in call.initial_metadata(), call.initial_metadata()
    assert ("last-bin", b"\0\xff") in call.trailing_metadata(), call.trailing_metadata()
    assert 0 < behind.times_left[-1] < 55, behind.times_left[-1]  # gRPC rounds it up when it sends it


def check_errors(channel):
    for path, code in (("Fail", grpc.StatusCode.NOT_FOUND), ("None", grpc.StatusCode.UNIMPLEMENTED)):
        try:
            channel.unary_unary(f"/any.Service/{path}")(b"")
        except grpc.RpcError as error:
            assert error.code() == code, error
            if path == "Fail":
                assert error.details() == "no"
                details = dict(error.trailing_metadata())["grpc-status-details-bin"]
                assert details == b"\x08\x05\x12\x02no", details
        else:
            raise AssertionError(path)


def check_cancel(channel, behind):
    held = channel.unary_stream("/any.Service/Hold")(b"")
    assert next(held) == b"held"
    assert not behind.cancelled.is_set()
    held.cancel()
    assert behind.cancelled.wait(example.PATIENCE_S)


def check_slow_reader(channel, behind):
    """One that reads nothing holds the server back, and nobody else; and gets all of it in the end."""
    poured = channel.unary_stream("/any.Service/Pour")(b"")
    assert len(next(poured)) == MESSAGE
    unary = channel.unary_unary("/any.Service/Unary")
    calls = [unary.future(b"%d" % n) for n in range(N_CALLS)]
    assert [call.result() for call in calls] == [b"%d!" % n for n in range(N_CALLS)]
    assert behind.poured < N_POURED / 2, behind.poured
    assert sum(1 for _ in poured) == N_POURED - 1


def main(gateway):
    behind = Behind()
    server = grpc.server(futures.ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers((behind,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with example.program(gateway, "127.0.0.1:0", f"grpc:list:127.0.0.1:{port}") as program:
        port = program.wait_line(r"^listening on \S+:(\d+)$").group(1)
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            check_kinds(channel)
            check_metadata(channel, behind)
            check_errors(channel)
            check_cancel(channel, behind)
            check_slow_reader(channel, behind)
    server.stop(None)
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
