#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Three services, a client and a collector: one trace, printed as a tree, and named in the logs.

usage: traced.py SPANS_SERVER TRACED_SERVICE TRACED_CLIENT
"""
import contextlib
import re
import subprocess
import sys

import example

spans_server, service, client = sys.argv[1:]
# Each with the protocol by which it is called.
CHAIN = (("c", "grpc:"), ("b", ""), ("a", "grpc:"))
TREE = """\
client: client traced.Relay/Pass, N ms
  a: server traced.Relay/Pass, N ms
    a: client traced.Relay/Pass, N ms
      b: server traced.Relay/Pass, N ms
        b: client traced.Relay/Pass, N ms
          c: server traced.Relay/Pass, N ms
""".splitlines()

with example.program(spans_server, "-t", "127.0.0.1:0") as spans:
    collector = f"127.0.0.1:{spans.port()}"
    trace_ids = set()
    with contextlib.ExitStack() as services:
        target, hands = [], []
        for name, protocol in CHAIN:
            started = services.enter_context(
                example.program(service, name, "127.0.0.1:0", collector, *target))
            target = [f"{protocol}127.0.0.1:{started.port()}"]
            hands.append(started)
        done = subprocess.run([client, *target, collector], capture_output=True, text=True,
                              timeout=example.PATIENCE_S, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "by the hands of a, b, c\n", ""), done
        for hand in hands:
            trace_ids.add(hand.wait_line(r" trace_id=([0-9a-f]{32}) span_id=[0-9a-f]{16}$")[1])
    assert len(trace_ids) == 1, trace_ids
    spans.stop()
    spans.wait_line(r"export calls")
    assert spans.lines[1] == f"trace {trace_ids.pop()}", spans.lines
    tree = [re.sub(r"[0-9]+\.[0-9]{3} ms", "N ms", line) for line in spans.lines[2:2 + len(TREE)]]
    assert tree == TREE, spans.lines
