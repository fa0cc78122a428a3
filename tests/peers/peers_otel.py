#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenTelemetry's exporter for JavaScript sends spans to examples/spans: each arrives once, as it was
sent, plain and compressed with gzip, also when the server refuses for load.

Usage: peers_otel.py SPANS_SERVER FOLDER [--gzip]

What the exporter does about a refusal by itself, as its source says (otlp-grpc-exporter-base 0.223.1; 0.301.0,
for newer Nodes, is no different): nothing. GrpcExporterTransport makes one call of each export, with a
deadline of 10 s, and returns any error as a failure: no code is tried again, RetryInfo is not looked at,
and there is no back-off. (retrying-transport.js of otlp-exporter-base has one, which the exporters over HTTP use.)
BatchSpanProcessor then drops the batch. So left alone it loses what is refused, as is seen here. But it
hands on gRPC's error with its trailers; and exporter.js has around it what OTLP asks of a client: it reads
google.rpc.RetryInfo, with protobufjs, and exports the batch again when that says so. Then nothing is lost,
which needs that a call that is refused was not processed, and that the server says when to come again.
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading

from peers_build import HERE, Missing, npm
from peers_run import Process

SPANS, BATCH = 5000, 100
EXPORTS = SPANS // BATCH
AT_A_TIME, AGAIN_MS = 4, 50
TOTALS = re.compile(r"(\d+) export calls, (\d+) refused for load, (\d+) bytes received")


class Server:
    """examples/spans, whose lines are read as they come, for it waits until they are."""

    def __init__(self, program, *options):
        self.process = Process([program, "-v", *options, "127.0.0.1:0"])
        self.port = re.search(r"port (\d+)$", self.process.line())[1]
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.child.stdout))
        self.reader.start()

    def end(self):
        """Returns its spans, and how many exports, refusals and bytes it has counted."""
        self.process.child.send_signal(signal.SIGTERM)
        self.reader.join()
        expect("the server's end", self.process.child.wait(timeout=60), 0)
        spans = [line.rstrip("\n").split("\t")[1:] for line in self.lines if line.startswith("span\t")]
        return spans, *map(int, TOTALS.fullmatch(self.lines[-1].strip()).groups())


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r} instead of {wanted!r}")


def sent(i):
    """What exporter.js makes of its span `i`, as the server prints it."""
    return ["checkout", f"work {i}", f"index={i}", f"middle={i}.5",
            f"even={'true' if i % 2 == 0 else 'false'}", f"greeting=Grüße\\x09{i}", f"parts=[a,{i}]"]


def expect_each_once(spans):
    ids = {(trace, span) for _, trace, span, *_ in spans if len(trace) == 32 and len(span) == 16}
    expect("spans with an id of their own", len(ids), len(spans))
    found = sorted([service, *rest] for service, _, _, *rest in spans)
    wanted = sorted(map(sent, range(SPANS)))
    if found != wanted:
        odd = [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
        raise SystemExit(f"{len(found)} spans instead of {SPANS}; {odd}")


class Exporter:
    def __init__(self, modules):
        self.environment = {"NODE_PATH": str(modules)}

    def run(self, port, compression, crowd=0, mode="alone"):
        exporter = Process(["node", HERE / "otel/exporter.js", port, compression, str(SPANS), str(BATCH),
                            str(crowd), mode], self.environment)
        told = exporter.line()
        expect("the exporter's end", exporter.child.wait(timeout=60), 0)
        return json.loads(told)


def has_room(program, exporter, compression):
    """Returns how many bytes it took."""
    server = Server(program)
    told = exporter.run(server.port, compression)
    spans, exports, refused, n_bytes = server.end()
    expect("exports", told, {"done": EXPORTS, "lost": 0, "refused": 0, "delays": {}, "errors": {}})
    expect("exports and refusals counted", (exports, refused), (EXPORTS, 0))
    expect_each_once(spans)
    print(f"{compression}: {SPANS} spans, {n_bytes} bytes", flush=True)
    return n_bytes


def is_full(program, exporter, compression, mode):
    """So many calls are in progress as it takes, until it has refused each export."""
    server = Server(program, "-m", str(AT_A_TIME), "-r", str(AGAIN_MS))
    told = exporter.run(server.port, compression, AT_A_TIME, mode)
    spans, exports, refused, _ = server.end()
    expect("refusals with their delays", told["delays"], {str(AGAIN_MS): refused})
    print(f"{compression}, full, {mode}: {refused} refused, {told['lost']} of {EXPORTS} lost", flush=True)
    if mode == "alone":
        expect("losses", told["errors"], {"RESOURCE_EXHAUSTED": EXPORTS})
        expect("what it has taken", (exports, spans), (0, []))
        return
    expect("exports", (told["done"], told["lost"], exports), (EXPORTS, 0, EXPORTS))
    expect("as many as it had refused first", refused >= EXPORTS, True)
    expect_each_once(spans)


def main():
    program, folder, *options = sys.argv[1:]
    try:
        exporter = Exporter(npm(pathlib.Path(folder).resolve() / "otel", "otel"))
    except Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    plain = has_room(program, exporter, "none")
    is_full(program, exporter, "none", "alone")
    is_full(program, exporter, "none", "again")
    if "--gzip" in options:
        expect("fewer bytes with gzip", has_room(program, exporter, "gzip") < plain / 2, True)
        is_full(program, exporter, "gzip", "again")
    print(f"{5 if '--gzip' in options else 3} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
