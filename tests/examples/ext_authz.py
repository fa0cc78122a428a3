#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The authorization service, asked as Envoy asks, by gRPC's own client.

usage: ext_authz.py SERVER

What is on the wire is written by field numbers here, and in one case by its bytes, and not made of
the example's .proto.
"""
import os
import re
import signal
import sys
import tempfile

import grpc

import example
from wire import decode, encode

ADA, GRACE, ALAN = "7e0c43b55d1c4d9a93f1", "1f4d2a6e9b0747c8a5e2", "c4b1a09f8e7d6c5b4a39"
KEYS = f"""\
# key                 name   below
{ADA}\tada\t/orders
{ADA}  ada    /stock/

  {GRACE}  grace  /
"""

OK, UNAUTHENTICATED, PERMISSION_DENIED = 0, 16, 7  # of google.rpc.Status
OVERWRITE_IF_EXISTS_OR_ADD = 2

# A CheckRequest as Envoy writes it, with fields that the example leaves out: the time, the metadata.
GOLDEN_REQUEST = """
0a ac 02                      # attributes = 1
  0a 13                       #   source = 1
    0a 11 0a 0f               #     address = 1, socket_address = 1
      12 09 31 39 32 2e 30 2e 32 2e 37   # address = 2: 192.0.2.7
      18 f8 ba 02             #       port_value = 3: 40312
  12 11                       #   destination = 2
    0a 0f 0a 0d
      12 08 31 30 2e 30 2e 30 2e 31      # 10.0.0.1
      18 90 3f                #       8080
  22 ff 01                    #   request = 4
    0a 09                     #     time = 1
      08 80 e2 cf aa 06 10 88 27
    12 f1 01                  #     http = 2
      0a 13 38 33 31 36 37 31 33 32 39 31 34 35 30 37 32 31 30 34 31     # id = 1
      12 03 47 45 54          #       method = 2: GET
      1a 1a                   #       headers = 3
        0a 0a 3a 61 75 74 68 6f 72 69 74 79                              # :authority
        12 0c 73 68 6f 70 2e 65 78 61 6d 70 6c 65                        # shop.example
      1a 19
        0a 05 3a 70 61 74 68                                             # :path
        12 10 2f 6f 72 64 65 72 73 2f 37 3f 66 75 6c 6c 3d 31            # /orders/7?full=1
      1a 0e
        0a 07 3a 6d 65 74 68 6f 64                                       # :method
        12 03 47 45 54
      1a 19
        0a 11 78 2d 66 6f 72 77 61 72 64 65 64 2d 70 72 6f 74 6f         # x-forwarded-proto
        12 04 68 74 74 70
      1a 21
        0a 09 78 2d 61 70 69 2d 6b 65 79                                 # x-api-key
        12 14 37 65 30 63 34 33 62 35 35 64 31 63 34 64 39 61 39 33 66 31
      1a 15
        0a 0d 78 2d 63 6c 69 65 6e 74 2d 6e 61 6d 65                     # x-client-name
        12 04 72 6f 6f 74                                                # root
      22 10 2f 6f 72 64 65 72 73 2f 37 3f 66 75 6c 6c 3d 31              # path = 4
      2a 0c 73 68 6f 70 2e 65 78 61 6d 70 6c 65                          # host = 5
      32 04 68 74 74 70                                                  # scheme = 6
      48 ff ff ff ff ff ff ff ff ff 01                                   # size = 9: -1
      52 08 48 54 54 50 2f 31 2e 31                                      # protocol = 10
  5a 00                       #   metadata_context = 11
"""

GOLDEN_HEADERS = [(":authority", "shop.example"), (":path", "/orders/7?full=1"), (":method", "GET"),
                  ("x-forwarded-proto", "http"), ("x-api-key", ADA), ("x-client-name", "root")]

# The answer: OK, x-client-name set whatever the client sent, the key taken away.
GOLDEN_ANSWER = """
0a 00                         # status = 1: its code is OK
1a 25                         # ok_response = 3
  12 18                       #   headers = 2
    0a 14                     #     header = 1
      0a 0d 78 2d 63 6c 69 65 6e 74 2d 6e 61 6d 65   # key = 1: x-client-name
      12 03 61 64 61          #       value = 2: ada
    18 02                     #     append_action = 3: OVERWRITE_IF_EXISTS_OR_ADD
  2a 09 78 2d 61 70 69 2d 6b 65 79                   # headers_to_remove = 5: x-api-key
"""


def hexadecimal(text):
    """Bytes, with what they mean behind #."""
    return bytes.fromhex(re.sub("#.*", "", text))


def request(path, headers, client="192.0.2.7"):
    """The same as GOLDEN_REQUEST, of another path."""
    http = [(1, "8316713291450721041"), (2, "GET")]
    http += [(3, [(1, name), (2, value)]) for name, value in headers]
    http += [(4, path), (5, "shop.example"), (6, "http"), (9, -1), (10, "HTTP/1.1")]
    return encode((1, [
        (1, [(1, [(1, [(2, client), (3, 40312)])])]),
        (2, [(1, [(1, [(2, "10.0.0.1"), (3, 8080)])])]),
        (4, [(1, [(1, 1700000000), (2, 5000)]), (2, http)]),
        (11, b"")]))


