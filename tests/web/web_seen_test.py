# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a server tells of calls by Connect and gRPC-Web: its operations listener, metrics, access log.

    web_seen_test.py WEB_SERVER

Exits with 77 when there is no curl that speaks HTTP/2.
"""

import http.client
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

SECONDS = 20
JSON, STREAM = "application/json", "application/connect+json"
WEB = "application/grpc-web+proto"


def envelope(message):
    return struct.pack(">BI", 0, len(message)) + message


HANG = {JSON: b'{"hang":true}', WEB: envelope(b"\x38\x01")}


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


class Operations(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self.path)


class Server:
    def __init__(self, program, folder):
        self.operations = os.path.join(folder, "operations")
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "127.0.0.1:0", "", "0", f"unix:{self.operations}"], stdout=subprocess.PIPE, stderr=log)
        self.port = int(self.process.stdout.readline())

    def ask(self, path):
        client = Operations(self.operations)
        client.request("GET", path)
        answer = client.getresponse()
        body = answer.read().decode()
        client.close()
        equal(answer.status, 200)
        return body

    def calls(self):
        return json.loads(self.ask("/debug/calls?format=json"))["calls"]

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def metric(self, name, **labels):
        total = 0
        for line in self.ask("/metrics").splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name and all(f'{key}="{value}"' in (match[2] or "")
                                                  for key, value in labels.items()):
                total += int(float(match[3]))
        return total

    def ended(self, **labels):
        return self.metric("grpc_server_call_duration_seconds_count", **labels)

    def post(self, method, body, content_type):
        """Over HTTP/1.1."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        client.request("POST", f"/web.Shop/{method}", body, {"content-type": content_type})
        return client

    def curl(self, method, body, content_type):
        """Over HTTP/2."""
        done = subprocess.Popen(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", str(SECONDS),
             "--http2-prior-knowledge", "-H", f"content-type: {content_type}", "--data-binary", "@-",
             f"http://127.0.0.1:{self.port}/web.Shop/{method}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        done.stdin.write(body)
        done.stdin.close()
        return done


def wait_for(found, expected):
    """Until what is told is so: for what no event tells the test of."""
    until = time.monotonic() + SECONDS
    value = found()
    while value != expected and time.monotonic() < until:
        time.sleep(0.01)
        value = found()
    equal(value, expected)


def test_calls_in_flight_have_their_protocol(server):
    def seen():
        return sorted((call["method"], call["protocol"], call["stage"]) for call in server.calls())

    for content_type, protocol in (JSON, "connect"), (WEB, "grpc-web"):
        held = ("/web.Shop/Say", protocol, "in the handler")
        one = server.post("Say", HANG[content_type], content_type)
        two = server.curl("Say", HANG[content_type], content_type)
        wait_for(seen, [held, held])
        equal(server.metric("bowline_server_calls_in_flight", grpc_method="web.Shop/Say"), 2)
        one.close()
        two.terminate()
        two.wait()
        wait_for(seen, [])
        wait_for(lambda: server.metric("bowline_server_calls_in_flight"), 0)


def test_closing_a_connection_of_http1_cancels_its_call(server):
    before = server.metric("bowline_server_calls_cancelled_total")
    client = server.post("Say", HANG[JSON], JSON)
    wait_for(lambda: len(server.calls()), 1)
    client.close()
    wait_for(lambda: server.metric("bowline_server_calls_cancelled_total"), before + 1)
    assert re.search(r" connect /web\.Shop/Say CANCELLED ", server.log())


def test_stream_that_nobody_reads_waits_for_the_socket(server):
    client = server.post("Pour", envelope(b'{"count":4000000,"body":"%s"}' % (b"QUJD" * 1000)), STREAM)

    def seen():
        return [(call["protocol"], call["stage"], call["waiting_bytes"] > 0) for call in server.calls()]

    wait_for(seen, [("connect", "waiting for the socket", True)])
    client.close()
    wait_for(seen, [])


def test_reply_that_cannot_be_json_has_failed(server):
    before = server.ended(grpc_status="INTERNAL")
    bad = b'{"message":"no text"}'
    equal(server.post("Say", bad, JSON).getresponse().status, 500)
    equal(server.curl("Say", bad, JSON).stdout.read(), b"500")
    client = server.post("Pour", envelope(b'{"message":"no text","count":3}'), STREAM)
    assert b'"internal"' in client.getresponse().read()
    wait_for(lambda: server.ended(grpc_status="INTERNAL"), before + 3)
    equal(len(re.findall(r"/web\.Shop/\w+ INTERNAL.*cannot be JSON", server.log())), 3)
    equal(server.metric("bowline_server_calls_in_flight"), 0)


def test_heads_over_the_limit_are_told(server):
    def told():
        return len(re.findall(r" http .*max_header_bytes", server.log()))

    before = told()
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    client.request("POST", "/web.Shop/Say", b"{}", {"content-type": JSON, "x-large": "a" * 100000})
    wait_for(told, before + 1)
    client.close()


def test_streams_both_ways_over_http1_are_told(server):
    def told():
        return len(re.findall(r"/web\.Shop/Chat UNIMPLEMENTED.*refused=http_version", server.log()))

    before = told()
    equal(server.post("Chat", b"", STREAM).getresponse().status, 505)
    wait_for(told, before + 1)


def test_whatever_comes_what_was_started_has_ended(server):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    bodies = [("Say", b"{}", JSON), ("Say", b'{"code":5}', JSON), ("Say", b"{", JSON), ("Say", b"", WEB),
              ("Say", b'{"message":"no text"}', JSON), ("Nope", b"{}", JSON), ("Nope", envelope(b""), WEB),
              ("Say", HANG[JSON], JSON), ("Say", HANG[WEB], WEB), ("Say", envelope(b"\x0a\x01a"), WEB),
              ("Say", envelope(b"") + envelope(b""), WEB), ("Say", envelope(b"\xff"), WEB),
              ("Pour", envelope(b'{"count":500}'), STREAM), ("Pour", envelope(b'{"count":2}'), STREAM),
              ("Pour", envelope(b'{"count":2,"hang":true}'), STREAM), ("Pour", b"\x00\x00", STREAM),
              ("Gather", envelope(b"{}") * 3, STREAM), ("Gather", envelope(b'{"code":3}') + envelope(b"{}"), STREAM),
              ("Chat", envelope(b"{}"), STREAM), ("Say", b"x", "text/plain")]
    open_ones = []
    for _ in range(200):
        method, body, content_type = chance.choice(bodies)
        if chance.random() < 0.05:
            open_ones.append(server.curl(method, body, content_type).terminate)
        else:
            client = server.post(method, body, content_type)
            if b"hang" in body or body == HANG[WEB] or chance.random() < 0.5:
                open_ones.append(client.close)
            else:
                client.getresponse().read()
                client.close()
        while open_ones and chance.random() < 0.5:
            open_ones.pop(chance.randrange(len(open_ones)))()
    for end in open_ones:
        end()
    wait_for(lambda: (server.metric("bowline_server_calls_in_flight"), server.calls()), (0, []))
    equal(server.ended(), server.metric("grpc_server_call_started_total"))
    wait_for(lambda: server.metric("bowline_server_connections_opened_total") -
             server.metric("bowline_server_connections_closed_total"), 0)


def main():
    version = subprocess.run(["curl", "--version"], capture_output=True, check=False).stdout
    if b"HTTP2" not in version:
        print("there is no curl that speaks HTTP/2")
        return 77
    failed = 0
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], folder)
        for name, test in tests.items():
            try:
                test(server)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"{name}: {type(error).__name__}: {error}")
        server.process.terminate()
        if server.process.wait(timeout=SECONDS) != 0:
            failed += 1
            print(f"the server ended with {server.process.returncode}: {server.log()[-2000:]}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
