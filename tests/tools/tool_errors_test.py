#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tool says when something is wrong: one line, with what to do; and its exit codes.

usage: tool_errors_test.py TOOL SERVER PROTOC HERE
"""
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

import tool
from tool import Run, server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop" / "public"))
from certificate import NAME, Certificate  # noqa: E402

UNAVAILABLE = 64 + 14
DEADLINE = 64 + 4


@contextlib.contextmanager
def peer(answer):
    """A peer that answers the first bytes of each connection with `answer(bytes)`; None: never."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                if answer is None:
                    continue
                connection.sendall(answer(connection.recv(100)))
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in held:
            connection.close()


def grpc_alone(first):
    """SETTINGS, to who speaks HTTP/2."""
    return b"\0\0\0\4\0\0\0\0\0" if first.startswith(b"PRI") else b""


def native_alone(first):
    return b"\xb0OW\1" if first.startswith(b"\xb0OW") else b""


def test_dead():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for protocol in ("", "grpc:"):
        for command in (["ping"], ["health"], ["list"], ["call", "a.B/C"], ["bench", "a.B/C"]):
            Run(command[0], f"{protocol}127.0.0.1:{port}", *command[1:]).failed(
                UNAVAILABLE, "ECONNREFUSED", f"127.0.0.1:{port}")
    with tempfile.TemporaryDirectory() as folder:
        Run("ping", f"unix:{folder}/none").failed(UNAVAILABLE, "ENOENT")


def test_slow():
    with peer(None) as address:
        for protocol in ("", "grpc:"):
            run = Run("ping", protocol + address, "-n", "1", "--connect-timeout", "300ms")
            run.failed(UNAVAILABLE, address)
            run = Run("ping", protocol + address, "-n", "1", "--deadline", "300ms")
            run.failed(DEADLINE, address)
    with server("127.0.0.1:0", "--reflection") as desk:
        Run("call", desk.address, "desk.Desk/Work", '{"sleepUs": 60000000}', "--deadline",
            "100ms").failed(DEADLINE, "100 ms", "--deadline gives it more time")


def test_tls_expected_and_not():
    with tempfile.TemporaryDirectory() as folder:
        files = Certificate(folder)
        with server("127.0.0.1:0", "--tls", files.certificate, files.key) as desk:
            for protocol in ("", "grpc:"):
                Run("ping", protocol + desk.address, "-n", "1").failed(
                    UNAVAILABLE, "expects TLS: --tls, or --ca FILE")
                Run("ping", protocol + desk.address, "--tls", "-n", "1").failed(UNAVAILABLE)
    with server() as desk:
        for protocol in ("", "grpc:"):
            Run("ping", protocol + desk.address, "--insecure", "-n", "1").failed(
                UNAVAILABLE, "speaks no TLS: leave")


def test_token_is_sent_as_advised():
    with tempfile.TemporaryDirectory() as folder:
        files = Certificate(folder)
        token = pathlib.Path(folder, "token")
        token.write_text("letmein\n", encoding="utf-8")
        tls = ("--ca", files.ca, "--authority", NAME)
        with server("127.0.0.1:0", "--tls", files.certificate, files.key, "--token", "letmein") as desk:
            for protocol in ("", "grpc:"):
                Run("health", protocol + desk.address, *tls).failed(
                    64 + 16, "UNAUTHENTICATED", "--token-file or --token-env sends a token\n")
                for option, value in (("--token-file", str(token)), ("--token-env", "TOKEN_HERE")):
                    assert Run("health", protocol + desk.address, *tls, option, value,
                               env={"TOKEN_HERE": "letmein"}).ok() == "SERVING\n"
        with server("127.0.0.1:0", "--token", "letmein") as desk:
            Run("health", desk.address).failed(64 + 16, "sends a token, with --tls or --ca")


