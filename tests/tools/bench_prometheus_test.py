#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A real Prometheus scrapes a server while `bowline bench` loads it: are its numbers the truth?

usage: bench_prometheus_test.py TOOL SERVER PROTOC HERE

What is compared, and why:

- Counts: what Prometheus holds at the end is what bench sent, to the call, over each protocol.
- Quantiles, with the server's own (it prints its histogram at its end, within 1/64). Prometheus has a few
  buckets and draws a straight line inside each: so at a bound, where it draws nothing, it must be within 2 %
  (the share of calls up to the bound is asked for as a quantile), and p50, p90, p99 must be in the bucket
  in which the server's own is. At which bounds: those that calls came close to.
- bench's times are a client's, so its quantiles are at least the server's: every call took it longer than the
  server. By how much is the network's and the machine's, and is printed.
- Scraping a hundred times a second: the 99th percentile that bench tells at a constant rate, with and without,
  in turn, medians of each. The server has a worker, as docs/operating.md says, so that its listener is on
  another loop. What else runs on the machine is in both; while the medians differ there are further runs.
- The rules of docs/alerts.yml and the expressions of the dashboard evaluate, on these numbers.
"""
import bisect
import contextlib
import http.client
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import tool
from example import PATIENCE_S, free_port
from tool import HERE, Run, server

SKIPPED = 77
DOCS = pathlib.Path(HERE).parent.parent / "docs"
METHOD = "desk.Desk/Echo"
SECONDS = 30  # of each protocol
CLOSE = 0.02
ROUNDING = 1 / 64 + 1 / 128  # the server's histogram and bench's
TIMES = "grpc_server_call_duration_seconds"
MAX_COST = 1.10
PAIRS, MOST_PAIRS = 9, 45
SCRAPES_PER_S = 100


def http_get(address, path):
    peer = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        peer.request("GET", path)
        answer = peer.getresponse()
        return answer.status, answer.read()
    finally:
        peer.close()


def poll(what, until=PATIENCE_S):
    """What it returns once that is true: another process has no event for us."""
    end = time.monotonic() + until
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            found = what()
            if found:
                return found
        time.sleep(0.05)
    raise AssertionError(f"not within {until} s: {what}")


class Prometheus:
    """One that scrapes a target once a second, with a folder of its own."""

    def __init__(self, folder, target):
        self.address = f"127.0.0.1:{free_port()}"
        config = pathlib.Path(folder, "prometheus.yml")
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(DOCS / "alerts.yml")],
            "scrape_configs": [{"job_name": "desk", "static_configs": [{"targets": [target]}]}]}),
            encoding="utf-8")
        self.log = open(pathlib.Path(folder, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"],
            stdout=self.log, stderr=self.log)

    def get(self, path, **query):
        _, body = http_get(self.address, f"{path}?{urllib.parse.urlencode(query)}")
        answer = json.loads(body)
        assert answer["status"] == "success", (path, query, answer)
        return answer["data"]

    def query(self, expression):
        return self.get("/api/v1/query", query=expression)["result"]

    def number(self, expression):
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def wait_ready(self):
        poll(lambda: http_get(self.address, "/-/ready")[0] == 200)

    def wait_scrape_after(self, moment):
        poll(lambda: (self.number('timestamp(up{job="desk"})') or 0) > moment)

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()


@contextlib.contextmanager
def prometheus(target):
    with tempfile.TemporaryDirectory() as folder:
        running = Prometheus(folder, target)
        try:
            running.wait_ready()
            yield running
        finally:
            running.close()


@contextlib.contextmanager
def desk_server():
    with server("127.0.0.1:0", "--reflection", "--workers", "1", "--operations", "127.0.0.1:0") as desk:
        desk.operations = desk.wait_line(r"^operations at (\S+)$").group(1)
        yield desk


def bench(desk, protocol, *options):
    return Run("bench", protocol + desk.address, METHOD, '{"text":"how long does it take?"}', *options,
               "--json").json()[0]


class Own:
    """The server's histogram, as it printed it at its end: seconds up to which, and how many."""

    def __init__(self, line):
        pairs = [pair.split(":") for pair in line.split()]
        self.bounds = [int(upto) / 1e9 for upto, _ in pairs]
        self.cumulated = []
        for _, n in pairs:
            self.cumulated.append(int(n) + (self.cumulated[-1] if self.cumulated else 0))

    def quantile(self, q):
        rank = max(math.ceil(q * self.cumulated[-1] - 1e-6), 1)
        return self.bounds[bisect.bisect_left(self.cumulated, rank)]

    def is_close_to(self, bound):
        """Whether calls took just that long: one in 5000, within 2 %."""
        below, upto = (bisect.bisect_right(self.bounds, bound * by) for by in (1 - CLOSE, 1))
        return self.up_to(upto) - self.up_to(below) >= self.cumulated[-1] / 5000

    def up_to(self, index):
        return self.cumulated[index - 1] if index > 0 else 0


