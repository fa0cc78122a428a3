#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's implementation for Python as a peer of Bowline, for peers.py: see its top for the arguments."""
import sys
import threading
import time
from concurrent import futures

import grpc

PATH = "/peers.Echo/Say"
TALK_PATH = "/peers.Echo/Talk"
MAX_OUTSTANDING = 16  # messages of a stream that have not come back yet


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
    talk = grpc.stream_stream_rpc_method_handler(lambda messages, context: messages)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("peers.Echo", {"Say": say, "Talk": talk}),))
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
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.begin(in_flight, size)

    def begin(self, in_flight, size):
        self.say = self.channel.unary_unary(PATH)
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
        self.leave()

    def leave(self):
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


class StreamRun(Run):
    def __init__(self, target, in_flight, size, seconds, n_messages):
        self.messages = [[message(slot * n_messages + k, size) for k in range(n_messages)]
                         for slot in range(in_flight)]
        super().__init__(target, in_flight, size, seconds)

    def begin(self, in_flight, size):
        self.talk = self.channel.stream_stream(TALK_PATH)
        for messages in self.messages:
            threading.Thread(target=self.streams, args=(messages,)).start()

    def streams(self, messages):
        while time.monotonic() < self.end:
            wrong = self.stream(messages)
            with self.lock:
                self.failed += bool(wrong)
                self.error = self.error or wrong
        self.leave()

    def stream(self, messages):
        """Returns what was wrong with a stream on which messages are to come back, or ""."""
        window = threading.Semaphore(MAX_OUTSTANDING)
        sent = back = 0

        def requests():
            nonlocal sent
            for request in messages:
                window.acquire()
                if sent > 0 and time.monotonic() >= self.end:
                    return
                sent += 1
                yield request

        call = self.talk(requests(), timeout=60)
        try:
            for reply in call:
                if back == sent or reply != messages[back]:
                    call.cancel()
                    return "the message is another one"
                back += 1
                with self.lock:
                    self.calls += 1
                window.release()
        except grpc.RpcError as error:
            return f"{error.code()}: {error.details()}".replace("\n", " ")
        finally:
            window.release(len(messages))  # nobody waits for it any more
        return "" if back == sent else "messages did not come back"


class PacedRun(Run):
    """One call after the other with a pause, for each line of so many seconds."""

    def __init__(self, target, size):
        super().__init__(target, 1, size, 0)
        self.running = 1  # so that ends count

    def begin(self, in_flight, size):
        self.say = self.channel.unary_unary(PATH)
        self.request = message(0, size)

    def window(self, seconds):
        took, failed, error, ended = [], 0, "", self.ended
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            begin, wrong = time.monotonic(), ""
            try:
                if self.say(self.request, timeout=30) != self.request:
                    wrong = "the reply is another call's"
            except grpc.RpcError as failure:
                wrong = f"{failure.code()}: {failure.details()}".replace("\n", " ")
            took.append(round((time.monotonic() - begin) * 1e6))
            failed += bool(wrong)
            error = error or wrong
            time.sleep(0.001)
        print(len(took), failed, self.ended - ended, f"{time.monotonic() - start:.3f}", error)
        print(*took, flush=True)


def pace(target, size):
    run = PacedRun(target, size)
    for line in sys.stdin:
        run.window(float(line))
    run.running = 0
    run.channel.close()


def main(role, *words):
    if role == "ready":
        print("ready", flush=True)
        sys.stdin.readline()
        main(*words)
    elif role == "server":
        serve(int(words[0]))
    elif role == "paced":
        pace(words[0], int(words[1]))
    elif role == "streams":
        StreamRun(words[0], int(words[1]), int(words[2]), float(words[3]), int(words[4])).report()
    else:
        Run(words[0], int(words[1]), int(words[2]), float(words[3])).report()


if __name__ == "__main__":
    main(*sys.argv[1:])
