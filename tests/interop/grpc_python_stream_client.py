#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's own client, from Python, makes streaming calls to a Bowline server.

Usage: grpc_python_stream_client.py INTEROP_STREAM_SERVER [unittest options]; needs
interop_streams_pb2.py on PYTHONPATH.
"""
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest

import grpc

from interop_streams_pb2 import Reply, Request

SERVER = sys.argv.pop(1)
MIB = 1 << 20
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
# Windows stay as they are. Those that gRPC measures may become tens of megabytes on a busy machine.
FIXED_WINDOWS = ("grpc.http2.bdp_probe", 0)
METADATA = (("echo-text", "a, b"), ("echo-bytes-bin", b"\x00\xff"), ("echo-bytes-bin", b"second"),
            ("echo-empty", ""), ("other", "stays"))
ECHOED = sorted(METADATA[:4])
METADATA_FORMS = {
    "bytes of each length modulo three, which is each padding":
        tuple(("echo-bin", bytes(range(256 - n, 256))) for n in range(8)),
    "all bytes": (("echo-bin", bytes(range(256))),),
    "bytes with commas": (("echo-bin", b"a,b"), ("echo-bin", b","), ("echo-bin", b",,c")),
    "a key that comes again": (("echo-a", "2"), ("echo-b", "x"), ("echo-a", "1"), ("echo-a", "2")),
    "a hundred keys": tuple((f"echo-{97 * n % 100:02}", str(n)) for n in range(100)),
    "nothing as value": (("echo-a", ""), ("echo-b-bin", b""), ("echo-c", "")),
    "all of ASCII that prints": (("echo-a", "".join(map(chr, range(0x21, 0x7F)))),),
    "spaces within": (("echo-a", "a  b , c"),),
    "keys of all characters": (("echo-abcdefghijklmnopqrstuvwxyz_0123456789.-", "v"),),
}


def echoed(metadata):
    return sorted((entry.key, entry.value) for entry in metadata if entry.key.startswith("echo-"))


class Talk:
    """A stream whose messages are sent one by one."""

    END = object()

    def __init__(self, method, **options):
        self.requests = queue.Queue()
        self.call = method(iter(self.requests.get, self.END), **options)

    def send(self, **fields):
        self.requests.put(Request(**fields))

    def end(self):
        self.requests.put(self.END)


class BowlineServer(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([SERVER, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:" + self.process.stdout.readline().strip()
        self.connect(NO_LIMIT)

    def connect(self, options):
        self.channel = grpc.insecure_channel(self.address, options=options)

        def of(maker, name):
            return maker("/interop_streams.Streams/" + name,
                         request_serializer=Request.SerializeToString,
                         response_deserializer=Reply.FromString)

        self.gather = of(self.channel.stream_unary, "Gather")
        self.pour = of(self.channel.unary_stream, "Pour")
        self.both = of(self.channel.stream_stream, "Both")
        self.state = of(self.channel.unary_unary, "State")

    def tearDown(self):
        self.channel.close()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(timeout=20), 0)
        self.process.stdout.close()

    def expect_gathering(self):
        end = time.monotonic() + 10
        while self.state(Request(), timeout=10).n_gathering < 1:
            self.assertLess(time.monotonic(), end, "the server has not got the message")

    def expect_cancelled(self, count):
        end = time.monotonic() + 10
        while self.state(Request(), timeout=10).n_cancelled < count:
            self.assertLess(time.monotonic(), end, "the server was not told")

    def test_gather_sums_what_came(self):
        for count in (0, 1, 2, 1000):
            reply = self.gather(iter([Request(body=b"x" * i) for i in range(count)]), timeout=20)
            self.assertEqual(reply.number, count)
            self.assertEqual(reply.n_bytes, count * (count - 1) // 2)

    def test_pour_sends_so_many(self):
        for count in (0, 1, 2, 1000):
            replies = list(self.pour(Request(count=count, reply_bytes=10), timeout=20))
            self.assertEqual([reply.number for reply in replies], list(range(1, count + 1)))
            self.assertTrue(all(reply.body == b"r" * 10 for reply in replies))

    def test_both_answer_each_other(self):
        talk = Talk(self.both, timeout=20)
        for i in range(200):
            talk.send(body=b"%d" % i)
            reply = next(talk.call)
            self.assertEqual((reply.number, reply.body), (i + 1, b"%d" % i))
        talk.end()
        self.assertEqual(list(talk.call), [])
        self.assertEqual(talk.call.code(), grpc.StatusCode.OK)

    def test_both_at_once(self):
        requests = [Request(body=b"%d" % i * (i % 50)) for i in range(5000)]
        replies = list(self.both(iter(requests), timeout=60))
        self.assertEqual([reply.body for reply in replies], [request.body for request in requests])

    def test_many_streams_at_once(self):
        calls = [self.both(iter([Request(body=b"%d" % (i * j)) for j in range(50)]), timeout=60)
                 for i in range(50)]
        for i, call in enumerate(calls):
            self.assertEqual([reply.body for reply in call], [b"%d" % (i * j) for j in range(50)])

    def test_large_messages_both_ways(self):
        bodies = [bytes(range(256)) * (n * MIB // 256) for n in (3, 1, 2, 3)]
        replies = list(self.both(iter([Request(body=body) for body in bodies]), timeout=60))
        self.assertEqual([reply.body for reply in replies], bodies)
        reply = self.gather(iter([Request(body=body) for body in bodies]), timeout=60)
        self.assertEqual(reply.n_bytes, 9 * MIB)

    def test_message_over_the_limit_ends_the_stream(self):
        talk = Talk(self.both, timeout=20)
        talk.send(body=b"first")
        self.assertEqual(next(talk.call).body, b"first")
        talk.send(body=b"x" * (5 * MIB))
        with self.assertRaises(grpc.RpcError) as caught:
            next(talk.call)
        talk.end()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("max_message_bytes (4194304)", caught.exception.details())
        self.assertEqual(self.gather(iter([]), timeout=20).number, 0)

    def test_cancel_ends_the_stream_on_both_sides(self):
        talk = Talk(self.both, timeout=60)
        talk.send(body=b"x")
        next(talk.call)
        talk.call.cancel()
        with self.assertRaises(grpc.RpcError):
            next(talk.call)
        self.assertEqual(talk.call.code(), grpc.StatusCode.CANCELLED)
        talk.end()
        call = self.pour(Request(count=1, hang=True), timeout=60)
        next(call)
        call.cancel()
        talk = Talk(self.gather.future, timeout=60)
        talk.send(body=b"x", hang=True)
        talk.end()
        self.expect_gathering()
        talk.call.cancel()
        self.assertEqual(talk.call.code(), grpc.StatusCode.CANCELLED)
        self.expect_cancelled(3)

    def test_deadline_ends_the_stream_on_both_sides(self):
        start = time.monotonic()
        call = self.pour(Request(count=3, hang=True), timeout=1.5)
        with self.assertRaises(grpc.RpcError):
            list(call)
        self.assertEqual(call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        talk = Talk(self.both, timeout=1.5)
        with self.assertRaises(grpc.RpcError):
            next(talk.call)
        talk.end()
        self.assertEqual(talk.call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        with self.assertRaises(grpc.RpcError) as caught:
            self.gather(iter([Request(hang=True)]), timeout=1.5)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - start, 20)
        self.expect_cancelled(3)

    def test_deadline_passes_while_nobody_reads(self):
        call = self.pour(Request(count=1 << 30, reply_bytes=MIB), timeout=1)
        next(call)
        self.expect_cancelled(1)
        with self.assertRaises(grpc.RpcError):
            for _ in call:
                pass
        self.assertEqual(call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_metadata_goes_both_ways(self):
        calls = [
            self.pour(Request(count=2), timeout=20, metadata=METADATA),
            self.both(iter([Request(), Request()]), timeout=20, metadata=METADATA),
            self.pour(Request(), timeout=20, metadata=METADATA),
        ]
        for call in calls:
            self.assertEqual(echoed(call.initial_metadata()), ECHOED)
            for _ in call:
                pass
            self.assertEqual(echoed(call.trailing_metadata()), ECHOED)
        _, call = self.gather.with_call(iter([Request()]), timeout=20, metadata=METADATA)
        self.assertEqual(echoed(call.initial_metadata()), ECHOED)
        self.assertEqual(echoed(call.trailing_metadata()), ECHOED)

    def test_metadata_of_each_form_comes_back_in_order(self):
        for what, entries in METADATA_FORMS.items():
            with self.subTest(what):
                call = self.pour(Request(), timeout=20, metadata=entries)
                for metadata in call.initial_metadata(), call.trailing_metadata():
                    self.assertEqual([(entry.key, entry.value) for entry in metadata
                                      if entry.key.startswith("echo-")], list(entries))

    def test_blanks_around_values_are_stripped(self):
        entries = (("echo-a", " front"), ("echo-b", "back  "), ("echo-c", "  a  b "), ("echo-d", " "))
        call = self.pour(Request(), timeout=20, metadata=entries)
        self.assertEqual(echoed(call.initial_metadata()),
                         [("echo-a", "front"), ("echo-b", "back"), ("echo-c", "a  b"), ("echo-d", "")])

    def test_initial_metadata_comes_before_messages(self):
        talk = Talk(self.both, timeout=20, metadata=METADATA)
        talk.send(body=b"x")
        next(talk.call)
        self.assertEqual(echoed(talk.call.initial_metadata()), ECHOED)
        talk.end()

    def test_error_with_details_and_metadata(self):
        details = b"\x08\x05\x12\x04text\xff\x00"
        bad = Request(code=5, message="gone, 100% ü", details=details)
        with self.assertRaises(grpc.RpcError) as caught:
            self.gather(iter([Request(), bad]), timeout=20, metadata=METADATA)
        error = caught.exception
        self.assertEqual((error.code(), error.details()),
                         (grpc.StatusCode.NOT_FOUND, "gone, 100% ü"))
        trailing = dict((entry.key, entry.value) for entry in error.trailing_metadata())
        self.assertEqual(trailing["grpc-status-details-bin"], details)
        self.assertEqual(echoed(error.trailing_metadata()), ECHOED)

    def test_error_comes_after_messages(self):
        call = self.pour(Request(count=500, reply_bytes=2000, code=9, message="enough"), timeout=20)
        numbers = []
        with self.assertRaises(grpc.RpcError) as caught:
            for reply in call:
                numbers.append(reply.number)
        self.assertEqual(numbers, list(range(1, 501)))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)

    def test_server_ends_while_the_client_sends(self):
        def endless():
            yield Request(code=10, message="stop")
            while True:
                yield Request(body=b"x" * 1000)

        with self.assertRaises(grpc.RpcError) as caught:
            self.gather(endless(), timeout=20)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.ABORTED)
        self.assertEqual(self.gather(iter([Request()]), timeout=20).number, 1)

    def test_server_has_enough_while_the_client_sends(self):
        def endless(last):
            yield Request(body=b"x")
            yield Request(body=b"xy", enough=True)
            while not last.is_set():
                yield Request(body=b"x" * 1000)

        last = threading.Event()
        reply = self.gather(endless(last), timeout=20)
        self.assertEqual((reply.number, reply.n_bytes), (2, 3))
        call = self.both(endless(last), timeout=20)
        self.assertEqual([reply.number for reply in call], [1, 2])
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        last.set()
        # The connection is as good as before.
        self.assertEqual(self.gather(iter([Request()]), timeout=20).number, 1)

    def test_half_close_without_a_message(self):
        talk = Talk(self.both, timeout=20, metadata=METADATA)
        talk.end()
        self.assertEqual(list(talk.call), [])
        self.assertEqual(talk.call.code(), grpc.StatusCode.OK)
        self.assertEqual(echoed(talk.call.trailing_metadata()), ECHOED)

    def test_slow_reader_holds_the_producer_back_and_nobody_else(self):
        self.channel.close()
        self.connect([*NO_LIMIT, FIXED_WINDOWS])
        call = self.pour(Request(count=4000, reply_bytes=64 << 10), timeout=60)
        for _ in range(3):
            next(call)
        previous, poured = -1, 0
        while poured != previous:
            time.sleep(0.2)
            previous, poured = poured, self.state(Request(), timeout=10).n_poured
        # Three that were read, a window of 64 KiB, and what may wait on a stream.
        self.assertLess(poured, 16)
        self.assertEqual(len(list(self.pour(Request(count=100, reply_bytes=1000), timeout=20))), 100)
        self.assertEqual(sum(1 for _ in call), 4000 - 3)
        self.assertEqual(call.code(), grpc.StatusCode.OK)


if __name__ == "__main__":
    unittest.main(verbosity=2)
