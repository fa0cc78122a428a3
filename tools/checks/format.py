#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check that clang-format would change nothing.

    format.py ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys

import tree

# Versions differ in what they make of the same configuration; this one is Debian 12's.
VERSION = "14"
FILES_PER_RUN = 50


def find_tool():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        tool = shutil.which(name)
        if tool is None:
            continue
        said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
        if re.search(rf"version {VERSION}\.", said):
            return tool
    return tree.skip(f"no clang-format {VERSION}; install clang-format")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = tree.Findings(root)
    paths = tree.c_files(root)
    tool = find_tool()
    wrong = {}

    for start in range(0, len(paths), FILES_PER_RUN):
        run = subprocess.run(
            [tool, "--dry-run", *map(str, paths[start:start + FILES_PER_RUN])],
            capture_output=True, text=True, check=False)
        for match in re.finditer(r"^(.+?):(\d+):\d+: (?:warning|error): ", run.stderr, re.MULTILINE):
            wrong.setdefault(match[1], match[2])
        if run.returncode != 0 and not wrong:
            print(run.stderr)
            return 1
    for path, line in wrong.items():
        findings.add(path, line, f"not formatted; run clang-format -i {pathlib.Path(path).relative_to(root)}")
    return findings.end(f"{len(paths)} files")


if __name__ == "__main__":
    sys.exit(main())
