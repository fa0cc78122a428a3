# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Instructions that a server spends on one message, in user space, counted by valgrind: a number
that does not depend on the machine's load, for comparing two versions of the code."""
import os
import re
import shutil
import sys

import bench_run as bench

SHAPE = (8, 64)
REFS = re.compile(r"I\s+refs:\s+([\d,]+)")
# The server, and who asks it.
KINDS = {"raw": ("raw_server", "raw_client"),
         "transport": ("transport_server", "raw_client"),
         "libuv": ("uv_echo", "raw_client"),
         "bowline": ("bowline_server", "bowline_client"),
         "observed": ("observed_server", "bowline_client")}


def count(kind, calls, port, scheme, *arguments):
    """Of a server that has these arguments behind its address."""
    target = f"127.0.0.1:{port}"
    server_name, client = KINDS[kind]
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no",
               "--cachegrind-out-file=/dev/null", bench.program(server_name), target, *arguments]
    with bench.running([], command, port) as server:
        to = scheme + target if client == "bowline_client" else target
        bench.load([], bench.program(client), to, SHAPE, calls, 1000)
    found = REFS.search(server.complained)
    if found is None:
        sys.exit(f"tools/bench: valgrind did not count: {server.complained.strip()}")
    return int(found.group(1).replace(",", ""))


def run(calls, port, scheme):
    if not shutil.which("valgrind"):
        bench.say("instructions are not counted: apt-get install valgrind")
        return
    bench.say(f"{SHAPE[0]} x {SHAPE[1]}: instructions of the server in user space for a message")
    report = {}
    for kind in KINDS:
        if not os.path.exists(bench.program(KINDS[kind][0])):
            continue
        arguments = ["1"] if kind == "observed" else []
        # What starting and ending cost is in both.
        few = count(kind, calls // 10, port, scheme, *arguments)
        many = count(kind, calls // 10 + calls, port, scheme, *arguments)
        report[kind] = (many - few) / calls
        print(f"{kind:10}{report[kind]:10,.1f}", flush=True)
    bench.write_report("bench-instructions.json", report)
