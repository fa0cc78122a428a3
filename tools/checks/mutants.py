#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check that each mutant of tests/mutants still fits the code, so that a change takes them along.

    mutants.py ROOT [BUILD]

BUILD is a build of everything: the tests that mutants name must be among its tests.
"""

import json
import pathlib
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import mutant as form  # noqa: E402


def tests_of(build):
    listed = json.loads((build / "meson-info" / "intro-tests.json").read_text(encoding="utf-8"))
    return {test["name"] for test in listed}


def unknown_tests(mutant, tests):
    unknown = [name for name in mutant.tests if tests is not None and name not in tests]
    if unknown:
        raise form.Wrong(f"no test is called {', '.join(unknown)} (meson test --list)")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tests = tests_of(pathlib.Path(sys.argv[2])) if len(sys.argv) > 2 else None
    findings = tree.Findings(root)
    paths = sorted((root / form.FOLDER).glob("*" + form.SUFFIX))

    for path in paths:
        try:
            mutant = form.Mutant(path)
            mutant.texts(root)
            unknown_tests(mutant, tests)
        except form.Wrong as wrong:
            findings.add(path, 1, f"{wrong}\n  mend it, or take it away with the guard")
    for path in sorted((root / form.FOLDER).iterdir()):
        if path.suffix != form.SUFFIX and path.name != "README.md":
            findings.add(path, 1, f"is no mutant; their names end in {form.SUFFIX}")
    return findings.end(f"{len(paths)} mutants")


if __name__ == "__main__":
    sys.exit(main())
