# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Servers and clients as processes, and what is made of what they print.

Knows nothing of languages and of what is put between the two.
"""
import atexit
import functools
import os
import signal
import subprocess


class Process:
    """A program whose standard output is read line by line."""

    def __init__(self, command, environment=None):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env={**os.environ, **(environment or {})})
        atexit.register(self.child.kill)  # no harm to one that has ended

    def line(self):
        return self.child.stdout.readline().strip()

    def begin(self):
        """Sends the line that a client waits for."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self):
        """Ends a server in its way; returns the rest of what it says."""
        self.child.stdin.close()
        self.child.send_signal(signal.SIGTERM)
        rest = self.child.stdout.read()
        self.child.stdout.close()
        self.child.wait(timeout=60)
        return rest


class Load:
    """What a client says of its calls."""

    counted = "calls"

    def __init__(self, line):
        words = line.split(maxsplit=4)
        if len(words) < 4:
            raise SystemExit(f"a client said: {line!r}")
        self.calls, self.failed, self.ended = map(int, words[:3])
        self.least = self.calls  # of several clients
        self.seconds = float(words[3])
        self.error = words[4] if len(words) > 4 else ""

    @classmethod
    def of(cls, command, environment, *words):
        client = Process([*command, *map(str, words)], environment)
        line = client.line()
        client.end()
        return cls(line)

    @classmethod
    def together(cls, n_clients, command, environment, *words):
        """Of so many clients that wait for a line: none begins before all are there."""
        clients = [Process([*command, *map(str, words)], environment) for _ in range(n_clients)]
        for client in clients:
            said = client.line()
            if said != "ready":
                raise SystemExit(f"a client said: {said!r}")
        for client in clients:
            client.begin()
        loads = [cls(client.line() or "0 1 0 1 a client ended without a word") for client in clients]
        for client in clients:
            client.end()
        return functools.reduce(cls.add, loads)

    def add(self, other):
        self.calls += other.calls
        self.least = min(self.least, other.least)
        self.failed += other.failed
        self.ended += other.ended
        self.seconds = max(self.seconds, other.seconds)
        self.error = self.error or other.error
        return self

    def faults(self):
        found = []
        if self.failed:
            found.append(f"{self.failed} of {self.calls} calls failed, the first: {self.error}")
        if self.calls < 2 or self.least < 1:
            found.append("no calls")
        return found


def counters(text):
    return {name: int(value) for name, value in (word.split("=") for word in text.split())}


def faults_of(told, *names):
    """What a server has counted of what is not to be."""
    return [f"the server counted {name}={told[name]}" for name in names if told[name]]


class Tally:
    """Which loads went well."""

    def __init__(self):
        self.passed = self.failed = 0

    def judge(self, name, load, faults):
        """Returns the load if it did."""
        self.note(f"{name}: {load.calls / load.seconds:.0f} {load.counted}/s", faults)
        return None if faults else load

    def note(self, what, faults):
        print(f"{what}, {'; '.join(faults) or 'ok'}", flush=True)
        if faults:
            self.failed += 1
        else:
            self.passed += 1

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return self.failed > 0
