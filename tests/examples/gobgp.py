#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The client of GoBGP, driving a real gobgpd over a Unix socket and over TCP; what it has done is
seen by GoBGP's own client.

usage: gobgp.py CLIENT

Exit 77 where there is no gobgpd.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import example

MANY = 300


class Daemon:
    """One gobgpd, with a socket and a port for its API, which nobody has told to speak BGP."""

    def __init__(self, folder):
        self.socket, self.port = os.path.join(folder, "api"), example.free_port()
        self.process = subprocess.Popen(
            ["gobgpd", "--api-hosts", f"unix://{self.socket},127.0.0.1:{self.port}",
             "--pprof-disable", "--disable-stdlog"], stdin=subprocess.DEVNULL)
        until = time.monotonic() + example.PATIENCE_S
        while not self.listens():
            assert self.process.poll() is None, "gobgpd ended"
            assert time.monotonic() < until, "gobgpd does not listen"
            time.sleep(0.01)

    def listens(self):
        """It does on the port after it does on the socket."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, *words):
        """What GoBGP's own client gets."""
        done = subprocess.run(["gobgp", "--target", f"unix://{self.socket}", "-j", *words],
                              capture_output=True, text=True, timeout=example.PATIENCE_S, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def table(self):
        """The lines of the example's list, as they are to be."""
        def line(prefix, path):
            [next_hop] = [attr["nexthop"] for attr in path["attrs"] if "nexthop" in attr]
            return f"{prefix} origin IGP via {next_hop}" + (" best" if path.get("best") else "")

        rib = self.ask("global", "rib")
        return sorted(line(prefix, path) for prefix, paths in rib.items() for path in paths)


@contextlib.contextmanager
def daemon(folder):
    running = Daemon(folder)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


class Client:
    def __init__(self, program, target):
        self.command = [program, target]

    def run(self, *words):
        return subprocess.run([*self.command, *words], capture_output=True, text=True,
                              timeout=example.PATIENCE_S, check=False)

    def good(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.splitlines()

    def bad(self, *words):
        done = self.run(*words)
        assert done.returncode != 0, (words, done.stdout)
        return done.stderr


def start_and_stop(client):
    port = example.free_port()
    assert client.good("show") == ["not started"]
    assert "hasn't started" in client.bad("add", "10.1.0.0/16", "192.0.2.7")
    client.good("start", "65001", "192.0.2.1", str(port), "127.0.0.1")
    assert client.good("show") == [f"AS 65001, router 192.0.2.1, port {port}"]
    example.connect(port).close()
    client.good("stop")
    assert client.good("show") == ["not started"]


def paths(unix, tcp, running):
    unix.good("start", "65001", "192.0.2.1")
    assert unix.good("list") == []
    [first] = unix.good("add", "10.1.0.0/16", "192.0.2.7")
    [second] = tcp.good("add", "10.2.3.4/32", "192.0.2.8")
    assert first != second
    both = ["10.1.0.0/16 origin IGP via 192.0.2.7 best", "10.2.3.4/32 origin IGP via 192.0.2.8 best"]
    assert running.table() == sorted(unix.good("list")) == sorted(tcp.good("list")) == both
    tcp.good("delete", first)
    assert running.table() == unix.good("list") == both[1:]
    assert "can't find" in tcp.bad("delete", first)
    for words in (("10.1.0.0", "192.0.2.7"), ("10.1.0.0/33", "192.0.2.7"), ("10.1.0.0/16", "there")):
        assert "PREFIX/LENGTH" in unix.bad("add", *words)


def long_list(client, running):
    for i in range(MANY):
        client.good("add", f"172.16.{i // 256}.{i % 256}/32", f"192.0.2.{i % 200 + 1}")
    listed = sorted(client.good("list"))
    assert len(listed) > MANY and listed == running.table()


def drive(program, folder):
    unix = Client(program, f"grpc:unix:{folder}/api")
    assert "UNAVAILABLE" in unix.bad("show")
    with daemon(folder) as running:
        tcp = Client(program, f"grpc:127.0.0.1:{running.port}")
        start_and_stop(unix)
        paths(unix, tcp, running)
        long_list(unix, running)
        running.process.kill()
        running.process.wait()
        assert "UNAVAILABLE" in unix.bad("list")


def main(program):
    for name in ("gobgpd", "gobgp"):
        if shutil.which(name) is None:
            print(f"SKIP: there is no {name} (package gobgpd)")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        drive(program, folder)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
