#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Take out one guard at a time and see after how many seeds the simulator notices.

usage: sim_mutants.py TOP SCRATCH SEEDS [--all] [PART_OF_NAME ...]

The mutants of tests/mutants that say "Sim: yes" (or all, to find out which
could), in copies of the tree that are kept in SCRATCH. Prints one line a mutant and as the last
line "N passed, N failed".
"""
import concurrent.futures
import pathlib
import queue
import re
import subprocess
import sys
import time

import mutant as form
import mutants

TARGET = "tests/sim/sim_test"
SETUP = ["-Dwerror=false", "--buildtype=release", "-Db_ndebug=false", "-Dbench=false",
         "-Dexamples=false"]
LIMIT_S = 1200
BASELINE_SEEDS = 1000


class Tree(mutants.Tree):
    """A copy of the sources, built for speed, with assertions."""

    def configure(self):
        if not (self.build / "build.ninja").exists():
            self.must(["meson", "setup", self.build, self.path, *self.setup])

    def compile_sim(self):
        """Returns None, or what the compiler said."""
        run = subprocess.run(["ninja", "-C", self.build, TARGET], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        return run.stdout if run.returncode else None

    def seeds(self, n):
        """Returns the seed that was the first to end badly (0: none), and how."""
        command = [self.build / TARGET, "--seeds", str(n)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                 timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return 0, f"no end within {LIMIT_S} s"
        found = re.search(r"^seed (\d+): (.*)$", run.stdout + run.stderr, re.MULTILINE)
        if run.returncode == 0 or found is None:
            return 0, f"exit code {run.returncode}"
        return int(found[1]), found[2]


def try_mutant(trees, mutant, n):
    tree = trees.get()
    try:
        mutant.apply(tree.path)
        output = tree.compile_sim()
        if output is not None:
            return False, f"does not build  {mutant.name}\n{mutants.tail(output)}"
        started = time.monotonic()
        seed, how = tree.seeds(n)
        seconds = time.monotonic() - started
        if seed == 0:
            return False, f"MISSED  {mutant.name}: {n} seeds, {seconds:.0f} s, {how}"
        return True, f"caught  {mutant.name}: after {seed} seeds, {seconds:.0f} s: {how}"
    except form.Wrong as wrong:
        return False, f"does not apply  {mutant.name}: {wrong}\n{mutants.REFRESH}"
    finally:
        for name in mutant.files:
            tree.restore(name)
        trees.put(tree)


def main():
    top, scratch, n = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    parts = [part for part in sys.argv[4:] if part != "--all"]
    chosen = [mutant for mutant in form.load(top, parts or [""])
              if mutant.sim or "--all" in sys.argv]
    if not chosen:
        sys.exit("sim_mutants: none has such a name")
    all_trees = [Tree(top, scratch.resolve() / f"tree-{i}", SETUP)
                 for i in range(min(mutants.N_TREES, len(chosen)))]
    trees = queue.SimpleQueue()
    failed = 0

    for tree in all_trees:
        tree.path.mkdir(parents=True, exist_ok=True)
        tree.sync()
        tree.configure()
        output = tree.compile_sim()
        if output is not None:
            sys.exit(f"{mutants.tail(output)}sim_mutants: the tree does not build without a mutant")
        trees.put(tree)
    seed, how = all_trees[0].seeds(BASELINE_SEEDS)
    if seed != 0:
        print(f"sim_mutants: seed {seed} ends badly without any mutant: {how}\n"
              f"0 passed, {len(chosen)} failed")
        return 1
    with concurrent.futures.ThreadPoolExecutor(len(all_trees)) as pool:
        tries = [pool.submit(try_mutant, trees, mutant, n) for mutant in chosen]
        for done in concurrent.futures.as_completed(tries):
            is_caught, said = done.result()
            print(said, flush=True)
            failed += not is_caught
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
