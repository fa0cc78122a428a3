#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""All .proto files of others that are at hand: each comes out as C that compiles without a warning, in every
mode that users compile it in, and random messages of all its types are the same in binary and in JSON to
google.protobuf for Python.

    corpora_test.py PLUGIN PROTOC CC CXX BUILD PEER FOLDER [CORPUS...]

CORPUS is a folder of .proto files; without one it is the corpus of corpus_test.py, and debian.py's, which is
fetched into FOLDER. What cannot be had is said; where neither can, the exit code is 77.

The modes: C11 and GNU C17, the headers as C++17 and C++20, before all the usual headers and behind them, and
in another order among each other.
"""

import concurrent.futures
import itertools
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import debian  # noqa: E402
from compiling import PRELUDE, WARNINGS, command_errors, precompiled_prelude  # noqa: E402
from corpora import SYSTEM, Corpus, Group  # noqa: E402
from protoc import ROOT, Protoc  # noqa: E402

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    from random_messages import Maker, Peer, check_binary, check_json
except ImportError:
    descriptor_pool = None

SKIP = 77
SEED = 20240229
MESSAGES_OF_A_TYPE = 4
TYPES_OF_A_FILE = 40
SYMBOL = re.compile(r"extern const struct bow_file (\w+);")


class Fault(Exception):
    """What is wrong with a group."""


class Compiling:
    """Of all that one run generates; an object is kept by the bytes that it is made of."""

    def __init__(self, cc, cxx, build, folder):
        self.cc, self.cxx, self.build, self.folder = cc, cxx, build, folder
        self.objects, self.count = {}, itertools.count()
        self.flags = [*WARNINGS, f"-I{ROOT / 'include'}"]
        self.preludes = {}
        for standard, command, language in (("gnu17", cc, "c"), ("c++20", cxx, "c++")):
            if command:
                whole = [*command, f"-std={standard}", "-D_GNU_SOURCE", *self.flags]
                self.preludes[standard] = [*whole, *precompiled_prelude(whole, language, folder / standard)]

    def sources(self, out):
        """(the objects of all, commands that make and check those which are not there yet)"""
        headers = sorted((str(path.relative_to(out)), path.read_bytes()) for path in out.rglob("*.h"))
        objects, commands, new = [], [], []
        for source in sorted(out.rglob("*.c")):
            key = (str(source.relative_to(out)), source.read_bytes(), tuple(headers))
            if not pathlib.Path(self.objects.get(key, "")).is_file():
                self.objects[key] = str(self.folder / f"{next(self.count)}.o")
                commands.append([*self.cc, "-std=c11", "-O0", "-fPIC", *self.flags, f"-I{out}", "-c",
                                 "-o", self.objects[key], str(source)])
                new.append(str(source))
            objects.append(self.objects[key])
        if new:
            commands.append([*self.preludes["gnu17"], f"-I{out}", "-fsyntax-only", *new])
        return objects, commands

    def headers(self, out, scratch):
        """Before the usual headers, and in the opposite order behind them."""
        names = [str(path.relative_to(out)) for path in sorted(out.rglob("*.bow.h"))]
        before, behind = scratch / "before.cc", scratch / "behind.cc"
        before.write_text("".join(f'#include "{name}"\n' for name in [*names, str(PRELUDE)]))
        behind.write_text("".join(f'#include "{name}"\n' for name in reversed(names)))
        if not self.cxx:
            return []
        return [[*self.cxx, "-std=c++17", *self.flags, f"-I{out}", "-fsyntax-only", str(before)],
                [*self.preludes["c++20"], f"-I{out}", "-fsyntax-only", str(behind)]]

    def check(self, out, scratch):
        """Returns the objects."""
        objects, commands = self.sources(out)
        for command in [*commands, *self.headers(out, scratch)]:
            error = command_errors(command)
            if error:
                raise Fault(error[:3000])
        return objects

    def link(self, objects, made):
        error = command_errors([*self.cc, "-shared", "-Wl,-Bsymbolic", "-o", str(made), *objects, f"-L{self.build}",
                                f"-Wl,-rpath,{self.build}", "-lbowline", "-lprotobuf-c"])
        if error:
            raise Fault(error[:3000])


class Run:
    def __init__(self, protoc, compiling, peer):
        self.protoc, self.compiling, self.peer = protoc, compiling, peer
        self.faults, self.n_files, self.n_types, self.n_messages, self.n_left_out = [], 0, 0, 0, 0
        self.n_ambiguous = 0

    def group(self, group):
        """All of it at once; where that does not go, for their names meet, each half by itself."""
        try:
            with tempfile.TemporaryDirectory() as scratch:
                self.check(group, pathlib.Path(scratch))
            self.n_files += len(group.names)
        except Fault as fault:
            if len(group.names) == 1:
                self.n_files += 1
                self.faults.append(f"{group.names[0]} in {group.paths[0]}: {fault}")
                print(self.faults[-1], flush=True)
                return
            middle = len(group.names) // 2
            for names in (group.names[:middle], group.names[middle:]):
                half = Group()
                half.paths, half.names = group.paths, names
                self.group(half)

    def check(self, group, scratch):
        out, described = scratch / "out", scratch / "set"
        paths = [f"-I{path}" for path in [*group.paths, SYSTEM]]
        done = subprocess.run([self.protoc.protoc, *paths, "--include_imports", f"--descriptor_set_out={described}",
                               *group.names], capture_output=True, text=True, errors="replace", timeout=120)
        if done.returncode != 0:
            raise Fault(done.stderr)
        imports = self.imports(described, group.names)
        status, said = self.protoc.run(out, [*group.names, *imports], [*group.paths, SYSTEM])
        if status != 0:
            raise Fault(said)
        objects = self.compiling.check(out, scratch)
        if descriptor_pool is None:
            return
        made = scratch / "messages.so"
        self.compiling.link(objects, made)
        symbols = [SYMBOL.search(path.read_text())[1] for path in sorted(out.rglob("*.bow.h"))]
        peer = Peer(self.peer, str(made), *symbols)
        try:
            # A file may say that nothing is to be generated of it.
            self.messages(peer, described, [name for name in group.names if (out / name).with_suffix(".bow.h").exists()])
            peer.close()
        except (OSError, ValueError, AssertionError) as error:
            raise Fault(f"the peer has ended: {error}") from error
        finally:
            peer.process.kill()

    def imports(self, described, names):
        """All that these import."""
        if descriptor_pool is None:
            listed = re.findall(rb"[\w./+-]+\.proto", described.read_bytes())
            return sorted({name.decode() for name in listed} - set(names))
        files = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file
        return [file.name for file in files if file.name not in names]

    def messages(self, peer, described, names):
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
            pool.AddSerializedFile(file.SerializeToString())
        factory = message_factory.MessageFactory(pool)
        rand = random.Random(SEED)
        for name in names:
            types = [type for type in self.types(pool.FindFileByName(name).message_types_by_name.values())
                     if not has_weak(type, set())]
            if len(types) > TYPES_OF_A_FILE:
                types = rand.sample(types, TYPES_OF_A_FILE)
            contents = [factory.GetPrototype(type) for type in types if not type.full_name.startswith("google.protobuf.")]
            maker = Maker(rand, contents[:3])
            for type in types:
                self.n_types += 1
                for depth in range(MESSAGES_OF_A_TYPE):
                    self.message(peer, maker, factory.GetPrototype(type)(), depth, pool)

    def types(self, declared):
        """With those inside, but without the entries of maps."""
        for type in declared:
            if not type.GetOptions().map_entry:
                yield type
                yield from self.types(type.nested_types)

    def message(self, peer, maker, message, depth, pool):
        maker.fill(message, depth)
        if not message.IsInitialized():  # required fields without an end
            self.n_left_out += 1
            return
        self.n_messages += 1
        fault = check_binary(peer, message, pool)
        if not fault and has_ambiguous_json(message.DESCRIPTOR, set()):
            self.n_ambiguous += 1
        elif not fault:
            fault = check_json(peer, message, pool)
        if fault:
            raise Fault(f"{message.DESCRIPTOR.full_name}: {fault[:1500]}")


def has_weak(type, seen):
    """Whether it has a weak field somewhere, by which Google's library ends the process."""
    if type.full_name in seen:
        return False
    seen.add(type.full_name)
    return any(field.GetOptions().weak or field.message_type is not None and has_weak(field.message_type, seen)
               for field in type.fields)


