# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests of the command-line tool share: the tool run to its end, and its server.

usage of each test: NAME_test.py TOOL SERVER PROTOC HERE
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples"))
from example import PATIENCE_S, Program  # noqa: E402

TOOL, SERVER, PROTOC, HERE = sys.argv[1:5]
TOOL = os.path.abspath(TOOL)  # some tests run it in a folder of theirs


class Run:
    """One run of the tool: its exit code, and what it wrote."""

    def __init__(self, *args, text=None, env=None):
        done = subprocess.run([TOOL, *args], input=text, env=env, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.args, self.code, self.out, self.err = args, done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"{self.args} ended with {self.code}, {self.out!r}, {self.err!r}"

    def ok(self):
        """It must have done what was asked, without a word beside."""
        assert self.code == 0 and self.err == "", self
        return self.out

    def json(self):
        return [json.loads(line) for line in self.ok().splitlines()]

    def failed(self, code, *parts):
        """One line that has all of these."""
        assert self.code == code, self
        assert self.err.count("\n") == 1 and self.err.startswith("bowline: "), self
        for part in parts:
            assert part in self.err, (part, str(self))
        return self


@contextlib.contextmanager
def server(address="127.0.0.1:0", *options):
    """The server, by its address; what it said at its end is in `lines` afterwards."""
    running = Program(SERVER, address, *options)
    try:
        running.wait_line("^listening on ")
        running.address = address if address.startswith("unix:") else f"127.0.0.1:{running.port()}"
        yield running
        running.stop()
        running.rest_of_output()
    finally:
        running.close()


def rest_of_output(self):
    self.lines += [line.decode() for line in (self.rest + self.process.stdout.read()).split(b"\n")]


Program.rest_of_output = rest_of_output


def calls_of(running, method):
    """How many calls of a method began and ended well, by the server's own counters."""
    found = running.wait_line(rf"^method {method} started (\d+) ok (\d+)$")
    return int(found.group(1)), int(found.group(2))


def run_tests(module):
    """Each function that is called test_...; the first failure ends it."""
    tests = [fn for name, fn in vars(module).items() if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} passed, 0 failed")
