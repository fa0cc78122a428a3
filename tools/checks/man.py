#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check the manual pages: mandoc has nothing to say about them, and the headers they name exist.

    man.py ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys

import tree

SPDX = '.\\" SPDX-License-Identifier: Apache-2.0 OR MIT'
HEADER = re.compile(r"^\.In (\S+)")
# It looks for other pages among those that are installed here.
OF_THIS_MACHINE = "referenced manual not found"


def lint(mandoc, path, findings):
    run = subprocess.run([mandoc, "-Tlint", "-Wstyle", str(path)], capture_output=True, text=True,
                         check=False)
    for match in re.finditer(r"^mandoc: (?:.*?):(\d+):\d+: (.+)$", run.stdout, re.MULTILINE):
        if OF_THIS_MACHINE not in match[2]:
            findings.add(path, match[1], match[2])


def check_text(root, path, findings):
    lines = tree.lines(path)
    if lines[0] != SPDX:
        findings.add(path, 1, f"the first line is not: {SPDX}")
    for number, line in enumerate(lines, 1):
        header = HEADER.match(line)
        if header and not (root / "include" / header[1]).is_file():
            findings.add(path, number, f"no header is called {header[1]}; mend the page")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    mandoc = shutil.which("mandoc") or tree.skip("no mandoc; install mandoc")
    findings = tree.Findings(root)
    pages = sorted((root / "docs" / "man").glob("*.[1-9]"))

    for path in pages:
        check_text(root, path, findings)
        lint(mandoc, path, findings)
    return findings.end(f"{len(pages)} pages")


if __name__ == "__main__":
    sys.exit(main())
