# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The transport alone: echo beside raw, libuv and Netty, and what its single parts cost."""
import json
import os
import shutil
import subprocess
import sys

import bench_run as bench

SHAPES = [(8, 64), (1, 1)]
JARS = ["buffer", "codec", "common", "handler", "resolver", "transport", "transport-native-epoll",
        "transport-native-unix-common"]
MICROS = ["micro_turn", "micro_post", "micro_timer", "micro_pipeline"]


def find_libuv():
    """The command, or None and what to do about it."""
    installed = subprocess.run(["pkg-config", "--exists", "libuv"]).returncode == 0
    if installed and not os.path.exists(bench.program("uv_echo")):
        for command in (["meson", "setup", "--reconfigure", bench.BUILD], ["ninja", "-C", bench.BUILD]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if not installed:
        return None, "libuv is not measured: apt-get install libuv1-dev"
    return [bench.program("uv_echo")], None


def find_netty():
    advice = "Netty is not measured: apt-get install libnetty-java default-jdk-headless"
    jars = [f"/usr/share/java/netty-{jar}.jar" for jar in JARS]
    if not all(map(os.path.exists, jars)) or not shutil.which("javac") or not shutil.which("java"):
        return None, advice
    classes = os.path.join(bench.BUILD, "netty")
    os.makedirs(classes, exist_ok=True)
    source = os.path.join(bench.TOP, "bench", "NettyEcho.java")
    path = ":".join(jars)
    done = subprocess.run(["javac", "-cp", path, "-d", classes, source],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return None, "Netty is not measured, javac says: " + done.stderr.strip()
    return ["java", "-cp", f"{path}:{classes}", "NettyEcho"], None


def find_servers():
    servers = {"raw": [bench.program("raw_server")],
               "transport": [bench.program("transport_server")]}
    for kind, find in (("libuv", find_libuv), ("netty", find_netty)):
        command, advice = find()
        if command is None:
            bench.say(advice)
        else:
            servers[kind] = command
    return servers


def measure_echo(prefix, servers, shape, calls, rounds, port):
    target = f"127.0.0.1:{port}"
    client = bench.program("raw_client")
    rows = {kind: [] for kind in servers}
    bench.say(f"{shape[0]} x {shape[1]}: {rounds} interleaved rounds of {calls:,} messages")
    for _ in range(rounds):
        for kind, command in servers.items():
            rows[kind].append(bench.run_once(prefix, command + [target], client, target, port,
                                             shape, calls, heated=kind == "netty"))
    return rows


def measure_parts():
    bench.say("the parts: medians of 15 rounds, and the quartiles")
    parts = []
    for name in MICROS:
        done = subprocess.run([bench.program(name)], capture_output=True, text=True, timeout=600)
        if done.returncode == 77:
            bench.say(done.stderr.strip())
            continue
        if done.returncode != 0:
            sys.exit(f"tools/bench: {name} failed: {done.stderr.strip()}")
        parts += [json.loads(line) for line in done.stdout.splitlines()]
    print(f"{'':48}{'ns':>10}")
    for part in parts:
        print(f"{part['name']:48}{part['median_ns']:10,.1f}"
              f"  ({part['low_ns']:,.1f}-{part['high_ns']:,.1f})")
    return parts


def run(rounds, calls, port):
    servers = find_servers()
    report = {"shapes": []}
    with bench.namespace() as prefix:
        for shape in SHAPES:
            n = calls if shape != (1, 1) else max(calls // 25, 1)
            rows = measure_echo(prefix, servers, shape, n, rounds, port)
            table = bench.print_table(shape, rows, "raw")
            report["shapes"].append({"connections": shape[0], "in_flight": shape[1],
                                     "rounds": rounds, "calls": n, "medians": table, "all": rows})
    report["parts"] = measure_parts()
    bench.write_report("bench-transport.json", report)
