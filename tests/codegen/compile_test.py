#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What comes out compiles without a warning, all of it links together, and the same input gives
the same bytes.

    compile_test.py PLUGIN PROTOC CC CXX       CC and CXX are command lines; CXX may be ""
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from compiling import WARNINGS, Compilers, command_errors
from protoc import HERE, ROOT, Protoc, files

# A field of each kind and type, of the tests that call the functions.
EVERY_KIND = ["protos/typed.proto", "protos/typed2.proto"]
STRICT = ["-Wconversion", "-Wshadow", "-Wcast-align", "-Wpointer-arith"]

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

    def test_sources_are_clean_where_const_must_not_be_cast_away(self):
        self.assertEqual(COMPILERS.compile_c(self.generate("out"), more=["-Wcast-qual"]), [])

    def test_headers_are_clean_cxx(self):
        if not COMPILERS.cxx:
            self.skipTest("no C++ compiler")
        out = self.generate("out")
        for standard in ("c++17", "c++20"):
            self.assertEqual(COMPILERS.compile_cxx(out, standard), [])

    def test_initializers_are_clean_c_and_cxx(self):
        """Those of deprecated fields and of infinite defaults, too, where a program uses them."""
        out = self.generate("out")
        program = self.scratch / "program.h"
        lines, n_macros = [], 0
        for header in sorted(out.rglob("*.pb-c.h")):
            text = header.read_text()
            lines.append(f'#include "{header.relative_to(out)}"')
            for type_name, macro in re.findall(r"^struct (\w+) \{.*?^#define (\w+__INIT) ", text, re.M | re.S):
                n_macros += 1
                lines += [f"extern {type_name} global_{macro};", f"{type_name} global_{macro} = {macro};"]
        program.write_text("\n".join(lines) + "\n")
        self.assertGreater(n_macros, 20)
        commands = [[*COMPILERS.cc, "-x", "c", "-std=c11"], [*COMPILERS.cc, "-x", "c", "-std=gnu17"]]
        if COMPILERS.cxx:
            commands += [[*COMPILERS.cxx, "-x", "c++", f"-std=c++{year}"] for year in (17, 20)]
        for command in commands:
            self.assertEqual(command_errors([*command, *WARNINGS, *COMPILERS.includes(out), "-fsyntax-only", program]), "")

    def generate_every_kind(self, name, options=()):
        """Each kind of field, and a .c that only includes what was generated."""
        out = self.scratch / name
        PROTOC.generate(out, EVERY_KIND, [ROOT / "tests" / "rpc"], options)
        for proto in EVERY_KIND:
            header = proto.replace(".proto", ".bow.h")
            (out / proto.replace(".proto", "_user.c")).write_text(
                f'#include "{header}"\nint user(void);\nint user(void) {{ return 0; }}\n')
        return out

    def test_functions_of_messages_are_clean_in_every_mode(self):
        out = self.generate_every_kind("out")
        for path in out.rglob("*.pb-c.c"):
            path.unlink()
        for standard in ("c11", "gnu17"):
            self.assertEqual(COMPILERS.compile_c(out, standard=standard, more=STRICT), [])
        for standard in ("c++17", "c++20") if COMPILERS.cxx else ():
            self.assertEqual(COMPILERS.compile_cxx(out, standard, STRICT), [])

    def test_functions_of_messages_that_are_not_called_cost_no_byte(self):
        out = self.generate_every_kind("out")
        sizes = {}
        for flag in ("-UBOW_NO_MESSAGES", "-DBOW_NO_MESSAGES"):
            made = self.scratch / flag
            self.assertEqual(command_errors([*COMPILERS.cc, "-std=c11", "-O0", flag, "-c",
                                             *COMPILERS.includes(out), "-o", str(made),
                                             str(out / "protos" / "typed_user.c")]), "")
            sizes[flag] = subprocess.check_output(["size", str(made)], text=True).split()[6:10]
        self.assertEqual(*sizes.values())

    def test_no_messages_leaves_their_functions_out(self):
        out = self.generate_every_kind("out", ["no_messages"])
        self.assertEqual(COMPILERS.compile_c(out), [])
        for path in out.rglob("*.bow.h"):
            self.assertNotRegex(path.read_text(), r"bow_message_\w+\(|static inline")

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
        text = "".join(path.read_text() for path in out.iterdir())
        # The page's example has the greeter's content under another file name.
        text = text.replace("greeter_2eproto", "hello_2eproto")
        ours = set(re.findall(r"\b(?:demo__\w+|DEMO__\w+|Demo__\w+|file_\w+|BOWLINE_\w+)", text))
        # The page shows the request's, and the unary method's; the others are alike.
        alike = {"demo__greeter__watch__method", "demo__greeter__watch__invoke"}
        alike |= {name for name in ours if re.match("(?i)demo__hello_?reply", name)}
        # The functions of messages are shown for the reply, with its one field.
        alike |= {name for name in ours if not name.endswith(("__descriptor", "__fields")) and
                  name.replace("_request__set_name", "_reply__set_message").replace(
                      "_request__", "_reply__") in ours - {name}}
        page = (ROOT / "docs" / "codegen.md").read_text()
        self.assertGreater(len(ours), 15)
        self.assertEqual([name for name in sorted(ours - alike)
                          if not re.search(rf"\b{name}\b", page)], [])


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    COMPILERS = Compilers(shlex.split(sys.argv.pop(1)), shlex.split(sys.argv.pop(1)))
    unittest.main()
