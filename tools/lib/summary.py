#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Add up what `meson test` wrote in several build folders.

usage: summary.py BUILD_DIR [BUILD_DIR ...]

Prints each test that failed with the end of its output and the command that runs
just that one, each skip with its reason, and as the last line
"N passed, N failed[, N skipped]". A cmocka program counts as many as it has tests.
"""
import json
import os
import re
import sys

PASSED = re.compile(r"\[  PASSED  \] (\d+) test\(s\)")
FAILED = re.compile(r"\[  FAILED  \] (\d+) test\(s\), listed below")
NAMED = re.compile(r"^\[  FAILED  \] (\w+)$", re.M)


def results(build):
    logs = os.path.join(build, "meson-logs")
    for name in sorted(os.listdir(logs)):
        if not (name.startswith("testlog") and name.endswith(".json")):
            continue
        with open(os.path.join(logs, name)) as lines:
            for line in lines:
                yield json.loads(line)


def text_of(result):
    return (result.get("stdout") or "") + (result.get("stderr") or "")


def report_failure(build, result):
    name = result["name"].split(" / ")[-1].strip()
    text = text_of(result)
    print(f"FAILED  {result['name']}  ({result['result']}, {os.path.basename(build)})")
    for case in NAMED.findall(text):
        print(f"        {case}")
    for line in text.strip().splitlines()[-25:]:
        print("    | " + line)
    print(f"    run just this: meson test -C {build} --print-errorlogs '{name}'")


def main(builds):
    passed = failed = skipped = 0
    for build in builds:
        for result in results(build):
            text = text_of(result)
            outcome = result["result"]
            cases = sum(map(int, PASSED.findall(text)))
            if outcome in ("OK", "EXPECTEDFAIL"):
                passed += cases or 1
            elif outcome == "SKIP":
                skipped += 1
                reason = text.strip().splitlines()[-1] if text.strip() else "no reason given"
                print(f"skipped {result['name']}: {reason}")
            else:
                passed += cases
                failed += sum(map(int, FAILED.findall(text))) or 1
                report_failure(build, result)
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
