#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold what comes out of golden/*.proto to what is kept beside them.

    golden.py PLUGIN PROTOC           compare, print what differs
    golden.py PLUGIN PROTOC --write   make what comes out the expectation
"""

import difflib
import pathlib
import sys
import tempfile

from protoc import HERE, Protoc

GOLDEN = HERE / "golden"
OURS = (".pb-c.h", ".pb-c.c", ".bow.h", ".bow.c")


def generate(protoc):
    with tempfile.TemporaryDirectory() as out:
        protoc.generate(out, sorted(path.name for path in GOLDEN.glob("*.proto")), [GOLDEN])
        return {path.name: path.read_text() for path in sorted(pathlib.Path(out).iterdir())
                if path.name.endswith(OURS)}


def expectation(name):
    return GOLDEN / (name + ".txt")


def write(made):
    for old in GOLDEN.glob("*.txt"):
        old.unlink()
    for name, text in made.items():
        expectation(name).write_text(text)


def compare(made):
    n_different = 0
    expected = {path.name[:-len(".txt")]: path.read_text() for path in GOLDEN.glob("*.txt")}
    for name in sorted({*made, *expected}):
        old, new = expected.get(name, ""), made.get(name, "")
        if old == new:
            continue
        n_different += 1
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True),
                                                   f"expected {name}", f"generated {name}"))
    return n_different


def main():
    made = generate(Protoc(sys.argv[1], sys.argv[2]))
    if sys.argv[3:] == ["--write"]:
        write(made)
        return 0
    n_different = compare(made)
    print(f"{len(made)} files, {n_different} different (tools/update-golden accepts what comes out)")
    return 1 if n_different or not made else 0


if __name__ == "__main__":
    sys.exit(main())
