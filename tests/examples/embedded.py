#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A service inside somebody else's loop, called by the greeter's client.

usage: embedded.py CLIENT PROGRAM [daemon]

With "daemon" the program leaves its starter after the set-up.
"""
import os
import re
import select
import signal
import subprocess
import sys

import example


def greet(client, port):
    """Call once; returns how often the service's timer had run."""
    done = subprocess.run([client, f"127.0.0.1:{port}", "Ada"], capture_output=True, text=True,
                          timeout=example.PATIENCE_S)
    found = re.search(r"Hello, Ada, after (\d+) ticks", done.stdout)
    assert found, f"{done.stdout}{done.stderr}"
    return int(found.group(1))


def check_one_thread(pid):
    tasks = os.listdir(f"/proc/{pid}/task")
    assert tasks == [str(pid)], f"threads: {tasks}"


def check_epoll_has_one(pid):
    """Each poller of the process but the loop's own watches one descriptor."""
    watched = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:[eventpoll]":
            with open(f"/proc/{pid}/fdinfo/{fd}") as info:
                watched.append(sum(line.startswith("tfd:") for line in info))
    assert sorted(watched)[0] == 1 and len(watched) == 2, f"watched descriptors: {watched}"


def main(client, path, *mode):
    server = example.Program(path, "127.0.0.1:0", *mode)
    port = server.port()
    pid = int(server.wait_line(r"^serving as process (\d+)$").group(1))
    if mode:
        assert server.process.wait(example.PATIENCE_S) == 0 and pid != server.process.pid
    handle = os.pidfd_open(pid)
    try:
        ticks = greet(client, port)
        check_one_thread(pid)
        if "epoll" in path:
            check_epoll_has_one(pid)
        while greet(client, port) <= ticks: # the timer runs, too
            pass
        check_one_thread(pid)
    finally:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended = select.select([handle], [], [], example.PATIENCE_S)[0]
        if not ended:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
    assert ended, "it did not end at SIGTERM"
    assert mode or server.process.wait() == 0
    server.process.stdout.close()
    print("served by one thread; timer and signal came through one descriptor")


if __name__ == "__main__":
    main(*sys.argv[1:])
