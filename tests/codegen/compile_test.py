#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What comes out compiles without a warning, all of it links together, and the same input gives
the same bytes.

    compile_test.py PLUGIN PROTOC CC CXX       CC and CXX are command lines; CXX may be ""
"""

import pathlib
import re
import shlex
import sys
import tempfile
import unittest

from compiling import Compilers, command_errors
from protoc import HERE, ROOT, Protoc, files

SOURCES = [HERE / "compile", HERE / "golden"]
NAMES = [path.name for folder in SOURCES for path in sorted(folder.glob("*.proto"))]


class Compile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def generate(self, name, protos=NAMES):
        PROTOC.generate(self.scratch / name, protos, SOURCES)
        return self.scratch / name

    def test_sources_are_clean_c11_and_link_together(self):
        out = self.generate("out")
        objects = self.scratch / "objects"
        objects.mkdir()
        self.assertEqual(COMPILERS.compile_c(out, objects), [])
        self.assertGreaterEqual(len(list(objects.iterdir())), 2 * len(NAMES))
        # Into one object, so that every symbol is compared with every other.
        self.assertEqual(command_errors([*COMPILERS.cc, "-r", "-nostdlib", "-o",
                                         f"{self.scratch}/all.o",
                                         *map(str, sorted(objects.iterdir()))]), "")

    def test_sources_are_clean_with_the_compilers_own_extensions(self):
        """Where linux and unix are macros."""
        self.assertEqual(COMPILERS.compile_c(self.generate("out"), standard="gnu17"), [])

    def test_headers_are_clean_cxx17(self):
        if not COMPILERS.cxx:
            self.skipTest("no C++ compiler")
        self.assertEqual(COMPILERS.compile_cxx(self.generate("out")), [])

    def test_same_input_gives_the_same_bytes(self):
        first = files(self.generate("first"))
        self.assertEqual(len(first), 4 * len(NAMES))
        self.assertEqual(first, files(self.generate("second")))

    def test_bytes_do_not_depend_on_what_else_is_generated(self):
        together = files(self.generate("together"))
        alone = {}
        for name in NAMES:
            alone.update(files(self.generate(name + ".out", [name])))
        self.assertEqual(together, alone)

    def test_every_name_that_is_emitted_is_documented(self):
        out = self.generate("out", ["greeter.proto"])
        text = "".join((out / f"greeter.bow.{ending}").read_text() for ending in "hc")
        # The page's example has the greeter's content under another file name.
        text = text.replace("greeter_2eproto", "hello_2eproto")
        ours = set(re.findall(r"\b(?:demo__\w+|file_\w+|BOWLINE_\w+)", text))
        # The page shows the request's, and the unary method's; the others are alike.
        alike = {"demo__hello_reply__descriptor", "demo__hello_reply__fields",
                 "demo__greeter__watch__method", "demo__greeter__watch__invoke"}
        page = (ROOT / "docs" / "codegen.md").read_text()
        self.assertGreater(len(ours), 15)
        self.assertEqual([name for name in sorted(ours - alike)
                          if not re.search(rf"\b{name}\b", page)], [])


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    COMPILERS = Compilers(shlex.split(sys.argv.pop(1)), shlex.split(sys.argv.pop(1)))
    unittest.main()
