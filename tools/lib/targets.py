#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Print what ninja must build in a configured folder, one target a line.

usage: targets.py BUILD_DIR --objects        each object file: nothing is linked but what generates
       targets.py BUILD_DIR --suite SUITE    what the tests of a suite run, without the long ones
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.check_output(["meson", "introspect", what, build]))


def objects(build):
    listed = subprocess.check_output(["ninja", "-C", build, "-t", "targets", "all"], text=True)
    targets = (line.rsplit(": ", 1)[0] for line in listed.splitlines() if ": " in line)
    return [target for target in targets if target.endswith(".o")]


def of_suite(build, suite):
    files = {target["id"]: target["filename"] for target in introspect(build, "--targets")}
    found = set()
    for test in introspect(build, "--tests"):
        suites = {name.split(":")[-1] for name in test["suite"]}
        if suite in suites and "long" not in suites:
            found |= {os.path.relpath(path, build) for name in test["depends"] for path in files[name]}
    return sorted(found)


def main():
    if len(sys.argv) == 3 and sys.argv[2] == "--objects":
        found = objects(sys.argv[1])
    elif len(sys.argv) == 4 and sys.argv[2] == "--suite":
        found = of_suite(sys.argv[1], sys.argv[3])
    else:
        sys.exit(__doc__)
    if not found:
        sys.exit("no target")
    print("\n".join(found))


if __name__ == "__main__":
    main()
