#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every legal name comes out as C that compiles, behind all the usual headers: C11 and GNU C17,
the headers also C++17 and C++20. And names that meet in C are kept apart.

    hostile_test.py PLUGIN PROTOC CC CXX [N]     N: how many files of names that meet

A short run (without N) has one compiler of each language, and names that meet as C11 and C++17; a long
one has clang as well, where it is there, and all standards for both.
"""

import itertools
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import hostile
from compiling import PRELUDE, WARNINGS, complaints, precompiled_prelude
from protoc import ROOT, Protoc

BATCH = 25
FEW = 15
COUNT = itertools.count()
N_SAME = 1024
SAME_BYTES = 512 << 20


def is_legal(folder, name):
    return subprocess.run([PROTOC.protoc, f"-I{folder}", f"--descriptor_set_out={folder}/set", name],
                          capture_output=True, timeout=300).returncode == 0


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def flags(self, standard):
        return [f"-std={standard}", "-D_GNU_SOURCE", *WARNINGS, f"-I{self.out}", f"-I{ROOT / 'include'}"]

    def prelude_first(self, command, language):
        return [*command, *precompiled_prelude(command, language, self.scratch / f"prelude{next(COUNT)}")]

    def check_c(self, cc, standard):
        sources = sorted(self.out.rglob("*.c"))
        command = self.prelude_first([*cc, *self.flags(standard)], "c")
        self.assertEqual(complaints([*command, "-fsyntax-only", *map(str, sources[at:at + BATCH])]
                                    for at in range(0, len(sources), BATCH)), [])

    def check_cxx_by_itself(self, cxx, standard, with_prelude=True):
        """Each header stands by itself, for the prelude only follows."""
        command = [*cxx, *self.flags(standard), "-fsyntax-only"]
        commands = []
        for header in sorted(self.out.rglob("*.bow.h")):
            source = self.scratch / f"{header.stem}.cc"
            source.write_text(f'#include "{header.name}"\n' + (f'#include "{PRELUDE}"\n' if with_prelude else ""))
            commands.append([*command, str(source)])
        self.assertEqual(complaints(commands), [])

    def check_cxx_behind_others(self, cxx, standard):
        command = self.prelude_first([*cxx, *self.flags(standard)], "c++")
        self.assertEqual(complaints([*command, "-fsyntax-only", "-include", header.name, "-x", "c++", "/dev/null"]
                                    for header in sorted(self.out.rglob("*.bow.h"))), [])

    def check_symbols(self, cc):
        """All of one file together: no symbol twice."""
        commands = []
        for header in sorted(self.out.rglob("*.bow.h")):
            stem = header.name[:-len(".bow.h")]
            commands.append([*cc, *self.flags("c11"), "-O0", "-r", "-nostdlib", "-o", f"{self.scratch}/{stem}.o",
                             f"{self.out}/{stem}.pb-c.c", f"{self.out}/{stem}.bow.c"])
        self.assertEqual(complaints(commands), [])

    def check(self, files, least, in_all_modes):
        self.out = self.scratch / "out"
        protos = self.scratch / "protos"
        protos.mkdir()
        for name, text in files.items():
            (protos / name).write_text(text)
        legal = [name for name in files if is_legal(protos, name)]
        self.assertGreaterEqual(len(legal), least)
        for name in legal:
            PROTOC.generate(self.out, [name], [protos])
        self.check_symbols(CC)
        if not in_all_modes:
            for cxx in CXX_COMPILERS[:1]:
                self.check_cxx_by_itself(cxx, "c++17", with_prelude=False)
            return
        n_compilers = 2 if IS_LONG else 1
        for cc in C_COMPILERS[:n_compilers]:
            self.check_c(cc, "c11")
            self.check_c(cc, "gnu17")
        # Either standard in either order; with two compilers each of them once.
        orders = [("c++17", "c++20"), ("c++20", "c++17")]
        for cxx, (by_itself, behind_others) in zip(CXX_COMPILERS[:n_compilers], orders):
            self.check_cxx_by_itself(cxx, by_itself)
            self.check_cxx_behind_others(cxx, behind_others)

    def test_words_in_every_place(self):
        found = hostile.macros(CC, "c11") | hostile.macros(CC, "gnu17")
        if CXX_COMPILERS:
            found |= hostile.macros(CXX_COMPILERS[0], "gnu++20", "c++")
        files = hostile.of_words(hostile.words(found))
        self.check(files, len(files), True)

    def test_names_that_meet(self):
        files = hostile.of_meetings(range(N_MEETINGS))
        self.check(files, N_MEETINGS // 2, IS_LONG)

    def test_a_thousand_messages_of_one_name_in_c(self):
        """Each gets a name of its own, in time and memory that grow as their number does."""
        names = [hostile.spelled("abcdefghijk", number) for number in range(N_SAME)]
        (self.scratch / "same.proto").write_text(
            'syntax = "proto3";' + "".join(f"message {name} {{}}\n" for name in names))
        out = self.scratch / "out"
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (SAME_BYTES, limit[1]))
        try:
            PROTOC.generate(out, ["same.proto"], [self.scratch])
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limit)
        declared = re.findall(r"^struct (\w+) \{", (out / "same.pb-c.h").read_text(), re.MULTILINE)
        self.assertEqual(len(declared), N_SAME)
        self.assertEqual(len(set(declared)), N_SAME)
        self.assertLess(max(map(len, declared)), 64)


def compilers(given, other):
    found = shutil.which(other)
    return [given] + ([[found]] if found and other not in given[0] else []) if given else []


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    CC = shlex.split(sys.argv.pop(1))
    C_COMPILERS = compilers(CC, "clang")
    CXX_COMPILERS = compilers(shlex.split(sys.argv.pop(1)), "clang++")
    N_MEETINGS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else FEW
    IS_LONG = N_MEETINGS > FEW
    unittest.main()
