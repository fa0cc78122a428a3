# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compiling what was generated, as strict users do."""

import concurrent.futures
import os
import pathlib
import subprocess

from protoc import HERE, ROOT

PRELUDE = HERE / "prelude.h"

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def command_errors(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return "" if done.returncode == 0 else f"{' '.join(map(str, command))}\n{done.stderr[:4000]}"


def complaints(commands):
    """What these say, as many of them at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [error for error in pool.map(command_errors, commands) if error]


def precompiled_prelude(command, language, folder):
    """What includes the prelude before a source that `command` compiles, read once for all of them;
    `folder` is to be one of its own."""
    folder.mkdir(parents=True)
    header = folder / PRELUDE.name
    header.write_text(f'#include "{PRELUDE}"\n')
    made = folder / (PRELUDE.name + (".pch" if "clang" in " ".join(command) else ".gch"))
    error = command_errors([*command, "-x", f"{language}-header", str(header), "-o", str(made)])
    if error:
        raise RuntimeError(error)
    return ["-include", str(header)]


class Compilers:
    """`cc` and `cxx` are command lines as lists; `cxx` may be empty."""

    def __init__(self, cc, cxx):
        self.cc = cc
        self.cxx = cxx

    def includes(self, folder):
        return [f"-I{folder}", f"-I{ROOT / 'include'}"]

    def compile_c(self, folder, objects=None, standard="c11", more=()):
        """Compile each .c below `folder`. Returns the complaints."""
        errors = []
        for number, source in enumerate(sorted(pathlib.Path(folder).rglob("*.c"))):
            output = ["-fsyntax-only"] if objects is None else ["-c", "-o", f"{objects}/{number}.o"]
            errors.append(command_errors([*self.cc, f"-std={standard}", *WARNINGS, *more, *self.includes(folder),
                                          *output, str(source)]))
        return [error for error in errors if error]

    def compile_cxx(self, folder, standard="c++17", more=()):
        """Compile each header below `folder` by itself as C++. Returns the complaints."""
        errors = []
        for header in sorted(pathlib.Path(folder).rglob("*.h")):
            errors.append(command_errors([*self.cxx, f"-std={standard}", *WARNINGS, *more, "-fsyntax-only",
                                          *self.includes(folder), "-include", str(header),
                                          "-x", "c++", "/dev/null"]))
        return [error for error in errors if error]
