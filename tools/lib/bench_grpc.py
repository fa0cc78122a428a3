# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a call and a message of a stream cost a server that speaks gRPC, beside the same over gRPC's
own C++ implementation: the same client asks both."""
import os
import shutil
import statistics
import subprocess
import sys

import bench_run as bench

SERVERS = ["gRPC C++", "Bowline"]
SHAPE = (8, 64)
STREAM_BYTES = 32


def build_server():
    """gRPC C++'s, from the same .proto; its path."""
    folder = os.path.join(bench.BUILD, "grpc-cpp")
    program = os.path.join(folder, "grpc_server")
    for tool in ["g++", "protoc", "grpc_cpp_plugin", "pkg-config"]:
        if not shutil.which(tool):
            sys.exit(f"tools/bench: {tool} is missing: apt-get install libgrpc++-dev "
                     "protobuf-compiler-grpc protobuf-compiler g++ pkg-config")
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(bench.TOP, "bench")
    plugin = shutil.which("grpc_cpp_plugin")
    subprocess.run(["protoc", f"-I{source}", f"--cpp_out={folder}", f"--grpc_out={folder}",
                    f"--plugin=protoc-gen-grpc={plugin}", "echo.proto"], check=True)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "grpc++", "protobuf"], check=True,
                           capture_output=True, text=True).stdout.split()
    subprocess.run(["g++", "-O2", "-std=c++17", f"-I{folder}", "-o", program,
                    os.path.join(source, "grpc_server.cc"),
                    *(os.path.join(folder, "echo" + end) for end in [".pb.cc", ".grpc.pb.cc"]),
                    *flags], check=True)
    return program


def run_once(prefix, server, client, shape, calls, port):
    """A new server on core 0, a client on core 1: what the server's process takes for a message."""
    address = f"127.0.0.1:{port}"
    warmup = max(calls // 10, 1)
    stream = client == "stream_client"
    command = [server, address] + ([str(STREAM_BYTES), str(warmup), str(calls)] if stream else [])
    with bench.running(prefix + bench.pin(0), command, port) as process:
        before = bench.cpu_ns(process.pid)
        result = bench.load(prefix + bench.pin(1), bench.program(client), "grpc:" + address, shape,
                            calls, warmup, [str(STREAM_BYTES)] if stream else [])
        after = bench.cpu_ns(process.pid)
    return {"per_s": result["calls"] / result["seconds"], "p99_us": result["p99_us"],
            "server_cpu_us": (after - before) / 1e3 / result["all_calls"]}


def measure(what, client, shape, calls, rounds, prefix, programs, port):
    rows = {name: [] for name in SERVERS}
    for _ in range(rounds):
        for name in SERVERS:
            rows[name].append(run_once(prefix, programs[name], client, shape, calls, port))
    medians = {name: bench.medians(rows[name]) for name in SERVERS}
    ratios = sorted(a["server_cpu_us"] / b["server_cpu_us"]
                    for a, b in zip(rows["Bowline"], rows["gRPC C++"]))
    for name in SERVERS:
        row = medians[name]
        print(f"{what:16}{name:10}{row['per_s']:12,.0f}{row['p99_us']:10.1f}"
              f"{row['server_cpu_us']:13.3f}", flush=True)
    ratio = statistics.median(ratios)
    print(f"{what:16}server CPU: 1/{1 / ratio:.1f} of gRPC C++'s "
          f"(rounds: 1/{1 / ratios[-1]:.1f} to 1/{1 / ratios[0]:.1f})", flush=True)
    return {"medians": medians, "ratio": ratio, "all": rows}


def run(rounds, calls, port):
    programs = {"gRPC C++": build_server(), "Bowline": bench.program("bowline_server")}
    bench.say(f"{rounds} interleaved rounds of {calls:,}, {STREAM_BYTES} bytes, one client for both")
    print(f"{'':26}{'messages/s':>12}{'p99 us':>10}{'srv CPU us':>13}")
    with bench.namespace() as prefix:
        report = {
            "unary": measure(f"{SHAPE[0]} x {SHAPE[1]} calls", "bowline_client", SHAPE, calls,
                             rounds, prefix, programs, port),
            "stream": measure("server stream", "stream_client", (1, 1), calls, rounds, prefix,
                              programs, port),
        }
    bench.write_report("bench-grpc.json", report)