def test_wrong_protocol():
    with peer(grpc_alone) as address:
        Run("ping", address, "-n", "1").failed(UNAVAILABLE, "speaks gRPC: put grpc: in front")
    with peer(native_alone) as address:
        Run("ping", "grpc:" + address, "-n", "1").failed(
            UNAVAILABLE, "speaks Bowline's own protocol: leave grpc: out")
    with peer(lambda first: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        for protocol in ("", "grpc:"):
            Run("ping", protocol + address, "-n", "1").failed(UNAVAILABLE, "speaks HTTP/1")


def test_a_server_that_speaks_both_is_not_said_to_speak_the_other():
    with server("127.0.0.1:0", "--reflection") as desk:
        for protocol in ("", "grpc:"):
            run = Run("call", protocol + desk.address, "desk.Desk/Work", '{"failCode": 14}')
            assert "speaks" not in run.failed(UNAVAILABLE, "as was asked").err, run


def test_no_reflection():
    with server() as desk:
        for protocol in ("", "grpc:"):
            for command in (["list"], ["describe"], ["call", "desk.Desk/Echo"]):
                Run(command[0], protocol + desk.address, *command[1:]).failed(
                    64 + 12, "has no reflection", "--proto FILE or --protoset FILE")


def test_unknown_names_and_what_was_meant():
    with server("127.0.0.1:0", "--reflection") as desk:
        Run("call", desk.address, "desk.Desk/Eco").failed(2, "did you mean desk.Desk/Echo")
        Run("call", desk.address, "desk.Desc/Echo").failed(2, "did you mean desk.Desk?")
        Run("call", desk.address, "Echo").failed(2, "no Echo", "bowline list")
        Run("describe", desk.address, "desk.Note2").failed(2, "no desk.Note2")
        Run("describe", desk.address, "desk.Desk/Eco").failed(2, "did you mean desk.Desk/Echo")
        Run("list", desk.address, "desk.Dsk").failed(2, "did you mean desk.Desk?")


def test_bad_json_has_its_place():
    with server("127.0.0.1:0", "--reflection") as desk:
        Run("call", desk.address, "desk.Desk/Echo", '{"text": 7}').failed(
            2, "the data: desk.Note.text at 1:10: a string is needed")
        Run("call", desk.address, "desk.Desk/Echo", '{"txt": 7}').failed(2, "txt")
        Run("call", desk.address, "desk.Desk/Echo", "{} {}").failed(2, "more than one message")
        Run("call", desk.address, "desk.Desk/Sum", text='{"number":1}\n\n{"number":"x"}\n').failed(
            2, "standard input, the message from line 3 on: desk.Note.number at 1:")
        Run("call", desk.address, "desk.Desk/Echo", "@/no/such").failed(2, "/no/such: No such file")
        Run("bench", desk.address, "desk.Desk/Echo", '{"text":"{{sequence}}"}').failed(
            2, "{{sequence}}", "{{seq}}")


def test_command_line():
    assert Run().code == 2
    assert "usage: bowline" in Run("--help").ok()
    assert Run("--version").ok().startswith("bowline ")
    for command in ("call", "list", "describe", "ping", "health", "bench", "watch", "new"):
        assert f"usage: bowline {command}" in Run(command, "--help").ok()
    Run("cal").failed(2, "no command \"cal\"")
    assert "\x1b" not in Run("c\x1b[31mal").failed(2, "c\\x1b[31mal").err
    Run("call", "x").failed(2, "something is missing")
    Run("ping", "x", "y").failed(2, "\"y\" is more than it takes")
    Run("ping", "x", "--rate", "5").failed(2, "--rate is an option of bench, not of ping")
    Run("ping", "x", "--nothing").failed(2, "--nothing is no option")
    Run("ping", "x", "--json", "-zn").failed(2, "-z is no option")
    Run("ping", "x", "-n").failed(2, "-n needs a value")
    Run("ping", "x", "-n", "0").failed(2, "a number from 1")
    Run("call", "x:1", "y", "--deadline", "soon").failed(2, "\"soon\" is not a time")
    for option in ("--deadline", "--connect-timeout", "--interval"):
        Run("ping", "x:1", option, "0").failed(2, f"{option}: \"0\" is not a time above 0")
    Run("bench", "x:1", "y", "-d", "0").failed(2, "--duration: \"0\" is not a time above 0")
    Run("call", "x:1", "y", "-H", "none").failed(2, "write KEY: VALUE")
    Run("call", "x", "y", "--key", "k").failed(2, "--cert")
    Run("call", "x:1", "y", "--authority", "shop").failed(2, "--authority", "grpc:", "--tls")
    Run("call", "grpc:x:1", "y", "--authority", "a/b").failed(2, "options.authority")
    Run("call", "grpc:x:1", "y", "--server-name", "shop").failed(2, "--server-name", "--tls")
    Run("bench", "x:1", "y", "-n", "5", "-d", "1s").failed(2, "one of -n and -d")
    Run("call", "x:1", "y", "--tls", "--token-env", "NO_SUCH_THING").failed(2, "NO_SUCH_THING")
    Run("call", "x:1", "y", "--token-env", "HOME").failed(2, "over TLS alone", "--tls")
    Run("call", "x:1", "y", "--tls", "--token-file", "/no/such").failed(1, "/no/such")
    Run("call", "x:1", "y", "--ca", "/no/such").failed(2, "/no/such")
    Run("call", "nonsense", "y").failed(2, "nonsense")
    Run("list").failed(2, "say where")


def test_new_refuses_names():
    for name in ("Shop", "1st", "a--b", "a-", "x" * 41, "a/b"):
        Run("new", name).failed(2, "is no name for a service")
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([tool.TOOL, "new", "price-list"], cwd=folder, capture_output=True,
                              text=True, check=True)
        assert "price-list/price_list.proto" in made.stdout, made
        again = subprocess.run([tool.TOOL, "new", "price-list"], cwd=folder, capture_output=True,
                               text=True, check=False)
        assert again.returncode == 1 and "File exists" in again.stderr, again


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
