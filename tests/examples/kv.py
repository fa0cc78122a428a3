#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The key-value service: gets, puts, watchers over both protocols, a slow one, a server's restart.

usage: kv.py SERVER CLIENT
"""
import contextlib
import signal
import subprocess
import sys

import example

N_LARGE = 60
LARGE = 100_000


def run(client, address, *words):
    return subprocess.run([client, address, *words], capture_output=True, text=True,
                          timeout=example.PATIENCE_S, check=False)


@contextlib.contextmanager
def watcher(client, address, prefix):
    """Runs until it is killed: a watch has no end of its own."""
    running = example.Program(client, address, "watch", prefix)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        running.process.stdout.close()
        running.selector.close()


def put(client, address, key, value):
    done = run(client, address, "put", key, value)
    assert done.returncode == 0, done.stderr


def slow_watcher_gets_the_last(client, address, slow, quick):
    slow.process.send_signal(signal.SIGSTOP)
    for i in range(N_LARGE):
        put(client, address, "load", f"{i}." + "x" * LARGE)
    quick.wait_line(rf"^load = {N_LARGE - 1}\.")
    slow.process.send_signal(signal.SIGCONT)
    slow.wait_line(rf"^load = {N_LARGE - 1}\.")
    n_seen = sum(line.startswith("load = ") for line in slow.lines)
    assert n_seen < N_LARGE, "everything waited for the one that did not read"
    return n_seen


def main(server, client):
    with example.program(server, "127.0.0.1:0") as kv:
        port = int(kv.wait_line(r"port (\d+)$")[1])
        native, grpc = f"127.0.0.1:{port}", f"grpc:127.0.0.1:{port}"
        missing = run(client, native, "get", "colour")
        assert missing.returncode == 1 and "NOT_FOUND: there is no key 'colour'" in missing.stderr
        put(client, grpc, "colour", "green")
        assert run(client, native, "get", "colour").stdout == "colour = green\n"
        with watcher(client, native, "") as one, watcher(client, grpc, "col") as two:
            for each in (one, two):
                each.wait_line("^colour = green$")
            put(client, native, "count", "1")
            put(client, native, "colour", "blue")
            for each in (one, two):
                each.wait_line("^colour = blue$")
            assert "count = 1" in one.lines and "count = 1" not in two.lines
            with watcher(client, native, "load") as slow:
                put(client, native, "load", "begin")
                slow.wait_line("^load = begin$")
                n_seen = slow_watcher_gets_the_last(client, native, slow, one)
            kv.stop()
            one.wait_line("UNAVAILABLE")
            with example.program(server, f"127.0.0.1:{port}") as again:
                again.wait_line("^listening")
                put(client, native, "colour", "red")
                one.wait_line("^colour = red$")
                two.wait_line("^colour = red$")
                one.process.kill()
                two.process.kill()
    print(f"the slow watcher was sent {n_seen} of {N_LARGE} values, the last among them")


if __name__ == "__main__":
    main(*sys.argv[1:])
