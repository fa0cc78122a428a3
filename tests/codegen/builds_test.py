#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What users put into their builds: CMake, meson and make, each with an installed Bowline.

    builds_test.py BUILD CC CXX [TEST...]     installs BUILD; CC and CXX are command lines, CXX may be ""

Copies project/, a program of a .proto that imports one of another folder and one of Google's, builds and
runs it, changes the imported one and builds again. A build system that is missing is skipped, and said.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from protoc import HERE

SKIP = 77
MONEY = "shared/common/money.proto"
PRINTED = "shop.Orders 8 bytes, a pound is {}\n"
BUILD, CC, CXX = sys.argv[1:4]


def run(*command, where, environment, status=0):
    """Returns what it wrote."""
    done = subprocess.run([str(word) for word in command], cwd=where, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    if (done.returncode == 0) != (status == 0):
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def install(build, folder):
    """Returns the environment that a user of what is installed in `folder` has."""
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder],
                   check=True, stdout=subprocess.DEVNULL)
    config, = folder.rglob("bowline.pc")
    plugin, = folder.rglob("protoc-gen-bowline")
    package, = folder.rglob("bowline-config.cmake")
    environment = dict(os.environ)
    environment["PKG_CONFIG_SYSROOT_DIR"] = str(folder)
    environment["PKG_CONFIG_PATH"] = str(config.parent)
    environment["LD_LIBRARY_PATH"] = str(config.parent.parent)
    environment["PATH"] = f"{plugin.parent}{os.pathsep}{environment['PATH']}"
    environment["bowline_DIR"] = str(package.parent)
    environment["CC"] = CC
    environment["CXX"] = CXX
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS"):
        environment.pop(name, None)
    return environment


def needs(*programs):
    missing = [program for program in programs if not program or shutil.which(program.split()[-1]) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(program or 'c++' for program in missing)}")


class Builds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.project = pathlib.Path(folder.name) / "project"
        shutil.copytree(HERE / "project", self.project)

    def run_here(self, *command, status=0):
        return run(*command, where=self.project, environment=ENVIRONMENT, status=status)

    def change(self, name, before, after):
        path = self.project / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after))

    def check_rebuilds(self, build, programs):
        """What `build` makes prints the number that money.proto has, before and after."""
        self.run_here(*build)
        for program in programs:
            self.assertEqual(self.run_here(f"./{program}"), PRINTED.format(1), program)
        self.change(MONEY, "POUND = 1", "POUND = 7")
        self.run_here(*build)
        for program in programs:
            self.assertEqual(self.run_here(f"./{program}"), PRINTED.format(7), program)

    def check_has_nothing_to_do(self, build):
        self.assertIn("no work to do", self.run_here(*build))

    def add_an_import(self):
        """One more file, that has Bowline's own options."""
        (self.project / "shared/common/unit.proto").write_text(
            'syntax = "proto3";\npackage common;\nimport "bowline/options.proto";\n'
            'message Unit {\n  string name = 1 [(bowline.secret) = true];\n}\n')
        self.change(MONEY, "package common;", 'package common;\n\nimport "common/unit.proto";')
        self.change(MONEY, "int64 units = 1;", "int64 units = 1;\n  Unit unit = 3;")

    @needs("cmake", "ninja", CXX)
    def test_cmake_with_ninja_builds_and_rebuilds(self):
        self.run_here("cmake", "-G", "Ninja", "-B", "build")
        build = ("ninja", "-C", "build")
        programs = ("build/below", "build/app/above", "build/apart", "build/alone", "build/prefixed")
        self.check_rebuilds(build, programs)
        self.check_has_nothing_to_do(build)
        self.add_an_import()
        self.run_here(*build)
        self.check_has_nothing_to_do(build)
        for program in programs:
            self.assertEqual(self.run_here(f"./{program}"), PRINTED.format(7), program)
        made = {name for name in ("common/unit", "google/protobuf/timestamp")
                if (self.project / f"build/bowline/below/{name}.pb-c.c").exists()}
        self.assertEqual(made, {"common/unit"}, "Google's types are those of bowline::wkt")
        self.assertTrue((self.project / "build/bowline/alone/google/protobuf/timestamp.pb-c.c").exists())

    @needs("cmake", "make", CXX)
    def test_cmake_with_make_and_a_space_in_the_path_builds_and_rebuilds(self):
        self.project = self.project.rename(self.project.with_name("a project"))
        self.run_here("cmake", "-G", "Unix Makefiles", "-B", "build")
        self.check_rebuilds(("cmake", "--build", "build"), ("build/below", "build/app/above"))

    @needs("cmake", "ninja", CXX)
    def test_cmake_says_what_is_wrong(self):
        for before, after, why in (
                ("PROTOS common/money.proto", "PROTOS common/mony.proto", "common/mony.proto: "),
                ("TARGET money PROTOS", "TARGET mony PROTOS", "TARGET is no target: 'mony'"),
                ("OPTIONS no_json lite", "OPTIONS no_jason", "option 'no_jason'"),
                ("money STATIC", "money INTERFACE", "compiles nothing"),
                ("COMPONENTS wkt", "COMPONENTS wkd", "this bowline has no 'wkd'"),
                ("find_package(bowline 0.1", "find_package(bowline 0.2", "0.2"),
                ("LANGUAGES C CXX", "LANGUAGES CXX", "LANGUAGES C CXX"),
        ):
            kept = (self.project / "CMakeLists.txt").read_text()
            self.change("CMakeLists.txt", before, after)
            said = self.run_here("cmake", "-G", "Ninja", "-B", "wrong", status=1)
            self.assertIn(why, said)
            (self.project / "CMakeLists.txt").write_text(kept)

    @needs("meson", "ninja", CXX)
    def test_meson_builds_and_rebuilds(self):
        self.run_here("meson", "setup", "build")
        build = ("ninja", "-C", "build")
        self.check_rebuilds(build, ("build/below", "build/app/above"))
        self.check_has_nothing_to_do(build)

    @needs("make", "pkg-config")
    def test_make_builds_and_rebuilds(self):
        self.check_rebuilds(("make", f"CC={CC}"), ("below",))
        self.assertIn("up to date", self.run_here("make", f"CC={CC}"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        ENVIRONMENT = install(BUILD, pathlib.Path(scratch) / "installed")
        ran = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2, exit=False).result
    for test, reason in ran.skipped:
        print(f"SKIPPED {test.id()}: {reason}")
    if not ran.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIP if len(ran.skipped) == ran.testsRun else 0)
