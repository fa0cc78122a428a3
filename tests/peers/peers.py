#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bowline and another gRPC call each other at full speed: no call is lost, no connection ends.

Usage: peers.py LANGUAGE ECHO_SERVER ECHO_CLIENT FOLDER [--seconds S] [--ageing CALLS]

With --ageing, so many calls each way, and all over connections that end while a thousand calls are on
them, after a fifth of a second to a second: none is lost, and none is run twice.

A peer is one program, built in FOLDER:
    peer server MAX_AGE_MS                       prints its port, ends with its standard input
    peer client TARGET IN_FLIGHT BYTES SECONDS   prints CALLS FAILED ENDED SECONDS [ERROR]
    peer streams TARGET IN_FLIGHT BYTES SECONDS MESSAGES
                                                 the same of streams: so many messages go on each, as
                                                 fast as flow control lets them, and are to come back;
                                                 then it is half-closed, ends with OK, and the next
                                                 one begins. CALLS are messages that came back
    peer ready client|streams ...                the same, but prints a line, and begins when it is
                                                 sent one
    peer paced TARGET BYTES                      for each line of its standard input, a number of
                                                 seconds: one call after the other, with a pause of a
                                                 millisecond, all over one connection; then the same
                                                 line, and one of how many microseconds each took
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
WARMING = {"java": 1}  # calls before those that are counted
SECONDS, SECONDS_TOGETHER = 3, 1.5
KINDS = {"client": (1, 100), "streams": (1, 10)}  # how many calls are in flight on a connection
MESSAGES = {10: 200, 100_000: 20}  # of a stream
# Streams, and calls over several connections at once, of a client each.
TOGETHER = [(kind, n_clients, in_flight, size)
            for kind, in_flights in KINDS.items() for n_clients in (1, 8)
            for in_flight in in_flights for size in MESSAGES if (kind, n_clients) != ("client", 1)]


class Peer:
    def __init__(self, arguments):
        self.server, self.client = arguments.echo_server, arguments.echo_client
        self.command, self.environment = peers_build.build(arguments.language, arguments.folder)
        self.language = arguments.language
        longer = LONGER.get(self.language, 1)
        self.seconds = (arguments.seconds or SECONDS) * longer
        self.seconds_together = (arguments.seconds or SECONDS_TOGETHER) * longer
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
        if told["started"] != load.calls + WARMING.get(self.language, 0):
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

    def clients_call_us(self, kind, n_clients, in_flight, size):
        server = Process([self.server, "127.0.0.1:0"])
        messages = [MESSAGES[size]] if kind == "streams" else []
        load = Load.together(n_clients, [*self.command, "ready", kind], self.environment,
                             "127.0.0.1:" + server.line(), in_flight, size, self.seconds_together,
                             *messages)
        told = counters(server.end())
        faults = load.faults()
        faults += faults_of(told, "protocol_errors", "broken", "not_ok", "refused")
        if load.ended or told["opened"] != n_clients:
            faults.append(f"{told['opened']} connections were opened, {load.ended} ended")
        self.judge_together("client", kind, n_clients, in_flight, size, load, faults)

    def is_called_by_clients(self, kind, n_clients, in_flight, size):
        server = Process([*self.command, "server", "0"], self.environment)
        messages = ["-m", MESSAGES[size]] if kind == "streams" else []
        load = Load.together(n_clients, [self.client, "-r"], {}, *messages,
                             "grpc:127.0.0.1:" + server.line(), in_flight, size,
                             self.seconds_together)
        server.end()
        faults = load.faults()
        if load.ended:
            faults.append(f"{load.ended} connections ended")
        self.judge_together("server", kind, n_clients, in_flight, size, load, faults)

    def judge_together(self, side, kind, n_clients, in_flight, size, load, faults):
        over = f"{n_clients} connection{'s' if n_clients > 1 else ''}"
        if kind == "streams":
            load.counted = "messages"
            over = "streams over " + over
        self.tally.judge(f"{self.language} {side}, {over}, {in_flight} in flight on each, {size} B",
                         load, faults)

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
        for each in (self.clients_call_us, self.is_called_by_clients):
            for load in TOGETHER:
                each(*load)

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
    parser.add_argument("--seconds", type=float,
                        help=f"of each load, instead of {SECONDS}, or {SECONDS_TOGETHER} of streams "
                             "and of several connections; of Java's twice as many")
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