class Envoy:
    """Where Envoy's filter stands: what it would do with an answer."""

    def __init__(self, channel):
        self.check = channel.unary_unary("/envoy.service.auth.v3.Authorization/Check")

    def ask(self, data):
        return self.check(data, timeout=example.PATIENCE_S)

    def verdict(self, data):
        """The HTTP status, the headers, and the body or the headers that go."""
        answer = decode(self.ask(data))
        code = decode(answer[1][0]).get(1, [OK])[0]
        if code == OK:
            assert set(answer) == {1, 3}, answer
            ok = decode(answer[3][0])
            assert set(ok) == {2, 5}, ok
            return 200, self.headers(ok), ok[5]
        assert set(answer) == {1, 2}, answer
        denied = decode(answer[2][0])
        status = decode(denied[1][0])[1][0]
        assert (code, status) in ((UNAUTHENTICATED, 401), (PERMISSION_DENIED, 403))
        return status, self.headers(denied), denied[3][0].decode()

    @staticmethod
    def headers(fields):
        found = {}
        for option in map(decode, fields[2]):
            assert option[3] == [OVERWRITE_IF_EXISTS_OR_ADD], option
            header = decode(option[1][0])
            found[header[1][0].decode()] = header[2][0].decode()
        return found

    def get(self, path, key, *headers):
        headers = [(":path", path), *headers]
        return self.verdict(request(path, headers + ([("x-api-key", key)] if key else [])))


def keys_and_paths(envoy):
    allowed = 200, {"x-client-name": "ada"}, [b"x-api-key"]
    for path in ("/orders", "/orders/", "/orders/7", "/orders?of=../admin", "/orders/.../x",
                 "/orders/a%20b", "/orders/.hidden", "/orders/a;v=1.0.2", "/stock", "/stock/7"):
        assert envoy.get(path, ADA) == allowed, path
    assert envoy.get("/orders", ADA, ("x-client-name", "grace")) == allowed
    assert envoy.get("/anything", GRACE) == (200, {"x-client-name": "grace"}, [b"x-api-key"])
    denied = 403, {"x-client-name": "ada"}, "this API key does not open this path\n"
    for path in ("/", "/admin", "/orders-of-others", "/Orders", "", "*", "orders"):
        assert envoy.get(path, ADA) == denied, path


def disguised_paths(envoy):
    """What begins as it may and does not lead there, in the reading of some server or other."""
    for tail in ("..", "../admin", "./x", "%2e%2e/admin", ".%2E/admin", "..;/admin", "..%3bx/admin",
                 "..%2fadmin", "..%5Cadmin", "..\\admin", "/admin", ";/admin", "x%00"):
        assert envoy.get("/orders/" + tail, ADA)[0] == 403, tail
        assert envoy.get("/orders/" + tail, GRACE)[0] == 403, tail


def no_key(envoy):
    challenge = {"www-authenticate": "ApiKey"}
    missing = 401, challenge, "send an API key in the header x-api-key\n"
    unknown = 401, challenge, "nobody has this API key\n"
    assert envoy.get("/orders", None) == missing
    assert envoy.verdict(b"") == missing
    assert envoy.verdict(encode((1, [(1, [(4, "spiffe://a/b")])]))) == missing  # a connection
    for key in (ADA[:-1], ADA + "0", ADA[:-1] + "0", f"{ADA},{ADA}", "#", " "):
        assert envoy.get("/orders", key) == unknown, key
    assert envoy.verdict(request("/orders", [("x-api-key", "")])) == unknown
    # A map's last entry counts, as in every other implementation.
    twice = [("x-api-key", ADA), ("x-api-key", "other")]
    assert envoy.verdict(request("/orders", twice)) == unknown


def reload(envoy, server, path):
    def write(text):
        with open(path, "w") as file:
            file.write(text)
        server.process.send_signal(signal.SIGHUP)

    write(f"{ALAN} alan /orders\n")
    server.wait_line(f"^1 rights in {path}$")
    assert envoy.get("/orders", ADA)[0] == 401
    assert envoy.get("/orders", ALAN)[1] == {"x-client-name": "alan"}
    for number, line, wrong in ((2, "key name", "is not KEY NAME PREFIX"),
                                (2, "key name / more", "is not KEY NAME PREFIX"),
                                (2, "key naïve /", "has letters that no header takes"),
                                (2, "key name orders", "has a prefix that is no plain path"),
                                (2, "key name /a/../b", "has a prefix that is no plain path"),
                                (3, f"#\n{ADA} bob /", "gives another name to a key from above")):
        server.lines.clear()
        write(f"{ADA} ada /orders\n{line}\n")
        server.wait_line(f"{path}:{number}: the line {wrong}$")
        server.wait_line("the keys from before go on$")
        assert envoy.get("/orders", ADA)[0] == 401
        assert envoy.get("/orders", ALAN)[0] == 200
    os.unlink(path)
    server.process.send_signal(signal.SIGHUP)
    server.wait_line("No such file or directory")
    assert envoy.get("/orders", ALAN)[0] == 200


def bad_start(command, folder):
    with example.failing(command, f"{folder}/none") as server:
        server.wait_line(f"{folder}/none: No such file or directory")


def main(command):
    # Under nohup it is ignored, which a program would inherit, and then does not take it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/keys"
        with open(path, "w") as file:
            file.write(KEYS)
        with example.program(command, path, f"unix:{folder}/authz.sock") as server:
            server.wait_line(f"^3 rights in {path}$")
            server.wait_line("^listening on unix:")
            with grpc.insecure_channel(f"unix:{folder}/authz.sock") as channel:
                envoy = Envoy(channel)
                golden = hexadecimal(GOLDEN_REQUEST)
                assert request("/orders/7?full=1", GOLDEN_HEADERS) == golden
                assert envoy.ask(golden) == hexadecimal(GOLDEN_ANSWER)
                keys_and_paths(envoy)
                disguised_paths(envoy)
                no_key(envoy)
                server.wait_line("^401 to 192.0.2.7: nobody has this API key$")
                reload(envoy, server, path)
        bad_start(command, folder)
    print("passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
