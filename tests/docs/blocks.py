#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compile every code block of the documentation.

usage: blocks.py TOP PLUGIN PROTOC CC [CFLAGS ...]

Blocks are taken in the order of the page, in one scratch folder a page:
  ```proto   is written to the file the text before names in backquotes
             (`counter.proto`) and generated, with what it imports
  ```c       is a translation unit of its own: compiled as C11 with warnings as errors;
             below "<!-- file: NAME -->" it has that name, and later blocks may include it
  ```python  is compiled, not run
Headers of the greeter are at hand in each page. Other languages (sh, text, ...)
are not code of ours; sh blocks marked "run: by-hand" have a test of their own.
A block's file and line are printed when it fails.
"""
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\s*$")
NAMED_PROTO = re.compile(r"`([\w/]+\.proto)`")
NAMED_FILE = re.compile(r"<!-- file: ([\w.]+) -->\s*$")


def pages(top):
    yield os.path.join(top, "README.md")
    docs = os.path.join(top, "docs")
    for folder, _, names in sorted(os.walk(docs)):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def blocks(path):
    """Yields (language, first line number, text, the text before it)."""
    language, start, lines, before = None, 0, [], ""
    with open(path) as page:
        for number, line in enumerate(page, 1):
            fence = FENCE.match(line)
            if language is None and fence:
                language, start, lines = fence.group(1), number + 1, []
            elif language is not None and line.startswith("```"):
                yield language, start, "".join(lines), before
                language, before = None, ""
            elif language is None:
                before += line
            else:
                lines.append(line)
    if language is not None:
        yield "unclosed", start, "".join(lines), before


class Page:
    def __init__(self, top, plugin, protoc, compiler, folder):
        self.top, self.plugin, self.protoc = top, plugin, protoc
        self.compiler, self.folder = compiler, folder
        self.generate(os.path.join(top, "examples", "greeter"), "greeter.proto")

    def run(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or "failed"

    def generate(self, where, name):
        return self.run([self.protoc, f"--plugin=protoc-gen-bowline={self.plugin}", "-I", where,
                         "-I", os.path.join(self.top, "codegen"), f"--bowline_out={self.folder}",
                         "--bowline_opt=imports", name])

    def proto(self, number, text, before):
        names = NAMED_PROTO.findall(before)
        name = names[-1] if names else f"block{number}.proto"
        with open(os.path.join(self.folder, name), "w") as out:
            out.write(text)
        return self.generate(self.folder, name)

    def c(self, number, text, before):
        named = NAMED_FILE.search(before)
        path = os.path.join(self.folder, named[1] if named else f"block{number}.c")
        with open(path, "w") as out:
            out.write(text)
        return self.run(self.compiler + ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                         "-I", self.folder, "-I",
                                         os.path.join(self.top, "include"), "-fsyntax-only", path])

    def python(self, number, text, before):
        try:
            compile(text, f"line {number}", "exec")
        except SyntaxError as error:
            return str(error)
        return ""


def main(top, plugin, protoc, *compiler):
    failures = tried = 0
    for path in pages(top):
        with tempfile.TemporaryDirectory() as folder:
            page = Page(top, plugin, protoc, list(compiler), folder)
            for language, number, text, before in blocks(path):
                if language == "unclosed":
                    problem = "this block is never closed"
                else:
                    check = {"proto": page.proto, "c": page.c, "python": page.python}.get(language)
                    problem = check(number, text, before) if check else ""
                    tried += check is not None
                if problem:
                    failures += 1
                    print(f"{os.path.relpath(path, top)}:{number}: {language} block:\n{problem}\n")
    print(f"{tried} blocks tried, {failures} failed")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
