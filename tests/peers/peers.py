#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bowline and another gRPC call each other at full speed: no call is lost, no connection ends.

Usage: peers.py LANGUAGE ECHO_SERVER ECHO_CLIENT FOLDER [--seconds S] [--ageing CALLS]

With --ageing, so many calls each way, and all over connections that end while a thousand calls are on
them, after a fifth of a second to a second: none is lost, and none is run twice.

A peer is one program, built in FOLDER:
    peer server MAX_AGE_MS                       prints its port, ends with its standard input
    peer client TARGET IN_FLIGHT BYTES SECONDS   prints CALLS FAILED ENDED SECONDS [ERROR]
ENDED is how often its connection was ready and then was not; an age of 0 is none.
"""
import argparse
import sys

import peers_build
from peers_run import Load, Process, Tally, counters, faults_of

LOADS = [(in_flight, size) for in_flight in (1, 100) for size in (10, 1000, 100_000)]
AGES_MS = (500, 1500)
AGEING_MS = (200, 500, 1000)
AT_ONCE = 1000
LONGER = {"java": 2}  # so many times, for a machine that has to get warm


class Peer:
    def __init__(self, arguments):
        self.server, self.client = arguments.echo_server, arguments.echo_client
        self.command, self.environment = peers_build.build(arguments.language, arguments.folder)
        self.language = arguments.language
        self.seconds = arguments.seconds * LONGER.get(self.language, 1)
        self.tally = Tally()

    def seconds_of(self, age_ms):
        """Of a load: several times the age of a connection."""
        return max(self.seconds, 2 * age_ms / 1000)

    def calls_us(self, in_flight, size, age_ms=0):
        server = Process([self.server, "-a", str(age_ms), "127.0.0.1:0"])
        load = Load.of([*self.command, "client"], self.environment,
                               "127.0.0.1:" + server.line(), in_flight, size, self.seconds_of(age_ms))
        told = counters(server.end())
        faults = load.faults()
        faults += faults_of(told, "protocol_errors", "broken", "not_ok", "refused")
        if not age_ms and (load.ended or told["opened"] != 1):
            faults.append(f"{told['opened']} connections were opened, {load.ended} ended")
        if age_ms and not told["aged"]:
            faults.append("no connection aged")
        if told["started"] != load.calls:
            faults.append(f"the server ran {told['started']} calls")
        name = f"{self.language} client{self.named(in_flight, size, age_ms)}"
        return self.tally.judge(name, load, faults)

    def is_called(self, in_flight, size, age_ms=0):
        server = Process([*self.command, "server", str(age_ms)], self.environment)
        load = Load.of([self.client], {}, "grpc:127.0.0.1:" + server.line(), in_flight,
                               size, self.seconds_of(age_ms))
        server.end()
        faults = load.faults()
        if bool(load.ended) != bool(age_ms):
            faults.append(f"{load.ended} connections ended")
        name = f"{self.language} server{self.named(in_flight, size, age_ms)}"
        return self.tally.judge(name, load, faults)

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

    def run_ageing(self, n_calls):
        for each in (self.calls_us, self.is_called):
            for age_ms in AGEING_MS:
                left = n_calls / len(AGEING_MS)
                while left > 0:
                    load = each(AT_ONCE, 10, age_ms)
                    left = left - load.calls if load else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=peers_build.LANGUAGES)
    parser.add_argument("echo_server")
    parser.add_argument("echo_client")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=3, help="of each load; of Java's twice as many")
    parser.add_argument("--ageing", type=int, metavar="CALLS")
    arguments = parser.parse_args()
    try:
        peer = Peer(arguments)
    except peers_build.Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    if arguments.ageing:
        peer.run_ageing(arguments.ageing)
    else:
        peer.run()
    return peer.tally.end()


if __name__ == "__main__":
    sys.exit(main())
