#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Take out one guard at a time and see that the tests notice.

usage: mutants.py TOP SCRATCH [PART_OF_NAME ...]

Each file of tests/mutants takes one guard out of the tree and names the tests that must
fail then. They run, under ASan and UBSan unless the header says
"Build: plain" or, for TSan at -O2, "Build: threads", in copies of the tree, which are kept in SCRATCH so that the next run
compiles only what changed. Prints one line
a mutant and as the last line "N passed, N failed".
"""
import concurrent.futures
import filecmp
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mutant as form

N_TREES = min(2, os.cpu_count() or 1)
SKIP = 77
# A test that takes that much longer than without the mutant hangs.
HANG_FACTOR = 5
HANG_LEAST_S = 10
# As tools/test gives to sanitized builds.
SANITIZED_FACTOR = 4
# Every mutant links its tests anew: less debug information and the faster linker, as tools/test does.
ALL = ["-Dwerror=false", "--buildtype=debug", "-Dbench=false", "-Dc_args=-g1",
       "-Dc_link_args=-fuse-ld=lld"]
PLAIN = [*ALL, "-Doptimization=1"]
SETUPS = {"sanitized": [*PLAIN, "-Db_sanitize=address,undefined", "-Db_lundef=false"],
          "plain": PLAIN,
          "threads": [*ALL, "-Doptimization=2", "-Db_sanitize=thread", "-Db_lundef=false"]}
REFRESH = """\
        The code it changes has changed: write down again what stands there and what shall stand
        there instead, or take the mutant away when the guard is gone for good."""


def is_source(name):
    return not name.startswith("build") and name not in (".git", "__pycache__", ".cache")


def sources(top):
    for where, folders, names in os.walk(top):
        at_top = pathlib.Path(where) == top
        folders[:] = [f for f in folders if is_source(f) or (not at_top and f.startswith("build"))]
        for name in names:
            yield (pathlib.Path(where) / name).relative_to(top)


def end_session(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Tree:
    """A copy of the sources and its build."""

    def __init__(self, top, path, setup):
        self.top = top
        self.setup = setup
        self.path = path
        self.build = path / "build"
        self.tests = {}
        self.targets = {}

    def sync(self):
        """Make it the same as the original; what is the same already keeps its time stamp."""
        wanted = set(sources(self.top))
        for name in set(sources(self.path)) - wanted:
            (self.path / name).unlink()
        for name in wanted:
            self.restore(name)

    def restore(self, name):
        original, copy = self.top / name, self.path / name
        if not copy.exists() or not filecmp.cmp(original, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, copy)
            shutil.copymode(original, copy)

    def configure(self):
        if not (self.build / "build.ninja").exists():
            self.must(["meson", "setup", self.build, self.path, *self.setup])
        self.must(["ninja", "-C", self.build, "build.ninja"])
        self.targets = {t["id"]: t["filename"] for t in self.introspect("--targets")}
        self.tests = {t["name"]: t for t in self.introspect("--tests")}

    def must(self, command):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"{run.stdout[-4000:]}{run.stderr}mutants: {command[0]} failed in {self.path}")

    def introspect(self, what):
        out = subprocess.run(["meson", "introspect", self.build, what],
                             capture_output=True, check=True).stdout
        return json.loads(out)

    def compile(self, tests):
        """What these tests need, nothing else. Returns the output when it fails, else None."""
        ids = {target for test in tests for target in self.tests[test]["depends"]}
        files = [os.path.relpath(f, self.build) for i in sorted(ids) for f in self.targets[i]]
        run = subprocess.run(["ninja", "-C", self.build, "-j2", *files],
                             capture_output=True, text=True, check=False)
        return run.stdout if files and run.returncode else None

    def run(self, name, limit_s):
        """Returns exit code (None: it hung), output, seconds."""
        test = self.tests[name]
        started = time.monotonic()
        # The first failure says all, and what a test has started must not outlive it: so it has a
        # session of its own, and writes to what nobody waits for.
        env = {**os.environ, **test["env"], "CMOCKA_TEST_ABORT": "1"}
        with tempfile.TemporaryFile() as out, \
                subprocess.Popen(test["cmd"], cwd=test["workdir"] or self.build, env=env,
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                 start_new_session=True) as process:
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return None, "", limit_s
            finally:
                end_session(process.pid)
            out.seek(0)
            output = out.read().decode(errors="replace")
        return process.returncode, output, time.monotonic() - started


def tail(output):
    return "".join(f"    | {line}\n" for line in output.strip().splitlines()[-25:])


def prepare(tree, tests):
    tree.path.mkdir(parents=True, exist_ok=True)
    tree.sync()
    tree.configure()
    unknown = [test for test in tests if test not in tree.tests]
    if unknown:
        sys.exit(f"mutants: no test is called {', '.join(unknown)}")
    output = tree.compile(tests)
    if output is not None:
        sys.exit(f"{tail(output)}mutants: the tree does not build without any mutant")


def baseline(pool, trees, tests):
    """Run the tests without any mutant, beside each other as later. Returns seconds a test; ends the
    program when one fails."""
    def run(test):
        tree = trees.get()
        try:
            return tree.run(test, SANITIZED_FACTOR * tree.tests[test]["timeout"])
        finally:
            trees.put(tree)
    seconds = {}
    for test, (code, output, seconds[test]) in zip(tests, pool.map(run, tests)):
        if code != 0:
            print(f"{tail(output)}mutants: {test} does not pass without any mutant "
                  f"(exit code {code}); that comes first")
            print(f"0 passed, {len(tests)} failed")
            sys.exit(1)
    return seconds


def try_tests(tree, mutant, seconds):
    """Returns whether all named tests failed, and what to say about it."""
    output = tree.compile(mutant.tests)
    if output is not None:
        return False, f"does not build  {mutant.name}\n{tail(output)}"
    said = []
    for test in mutant.tests:
        code, output, _ = tree.run(test, max(HANG_LEAST_S, HANG_FACTOR * seconds[test]))
        if code in (0, SKIP):
            return False, f"MISSED  {mutant.name}: {test} passes without the guard"
        said.append(f"{test} {'hangs' if code is None else 'fails'}")
    return True, f"caught  {mutant.name}: {', '.join(said)}"


def try_mutant(tree, mutant, seconds):
    try:
        mutant.apply(tree.path)
        return try_tests(tree, mutant, seconds)
    except form.Wrong as wrong:
        return False, f"does not apply  {mutant.name}: {wrong}\n{REFRESH}"
    finally:
        for name in mutant.files:
            tree.restore(name)


def by_file(mutants):
    """Those of the same files together, the most first, so that no tree ends long after another.

    One after the other in one tree they compile a file once a mutant; else the file is compiled
    again for the next mutant only because it is whole again.
    """
    together = {}
    for mutant in mutants:
        together.setdefault(tuple(mutant.files), []).append(mutant)
    return sorted(together.values(), key=len, reverse=True)


def try_all(trees, mutants, seconds):
    """Try these in one tree. Returns how many were missed."""
    tree = trees.get()
    failed = 0
    try:
        for mutant in mutants:
            is_caught, said = try_mutant(tree, mutant, seconds)
            print(f"{said}\n", end="", flush=True)  # in one piece, beside other trees
            failed += not is_caught
    finally:
        trees.put(tree)
    return failed


def try_group(top, scratch, build, mutants):
    """Try those of one build. Returns how many were missed."""
    all_trees = [Tree(top, scratch / f"{build}-{n}", SETUPS[build])
                 for n in range(min(N_TREES, len(mutants)))]

    if not mutants:
        return 0
    print(f"{len(mutants)} mutants; building {len(all_trees)} trees, {build}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(all_trees)) as pool:
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        list(pool.map(prepare, all_trees, [tests] * len(all_trees)))
        trees = queue.SimpleQueue()
        for tree in all_trees:
            trees.put(tree)
        seconds = baseline(pool, trees, tests)
        return sum(pool.map(lambda some: try_all(trees, some, seconds), by_file(mutants)))


def main():
    # A shell starts what runs in its background with it ignored, and tests that send it would hang.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    top, scratch = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    parts = sys.argv[3:] or [""]
    try:
        mutants = form.load(top, parts)
    except form.Wrong as wrong:
        sys.exit(f"mutants: {wrong}")
    if not mutants:
        sys.exit("mutants: none has such a name")
    failed = sum(try_group(top, scratch, build, [m for m in mutants if m.build == build])
                 for build in SETUPS)
    print(f"{len(mutants) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
