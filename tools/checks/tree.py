# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the checks share: the files of the tree, and how findings are told.

A check prints one line a finding, `file:line: what is wrong; what to do`, and
exits 0 (clean), 1 (findings) or 77 (cannot run here; the reason is printed).
"""

import os
import pathlib
import sys

FOLDERS = (
    "base", "transport", "rpc", "tls", "codegen", "include", "tools",
    "examples", "tests", "bench", "fuzz", "docs",
)
SKIPPED_FOLDERS = {"__pycache__", "corpus", "generated", "golden"}
C_SUFFIXES = {".c", ".h"}
# Files whose comments a person reads; data, text and tables of other programs are not among them.
SOURCE_SUFFIXES = C_SUFFIXES | {".py", ".sh", ".proto", ".lua", ".build"}
SKIP = 77


class Findings:
    def __init__(self, root):
        self.root = root
        self.count = 0

    def add(self, path, line, what):
        path = pathlib.Path(path)
        if path.is_absolute():
            path = path.relative_to(self.root)
        print(f"{path}:{line}: {what}")
        self.count += 1

    def end(self, what_was_checked):
        """Say what was looked at, so that a check of nothing is seen, and give the exit code."""
        if self.count:
            print(f"{self.count} findings in {what_was_checked}")
            return 1
        print(f"clean: {what_was_checked}")
        return 0


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def files(root):
    """All files of the tree's folders and its top level, sorted; build folders are not in them."""
    found = [path for path in root.iterdir() if path.is_file()]
    for folder in FOLDERS:
        for where, folders, names in os.walk(root / folder):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("build")]
            found += [pathlib.Path(where) / name for name in names]
    return sorted(found)


def c_files(root):
    return [path for path in files(root) if path.suffix in C_SUFFIXES]


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def source_files(root):
    return [
        path for path in files(root)
        if path.suffix in SOURCE_SUFFIXES or (path.suffix == "" and is_script(path))
    ]


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")