def buckets(prom):
    found = prom.query(f'{TIMES}_bucket{{grpc_method="{METHOD}",grpc_status="OK"}}')
    rows = sorted((float(row["metric"]["le"]), int(row["value"][1])) for row in found)
    assert rows[-1][0] == math.inf, rows
    return rows


def prometheus_quantile(prom, q):
    return prom.number(f'histogram_quantile({q!r}, sum by (le) ({TIMES}_bucket{{grpc_method="{METHOD}"}}))')


def compare_bounds(rows, asked, own):
    n_compared = 0
    for bound, n in rows[:-1]:
        if bound not in asked or not own.is_close_to(bound):
            continue
        mine = own.quantile(n / rows[-1][1])
        print(f"  at {bound * 1e6:.0f} us: {n / rows[-1][1]:.4f} of all; Prometheus says "
              f"{asked[bound] * 1e6:.1f} us, the server {mine * 1e6:.1f} us")
        assert abs(asked[bound] - mine) <= CLOSE * mine, (bound, asked[bound], mine)
        n_compared += 1
    assert n_compared > 0, "no bound that calls came close to"


def compare_quantiles(rows, asked, own, told):
    bounds = [0.0] + [bound for bound, _ in rows]
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        mine, seen, clients = own.quantile(q), asked[q], told["latency_seconds"][name]
        at = bisect.bisect_left(bounds, seen)
        low, high = bounds[at - 1], bounds[at]
        print(f"  {name}: Prometheus {seen * 1e6:.1f} us, the server {mine * 1e6:.1f} us, bench "
              f"{clients * 1e6:.1f} us; bucket {low * 1e6:.0f} to {high * 1e6:.0f} us")
        assert low * (1 - CLOSE) <= mine <= high * (1 + CLOSE), (name, low, mine, high)
        assert clients >= mine * (1 - 2 * ROUNDING), (name, clients, mine)


def ask_quantiles(prom, rows):
    asked = {q: prometheus_quantile(prom, q) for q in (0.5, 0.9, 0.99)}
    for bound, n in rows[:-1]:
        if 0 < n < rows[-1][1]:
            asked[bound] = prometheus_quantile(prom, n / rows[-1][1])
    return asked


def check_counts(prom, told):
    for expression in ("grpc_server_call_started_total{%s}" % f'grpc_method="{METHOD}"',
                       f'{TIMES}_count{{grpc_method="{METHOD}",grpc_status="OK"}}',
                       f'sum({TIMES}_count{{grpc_method="{METHOD}"}})',
                       f'grpc_server_call_rcvd_total_compressed_message_size_bytes_count{{grpc_method="{METHOD}"}}'):
        held = prom.number(expression)
        assert held == told["calls_total"], (expression, held, told["calls_total"])
    assert prom.number(f'bowline_server_calls_in_flight{{grpc_method="{METHOD}"}}') == 0


