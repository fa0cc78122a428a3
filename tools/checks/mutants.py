#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check that each mutant of tests/mutants still fits the code, so that a change takes them along.

    mutants.py ROOT
"""

import pathlib
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import mutant as form  # noqa: E402


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = tree.Findings(root)
    paths = sorted((root / form.FOLDER).glob("*" + form.SUFFIX))

    for path in paths:
        try:
            form.Mutant(path).texts(root)
        except form.Wrong as wrong:
            findings.add(path, 1, f"{wrong}\n  mend it, or take it away with the guard")
    for path in sorted((root / form.FOLDER).iterdir()):
        if path.suffix != form.SUFFIX and path.name != "README.md":
            findings.add(path, 1, f"is no mutant; their names end in {form.SUFFIX}")
    return findings.end(f"{len(paths)} mutants")


if __name__ == "__main__":
    sys.exit(main())
