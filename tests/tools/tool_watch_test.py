#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""bowline watch: what it shows is what the server counted; on a terminal, off one, for programs; and
what it says of what is no operations listener, or goes away.

usage: tool_watch_test.py TOOL SERVER PROTOC HERE
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import tool
from tool import PATIENCE_S, TOOL, Run, server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop" / "public"))
from certificate import Certificate  # noqa: E402
from example import free_port  # noqa: E402

UNAVAILABLE = 64 + 14
DEADLINE = 64 + 4
QUICK = ("--interval", "50ms")


@contextlib.contextmanager
def watched(*options, operations="127.0.0.1:0"):
    """The server with its operations listener, whose address is `operations`."""
    with server("127.0.0.1:0", "--reflection", "--operations", operations, *options) as desk:
        desk.operations = desk.wait_line("^operations at (.+)$").group(1)
        yield desk


class Watch:
    """The tool at work, its lines read one by one."""

    def __init__(self, *args):
        self.process = subprocess.Popen([TOOL, "watch", *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return line

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def method_of(line, name):
    return next((method for method in line["methods"] if method["method"] == name), None)


def test_it_shows_what_the_server_counted():
    with watched("--max-connections", "50") as desk, Watch(desk.operations, "--json", *QUICK) as watch:
        json.loads(watch.line())
        Run("bench", desk.address, "desk.Desk/Echo", "-n", "500", "-c", "5", "--json").json()
        counted, failed = 0, 0
        Run("bench", desk.address, "desk.Desk/Work", '{"failCode":5}', "-n", "40", "-c", "5")
        while counted < 500 or failed < 40:
            line = json.loads(watch.line())
            echo, work = method_of(line, "desk.Desk/Echo"), method_of(line, "desk.Desk/Work")
            if echo is not None:
                counted += round(echo["calls_per_second"] * line["seconds"])
                if echo["calls_per_second"] > 0:
                    times = echo["latency_seconds"]
                    assert 0 <= times["p50"] <= times["p99"] <= times["max"], line
                assert echo["errors_per_second"] == 0, line
            if work is not None:
                failed += round(work["errors_per_second"] * line["seconds"])
        assert (counted, failed) == (500, 40), (counted, failed)
        assert line["target"] == desk.operations and line["draining"] is False, line
        assert len(line["loops"]) == 1 and line["loops"][0]["state"] == "runs", line
        assert {"limit": "max_connections", "now": line["connections"], "of": 50} in line["limits"], line
        assert watch.end() == 0


def test_slowest_calls_have_their_stage():
    with watched() as desk, Watch(desk.operations, "--json", *QUICK) as watch:
        caller = subprocess.Popen([TOOL, "call", desk.address, "desk.Desk/Work",
                                   '{"sleepUs":60000000}', "--deadline", "50s"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            line = {"slowest_calls": []}
            while [call["method"] for call in line["slowest_calls"]] != ["desk.Desk/Work"]:
                line = json.loads(watch.line())
        finally:
            caller.kill()
            caller.wait()
        call = line["slowest_calls"][0]
        assert call["stage"] == "in the handler" and call["peer"].startswith("127.0.0.1:"), call
        assert 0 < call["left_seconds"] < 50, call
        assert method_of(line, "desk.Desk/Work")["in_flight"] == 1 == line["in_flight"], line
        assert watch.end(signal.SIGTERM) == 0


def test_off_a_terminal_it_is_plain_and_ends_by_count():
    with watched() as desk:
        Run("call", desk.address, "desk.Desk/Echo").ok()
        for target in (desk.operations, f"http://{desk.operations}/"):
            text = Run("watch", target, "-n", "2", *QUICK).ok()
            assert "\x1b" not in text and text.count("METHOD") == 2, text
            assert "desk.Desk/Echo" in text and "serving" in text and desk.address in text, text
        lines = Run("watch", desk.operations, "-n", "3", "--json", "--sort", "name", *QUICK).json()
        assert len(lines) == 3, lines
        names = [method["method"] for method in lines[0]["methods"]]
        assert names == sorted(names) and len(names) > 1, names


def test_over_a_unix_socket():
    with tempfile.TemporaryDirectory() as folder, watched(operations=f"unix:{folder}/ops") as desk:
        line, = Run("watch", f"unix:{folder}/ops", "-n", "1", "--json", *QUICK).json()
        assert line["methods"] == [] and line["connections"] == 0, (line, desk)


# On a terminal

BEGIN = "\x1b[?1049h"
END = "\x1b[?7h\x1b[?25h\x1b[?1049l"


class Terminal:
    """The tool on a terminal of its own."""

    def __init__(self, *args, rows=24, columns=100, env=None):
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.execve(TOOL, [TOOL, "watch", *args], {**os.environ, "TERM": "xterm", **(env or {})})
        self.seen = ""
        self.resize(rows, columns)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        os.close(self.fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def is_raw(self):
        return termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO) == 0

    def picture(self, is_wanted):
        """The rows of the next picture for which that holds, without its colours."""
        until = time.monotonic() + PATIENCE_S
        begin = len(self.seen)
        while True:
            for drawn in re.findall(r"\x1b\[H(.*?)\x1b\[J", self.seen[begin:], re.DOTALL):
                rows = [re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", row) for row in drawn.split("\r\n")]
                if is_wanted(rows):
                    return rows
            ready, _, _ = select.select([self.fd], [], [], max(until - time.monotonic(), 0))
            assert ready, self.seen[begin:]
            self.seen += os.read(self.fd, 65536).decode()

    def wait(self):
        """Its exit code; all that it wrote is in `seen`."""
        with contextlib.suppress(OSError):
            while True:
                self.seen += os.read(self.fd, 65536).decode()
        _, status = os.waitpid(self.child, 0)
        return os.waitstatus_to_exitcode(status)


def place_of(rows, text):
    return next((i for i, row in enumerate(rows) if text in row), -1)


def test_terminal_is_drawn_and_given_back():
    with watched() as desk:
        Run("call", desk.address, "desk.Desk/Echo").ok()
        for end in ("q", "\x03", signal.SIGTERM, signal.SIGHUP):
            with Terminal(desk.operations, *QUICK) as terminal:
                rows = terminal.picture(lambda rows: place_of(rows, "desk.Desk/Echo") > 0)
                assert "METHOD" in rows[3] and "serving" in rows[0] and "q quits" in rows[-1], rows
                assert len(rows) == 24 and terminal.is_raw(), rows
                if isinstance(end, str):
                    terminal.type(end)
                else:
                    os.kill(terminal.child, end)
                assert terminal.wait() == 0
                assert terminal.seen.startswith(BEGIN) and terminal.seen.endswith(END), terminal.seen
                assert terminal.seen.count(BEGIN) == 1 == terminal.seen.count(END)
                assert not terminal.is_raw()


def test_terminal_follows_its_size():
    with watched() as desk, Terminal(desk.operations, *QUICK) as terminal:
        Run("call", desk.address, "desk.Desk/Echo").ok()
        for rows in (50, 10, 3, 1, 24):
            terminal.resize(rows, 80)
            terminal.picture(lambda drawn, rows=rows: len(drawn) == rows)
        terminal.type("q")
        assert terminal.wait() == 0


def test_terminal_keys_sort():
    with watched() as desk, Terminal(desk.operations, *QUICK) as terminal:
        Run("bench", desk.address, "desk.Desk/Work", "-n", "3").ok()
        Run("call", desk.address, "desk.Desk/Echo").ok()
        terminal.picture(
            lambda rows: 0 < place_of(rows, "desk.Desk/Work") < place_of(rows, "desk.Desk/Echo"))
        terminal.type("n")
        terminal.picture(
            lambda rows: 0 < place_of(rows, "desk.Desk/Echo") < place_of(rows, "desk.Desk/Work"))
        terminal.type("q")
        assert terminal.wait() == 0


def test_terminal_has_no_colours_when_asked():
    with watched() as desk:
        with Terminal(desk.operations, *QUICK) as terminal:
            terminal.picture(lambda rows: "serving" in rows[0])
            assert "\x1b[32mserving" in terminal.seen, terminal.seen
        with Terminal(desk.operations, *QUICK, env={"NO_COLOR": "1"}) as terminal:
            terminal.picture(lambda rows: "serving" in rows[0])
            assert "\x1b[32m" not in terminal.seen and "\x1b[2m" not in terminal.seen, terminal.seen


def test_terminal_is_stopped_and_goes_on():
    with watched() as desk, Terminal(desk.operations, *QUICK) as terminal:
        terminal.picture(lambda rows: "serving" in rows[0])
        terminal.type("\x1a")
        _, status = os.waitpid(terminal.child, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and not terminal.is_raw(), status
        os.kill(terminal.child, signal.SIGCONT)
        terminal.picture(lambda rows: "serving" in rows[0] and "q quits" in rows[-1])
        assert terminal.is_raw()
        terminal.type("q")
        assert terminal.wait() == 0 and terminal.seen.endswith(END), terminal.seen


# What is none, or none any more


@contextlib.contextmanager
def peer(answer, n=None):
    """A peer that answers the first bytes of each connection with `answer`, and ends it; None: it says
    nothing. After `n` of them nobody listens any more."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve():
        with contextlib.suppress(OSError):
            while len(held) != n:
                connection, _ = listener.accept()
                held.append(connection)
                if len(held) == n:
                    listener.close()
                if answer is None:
                    continue
                with contextlib.suppress(OSError):
                    connection.recv(1000)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in held:
            connection.close()


def http(body, status="200 OK", head=""):
    return (f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n{body}").encode()


def test_what_is_no_operations_listener_is_said():
    where = "options.operations_listen"
    Run("watch", f"127.0.0.1:{free_port()}").failed(UNAVAILABLE, "ECONNREFUSED", where)
    with tempfile.TemporaryDirectory() as folder:
        Run("watch", f"unix:{folder}/none").failed(UNAVAILABLE, "ENOENT")
        files = Certificate(folder)
        with server("127.0.0.1:0", "--tls", files.certificate, files.key) as desk:
            Run("watch", desk.address).failed(1, "it may expect TLS", where)
    with server() as desk:
        Run("watch", desk.address).failed(1, "answers 4", "port for calls", where)
    with peer(None) as address:
        Run("watch", address, "--connect-timeout", "200ms").failed(
            DEADLINE, "has not answered for 0.2 s")
    for answer, said in ((b"\0\0\0\4\0\0\0\0\0", "speaks gRPC there"),
                         (b"\xb0OW\1", "Bowline's own protocol there"),
                         (b"\x15\3\3\0\2\2\x46", "expects TLS there"),
                         (b"SSH-2.0-x\r\n", "does not speak HTTP"),
                         (b"", "closed the connection without a word"),
                         (http("no", "404 Not Found"), "answers 404"),
                         (http("no", "421 Misdirected Request"), "operations_hosts"),
                         (http("{}"), "not as an operations listener does"),
                         (http("<p>"), "not as an operations listener does"),
                         (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "ended its answer too early"),
                         (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{", "16 MiB")):
        with peer(answer) as address:
            Run("watch", address).failed(1, said)


def test_command_line():
    Run("watch").failed(2, "something is missing")
    Run("watch", "nonsense").failed(2, "nonsense", "no port")
    Run("watch", "grpc:127.0.0.1:1").failed(2, "HTTP without TLS")
    Run("watch", "https://127.0.0.1:1").failed(2, "HTTP without TLS")
    Run("watch", "http:///").failed(2, "is no HOST:PORT")
    Run("watch", "a b:1").failed(2, "is no HOST:PORT")
    Run("watch", "x:1", "--sort", "age").failed(2, "one of rate, errors, p99, in-flight and name")
    Run("watch", "x:1", "--tls").failed(2, "--tls is an option of")
    Run("ping", "x:1", "--sort", "name").failed(2, "--sort is an option of watch, not of ping")


HOSTILE = ('{"config":{"addresses":"\\u001b]0;taken\\u0007"},"counters":{"calls_started":1},'
           '"methods":[{"method":"/\\u001b[2J\\u009b5m","started":1}],"n_calls":1,'
           '"calls":[{"stage":"\\u001b[31m","method":"x","peer":"\\r\\n"}]}')


def test_what_a_listener_says_does_not_lead_the_terminal():
    with peer(http(HOSTILE)) as address:
        with Terminal(address, *QUICK) as terminal:
            terminal.picture(lambda rows: place_of(rows, "\\x1b[2J\\xc2\\x9b5m") > 0)
            terminal.type("q")
            assert terminal.wait() == 0
        assert "taken" in terminal.seen and "\x1b]0" not in terminal.seen, terminal.seen
        assert "\x1b[2J" not in terminal.seen and "\x9b" not in terminal.seen, terminal.seen
        for options in ((), ("--json",)):
            assert "\x1b" not in Run("watch", address, "-n", "1", *QUICK, *options).ok()


def test_a_server_that_goes_away_and_comes_back():
    operations = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as watching:
        with watched(operations=operations):
            terminal = watching.enter_context(Terminal(operations, *QUICK))
            lines = watching.enter_context(Watch(operations, "--json", *QUICK))
            plain = watching.enter_context(Watch(operations, *QUICK))
            terminal.picture(lambda rows: "q quits" in rows[-1] and "serving" in rows[0])
            assert "error" not in json.loads(lines.line())
            assert "serving" in plain.line()
        rows = terminal.picture(lambda rows: "no answer: " in rows[-1])
        assert "ECONNREFUSED" in rows[-1] and "asking again" in rows[-1], rows
        assert "serving" in rows[0], rows  # what was known last
        while "error" not in json.loads(lines.line()):
            pass
        assert "asking again" in plain.process.stderr.readline()
        with watched(operations=operations):
            terminal.picture(lambda rows: "q quits" in rows[-1])
            while "error" in json.loads(lines.line()):
                pass
            while "serving" not in plain.line():
                pass
            terminal.type("q")
            assert terminal.wait() == lines.end() == plain.end() == 0


def test_count_ends_with_what_the_last_interval_had():
    with peer(http(HOSTILE), n=3) as address:
        run = Run("watch", address, "-n", "4", "--json", *QUICK)
    lines = [json.loads(line) for line in run.out.splitlines()]
    assert ["error" in line for line in lines] == [False, False, True, True], run
    assert run.code == UNAVAILABLE and run.err == "", run


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
