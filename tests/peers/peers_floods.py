#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A peer calls a server that is flooded: no call of it is lost, and the 99th percentile of how long they
take is within twice of what it is when the peer is alone.

Usage: peers_floods.py PEER FLOODS_SERVER FLOODER PACED_CLIENT FOLDER [--seconds S] [--kind PART_OF_NAME]

What is measured is the server, and how fairly its one loop serves two; not who of three processes gets
a processor:
- The server has a processor for itself. The peer and the flooder are on the others, and the flooder
  runs there when the peer does not want to (SCHED_IDLE). That costs the flood little: the peer rests a
  millisecond after each call.
- Windows alone and windows beside the flood take turns, on the same connection of the same peer, so that
  what else goes on in the machine meets both; medians of the windows are compared.
- A call that takes long counts as all those that a peer that calls each millisecond would have had to
  wait with it: a loop that stands still for 50 ms does not hide in the one call that met it.
- What is left of one machine being shared (its caches, and the kernel's work for another's packets, which
  is done wherever it comes in) shows where the same flood goes to another server on the same
  processor, which gives way to ours. It is looked at where the bound is not met: a peer that is as slow
  then is not slow for what our loop does. Such a verdict is printed as one of the machine.
"""
import argparse
import os
import statistics
import subprocess
import sys

import peers_build
from peers_run import Load, Process, Tally, counters

BOWLINE = {"native": "", "grpc": "grpc:"}
BYTES = 100
PACE_US = 1000
SECONDS = 0.4
WINDOW = 1  # second at most
ALONE = 0.5  # of a window, when alone
FURTHER = 4  # rounds, when the first is above the bound
TIMES = 2
FLOOR_US = 1000  # two shares of a turn of the loop, and a wait for a processor that the kernel is busy on
# What a loop does at once for one message, to inflate and decode it, takes 10 to 40 ms here and is not
# taken apart, whatever bound there is to how often. They are told, but not judged, by how long the
# peer's calls take; what bombs may cost others is bomb_test's. Everything else is cut where a turn ends
# (BOW_LIMIT_CALLS_PER_TURN and the next two).
WHOLE = ("zstd", "gzip")
WARMING = 1.5


def on(processors, *command, idle=False):
    """The command, on these processors alone."""
    words = ["taskset", "-c", ",".join(map(str, processors)), *map(str, command)]
    return ["chrt", "--idle", "0", *words] if idle else words


def p99(took):
    """In µs, of all calls that would have been due each PACE_US."""
    due = []
    for us in took:
        due.extend(range(us, 0, -PACE_US) or [us])
    due.sort()
    return due[(len(due) - 1) * 99 // 100]


class Client:
    """A peer that makes calls while it is told to."""

    def __init__(self, command, environment, target):
        self.process = Process([*command, target, str(BYTES)], environment)
        self.faults = []

    def window(self, seconds):
        """Returns its 99th percentile."""
        self.process.child.stdin.write(f"{seconds}\n")
        self.process.child.stdin.flush()
        load = Load(self.process.line())
        took = [int(word) for word in self.process.line().split()]
        if load.failed:
            self.faults.append(f"{load.failed} of {load.calls} calls failed: {load.error}")
        if load.ended:
            self.faults.append(f"its connection ended {load.ended} times")
        return p99(took)

    def take_faults(self):
        faults, self.faults = self.faults, []
        return faults


class Floods:
    def __init__(self, arguments):
        self.flooder = arguments.flooder
        all_processors = sorted(os.sched_getaffinity(0))
        if len(all_processors) < 2:
            raise peers_build.Missing("there is one processor only")
        self.first, self.others = all_processors[:1], all_processors[1:]
        self.server = Process(on(self.first, arguments.floods_server, "127.0.0.1:0"))
        self.other = Process(on(self.first, arguments.floods_server, "127.0.0.1:0", idle=True))
        self.port, self.other_port = self.server.line(), self.other.line()
        self.client = self.begin(arguments)
        self.n_rounds = max(1, round(arguments.seconds / WINDOW))
        self.seconds = arguments.seconds / self.n_rounds
        self.tally = Tally()

    def begin(self, arguments):
        target = f"127.0.0.1:{self.port}"
        if arguments.peer in BOWLINE:
            command, environment = [arguments.paced_client], {}
            target = BOWLINE[arguments.peer] + target
        else:
            command, environment = peers_build.build(arguments.peer, arguments.folder)
            command = [*command, "paced"]
        client = Client(on(self.others, *command), environment, target)
        client.window(WARMING)
        return client

    def alone(self):
        return self.client.window(self.seconds * ALONE)

    def beside(self, kind, port, counted):
        flooder = Process(on(self.others, self.flooder, "--kind", kind, port, idle=True))
        if flooder.line() != "floods":
            raise SystemExit(f"{kind}: no flood began")
        us = self.client.window(self.seconds)
        for name, n in counters(flooder.end()).items():
            counted[name] = counted.get(name, 0) + n
        return us

    def judge(self, kind, reason):
        alone, beside, shared, counted, elsewhere = [], [], [], {}, {}

        def is_above(values):
            return statistics.median(beside) > TIMES * statistics.median(values) + FLOOR_US

        def measure():
            alone.append(self.alone())
            beside.append(self.beside(kind, self.port, counted))

        for _ in range(self.n_rounds):
            measure()
        for _ in range(FURTHER):  # a machine that is busy may have left the flooder no time
            if self.faults_of_flood(reason, counted):
                measure()
        is_told_only = any(name in kind for name in WHOLE)
        if is_above(alone) and not is_told_only:
            for _ in range(FURTHER):
                measure()
                shared.append(self.beside(kind, self.other_port, elsewhere))
        faults = self.client.take_faults() + self.faults_of_flood(reason, counted)
        told = f"{kind}: p99 alone {statistics.median(alone):.0f} us"
        told += f", beside {statistics.median(beside):.0f}"
        if shared:
            told += f", beside a flood of another server {statistics.median(shared):.0f}"
        if is_above(alone):
            if is_told_only:
                told += ", not judged"
            elif is_above(shared):
                faults.append(f"that is above {TIMES} times and {FLOOR_US} us")
            else:
                told += ", by the machine"
        self.tally.note(f"{told}; {' '.join(f'{name}={n}' for name, n in counted.items())}", faults)

    @staticmethod
    def faults_of_flood(reason, counted):
        """It was a flood, and was ended for what it is, if it is to be."""
        faults = []
        if not counted["units"]:
            faults.append("nothing was sent")
        if reason is not None and not counted["named"]:
            faults.append(f"no connection was ended with a reason of {reason!r}")
        return faults

    def end(self):
        self.client.process.end()
        self.other.end()
        told = counters(self.server.end())
        print(" ".join(f"{name}={n}" for name, n in told.items()))
        if self.server.child.returncode != 0:
            self.tally.note("the server's end", [f"it returned {self.server.child.returncode}"])
        return self.tally.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=[*BOWLINE, *peers_build.LANGUAGES])
    parser.add_argument("floods_server")
    parser.add_argument("flooder")
    parser.add_argument("paced_client")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=SECONDS,
                        help=f"beside each flood, {SECONDS} by default")
    parser.add_argument("--kind", default="", help="only floods with this in their name")
    arguments = parser.parse_args()
    try:
        floods = Floods(arguments)
    except peers_build.Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    listed = subprocess.run([arguments.flooder, "--list"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    for line in listed.splitlines():
        kind, reason = line.split("\t")
        if arguments.kind in kind:
            floods.judge(kind, None if reason == "-" else reason)
    return floods.end()


if __name__ == "__main__":
    sys.exit(main())
