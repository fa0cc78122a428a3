# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a message costs by its size: how many a second, minor faults and system calls of both
sides."""
import json
import statistics

import bench_run as bench

SIZES = [32, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 3 << 20]
MAX_CALLS = 10000
MAX_BYTES = 256 << 20  # of a round, one way
MIN_WARMUP = 32
# The server, the client, the scheme and how many are in flight.
KINDS = {"raw": ("raw_server", "raw_client", "", 4),
         "native": ("bowline_server", "bowline_client", "", 4),
         "gRPC": ("bowline_server", "bowline_client", "grpc:", 4),
         "native stream": ("bowline_server", "stream_client", "", 1),
         "gRPC stream": ("bowline_server", "stream_client", "grpc:", 1)}


def name_of(size):
    for unit, name in [(1 << 20, "MiB"), (1 << 10, "KiB")]:
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def run_once(kind, size, calls, port, prefix):
    """One round: a new server on core 0, a client on core 1. Both count from the warm-up on."""
    server_name, client, scheme, in_flight = KINDS[kind]
    address = f"127.0.0.1:{port}"
    warmup = max(calls // 10, MIN_WARMUP)
    command = [bench.program(server_name), address, str(size), str(warmup), str(calls)]
    with bench.running(prefix + bench.pin(0), command, port) as server:
        result = bench.load(prefix + bench.pin(1), bench.program(client), scheme + address,
                            (1, in_flight), calls, warmup, [str(size)])
    said = json.loads(server.said)
    return {"calls_per_s": result["calls"] / result["seconds"],
            "server_faults": said["minor_faults"] / calls,
            "client_faults": result["minor_faults"] / calls,
            "server_system_calls": said["system_calls"] / calls,
            "client_system_calls": result["system_calls"] / calls}


def print_rows(size, rows):
    """`rows`: by kind, one for each round. Returns the medians."""
    report = {}
    for kind, rounds in rows.items():
        row = bench.medians(rounds)
        row["ratio"] = statistics.median(a["calls_per_s"] / b["calls_per_s"]
                                         for a, b in zip(rounds, rows["raw"]))
        print(f"{name_of(size):>8}  {kind:14}{row['calls_per_s']:11,.0f}{row['ratio']:8.2f}"
              f"{row['server_faults']:11.2f}{row['client_faults']:11.2f}"
              f"{row['server_system_calls']:11.3f}{row['client_system_calls']:11.3f}", flush=True)
        report[kind] = row
    return report


def run(rounds, port):
    bench.say(f"{rounds} interleaved rounds; echo, 1 connection x 4 in flight, and one stream")
    print(f"{'':24}{'calls/s':>11}{'x raw':>8}{'srv faults':>11}{'cli faults':>11}"
          f"{'srv calls':>11}{'cli calls':>11}  (a message: minor faults, system calls)")
    report = {}
    with bench.namespace() as prefix:
        for size in SIZES:
            calls = min(MAX_CALLS, MAX_BYTES // size)
            rows = {kind: [] for kind in KINDS}
            for _ in range(rounds):
                for kind in KINDS:
                    rows[kind].append(run_once(kind, size, calls, port, prefix))
            report[size] = {"calls": calls, "medians": print_rows(size, rows), "all": rows}
    bench.write_report("bench-sizes.json", report)
