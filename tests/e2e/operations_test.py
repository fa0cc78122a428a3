#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The operations listener by curl and JSON as others read them, and SIGUSR1.

    operations_test.py OPERATIONS_SERVER native|grpc
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import operations_world

STAGES = {("/calls.Echo/Hold", "in the handler"), ("/calls.Echo/Later", "in the handler"),
          ("/calls.Echo/Later", "waiting for a thread"), ("/calls.Echo/Stream", "waiting for flow-control credit")}


def stages_of(server):
    calls = json.loads(server.get("/debug/calls?format=json"))["calls"]
    return {(call["method"], call["stage"]) for call in calls}


def test_stages(server):
    server.until(STAGES, lambda: STAGES <= stages_of(server))
    text = server.get("/debug/calls")
    for method, stage in STAGES:
        assert any(line.startswith(f"call {method} ") and f": {stage}, for " in line
                   for line in text.splitlines()), (method, stage, text)


def test_all_is_json(server, protocol):
    shown = json.loads(server.get("/debug/all"))
    say = next(method for method in shown["methods"] if method["method"] == "/calls.Echo/Say")
    assert say["started"] > 0 and say["p50_us"] <= say["p99_us"] <= say["max_us"], say
    assert sum(n for _, n in say["times_us"]) > 0, say
    assert len({us for us, _ in say["times_us"]}) == len(say["times_us"]), say
    assert shown["config"]["max_server_calls"] == 1000
    assert len(shown["loops"]) == 2 and all(loop["state"] == "runs" for loop in shown["loops"])
    assert {connection["protocol"] for connection in shown["connections"]} == {protocol}
    for path in ("/debug/calls", "/debug/connections", "/debug/loops", "/debug/methods", "/debug/config",
                 "/healthz", "/readyz"):
        json.loads(server.get(path, Accept="application/json"))


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_curl(server):
    if shutil.which("curl") is None:
        print("skipped: curl is not there")
        return
    assert curl(server.url + "/livez") == "ok\n"
    # Two on one connection, and a HEAD, which curl would hang on were there a body.
    count = curl(server.url + "/livez", server.url + "/readyz", "-w", "%{num_connects}\n", "-o", "/dev/null",
                 "-o", "/dev/null").split()
    assert count == ["1", "0"], count
    assert curl("-I", server.url + "/").startswith("HTTP/1.1 200 OK\n")
    assert curl("--http1.0", server.url + "/livez") == "ok\n"
    status = curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example", server.url + "/livez")
    assert status == "421", status


def test_sigusr1(server):
    server.process.send_signal(signal.SIGUSR1)
    stderr = server.process.stderr.fileno()
    os.set_blocking(stderr, False)
    text, end = "", time.monotonic() + operations_world.PATIENCE_S
    while not all(f": {stage}, for " in text for _, stage in STAGES) and time.monotonic() < end:
        if select.select([stderr], [], [], 1)[0]:
            text += os.read(stderr, 65536).decode()
    assert text.startswith("server: "), text
    for method, stage in STAGES:
        assert any(line.startswith(f"call {method} ") and f": {stage}, for " in line
                   for line in text.splitlines()), (method, stage, text)


def main():
    protocol = sys.argv[2]
    with operations_world.server(sys.argv[1], protocol == "grpc") as server:
        test_stages(server)
        test_all_is_json(server, protocol)
        test_curl(server)
        test_sigusr1(server)
    assert server.process.returncode == 0, server.process.returncode
    print("4 passed, 0 failed")


if __name__ == "__main__":
    main()
