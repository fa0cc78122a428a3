#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""bowline bench: what it counts is what the server counted, and what it measures is no less than what
a call must have taken.

usage: tool_bench_test.py TOOL SERVER PROTOC HERE
"""
import json
import pathlib
import sys
import tempfile

import tool
from tool import Run, calls_of, server


def bench(desk, protocol, method, *options, may_be_starved=False):
    """What it told. On a machine that had no time for it, nothing may have been measured."""
    run = Run("bench", protocol + desk.address, f"desk.Desk/{method}", *options, "--json")
    assert run.code == 0 or (may_be_starved and run.code == 1), run
    told = json.loads(run.out)
    assert sum(told["statuses"].values()) == told["calls"], told
    assert sum(row["count"] for row in told["histogram"]) == told["statuses"].get("OK", 0), told
    return told


def test_counts_are_the_servers():
    for protocol in ("", "grpc:"):
        with server("127.0.0.1:0", "--reflection") as desk:
            counted = bench(desk, protocol, "Echo", '{"text":"{{seq}} {{uuid}}"}', "-n", "300", "-c",
                            "7", "--connections", "3")
            timed = bench(desk, protocol, "Work", "-d", "200ms", "--warm-up", "100ms", "-c", "5",
                          may_be_starved=True)
            rated = bench(desk, protocol, "Count", '{"n":3}', "--rate", "200", "-d", "300ms",
                          "--warm-up", "0s")
            summed = bench(desk, protocol, "Sum", '{"number":1}', "-n", "20")
        assert counted["calls"] == 300 == counted["calls_total"], counted
        assert calls_of(desk, "/desk.Desk/Echo") == (300, 300)
        assert calls_of(desk, "/desk.Desk/Work") == (timed["calls_total"],) * 2, timed
        assert timed["calls"] < timed["calls_total"], timed
        assert calls_of(desk, "/desk.Desk/Count") == (rated["calls_total"],) * 2, rated
        assert rated["calls"] + rated["late"] == 60 and rated["messages"] == 3 * rated["calls"], rated
        assert calls_of(desk, "/desk.Desk/Sum") == (20, 20) and summed["calls"] == 20


def test_messages_take_turns():
    """Of a method whose client streams, each call sends all."""
    with server("127.0.0.1:0", "--reflection") as desk:
        counted = bench(desk, "", "Count", '{"n":1} {"n":2}\n{"n":4}', "-n", "9", "-c", "2")
        chats = bench(desk, "grpc:", "Chat", '{"text":"a"}{"text":"{{seq}}"}', "-n", "5", "-c", "1")
        mixed = Run("bench", desk.address, "desk.Desk/Work", '{} {"failCode":5}', "-n", "20", "--json")
        assert json.loads(mixed.out)["statuses"] == {"OK": 10, "NOT_FOUND": 10}, mixed
        Run("bench", desk.address, "desk.Desk/Count", '{"n":1}\n{"n":"x"}', "-n", "1").failed(
            2, "the message from line 2 on")
        big = json.dumps({"text": "x" * 1000}) * 1000
        Run("bench", desk.address, "desk.Desk/Sum", "-", "-n", "1", "-c", "1", text=big).failed(
            2, "too many bytes to be sent at once")
    assert counted["messages"] == 3 * (1 + 2 + 4), counted
    assert chats["messages"] == 2 * 5, chats


def test_latencies_are_the_handlers():
    """None is below what the handler takes."""
    with server("127.0.0.1:0", "--reflection") as desk:
        told = bench(desk, "", "Work", '{"sleepUs":20000}', "-n", "40", "-c", "10")
        times = told["latency_seconds"]
    assert times["min"] >= 0.020, times
    order = [times[name] for name in ("min", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99",
                                      "max")]
    assert order == sorted(order), times


def test_rate_counts_from_when_a_call_should_have_begun():
    """One at a time, each 20 ms long, due every 5 ms: the last of 20 waits for those before it."""
    with server("127.0.0.1:0", "--reflection") as desk:
        told = bench(desk, "", "Work", '{"sleepUs":20000}', "-n", "20", "-c", "1", "--rate", "200")
    assert told["calls"] == 20, told
    assert told["latency_seconds"]["max"] >= 20 * 0.020 - 19 * 0.005, told
    assert told["latency_seconds"]["p50"] >= 10 * 0.020 - 9 * 0.005 - 0.002, told


def test_rate_of_calls_is_that_of_the_time_in_which_they_begin():
    """The last of them takes a tenth of a second more, in which none begins."""
    with server("127.0.0.1:0", "--reflection") as desk:
        told = bench(desk, "", "Work", '{"sleepUs":100000}', "--rate", "50", "-d", "400ms", "--warm-up", "0s")
    assert told["calls"] + told["late"] == 20, told
    assert abs(told["seconds"] - 0.4) < 1e-6 and told["calls_per_second"] == told["calls"] / 0.4, told


def test_failures_are_told():
    with server("127.0.0.1:0", "--reflection") as desk:
        run = Run("bench", desk.address, "desk.Desk/Work", '{"failCode":8}', "-n", "10")
        assert run.code == 1 and "RESOURCE_EXHAUSTED   10" in run.out, run
        assert "the first that failed: as was asked" in run.out, run


def test_report_for_people():
    with server("127.0.0.1:0", "--reflection") as desk, tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        text = Run("bench", desk.address, "desk.Desk/Echo", "-n", "50", "--html", str(page)).ok()
        html = page.read_text(encoding="utf-8")
    for part in ("50 calls in ", "  OK                   50", "p99.99", "\u2588"):
        assert part in text, (part, text)
    for part in ("<svg ", "desk.Desk/Echo", "p99.99", "</html>"):
        assert part in html, part
    assert "http" not in html, "the page needs nothing from elsewhere"


if __name__ == "__main__":
    tool.run_tests(sys.modules[__name__])
