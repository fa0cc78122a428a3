#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check what a text alone shows: licence lines, sizes, opening comments, guards, white space.

    hygiene.py ROOT
"""

import pathlib
import re
import sys

import tree

LICENCE = "SPDX-License-Identifier: Apache-2.0 OR MIT"
# What users copy or what is generated for them carries no conditions.
FREE_LICENCE = "SPDX-License-Identifier: 0BSD"
LICENCE_WITHIN_LINES = 3
# At two thirds of it one looks for a second concept; what is one concept is left whole.
MAX_LINES = {".h": 450}
MAX_LINES_ELSE = 900
# In two pieces, so that this file is clean itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# ThreadSanitizer does not model fences: what they order it would call a race, or not look at.
FENCE = re.compile(r"\batomic_(thread|signal)_fence\b")
# Lines that may stand before the opening comment of a header.
PREAMBLE = re.compile(r'\s*(#|extern "C" \{|$)')


def check_licence(path, lines, findings):
    head = "\n".join(lines[:LICENCE_WITHIN_LINES])
    if LICENCE not in head and FREE_LICENCE not in head:
        findings.add(path, 1, f"no licence; add a comment `{LICENCE}`")


def check_size(path, lines, findings):
    limit = MAX_LINES.get(path.suffix, MAX_LINES_ELSE)
    n_lines = len(lines) - 1
    if n_lines > limit:
        findings.add(path, n_lines, f"{n_lines} lines, at most {limit}; there is a second concept in it")


def check_text(path, lines, findings):
    may_have_tabs = path.name == "Makefile"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            findings.add(path, number, "unfinished; finish it or take it out")
        if "\t" in line and not may_have_tabs:
            findings.add(path, number, "a tab; use spaces")
        if line != line.rstrip():
            findings.add(path, number, "white space at the end of the line; take it away")
    if lines[-1] != "" or lines[-2:] == ["", ""]:
        findings.add(path, len(lines), "does not end with one line feed; make it so")


def check_opening(path, lines, findings):
    """The first thing after licence and preprocessor lines is a comment that says what this is."""
    if path.name.endswith((".pb-c.h", ".pb-c.c")):
        return
    for number, line in enumerate(lines[1:], 2):
        if not PREAMBLE.match(line):
            if not line.startswith("/*"):
                findings.add(path, number, "no opening comment; say what the file owns")
            return
    findings.add(path, 1, "nothing but licence and preprocessor lines; say what the file owns")


def check_atomics(path, lines, findings):
    for number, line in enumerate(lines, 1):
        if FENCE.search(line):
            findings.add(path, number, "a fence; give the operations their order instead")


def guard_of(path):
    """BOWLINE_ and the path; what is installed as <bowline/NAME.h> is BOWLINE_NAME_H."""
    name = str(path.with_suffix(""))
    name = name.removeprefix("include/").removeprefix("bowline/")
    return "BOWLINE_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper() + "_H"


def check_guard(path, relative, lines, findings):
    guard = guard_of(relative)
    if f"#ifndef {guard}" not in lines or f"#define {guard}" not in lines:
        findings.add(path, 2, f"no include guard {guard}; add it")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = tree.Findings(root)
    paths = tree.source_files(root)

    for path in paths:
        lines = tree.lines(path)
        check_licence(path, lines, findings)
        check_size(path, lines, findings)
        check_text(path, lines, findings)
        if path.suffix in tree.C_SUFFIXES:
            check_opening(path, lines, findings)
            check_atomics(path, lines, findings)
        if path.suffix == ".h":
            check_guard(path, path.relative_to(root), lines, findings)
    return findings.end(f"{len(paths)} files")


if __name__ == "__main__":
    sys.exit(main())