def check_rules(prom):
    rules = [rule for group in prom.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    wrong = [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"]
    assert rules and not wrong, wrong
    return len(rules)


def check_dashboard(prom):
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    n_shown = 0
    for expression in expressions:
        expression = expression.replace("$__rate_interval", "30s")
        n_shown += bool(prom.query(re.sub(r"\$\w+", ".*", expression)))
    return n_shown, len(expressions)


def scraped_while_loaded(protocol):
    with desk_server() as desk, prometheus(desk.operations) as prom:
        prom.wait_scrape_after(0)
        told = bench(desk, protocol, "-c", "16", "-d", f"{SECONDS}s", "--warm-up", "0s")
        # What belongs to no method is published 10 ms later at most.
        prom.wait_scrape_after(time.time() + 0.02)
        assert told["statuses"] == {"OK": told["calls"]} and told["calls"] == told["calls_total"], told
        check_counts(prom, told)
        rows = buckets(prom)
        asked = ask_quantiles(prom, rows)
        n_scrapes = prom.number('count_over_time(up{job="desk"}[5m])')
        n_rules = check_rules(prom)
        n_shown, n_panels = check_dashboard(prom)
    own = Own(desk.wait_line(rf"^times /{METHOD}(.*)$").group(1))
    print(f"{protocol or 'native:'} {told['calls']} calls, as Prometheus has them after {n_scrapes:.0f} scrapes; "
          f"{n_rules} rules evaluate, {n_shown} of {n_panels} expressions of the dashboard show something")
    assert own.cumulated[-1] == told["calls"]
    compare_bounds(rows, asked, own)
    compare_quantiles(rows, asked, own, told)


def test_prometheus_holds_what_bench_sent():
    for protocol in ("", "grpc:"):
        scraped_while_loaded(protocol)


class Scraper(threading.Thread):
    """Asks for the page, over one connection as Prometheus does, a hundred times a second."""

    def __init__(self, address):
        super().__init__()
        self.peer = http.client.HTTPConnection(address, timeout=PATIENCE_S)
        self.over = threading.Event()
        self.n = 0

    def run(self):
        begun = time.monotonic()
        while not self.over.wait(max(begun + self.n / SCRAPES_PER_S - time.monotonic(), 0)):
            self.peer.request("GET", "/metrics")
            self.peer.getresponse().read()
            self.n += 1
        self.peer.close()


def p99_of(desk):
    told = bench(desk, "", "--rate", "2000", "-c", "50", "-d", "1s", "--warm-up", "200ms")
    return told["latency_seconds"]["p99"]


def p99_while_scraped(desk):
    scraper = Scraper(desk.operations)
    scraper.start()
    try:
        return p99_of(desk), scraper
    finally:
        scraper.over.set()
        scraper.join()


def test_scraping_often_costs_little():
    plain, scraped, n_scrapes = [], [], 0
    with desk_server() as desk:
        p99_of(desk)
        while len(plain) < MOST_PAIRS:
            for _ in range(PAIRS):
                plain.append(p99_of(desk))
                took, scraper = p99_while_scraped(desk)
                scraped.append(took)
                n_scrapes += scraper.n
            ratio = statistics.median(scraped) / statistics.median(plain)
            print(f"p99 at 2000 calls a second: {statistics.median(plain) * 1e6:.0f} us, scraped "
                  f"{SCRAPES_PER_S} times a second {statistics.median(scraped) * 1e6:.0f} us: {ratio:.3f} of it, "
                  f"medians of {len(plain)} each ({min(plain) * 1e6:.0f} to {max(plain) * 1e6:.0f}, "
                  f"{min(scraped) * 1e6:.0f} to {max(scraped) * 1e6:.0f}); {n_scrapes} scrapes")
            if ratio < MAX_COST:
                return
    raise AssertionError(f"scraping makes the 99th percentile {ratio:.2f} of what it was")


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("SKIPPED: Prometheus scrapes nothing: apt-get install prometheus")
        sys.exit(SKIPPED)
    tool.run_tests(sys.modules[__name__])
