#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check that each public header compiles alone, as strict C11 and as C++17, without a warning,
and so does what begins its options structs.

    headers.py ROOT C_COMPILER [ITS ARGUMENTS...]
"""

import pathlib
import re
import shutil
import subprocess
import sys

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
CXX = ("g++", "clang++")


def uses(header):
    """Each INIT as the value of a constant, which must be one in C."""
    inits = re.findall(r"#define (BOW_\w+_INIT)\b[\s\\]*BOW__INIT\((struct \w+)", header.read_text())
    return "".join(f"extern const {of} use_{name};\nconst {of} use_{name} = {name};\n"
                   for name, of in inits)


def check(command, header, name, findings):
    """A program of nothing but the header, twice, and what its options begin with."""
    text = f"#include <bowline/{header.name}>\n" * 2 + "struct nothing_else;\n" + uses(header)
    run = subprocess.run([*command, *WARNINGS, "-"], input=text, capture_output=True, text=True,
                         check=False)
    if run.returncode == 0:
        return
    match = re.search(r"([^\s:]+\.h):(\d+)(?::\d+)?: (.*)", run.stderr)
    where, line, what = match.groups() if match else (header, 1, run.stderr)
    findings.add(pathlib.Path(where).resolve(), line, f"as {name} alone: {what}; make it stand alone")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    compiler = sys.argv[2:]
    findings = tree.Findings(root)
    include = f"-I{root / 'include'}"
    cxx = next(filter(None, map(shutil.which, CXX)), None)
    headers = sorted((root / "include" / "bowline").glob("*.h"))

    if shutil.which(compiler[0]) is None:
        tree.skip(f"no {compiler[0]}")
    if cxx is None:
        tree.skip("no C++ compiler; install g++")
    for header in headers:
        check([*compiler, "-std=c11", "-x", "c", include], header, "C11", findings)
        check([cxx, "-std=c++17", "-x", "c++", include], header, "C++17", findings)
    return findings.end(f"{len(headers)} public headers")


if __name__ == "__main__":
    sys.exit(main())
