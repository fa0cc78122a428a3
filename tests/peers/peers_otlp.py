#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The spans and metrics of examples/traced, taken by gRPC for JavaScript and decoded with OpenTelemetry's own messages.

Usage: peers_otlp.py TRACED_SERVICE TRACED_CLIENT FOLDER

The collector refuses exports at first, in both ways after which OTLP has a client come again: each span arrives all
the same, once, and they are one trace with the right parents.
"""
import json
import pathlib
import re
import signal
import sys
import time

from peers_build import HERE, Missing, npm
from peers_run import Process

REFUSALS = 4
# Each with the protocol by which it is called.
CHAIN = (("c", "grpc:"), ("b", ""), ("a", "grpc:"))
SYSTEMS = {"a": "grpc", "b": "bowline", "c": "grpc"}


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r} instead of {wanted!r}")


def end(process, what):
    process.child.send_signal(signal.SIGTERM)
    process.child.stdout.read()
    expect(f"the end of {what}", process.child.wait(timeout=60), 0)


def send(service, client, collector):
    """One call through all of them, each of which then sends what it has."""
    services, target = [], []
    for name, protocol in CHAIN:
        services.append((name, Process([service, name, "127.0.0.1:0", collector, *target])))
        port = re.search(r"port (\d+)$", services[-1][1].line())[1]
        target = [f"{protocol}127.0.0.1:{port}"]
    caller = Process([client, *target, collector])
    expect("the receipt", caller.line().strip(), "by the hands of a, b, c")
    expect("the client's end", caller.child.wait(timeout=60), 0)
    for name, process in services:
        end(process, name)


def expect_span(span, service, kind, parent, system):
    expect("the service", span["resource"]["service.name"], service)
    expect("the library", span["resource"]["telemetry.sdk.name"], "bowline")
    expect("the parent", span["parent"], parent)
    expect("the name", span["name"], "traced.Relay/Pass")
    expect("the status", span["status"], 0)
    found = span["attributes"]
    expect("the method", (found["rpc.service"], found["rpc.method"]), ("traced.Relay", "Pass"))
    expect("the system", found["rpc.system"], system)
    expect("the status code", found["rpc.grpc.status_code"], 0)
    expect("the peer", found["network.peer.address"], "127.0.0.1")
    if kind == "SPAN_KIND_CLIENT":
        expect("the server", found["server.address"], "127.0.0.1")
    order = ["SENT", "RECEIVED"] if kind == "SPAN_KIND_CLIENT" else ["RECEIVED", "SENT"]
    expect("the messages", [event[1]["rpc.message.type"] for event in span["events"]], order)
    if not 0 < span["ns"] < 60e9 or abs(span["start_s"] - time.time()) > 600:
        raise SystemExit(f"times that cannot be: {span}")


def expect_trace(spans):
    expect("spans", len(spans), 6)
    expect("traces", len({span["trace"] for span in spans}), 1)
    found = {(span["resource"]["service.name"], span["kind"]): span for span in spans}
    parent = ""
    for caller, called in (("client", "a"), ("a", "b"), ("b", "c")):
        for service, kind in ((caller, "SPAN_KIND_CLIENT"), (called, "SPAN_KIND_SERVER")):
            expect_span(found[service, kind], service, kind, parent, SYSTEMS[called])
            parent = found[service, kind]["span"]


def expect_metrics(points):
    """Each service has served one call, and says so when it has stopped."""
    found = {point["resource"]["service.name"]: point for point in points
             if point["metric"] == "grpc.server.call.duration"}
    expect("services with metrics", sorted(found), ["a", "b", "c"])
    for point in found.values():
        expect("calls", (point["count"], point["unit"]), (1, "s"))
        expect("calls in buckets", (sum(point["buckets"]), len(point["buckets"])), (1, point["bounds"] + 1))
        expect("of which method", point["attributes"],
               {"grpc.method": "traced.Relay/Pass", "grpc.status": "OK"})
        if not 0 < point["sum"] < 60:
            raise SystemExit(f"a time that cannot be: {point}")


def main():
    service, client, folder = sys.argv[1:]
    try:
        modules = npm(pathlib.Path(folder).resolve() / "otlp", "otlp")
    except Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    collector = Process(["node", HERE / "otlp/collector.js", str(REFUSALS)], {"NODE_PATH": str(modules)})
    send(service, client, f"127.0.0.1:{collector.line().strip()}")
    collector.child.send_signal(signal.SIGTERM)
    told = [json.loads(line) for line in collector.child.stdout]
    expect("errors", [line for line in told if "error" in line], [])
    expect("refusals", [line["refused"] for line in told if "refused" in line],
           ["RESOURCE_EXHAUSTED", "UNAVAILABLE"] * (REFUSALS // 2))
    expect_trace([line for line in told if "span" in line])
    expect_metrics([line for line in told if "metric" in line])
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
