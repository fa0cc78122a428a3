#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a unary call costs the server in instructions, beside the most it may.

usage: instructions_test.py TOP BUILD [--no-grpc] [--observed]

With --observed the server has all on that tells of it: an operations listener (metrics always are), and a
tracer that samples none of the traces to speak of, or all.

Counted by valgrind, so that neither the speed of the machine nor its load matters. A count above its bound is
tried again, for a batch of calls that is cut in two by an interruption costs a little more. Whoever
adds to the path of a call on purpose raises the bound, and says in the commit what it buys.
"""
import os
import shutil
import socket
import sys

N_CALLS = 4000
N_TRIES = 3
SKIPPED = 77

# Of the plain build by gcc 12, assertions included; ten more than was measured. What the C library
# takes differs a little between kinds of CPU: 31 more for gRPC's.
MAX_INSTRUCTIONS = {"": 2275, "grpc:": 21640}
# The same with an operations listener and a tracer of that ratio; bounds as above.
MAX_OBSERVED = {("", "none"): 2275, ("", "0.01"): 3810, ("", "1"): 4615,
                ("grpc:", "none"): 21640, ("grpc:", "0.01"): 23240, ("grpc:", "1"): 23970}


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def per_call(instructions, scheme, ratio):
    kind = "bowline" if ratio is None else "observed"
    arguments = [] if ratio is None else [ratio]
    few = instructions.count(kind, N_CALLS // 4, free_port(), scheme, *arguments)
    many = instructions.count(kind, N_CALLS // 4 + N_CALLS, free_port(), scheme, *arguments)
    return (many - few) / N_CALLS


def is_within(instructions, scheme, ratio, bound):
    counts = []
    while len(counts) < N_TRIES and (not counts or min(counts) > bound):
        counts.append(per_call(instructions, scheme, ratio))
    good = min(counts) <= bound
    watched = "" if ratio is None else f", tracer {ratio}"
    print(f"{'OK' if good else 'FAILED'}: {scheme or 'native:'} {min(counts):,.0f} instructions of "
          f"the server for a unary call{watched}, at most {bound:,}")
    return good


def main():
    top, build = sys.argv[1:3]
    sys.path.insert(0, os.path.join(top, "tools", "lib"))
    import bench_instructions
    import bench_run
    if not shutil.which("valgrind"):
        print("SKIPPED: instructions are not counted: apt-get install valgrind")
        return SKIPPED
    bench_run.BUILD = build
    # The test runner has malloc() fill what it gives, which costs instructions that users don't pay.
    os.environ.pop("MALLOC_PERTURB_", None)
    bounds = {(scheme, None): bound for scheme, bound in MAX_INSTRUCTIONS.items()}
    bounds = MAX_OBSERVED if "--observed" in sys.argv else bounds
    results = [is_within(bench_instructions, scheme, ratio, bound)
               for (scheme, ratio), bound in bounds.items()
               if scheme == "" or "--no-grpc" not in sys.argv]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
