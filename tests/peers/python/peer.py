#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's implementation for Python as a peer of Bowline, for peers.py: see its top for the arguments."""
import sys
import threading
import time
from concurrent import futures

import grpc

PATH = "/peers.Echo/Say"


def message(slot, size):
    """A Message as it travels: field 1, its length, its body."""
    encoded, length = bytearray([10]), size
    while length > 127:
        encoded.append(length & 127 | 128)
        length >>= 7
    encoded.append(length)
    return bytes(encoded) + f"{slot:010}".encode().ljust(size, b"x")[:size]


def serve(max_age_ms):
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[("grpc.max_connection_age_ms", max_age_ms)] if max_age_ms else [])
    say = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("peers.Echo", {"Say": say}),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(None).wait()


class Run:
    def __init__(self, target, in_flight, size, seconds):
        self.lock = threading.Lock()
        self.left = threading.Event()
        self.calls = self.failed = self.ended = 0
        self.error, self.running, self.state = "", in_flight, None
        self.channel = grpc.insecure_channel(target)
        self.channel.subscribe(self.on_state)
        self.say = self.channel.unary_unary(PATH)
        self.start = time.monotonic()
        self.end = self.start + seconds
        for slot in range(in_flight):
            self.call(message(slot, size))

    def on_state(self, state):
        ready = grpc.ChannelConnectivity.READY
        self.ended += self.state is ready and state is not ready and self.running > 0
        self.state = state

    def call(self, request):
        if time.monotonic() < self.end:
            future = self.say.future(request, timeout=30)
            future.add_done_callback(lambda done: self.on_done(done, request))
            return
        with self.lock:
            self.running -= 1
            if self.running == 0:
                self.left.set()

    def on_done(self, done, request):
        with self.lock:
            self.calls += 1
            wrong = done.code() is not grpc.StatusCode.OK or done.result() != request
            if wrong and not self.failed:
                self.error = f"{done.code()}: {done.details()}".replace("\n", " ")
            self.failed += wrong
        self.call(request)

    def report(self):
        self.left.wait()
        seconds = time.monotonic() - self.start
        self.channel.close()
        print(self.calls, self.failed, self.ended, f"{seconds:.3f}", self.error, flush=True)


def main(role, *words):
    if role == "server":
        serve(int(words[0]))
    else:
        Run(words[0], int(words[1]), int(words[2]), float(words[3])).report()


if __name__ == "__main__":
    main(*sys.argv[1:])