def has_ambiguous_json(type, seen):
    """Whether it has, somewhere, two fields that JSON calls the same, of which a reader can only guess the one
    that is meant: protoc warns of them in proto2."""
    if type.full_name in seen:
        return False
    seen.add(type.full_name)
    names = [name for field in type.fields for name in {field.name, field.json_name}]
    return len(names) > len(set(names)) or any(
        field.message_type is not None and has_ambiguous_json(field.message_type, seen) for field in type.fields)


def find_corpora(folder, named):
    """(what it is called, its folder)"""
    if named:
        return [(name, pathlib.Path(name)) for name in named]
    found = []
    shared = ROOT.parent / "shared" / "protos"
    if any(shared.rglob("*.proto")):
        found.append(("of the project's own choice", shared))
    else:
        print("corpora: there is no ../shared/protos")
    try:
        found.append(("of Debian's packages", debian.fetch(folder / "debian")))
    except debian.Missing as reason:
        print(f"corpora: those of Debian's packages cannot be had: {reason}")
    return found


def main():
    plugin, protoc, cc, cxx, build, peer, folder = sys.argv[1:8]
    corpora = find_corpora(pathlib.Path(folder).resolve(), sys.argv[8:])
    if not corpora:
        return SKIP
    if descriptor_pool is None:
        print("corpora: there is no google.protobuf for this Python: files are compiled, messages not compared")
    n_passed = n_failed = 0
    for called, place in corpora:
        with tempfile.TemporaryDirectory() as scratch:
            run = Run(Protoc(plugin, protoc),
                      Compiling(shlex.split(cc), shlex.split(cxx), build, pathlib.Path(scratch)), peer)
            corpus = Corpus(protoc, place)
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(run.group, corpus.groups.values()))
        print(f"{called}: {corpus.n_files} files, {corpus.n_different} different ones, {len(corpus.refused)} refused by "
              f"protoc, {run.n_files} compiled; {run.n_types} types, {run.n_messages} messages, "
              f"{run.n_left_out} without an end left out, {run.n_ambiguous} whose JSON is ambiguous compared in binary alone")
        n_passed, n_failed = n_passed + run.n_files - len(run.faults), n_failed + len(run.faults)
        print(*(f"refused by protoc: {name}: {reason}" for name, reason in corpus.refused.items()), sep="\n")
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed or not n_passed else 0


if __name__ == "__main__":
    sys.exit(main())
