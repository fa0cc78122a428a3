#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's own client, from Python, calls a Bowline server.

Usage: grpc_python_client.py INTEROP_SERVER [unittest options]; needs interop_pb2.py on PYTHONPATH.
"""
import signal
import subprocess
import sys
import time
import unittest

import grpc
from google.protobuf import duration_pb2

import interop_pb2

SERVER = sys.argv.pop(1)
MIB = 1 << 20
IDENTITY_AND_DEFLATE = 0b011
HANGS = 3  # calls of Hang that the server takes at a time
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def method(channel, name):
    return channel.unary_unary(
        name if name.startswith("/") else "/interop.Interop/" + name,
        request_serializer=interop_pb2.Request.SerializeToString,
        response_deserializer=interop_pb2.Reply.FromString,
    )


class BowlineServer(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([SERVER, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:" + self.process.stdout.readline().strip()
        self.channel = grpc.insecure_channel(self.address, options=NO_LIMIT)
        self.stopping = False

    def tearDown(self):
        self.channel.close()
        if not self.stopping:
            self.process.send_signal(signal.SIGTERM)
        if self.process.returncode is None:
            self.assertEqual(self.process.wait(timeout=20), 0)
        self.process.stdout.close()

    def call(self, name, timeout=20, **fields):
        return method(self.channel, name)(interop_pb2.Request(**fields), timeout=timeout)

    def fails(self, name, timeout=20, **fields):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(name, timeout, **fields)
        return caught.exception

    def wait_cancelled(self, count):
        end = time.monotonic() + 10
        while self.call("Echo").n_cancelled < count:
            self.assertLess(time.monotonic(), end, "the server was not told")

    def test_unary_call_is_answered(self):
        self.assertEqual(self.call("Echo", body=b"hello").body, b"hello")

    def test_empty_message_is_a_message(self):
        self.assertEqual(self.call("Echo").body, b"")

    def test_calls_after_another_on_one_connection(self):
        for i in range(300):
            body = b"%d" % i
            self.assertEqual(self.call("Echo", body=body).body, body)

    def test_every_code_and_its_message(self):
        for code in grpc.StatusCode:
            number = code.value[0]
            if number == 0:
                continue
            text = f"code {number}: 100% sure, grün, 道, \U0001f4a7,\ttab\nnewline %41"
            error = self.fails("Fail", code=number, message=text)
            self.assertEqual(error.code(), code)
            self.assertEqual(error.details(), text)

    def test_ok_without_reply_is_an_error(self):
        self.assertEqual(self.fails("Fail", code=0).code(), grpc.StatusCode.INTERNAL)

    def test_long_message_is_cut(self):
        self.assertEqual(self.fails("Fail", code=5, message="x" * 6000).details(), "x" * 4096)
        # Three times as long on the wire, and this client takes headers of 8 KiB only.
        error = self.fails("Fail", code=5, message="ü" * 3000)
        self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(error.details().replace("ü", ""), "")
        self.assertGreater(len(error.details()), 1000)

    def test_deadline_ends_the_call_on_both_sides(self):
        start = time.monotonic()
        error = self.fails("Hang", timeout=0.3)
        self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - start, 3)
        self.wait_cancelled(1)

    def test_server_sees_the_deadline(self):
        left = self.call("Echo", timeout=7).time_left_ns
        self.assertLess(left, 7.1e9)
        self.assertGreater(left, 5e9)

    def test_cancel_reaches_the_handler(self):
        call = method(self.channel, "Hang").future(interop_pb2.Request(), timeout=30)
        self.call("Echo")
        call.cancel()
        self.assertEqual(call.code(), grpc.StatusCode.CANCELLED)
        self.wait_cancelled(1)

    def test_call_over_a_limit_is_told_when_to_come_again(self):
        hang = method(self.channel, "Hang")
        calls = [hang.future(interop_pb2.Request(), timeout=60) for _ in range(HANGS + 1)]
        while not any(call.done() for call in calls):
            self.call("Echo")
        error = next(call for call in calls if call.done())
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn(f"bow_server_limit_calls() ({HANGS})", error.details())
        self.assertEqual(dict(error.trailing_metadata()).get("grpc-retry-pushback-ms"), "2500")
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin")
        self.assertIn(b"type.googleapis.com/google.rpc.RetryInfo", details)
        delay = duration_pb2.Duration(seconds=2, nanos=500_000_000).SerializeToString()
        self.assertTrue(details.endswith(bytes([len(delay)]) + delay))
        # Only a refusal says so.
        echo, call = method(self.channel, "Echo").with_call(interop_pb2.Request(), timeout=20)
        self.assertNotIn("grpc-retry-pushback-ms", dict(call.trailing_metadata()))
        self.assertEqual(echo.body, b"")
        for call in calls:
            call.cancel()

    def test_unknown_method_is_named(self):
        for name in ("/interop.Interop/NoSuch", "/no.Such/Thing"):
            error = self.fails(name)
            self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertIn(name, error.details())

    def test_method_without_handler_is_named(self):
        error = self.fails("Absent")
        self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("/interop.Interop/Absent", error.details())

    def test_large_messages_both_ways(self):
        body = bytes(range(256)) * (3 * MIB // 256)
        self.assertEqual(self.call("Echo", body=body).body, body)
        self.assertEqual(self.call("Echo", reply_bytes=3 * MIB).body, b"r" * (3 * MIB))

    def test_message_over_the_limit_is_refused_and_named(self):
        error = self.fails("Echo", body=b"x" * (5 * MIB))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("max_message_bytes (4194304)", error.details())
        # The connection lives on.
        self.assertEqual(self.call("Echo", body=b"still").body, b"still")

    def echo_compressed(self, message="", **options):
        return method(self.channel, "Echo")(
            interop_pb2.Request(body=b"z" * 10000, message=message), timeout=20, **options)

    def counted(self, count):
        """What the server has counted once that is so many calls; it shows that every 10 ms."""
        end = time.monotonic() + 10
        while self.call("Echo").n_counted < count:
            self.assertLess(time.monotonic(), end, "the server has not counted")
        return self.call("Echo")

    def test_compressed_requests_are_inflated(self):
        for _ in range(20):
            reply = self.echo_compressed(compression=grpc.Compression.Gzip)
            self.assertEqual(reply.body, b"z" * 10000)
        self.assertEqual(self.call("Echo", body=b"small").body, b"small")
        reply = self.counted(20)
        self.assertLess(reply.bytes_in, 10000)
        self.assertGreater(reply.bytes_out, 20 * 10000)

    def test_replies_are_compressed_for_a_client_that_takes_it(self):
        for _ in range(20):
            self.assertEqual(self.echo_compressed("compress").body, b"z" * 10000)
        reply = self.counted(20)
        self.assertGreater(reply.bytes_in, 20 * 10000)
        self.assertLess(reply.bytes_out, 10000)

    def test_both_ways_are_compressed(self):
        for _ in range(20):
            reply = self.echo_compressed("compress", compression=grpc.Compression.Gzip)
            self.assertEqual(reply.body, b"z" * 10000)
        reply = self.counted(20)
        self.assertLess(reply.bytes_in + reply.bytes_out, 10000)

    def test_empty_compressed_message_is_a_message(self):
        reply = method(self.channel, "Echo")(interop_pb2.Request(), timeout=20,
                                             compression=grpc.Compression.Gzip)
        self.assertEqual(reply.body, b"")

    def test_deflate_is_taken_and_sent_where_nothing_better_is(self):
        self.channel.close()
        self.channel = grpc.insecure_channel(self.address, options=NO_LIMIT + [
            ("grpc.compression_enabled_algorithms_bitset", IDENTITY_AND_DEFLATE)])
        for _ in range(20):
            reply = self.echo_compressed("compress", compression=grpc.Compression.Deflate)
            self.assertEqual(reply.body, b"z" * 10000)
            self.assertTrue(reply.came_compressed)
        reply = self.counted(20)
        self.assertLess(reply.bytes_in + reply.bytes_out, 10000)

    def test_handler_sees_what_came_compressed(self):
        self.assertFalse(self.echo_compressed().came_compressed)
        self.assertTrue(self.echo_compressed(compression=grpc.Compression.Gzip).came_compressed)

    def test_message_that_inflates_beyond_the_limit_is_refused_and_named(self):
        with self.assertRaises(grpc.RpcError) as caught:
            method(self.channel, "Echo")(interop_pb2.Request(body=bytes(64 * MIB)), timeout=20,
                                         compression=grpc.Compression.Gzip)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("max_message_bytes (4194304)", caught.exception.details())
        self.assertEqual(self.call("Echo", body=b"still").body, b"still")

    def test_metadata_is_skipped(self):
        reply = method(self.channel, "Echo")(
            interop_pb2.Request(body=b"m"), timeout=20,
            metadata=(("x-text", "value"), ("x-bytes-bin", b"\x00\xff")))
        self.assertEqual(reply.body, b"m")

    def test_metadata_over_the_limit_is_refused(self):
        for n in (40000, 60000):
            with self.assertRaises(grpc.RpcError) as caught:
                method(self.channel, "Echo")(interop_pb2.Request(), timeout=20,
                                             metadata=(("x-text", "v" * n),))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertEqual(self.call("Echo", body=b"still").body, b"still")

    def test_large_metadata_both_ways(self):
        # Each way a header of more than the default of 16 KiB.
        value = "".join(chr(ord("a") + i % 23) for i in range(20 << 10))
        with grpc.insecure_channel(self.address,
                                   options=[("grpc.max_metadata_size", 32 << 10)]) as channel:
            for _ in range(3):
                reply, call = method(channel, "Echo").with_call(
                    interop_pb2.Request(body=b"m"), timeout=20, metadata=(("x-back", value),))
                self.assertEqual(reply.body, b"m")
                self.assertEqual(dict(call.initial_metadata())["x-first"], value)
                self.assertEqual(dict(call.trailing_metadata())["x-last"], value)

    def test_metadata_that_the_client_does_not_take_is_not_sent(self):
        # It takes 8 KiB, as it says by itself.
        with self.assertRaises(grpc.RpcError) as caught:
            method(self.channel, "Echo")(interop_pb2.Request(), timeout=20,
                                         metadata=(("x-back", "v" * 20000),))
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("that the client takes: raise max_header_bytes there", error.details())

    def test_a_thousand_calls_at_once(self):
        echo = method(self.channel, "Echo")
        calls = [echo.future(interop_pb2.Request(body=b"%d" % i), timeout=60) for i in range(1000)]
        for i, call in enumerate(calls):
            self.assertEqual(call.result().body, b"%d" % i)

    def test_large_calls_beside_small_ones(self):
        echo = method(self.channel, "Echo")
        large = [echo.future(interop_pb2.Request(reply_bytes=2 * MIB), timeout=60) for _ in range(4)]
        for i in range(200):
            self.assertEqual(self.call("Echo", body=b"%d" % i).body, b"%d" % i)
        for call in large:
            self.assertEqual(len(call.result().body), 2 * MIB)

    def test_stopping_server_loses_no_call(self):
        slow = method(self.channel, "Slow")
        calls = [slow.future(interop_pb2.Request(), timeout=20) for _ in range(20)]
        self.call("Echo")
        self.process.send_signal(signal.SIGTERM)
        self.stopping = True
        for call in calls:
            self.assertEqual(call.code(), grpc.StatusCode.OK)

    def test_killed_server_is_unavailable(self):
        call = method(self.channel, "Hang").future(interop_pb2.Request(), timeout=20)
        self.call("Echo")
        self.process.kill()
        self.stopping = True
        self.assertEqual(call.code(), grpc.StatusCode.UNAVAILABLE)
        self.process.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
