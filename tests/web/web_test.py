# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calls of the Connect protocol and of gRPC-Web over HTTP/1.1 and HTTP/2, by curl and by hand.

    web_test.py WEB_SERVER

Exits with 77 when there is no curl that speaks HTTP/2.
"""

import base64
import gzip
import http.client
import json
import shutil
import socket
import struct
import subprocess
import sys

ORIGIN = "https://shop.example"
LIMIT = 100000
PAGE_BYTES = 256 << 10
SECONDS = "30"


class Answer:
    def __init__(self, raw):
        while True:  # what stands before the last head: 100 (Continue)
            head, _, self.body = raw.partition(b"\r\n\r\n")
            self.lines = head.decode("latin-1").split("\r\n")
            self.status = int(self.lines[0].split()[1])
            if self.status >= 200:
                break
            raw = self.body

    def get(self, name):
        values = [line.split(":", 1)[1].strip() for line in self.lines[1:]
                  if line.split(":", 1)[0].lower() == name]
        return ", ".join(values) if values else None

    def json(self):
        return json.loads(self.body)


class Curl:
    """Requests over one version of HTTP."""

    def __init__(self, port, version):
        self.root = f"http://127.0.0.1:{port}/"
        self.flag = {"1.1": "--http1.1", "2": "--http2-prior-knowledge"}[version]

    def __call__(self, path, body=None, content_type="application/json", headers=(), more=()):
        command = ["curl", "-sS", "-i", "--max-time", SECONDS, self.flag, *more]
        for header in ([f"content-type: {content_type}"] if content_type else []) + list(headers):
            command += ["-H", header]
        if body is not None:
            command += ["--data-binary", "@-"]
        path = path if path.startswith("/") else "/web.Shop/" + path
        done = subprocess.run(command + [self.root + path[1:]], input=body, capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stderr.decode()}")
        return Answer(done.stdout)


def envelope(*messages, flags=0):
    return b"".join(struct.pack(">BI", flags, len(message)) + message for message in messages)


def envelopes(body):
    found = []
    while body:
        flags, length = struct.unpack(">BI", body[:5])
        found.append((flags, body[5:5 + length]))
        assert len(found[-1][1]) == length, "the answer ends inside a message"
        body = body[5 + length:]
    return found


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


ADA = b"\x0a\x03Ada"  # Request { name: "Ada" }
HELLO = b"\x0a\x0aHello, Ada"  # Reply { text: "Hello, Ada" }


# Connect, unary

def test_json_is_answered_in_json(curl):
    answer = curl("Say", b'{"name":"Ada","large":"12345678901","body":"AQI="}')
    equal(answer.status, 200)
    equal(answer.get("content-type"), "application/json")
    found = answer.json()
    equal([found[name] for name in ("text", "body", "large")], ["Hello, Ada", "AQI=", "12345678901"])


def test_fields_that_are_not_known_are_left_out(curl):
    equal(curl("Say", b'{"name":"Ada","newer":[1]}').json()["text"], "Hello, Ada")


def test_protobuf_is_answered_in_protobuf(curl):
    answer = curl("Say", ADA, "application/proto")
    equal((answer.status, answer.get("content-type"), answer.body[:12]), (200, "application/proto", HELLO))


def test_an_empty_message_is_one(curl):
    equal(curl("Say", b"", "application/proto").body[:9], b"\x0a\x07Hello, ")
    equal(curl("Say", b"{}").json()["text"], "Hello, ")


def test_an_error_has_its_status_code_and_details(curl):
    details = b"\x08\x05\x1a\x0b\x0a\x05x/a.B\x12\x02\x08\x01"
    body = {"code": 5, "message": "no such order", "details": base64.b64encode(details).decode()}
    answer = curl("Say", json.dumps(body).encode())
    equal((answer.status, answer.get("content-type")), (404, "application/json"))
    equal(answer.json(), {"code": "not_found", "message": "no such order",
                          "details": [{"type": "a.B", "value": "CAE"}]})
    answer = curl("Say", b"\x18\x10", "application/proto")  # also where messages are protobuf
    equal((answer.status, answer.json()), (401, {"code": "unauthenticated"}))


def test_an_error_of_json_says_where(curl):
    answer = curl("Say", b'{"name":\n 3}')
    equal((answer.status, answer.json()["code"]), (400, "invalid_argument"))
    assert "web.Request.name at 2:2: a string is needed" in answer.json()["message"], answer.body
    assert "cannot be decoded" in curl("Say", b"").json()["message"]


def test_a_method_that_is_not_there(curl):
    answer = curl("Nope", b"{}")
    equal((answer.status, answer.json()["code"]), (501, "unimplemented"))


def test_metadata_goes_both_ways(curl):
    answer = curl("Say", b"{}", headers=["Echo-A: 1", "echo-b-bin: AP8="])
    equal((answer.get("echo-a"), answer.get("trailer-echo-a")), ("1", "1"))
    equal((answer.get("echo-b-bin"), answer.get("trailer-echo-b-bin")), ("AP8", "AP8"))
    failed = curl("Say", b'{"code":10}', headers=["echo-a: 1"])
    equal((failed.status, failed.get("echo-a"), failed.get("trailer-echo-a")), (409, "1", "1"))


def test_a_page_is_there(curl):
    answer = curl("/", content_type=None)
    equal((answer.status, answer.get("content-type")), (200, "text/html; charset=utf-8"))
    equal(answer.body, (b"<p>" * (PAGE_BYTES // 3 + 1))[:PAGE_BYTES])
    assert "frame-ancestors 'none'" in answer.get("content-security-policy"), answer.lines
    equal(answer.get("access-control-allow-origin"), None)
    equal(curl("/?a=b", content_type=None).body, answer.body)
    head = curl("/", content_type=None, more=["-I"])
    equal((head.status, head.body, head.get("x-content-type-options")), (200, b"", "nosniff"))
    equal(curl("/other", content_type=None).status, 415)


def test_a_deadline_passes(curl):
    answer = curl("Say", b'{"hang":true}', headers=["connect-timeout-ms: 50"])
    equal((answer.status, answer.json()["code"]), (504, "deadline_exceeded"))
    answer = curl("Say", b"{}", headers=["connect-timeout-ms: soon"])
    equal((answer.status, answer.json()["code"]), (400, "invalid_argument"))


def test_another_version_is_refused(curl):
    equal(curl("Say", b"{}", headers=["connect-protocol-version: 1"]).status, 200)
    answer = curl("Say", b"{}", headers=["connect-protocol-version: 2"])
    equal((answer.status, answer.json()["code"]), (400, "invalid_argument"))


def test_get_of_what_has_no_side_effects(curl):
    answer = curl("Look?connect=v1&encoding=json&message=%7B%22name%22%3A%22Ada%22%7D", content_type=None)
    equal((answer.status, answer.json()["text"]), (200, "Hello, Ada"))
    message = base64.urlsafe_b64encode(ADA).decode().rstrip("=")
    answer = curl(f"Look?encoding=proto&base64=1&message={message}", content_type=None)
    equal((answer.status, answer.body[:12]), (200, HELLO))
    answer = curl("Say?encoding=json&message=%7B%7D", content_type=None)
    equal((answer.status, answer.get("allow")), (405, "POST"))
    equal(curl("Pour?encoding=json&message=%7B%7D", content_type=None).status, 405)
    equal(curl("Look?encoding=json", content_type=None).status, 400)
    equal(curl("Look?encoding=json&message=%7", content_type=None).status, 400)
    equal(curl("Look", content_type=None).status, 415)


def test_requests_are_inflated_and_answers_deflated(curl):
    body = json.dumps({"name": "Ada", "compress": True, "body": "A" * 4000}).encode()
    answer = curl("Say", gzip.compress(body), headers=["content-encoding: gzip", "accept-encoding: gzip"])
    equal((answer.status, answer.get("content-encoding")), (200, "gzip"))
    equal(json.loads(gzip.decompress(answer.body))["body"], "A" * 4000)
    equal(curl("Say", body).get("content-encoding"), None)
    answer = curl("Say", gzip.compress(ADA), "application/proto", headers=["content-encoding: gzip"])
    assert answer.body.startswith(HELLO), answer.body
    answer = curl("Say", b"{}", headers=["content-encoding: br"])
    equal((answer.status, answer.json()["code"]), (501, "unimplemented"))
    answer = curl("Say", b"{}", headers=["content-encoding: gzip"])
    equal(answer.status // 100, 4)


def test_a_message_over_the_limit_is_refused(curl):
    body = json.dumps({"body": "A" * LIMIT}).encode()
    answer = curl("Say", body)
    equal((answer.status, answer.json()["code"]), (429, "resource_exhausted"))
    assert f"max_message_bytes ({LIMIT})" in answer.json()["message"], answer.body
    bomb = gzip.compress(b" " * (LIMIT + 1))
    answer = curl("Say", bomb, headers=["content-encoding: gzip"])
    equal((answer.status, answer.json()["code"]), (429, "resource_exhausted"))


def test_what_is_no_call_is_told_so(curl):
    answer = curl("Say", b"x", "text/plain")
    equal(answer.status, 415)
    assert "application/json" in answer.get("accept-post")
    equal(curl("Say", b"{}", more=["-X", "PUT"]).status, 405)
    equal(curl("Pour", b"{}").status, 415)
    equal(curl("Say", envelope(b"{}"), "application/connect+json").status, 415)


# Connect, streams

def test_a_stream_of_json(curl):
    answer = curl("Pour", envelope(b'{"name":"Ada","count":3}'), "application/connect+json")
    equal((answer.status, answer.get("content-type")), (200, "application/connect+json"))
    *messages, (flags, end) = envelopes(answer.body)
    equal([json.loads(message).get("number", 0) for _, message in messages], [0, 1, 2])
    equal((flags, json.loads(end)), (2, {}))


def test_a_stream_ends_with_error_and_metadata(curl):
    answer = curl("Pour", envelope(b'{"count":1,"code":9,"message":"no"}'), "application/connect+json",
                  headers=["echo-a: 1"])
    *messages, (flags, end) = envelopes(answer.body)
    equal((answer.status, len(messages), flags, answer.get("echo-a")), (200, 1, 2, "1"))
    equal(json.loads(end), {"error": {"code": "failed_precondition", "message": "no"},
                            "metadata": {"echo-a": ["1"]}})


def test_a_stream_of_protobuf_compressed(curl):
    body = envelope(gzip.compress(b"\x0a\x03Ada\x10\x02\x40\x01\x32\xd0\x0f" + b"A" * 2000), flags=1)
    answer = curl("Pour", body, "application/connect+proto",
                  headers=["connect-content-encoding: gzip", "connect-accept-encoding: gzip"])
    equal(answer.get("connect-content-encoding"), "gzip")
    (one, first), (two, _), (flags, _) = envelopes(answer.body)
    equal((one, two, flags), (1, 1, 2))
    assert gzip.decompress(first).startswith(HELLO)


def test_a_client_may_send_a_stream(curl):
    body = envelope(b'{"body":"AQI="}', b'{"body":"AQID"}', b"{}")
    (flags, reply), (last, _) = envelopes(curl("Gather", body, "application/connect+json").body)
    equal((flags, json.loads(reply), last), (0, {"number": 3, "large": "5"}, 2))


def test_a_body_cut_inside_a_message_is_refused(curl):
    answer = curl("Gather", envelope(b"{}")[:-1], "application/connect+json")
    equal(json.loads(envelopes(answer.body)[-1][1])["error"]["code"], "invalid_argument")


# gRPC-Web

def trailers(text):
    return dict(line.split(": ", 1) for line in text.decode().strip().split("\r\n"))


def test_grpc_web(curl):
    answer = curl("Say", envelope(ADA), "application/grpc-web+proto", headers=["echo-a: 1"])
    equal((answer.status, answer.get("content-type")), (200, "application/grpc-web+proto"))
    (flags, reply), (last, end) = envelopes(answer.body)
    equal((flags, last), (0, 0x80))
    assert reply.startswith(HELLO)
    equal((answer.get("echo-a"), trailers(end)), ("1", {"grpc-status": "0", "echo-a": "1"}))


def test_grpc_web_error(curl):
    answer = curl("Say", envelope(b"\x18\x05\x22\x02n\xc3"), "application/grpc-web")
    equal(answer.status, 200)
    equal(trailers(envelopes(answer.body)[-1][1])["grpc-status"], "13")  # not UTF-8
    answer = curl("Say", envelope(b"\x18\x05\x22\x03n%o"), "application/grpc-web")
    equal(trailers(envelopes(answer.body)[-1][1]), {"grpc-status": "5", "grpc-message": "n%25o"})


def test_grpc_web_deadline(curl):
    answer = curl("Say", envelope(b"\x38\x01"), "application/grpc-web", headers=["grpc-timeout: 50m"])
    equal(trailers(envelopes(answer.body)[-1][1])["grpc-status"], "4")


def test_grpc_web_text(curl):
    body = base64.b64encode(envelope(b"\x0a\x03Ada\x10\x02"))
    answer = curl("Pour", body, "application/grpc-web-text")
    equal(answer.get("content-type"), "application/grpc-web-text+proto")
    raw = b"".join(base64.b64decode(answer.body[i:i + 4]) for i in range(0, len(answer.body), 4))
    *messages, (last, end) = envelopes(raw)
    equal((len(messages), last, trailers(end)), (2, 0x80, {"grpc-status": "0"}))


# Pages

PREFLIGHT = ["access-control-request-method: POST", "access-control-request-headers: content-type,echo-a"]


def test_pages_of_the_list_may_call(curl):
    answer = curl("Say", None, None, [f"origin: {ORIGIN}", *PREFLIGHT], ["-X", "OPTIONS"])
    equal((answer.status, answer.get("access-control-allow-origin")), (204, ORIGIN))
    equal(answer.get("access-control-allow-headers"), "content-type,echo-a")
    answer = curl("Say", b"{}", headers=[f"origin: {ORIGIN}"])
    equal((answer.status, answer.get("access-control-allow-origin"), answer.get("vary")),
          (200, ORIGIN, "origin"))
    equal(answer.get("access-control-expose-headers"), "*")
    failed = curl("Say", b'{"code":5}', headers=[f"origin: {ORIGIN}"])
    equal(failed.get("access-control-allow-origin"), ORIGIN)
    stream = curl("Pour", envelope(b"{}"), "application/connect+json", [f"origin: {ORIGIN}"])
    equal(stream.get("access-control-allow-origin"), ORIGIN)


def test_other_pages_may_not(curl):
    answer = curl("Say", None, None, ["origin: https://evil.example", *PREFLIGHT], ["-X", "OPTIONS"])
    equal((answer.status, answer.get("access-control-allow-origin")), (403, None))
    answer = curl("Say", b"{}", headers=["origin: https://evil.example"])
    equal(answer.get("access-control-allow-origin"), None)


# HTTP/1.1 by hand

def post(path, body, headers=b"content-type: application/json\r\n"):
    return (b"POST /web.Shop/" + path + b" HTTP/1.1\r\nhost: a\r\n" + headers +
            b"content-length: %d\r\n\r\n" % len(body) + body)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def read_answer(file):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = file.readline()
        assert line, "the connection was closed"
        head += line
    answer = Answer(head)
    answer.body = file.read(int(answer.get("content-length") or 0))
    return answer


def test_http1_connection_stays_for_the_next_request(port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for body, status in (b"{}", 200), (b'{"code":5}', 404), (b"{", 400), (b"{}", 200):
        client.request("POST", "/web.Shop/Say", body, {"content-type": "application/json"})
        equal(client.sock is not None, True)
        first = client.sock
        answer = client.getresponse()
        equal((answer.status, answer.read()[:1]), (status, b"{"))
        equal(client.sock, first)
    client.close()


def test_http1_requests_in_a_row_are_answered_in_order(port):
    with connect(port) as sock:
        names = [b"%d" % i for i in range(100)]
        sock.sendall(b"".join(post(b"Say", b'{"name":"%s"}' % name) for name in names))
        file = sock.makefile("rb")
        for name in names:
            equal(read_answer(file).json()["text"], f"Hello, {name.decode()}")


def test_http1_request_waits_for_the_one_before(port):
    slow = post(b"Say", b'{"hang":true}', b"content-type: application/json\r\nconnect-timeout-ms: 100\r\n")
    with connect(port) as sock:
        sock.sendall(slow + post(b"Say", b"{}"))
        file = sock.makefile("rb")
        equal([read_answer(file).status, read_answer(file).status], [504, 200])


def test_http1_body_byte_by_byte_in_chunks(port):
    with connect(port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = (b"POST /web.Shop/Say HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
                b"transfer-encoding: chunked\r\n\r\n")
        for byte in head + b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"name":"Ada"}') + b"0\r\n\r\n":
            sock.sendall(b"%c" % byte)
        equal(read_answer(sock.makefile("rb")).json()["text"], "Hello, Ada")


def test_http1_continue_is_said_to_who_waits_for_it(port):
    with connect(port) as sock:
        request = post(b"Say", b"{}", b"content-type: application/json\r\nexpect: 100-continue\r\n")
        sock.sendall(request[:-2])
        file = sock.makefile("rb")
        equal(file.readline(), b"HTTP/1.1 100 Continue\r\n")
        equal(file.readline(), b"\r\n")
        sock.sendall(request[-2:])
        equal(read_answer(file).status, 200)


def test_http1_what_is_none_is_refused(port):
    with connect(port) as sock:
        sock.sendall(b"POST /a.B/C HTTP/1.1\r\nhost : a\r\n\r\n")
        file = sock.makefile("rb")
        answer = read_answer(file)
        equal((answer.status, answer.get("connection"), file.read()), (400, "close", b""))


def test_http1_streams_both_ways_need_http2(port):
    with connect(port) as sock:
        sock.sendall(post(b"Chat", b"", b"content-type: application/connect+json\r\n"))
        equal(read_answer(sock.makefile("rb")).status, 505)


def test_http1_close_cancels_the_call(port):
    def count():
        with connect(port) as sock:
            sock.sendall(post(b"Say", b"{}"))
            return read_answer(sock.makefile("rb")).json().get("nCancelled", 0)

    before = count()
    with connect(port) as sock:
        sock.sendall(post(b"Say", b'{"hang":true}'))
    while count() == before:
        pass


def test_http1_slow_reader_gets_all_in_the_end(port):
    with connect(port) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        size = 1000
        body = json.dumps({"count": size, "body": base64.b64encode(b"A" * 3000).decode()}).encode()
        sock.sendall(post(b"Pour", envelope(body), b"content-type: application/connect+json\r\n"))
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        found = envelopes(answer.read())
        equal((len(found), found[-1][0]), (size + 1, 2))


def has_http2():
    curl = shutil.which("curl")
    return curl is not None and b"HTTP2" in subprocess.run([curl, "-V"], capture_output=True, check=False).stdout


def main():
    if not has_http2():
        print("there is no curl that speaks HTTP/2")
        return 77
    server = subprocess.Popen([sys.argv[1], "127.0.0.1:0", ORIGIN, str(LIMIT)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    port = int(server.stdout.readline())
    failed = passed = 0
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    only = sys.argv[2:]
    for name, test in tests.items():
        by_hand = name.startswith("test_http1_")
        for version in [None] if by_hand else ["1.1", "2"]:
            label = name if by_hand else f"{name} over HTTP/{version}"
            if only and not any(word in label for word in only):
                continue
            try:
                test(port if by_hand else Curl(port, version))
                passed += 1
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"{label}: {type(error).__name__}: {error}")
    server.terminate()
    _, log = server.communicate(timeout=10)
    if server.returncode != 0:
        print(f"the server ended with {server.returncode}: {log.decode()[-2000:]}")
        failed += 1
    for name in b" connect /web.Shop/", b" grpc-web /web.Shop/":
        if not only and name not in log:
            print(f"the access log has no {name!r}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
