#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A proxy stands between a Bowline client and a Bowline server that takes few calls of a connection:
no call is lost.

Usage: peers_proxy.py haproxy|nginx ECHO_SERVER ECHO_CLIENT [--seconds S]
"""
import argparse
import sys
import tempfile

from peers_run import Load, Process, Tally, counters, faults_of
from proxies import Proxy, program

MAX_CALLS = 8
IN_FLIGHT = 400
DELAYS_MS = (0, 5)
# How many calls it gives to a connection that has not said how many it takes, and which share one.
WAYS = {"haproxy": [(100, "safe"), (MAX_CALLS, "always")], "nginx": [(1, "one by one")]}


def through(kind, way, delay_ms, arguments, tally):
    with tempfile.TemporaryDirectory() as name:
        server = Process([arguments.echo_server, "-c", str(MAX_CALLS), "-d", str(delay_ms),
                          "127.0.0.1:0"])
        streams, reuse = way
        proxy = Proxy(kind, name, server.line(), streams, reuse)
        load = Load.of([arguments.echo_client], {}, f"grpc:127.0.0.1:{proxy.front}", IN_FLIGHT, 1000,
                       arguments.seconds)
        proxy.end()
        told = counters(server.end())
    faults = load.faults() + faults_of(told, "protocol_errors", "broken", "not_ok")
    tally.judge(f"{kind} {way[1]}, {IN_FLIGHT} in flight, {MAX_CALLS} taken of a connection, answers after "
                f"{delay_ms} ms, {told['opened']} connections, {told['refused']} calls refused",
                load, faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("haproxy", "nginx"))
    parser.add_argument("echo_server")
    parser.add_argument("echo_client")
    parser.add_argument("--seconds", type=float, default=3, help="of each load")
    arguments = parser.parse_args()
    if program(arguments.kind) is None:
        print(f"SKIP: there is no {arguments.kind}")
        return 77
    tally = Tally()
    for way in WAYS[arguments.kind]:
        for delay_ms in DELAYS_MS:
            through(arguments.kind, way, delay_ms, arguments, tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
