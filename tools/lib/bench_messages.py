# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What messages cost: five as services send them, as JSON and back, decoded, encoded and cloned, by Bowline
and by Google's C++ in turn, on one core."""
import base64
import json
import os
import random
import shutil
import statistics
import subprocess

import bench_run as bench

PROTOS = {"examples/spans": ["common", "resource", "trace", "trace_service"],
          "examples/etcd": ["mvcc", "etcd"],
          "examples/ext_authz": ["status", "http_status", "core", "external_auth"],
          "examples/device_plugin": ["deviceplugin"],
          "bench": ["points"]}
ROUND_NS = 3e8  # that an operation takes in a round


def noise(rand, n):
    return base64.b64encode(rand.randbytes(n)).decode()


def spans(rand):
    def attribute(key, **value):
        return {"key": key, "value": value}

    def span(number):
        start = 1717000000000000000 + number * 1234567
        return {"traceId": noise(rand, 16), "spanId": noise(rand, 8), "parentSpanId": noise(rand, 8),
                "name": "GET /api/v1/orders/{id}", "kind": "SPAN_KIND_SERVER",
                "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 87654321),
                "attributes": [attribute("http.request.method", stringValue="GET"),
                               attribute("url.path", stringValue=f"/api/v1/orders/{number}"),
                               attribute("http.response.status_code", intValue="200"),
                               attribute("server.address", stringValue="orders.shop.svc.cluster.local"),
                               attribute("duration.ms", doubleValue=round(rand.uniform(1, 900), 3))],
                "status": {"code": "STATUS_CODE_OK"}}
    return {"resourceSpans": [{"resource": {"attributes": [attribute("service.name", stringValue="orders")]},
                               "scopeSpans": [{"scope": {"name": "http", "version": "1.4.0"},
                                               "spans": [span(i) for i in range(20)]}]}]}


def key_range(rand):
    def pair(number):
        return {"key": base64.b64encode(b"/registry/pods/default/web-%d" % number).decode(),
                "createRevision": str(1000 + number), "modRevision": str(9000 + number), "version": "7",
                "value": noise(rand, 300)}
    return {"header": {"clusterId": "14841639068965178418", "memberId": "10276657743932975437",
                       "revision": "123456", "raftTerm": "7"}, "kvs": [pair(i) for i in range(20)], "count": "20"}


def check(_rand):
    def end(address, port):
        return {"address": {"socketAddress": {"address": address, "portValue": port}}}
    headers = {":authority": "shop.example.com", ":path": "/api/v1/orders?limit=20", ":method": "GET",
               "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0",
               "accept": "application/json", "accept-encoding": "gzip, deflate, br", "x-forwarded-proto": "https",
               "x-request-id": "9b2f6c1e-5d0e-4c1a-8f5e-2f6a1f1d7c11",
               "authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"}
    return {"attributes": {"source": end("10.1.2.3", 51234), "destination": end("10.1.9.9", 8443),
                           "request": {"http": {"id": "1234567890", "method": "GET", "headers": headers,
                                                "path": "/api/v1/orders?limit=20", "host": "shop.example.com",
                                                "scheme": "https", "size": "-1", "protocol": "HTTP/1.1"}}}}


def devices(_rand):
    return {"devices": [{"ID": f"gpu-7f3a9c{i:04d}", "health": "Healthy",
                         "topology": {"nodes": [{"ID": str(i % 2)}]}} for i in range(64)]}


def points(rand):
    return {"series": [{"name": "request_duration_seconds", "labels": {"pod": f"web-{i}", "zone": "eu-west-1a"},
                        "values": [rand.expovariate(10) for _ in range(50)],
                        "deviations": [round(rand.random(), 4) for _ in range(20)],
                        "counts": [rand.randrange(100000) for _ in range(20)]} for i in range(4)]}


SAMPLES = {"spans": spans, "range": key_range, "check": check, "devices": devices, "points": points}


def write_samples(folder):
    rand = random.Random(1)
    os.makedirs(folder, exist_ok=True)
    for name, make in SAMPLES.items():
        with open(os.path.join(folder, name + ".json"), "w") as out:
            json.dump(make(rand), out, separators=(",", ":"))


def build_google(folder):
    """Google's program; None where its library is not installed."""
    if not shutil.which("g++") or subprocess.run(["pkg-config", "--exists", "protobuf"]).returncode != 0:
        return None
    sources = []
    for place, names in PROTOS.items():
        subprocess.run(["protoc", f"-I{os.path.join(bench.TOP, place)}", f"--cpp_out={folder}",
                        *(name + ".proto" for name in names)], check=True)
        sources += [os.path.join(folder, name + ".pb.cc") for name in names]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "protobuf"], check=True, capture_output=True,
                           text=True).stdout.split()
    program = os.path.join(folder, "messages_google")
    subprocess.run(["g++", "-O2", "-std=c++17", f"-I{folder}", "-o", program,
                    os.path.join(bench.TOP, "bench", "messages_google.cc"), *sources, *flags], check=True)
    return program


def run_once(program, folder, operation, name, n):
    done = subprocess.run(bench.pin(0) + [program, operation, name, os.path.join(folder, name + ".json"), str(n)],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def medians(programs, folder, operation, name, rounds):
    once = run_once(programs["Bowline"], folder, operation, name, 100)
    n = {who: max(int(ROUND_NS / run_once(program, folder, operation, name, 100)["ns"]), 100)
         for who, program in programs.items()}
    rows = {who: [] for who in programs}
    for _ in range(rounds):
        for who, program in programs.items():
            rows[who].append(run_once(program, folder, operation, name, n[who])["ns"])
    return once, {who: statistics.median(row) for who, row in rows.items()}


def run(rounds, operations, report_name):
    """`ratio`: Google's time beside Bowline's, so above 1 where Bowline is the faster one."""
    folder = os.path.join(bench.BUILD, "messages-samples")
    write_samples(folder)
    programs = {"Bowline": bench.program("messages"), "Google C++": build_google(folder)}
    programs = {who: program for who, program in programs.items() if program}
    report = {}
    print(f"{'message':<9} {'bytes':>7} {'as JSON':>8}  {'':<7}" + "".join(f"{who:>14}" for who in programs) +
          "   ratio")
    for name in SAMPLES:
        report[name] = {}
        for operation in operations:
            once, ns = medians(programs, folder, operation, name, rounds)
            ratio = ns.get("Google C++", 0) / ns["Bowline"]
            report[name].update({"bytes": once["bytes"], "text_bytes": once["text_bytes"],
                                 operation: {**ns, "ratio": ratio}})
            print(f"{name:<9} {once['bytes']:>7,} {once['text_bytes']:>8,}  {operation:<7}" +
                  "".join(f"{ns[who] / 1e3:>11,.2f} us" for who in programs) +
                  (f"  {ratio:>5.2f} x" if ratio else ""))
    bench.write_report(report_name, report)


def run_json(rounds):
    run(rounds, ["read", "write"], "bench-json.json")


def run_codec(rounds):
    run(rounds, ["decode", "encode", "clone"], "bench-codec.json")
