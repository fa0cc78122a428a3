#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bowline and another gRPC call each other at full speed: no call is lost, no connection ends.

Usage: peers.py LANGUAGE ECHO_SERVER ECHO_CLIENT FOLDER [--seconds S]

A peer is one program, built in FOLDER:
    peer server MAX_AGE_MS                       prints its port, ends with its standard input
    peer client TARGET IN_FLIGHT BYTES SECONDS   prints CALLS FAILED ENDED SECONDS [ERROR]
ENDED is how often its connection was ready and then was not; an age of 0 is none.
"""
import argparse
import os
import signal
import subprocess
import sys

import peers_build

LOADS = [(in_flight, size) for in_flight in (1, 100) for size in (10, 1000, 100_000)]
AGES_MS = (500, 1500)
AT_ONCE = 1000
LONGER = {"java": 2}  # so many times, for a machine that has to get warm


class Process:
    """A program whose standard output is read line by line."""

    def __init__(self, command, environment=None):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env={**os.environ, **(environment or {})})

    def line(self):
        return self.child.stdout.readline().strip()

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

    def __init__(self, line):
        words = line.split(maxsplit=4)
        if len(words) < 4:
            raise SystemExit(f"a client said: {line!r}")
        self.calls, self.failed, self.ended = map(int, words[:3])
        self.seconds = float(words[3])
        self.error = words[4] if len(words) > 4 else ""

    def faults(self):
        found = []
        if self.failed:
            found.append(f"{self.failed} of {self.calls} calls failed, the first: {self.error}")
        if self.calls < 2:
            found.append("no calls")
        return found


def counters(text):
    return {name: int(value) for name, value in (word.split("=") for word in text.split())}


class Peer:
    def __init__(self, arguments):
        self.server, self.client = arguments.echo_server, arguments.echo_client
        self.command, self.environment = peers_build.build(arguments.language, arguments.folder)
        self.language = arguments.language
        self.seconds = arguments.seconds * LONGER.get(self.language, 1)
        self.passed = self.failed = 0

    def judge(self, name, load, faults):
        said = "; ".join(faults) or "ok"
        print(f"{name}: {load.calls / load.seconds:.0f} calls/s, {said}", flush=True)
        if faults:
            self.failed += 1
        else:
            self.passed += 1

    def run_client(self, command, environment, *words):
        client = Process([*command, *map(str, words)], environment)
        line = client.line()
        client.end()
        return Load(line)

    def calls_us(self, in_flight, size, age_ms=0):
        server = Process([self.server, "-a", str(age_ms), "127.0.0.1:0"])
        load = self.run_client([*self.command, "client"], self.environment,
                               "127.0.0.1:" + server.line(), in_flight, size, self.seconds)
        told = counters(server.end())
        faults = load.faults()
        for name in ("protocol_errors", "broken", "not_ok", "refused"):
            if told[name]:
                faults.append(f"the server counted {name}={told[name]}")
        if not age_ms and (load.ended or told["opened"] != 1):
            faults.append(f"{told['opened']} connections were opened, {load.ended} ended")
        if age_ms and not told["aged"]:
            faults.append("no connection aged")
        self.judge(f"{self.language} client{self.named(in_flight, size, age_ms)}", load, faults)

    def is_called(self, in_flight, size, age_ms=0):
        server = Process([*self.command, "server", str(age_ms)], self.environment)
        load = self.run_client([self.client], {}, "grpc:127.0.0.1:" + server.line(), in_flight,
                               size, self.seconds)
        server.end()
        faults = load.faults()
        if bool(load.ended) != bool(age_ms):
            faults.append(f"{load.ended} connections ended")
        self.judge(f"{self.language} server{self.named(in_flight, size, age_ms)}", load, faults)

    @staticmethod
    def named(in_flight, size, age_ms):
        age = f", connections live {age_ms} ms" if age_ms else ""
        return f", {in_flight} in flight, {size} B{age}"

    def run(self):
        for each in (self.calls_us, self.is_called):
            for in_flight, size in LOADS:
                each(in_flight, size)
            for age_ms in AGES_MS:
                each(AT_ONCE, 10, age_ms)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=peers_build.LANGUAGES)
    parser.add_argument("echo_server")
    parser.add_argument("echo_client")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=3, help="of each load; of Java's twice as many")
    try:
        peer = Peer(parser.parse_args())
    except peers_build.Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    peer.run()
    print(f"{peer.passed} passed, {peer.failed} failed")
    return peer.failed > 0


if __name__ == "__main__":
    sys.exit(main())
