# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the benchmarks have in common: a network of their own, a server on one core and a client on
another, CPU time, medians. Knows nothing of what is served."""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILDS = os.environ.get("BOWLINE_BUILDS", os.path.join(TOP, "build-tools"))
BUILD = os.path.join(BUILDS, "bench")
HEAT_CALLS = 500000
MAX_HEAT_CALLS = 20000000


def say(text):
    print("== " + text, flush=True)


def set_up():
    script = f'. "{TOP}/tools/lib/setup.sh"; install_packages; build bench --buildtype=release'
    subprocess.run(["bash", "-euc", script, "tools/bench"], check=True)


def program(name):
    return os.path.join(BUILD, "bench", name)


@contextlib.contextmanager
def namespace():
    """A network namespace with loopback up and reno; yields the prefix of commands in it."""
    name = f"bowline-bench-{os.getpid()}"
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", name]).returncode != 0:
        say("no network namespace (needs root): using this one, with reno set on each socket")
        yield []
        return
    prefix = ["ip", "netns", "exec", name]
    try:
        subprocess.run(prefix + ["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(prefix + ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])
        yield prefix
    finally:
        subprocess.run(["ip", "netns", "delete", name])


def pin(core):
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[min(core, len(cores) - 1)])]


def cpu_ns(pid):
    """CPU time of a process so far, in nanoseconds, all threads, those that have ended too."""
    return time.clock_gettime_ns((~pid << 3) | 2)  # the kernel's name for that clock of `pid`


def wait_listening(prefix, port, server):
    needle = f":{port:04X}"
    for _ in range(1000):
        if server.poll() is not None:
            sys.exit(f"tools/bench: the server ended early: {server.args}")
        tcp = subprocess.run(prefix + ["cat", "/proc/net/tcp", "/proc/net/tcp6"],
                             capture_output=True, text=True)
        fields = [line.split() for line in tcp.stdout.splitlines()]
        if any(needle in field[1] and field[3] == "0A" for field in fields):
            return
        time.sleep(0.01)
    sys.exit("tools/bench: the server does not listen")


@contextlib.contextmanager
def running(prefix, command, port):
    """A server while it is measured; on return its `said` is what it printed."""
    server = subprocess.Popen(prefix + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    try:
        wait_listening(prefix, port, server)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.said, server.complained = server.communicate(timeout=60)


def load(prefix, client, target, shape, calls, warmup, more=()):
    """Run a client, with `more` arguments; what it measured."""
    connections, in_flight = shape
    command = [client, target, str(connections), str(in_flight), str(calls), str(warmup), *more]
    done = subprocess.run(prefix + command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"tools/bench: {os.path.basename(client)} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def heat_up(prefix, server, client, target):
    """Calls until they get no cheaper: for a server that compiles itself meanwhile. Returns how
    many those were."""
    n_calls, n_even, best = 0, 0, float("inf")
    while n_even < 2 and n_calls < MAX_HEAT_CALLS:
        before = cpu_ns(server.pid)
        result = load(prefix + pin(1), client, target, (8, 64), HEAT_CALLS, 1)
        cost = (cpu_ns(server.pid) - before) / result["all_calls"]
        n_even = n_even + 1 if cost > 0.97 * best else 0
        best = min(best, cost)
        n_calls += result["all_calls"]
    return n_calls


def run_once(prefix, command, client, target, port, shape, calls, heated=False):
    """One round: a new server on core 0, a client on core 1."""
    with running(prefix + pin(0), command, port) as server:
        n_heat = heat_up(prefix, server, client, target) if heated else 0
        before = cpu_ns(server.pid)
        result = load(prefix + pin(1), client, target, shape, calls, max(calls // 10, 1))
        after = cpu_ns(server.pid)
    io = json.loads(server.said)
    n_calls = result["all_calls"]
    return {
        "calls_per_s": result["calls"] / result["seconds"],
        "p50_us": result["p50_us"],
        "p99_us": result["p99_us"],
        "server_cpu_us": (after - before) / 1e3 / n_calls,
        "client_cpu_us": result["client_cpu_us"],
        "calls_per_receive": (n_heat + n_calls) / max(io["receives"], 1),
        "calls_per_send": (n_heat + n_calls) / max(io["sends"], 1),
    }


def medians(rows):
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def cpu_ratios(rows, base):
    """Of each round to the same round of `base`."""
    return [a["server_cpu_us"] / b["server_cpu_us"] for a, b in zip(rows, base)]


def print_table(shape, rows, base):
    """`rows`: by kind, one for each round. Returns what goes into the report."""
    print(f"\n{shape[0]} connections x {shape[1]} in flight, 32-byte echo")
    print(f"{'':10}{'calls/s':>12}{'p50 us':>9}{'p99 us':>9}{'srv CPU us':>12}{'cli CPU us':>12}"
          f"{'calls/recv':>12}{'calls/send':>12}{'srv ratio':>11}  (quartiles)")
    report = {}
    for kind, rounds in rows.items():
        row = medians(rounds)
        ratios = sorted(cpu_ratios(rounds, rows[base]))
        row["server_cpu_ratio"] = statistics.median(ratios)
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        print(f"{kind:10}{row['calls_per_s']:12,.0f}{row['p50_us']:9.1f}{row['p99_us']:9.1f}"
              f"{row['server_cpu_us']:12.3f}{row['client_cpu_us']:12.3f}"
              f"{row['calls_per_receive']:12.1f}{row['calls_per_send']:12.1f}"
              f"{row['server_cpu_ratio']:11.2f}  ({low:.2f}-{high:.2f})")
        report[kind] = row
    return report


def write_report(name, report):
    path = os.path.join(BUILD, name)
    with open(path, "w") as out:
        json.dump(report, out, indent=2)
    print(f"\nas JSON: {path}")
