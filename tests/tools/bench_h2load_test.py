#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`bowline bench` beside h2load (of nghttp2), on the same gRPC server: do they measure the same?

usage: bench_h2load_test.py TOOL SERVER PROTOC HERE

Both have the same number of calls at once over the same number of connections, in turn, RUNS times; medians
are compared. What they must agree on, and why not better:

- Each for itself obeys Little's law: calls a second times their mean is how many are under way. It follows from
  no property of the server or the machine, only from a rate and times that belong together; of a window's ends
  at most the calls at once are out of place. So its bound is 2 % and those. (h2load has a moment of its own
  between two requests, which is in neither of its numbers: of it no more than that may be under way.)
- They agree within 10 %, or within what runs of one tool differ among themselves (half of the spread of both):
  on a machine that has other things to do nothing better can be said. Of calls that the handler holds for 20 ms
  that is rate, p50, p90 and p99, for there the client is a small part; at a constant rate it is the rate, within
  1 %, and p50, within 30 %, since tens of microseconds are the client's own.
- At full speed the client is part of what is measured: it runs beside the server on the same cores, and bench
  makes more of a call than h2load (a message that is decoded, a deadline). There half to double is asked for.
"""
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import tool
from example import PATIENCE_S
from tool import Run, server

SKIPPED = 77
RUNS = 5
CONNECTIONS, AT_ONCE = 4, 16
NAMES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


class Measured:
    def __init__(self, rate, mean, quantiles):
        self.rate, self.mean = rate, mean
        self.quantiles = quantiles


def spread(runs, of):
    values = [of(run) for run in runs]
    return max(values) - min(values)


def rate_of(made):
    return made.rate


def quantile_of(name):
    return lambda made: made.quantiles[name]


def medians(runs):
    return Measured(statistics.median(run.rate for run in runs), statistics.median(run.mean for run in runs),
                    {name: statistics.median(run.quantiles[name] for run in runs) for name, _ in NAMES})


def by_bench(desk, method, data, seconds, rate=None):
    how = ["--rate", str(rate)] if rate else []
    told = Run("bench", "grpc:" + desk.address, f"desk.Desk/{method}", data, "-c", str(AT_ONCE), "--connections",
               str(CONNECTIONS), "-d", f"{seconds}s", "--warm-up", "1s", "--json", *how).json()[0]
    assert told["statuses"] == {"OK": told["calls"]}, told
    times = told["latency_seconds"]
    return Measured(told["calls_per_second"], times["mean"], {name: times[name] for name, _ in NAMES})


def of_log(path, seconds):
    """Rows of a start in microseconds, a status and a time: those that began after the first second and ended
    before the last moment."""
    rows = [tuple(map(int, line.split("\t")[:3])) for line in path.read_text().splitlines()]
    first = min(row[0] for row in rows) + 1_000_000
    last = first + seconds * 1_000_000
    assert all(status == 200 for _, status, _ in rows)
    times = sorted(took for began, _, took in rows if first <= began < last)
    pick = {name: times[math.ceil(q * len(times)) - 1] / 1e6 for name, q in NAMES}
    return Measured(len(times) / seconds, statistics.fmean(times) / 1e6, pick)


def by_h2load(desk, method, body, seconds, rate=None):
    with tempfile.TemporaryDirectory() as folder:
        data, log = pathlib.Path(folder, "body"), pathlib.Path(folder, "log")
        data.write_bytes(b"\0" + len(body).to_bytes(4, "big") + body)
        how = [f"--rps={rate // CONNECTIONS}"] if rate else []
        done = subprocess.run(
            ["h2load", "-c", str(CONNECTIONS), "-m", str(AT_ONCE // CONNECTIONS), "-D", str(seconds + 2), "-t", "1",
             "-d", data, "-H", "content-type: application/grpc", "-H", "te: trailers", f"--log-file={log}", *how,
             f"http://{desk.address}/desk.Desk/{method}"], capture_output=True, text=True,
            timeout=PATIENCE_S, check=False)
        assert done.returncode == 0 and " 0 failed, 0 errored, 0 timeout" in done.stdout, done
        return of_log(log, seconds)


def in_turn(method, data, body, seconds, rate=None):
    """Runs of bench and of h2load."""
    ours, theirs = [], []
    with server("127.0.0.1:0", "--reflection") as desk:
        for _ in range(RUNS):
            ours.append(by_bench(desk, method, data, seconds, rate))
            theirs.append(by_h2load(desk, method, body, seconds, rate))
    return ours, theirs


def show(what, ours, theirs):
    for name, runs in (("bench", ours), ("h2load", theirs)):
        made = medians(runs)
        times = ", ".join(f"{key} {value * 1e6:.0f} (+-{spread(runs, quantile_of(key)) * 5e5:.0f})"
                          for key, value in made.quantiles.items())
        print(f"  {what}, {name:6}: {made.rate:.0f} (+-{spread(runs, rate_of) / 2:.0f}) a second, mean "
              f"{made.mean * 1e6:.0f} us, {times}; rate x mean {made.rate * made.mean:.2f}")


def check_close(what, of, ours, theirs, most):
    mine, other = of(medians(ours)), of(medians(theirs))
    noise = (spread(ours, of) + spread(theirs, of)) / 2
    assert abs(mine - other) <= max(most * other, noise), (what, mine, other, noise)


def check_little(ours, theirs, seconds):
    """Of each run by itself."""
    for made in ours + theirs:
        most = AT_ONCE * (0.02 + AT_ONCE / (made.rate * seconds))
        over = made.rate * made.mean - AT_ONCE
        assert over <= most and (over >= -most or made in theirs), (made.rate, made.mean, most)


def test_held_calls_take_as_long_for_both():
    ours, theirs = in_turn("Work", '{"sleepUs":20000}', b"\x08\xa0\x9c\x01", 3)
    show("20 ms in the handler", ours, theirs)
    check_little(ours, theirs, 3)
    check_close("rate", rate_of, ours, theirs, 0.1)
    for name, _ in NAMES:
        check_close(name, quantile_of(name), ours, theirs, 0.1)


def test_full_speed_is_of_one_order():
    ours, theirs = in_turn("Echo", '{"text":"how fast is it?"}', b"\x0a\x0fhow fast is it?", 2)
    show("full speed", ours, theirs)
    check_little(ours, theirs, 2)
    assert 0.5 <= medians(ours).rate / medians(theirs).rate <= 2


def test_constant_rate_is_the_same_for_both():
    ours, theirs = in_turn("Echo", '{"text":"how fast is it?"}', b"\x0a\x0fhow fast is it?", 2, rate=400)
    show("400 a second", ours, theirs)
    check_close("rate", rate_of, ours, theirs, 0.01)
    check_close("p50", quantile_of("p50"), ours, theirs, 0.3)


if __name__ == "__main__":
    if not shutil.which("h2load"):
        print("SKIPPED: nothing to compare with: apt-get install nghttp2-client")
        sys.exit(SKIPPED)
    tool.run_tests(sys.modules[__name__])
