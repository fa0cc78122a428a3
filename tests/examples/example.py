# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests of examples share: a program that is started, watched line by line, and stopped.

Nothing here sleeps: each wait is for a line, for bytes, or for the end, and has a limit.
"""
import contextlib
import random
import re
import selectors
import signal
import socket
import subprocess
import time

PATIENCE_S = 60


class Program:
    """A server under test; its standard output is read as lines."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        self.rest = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def wait_line(self, pattern):
        """The match in the first line, old or new, that matches."""
        until = time.monotonic() + PATIENCE_S
        seen = 0
        while True:
            for line in self.lines[seen:]:
                found = re.search(pattern, line)
                if found:
                    return found
            seen = len(self.lines)
            ready = self.selector.select(max(until - time.monotonic(), 0))
            chunk = self.process.stdout.read1() if ready else b""
            assert chunk, f"no line matches {pattern!r} in {self.lines}"
            *complete, self.rest = (self.rest + chunk).split(b"\n")
            self.lines += [line.decode() for line in complete]

    def port(self):
        return int(self.wait_line(r"^listening on .*, port (\d+)$").group(1))

    def stop(self):
        """SIGTERM, and the end it must come to by itself."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, f"ended with {self.process.returncode}"

    def close(self):
        """In every case, at the end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.selector.close()


@contextlib.contextmanager
def program(*command):
    """A program that must end in order when it is told to."""
    running = Program(*command)
    try:
        yield running
        running.stop()
    finally:
        running.close()


@contextlib.contextmanager
def failing(*command):
    """A program that must end by itself, with 1."""
    running = Program(*command)
    try:
        yield running
        assert running.process.wait(PATIENCE_S) == 1, f"ended with {running.process.returncode}"
    finally:
        running.close()


def free_port():
    """Below those that the system gives to outgoing connections: nobody takes it while its server
    is down."""
    while True:
        with socket.socket() as probe:
            port = random.randrange(10_000, 32_000)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


def connect(port):
    peer = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    peer.settimeout(PATIENCE_S)
    return peer


def receive(peer, n):
    """Exactly `n` bytes, or what came before the end."""
    got = b""
    while len(got) < n:
        chunk = peer.recv(n - len(got))
        if not chunk:
            break
        got += chunk
    return got
