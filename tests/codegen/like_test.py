#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Structs, initializers and descriptors are those that protobuf-c's own generator makes: names,
offsets, types, labels, flags, defaults, ranges, the state of a new message, and which functions there are.

    like_test.py PLUGIN PROTOC CC PROTOC_GEN_C     PROTOC_GEN_C is "" where it is not installed

Compared are like/*.proto, descriptor.proto, and the messages of the codec's tests.
"""

import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from protoc import HERE, ROOT, Protoc

SKIP = 77
SYSTEM = pathlib.Path("/usr/include")
FOLDERS = {
    HERE / "like": None,
    ROOT / "tests" / "rpc" / "protos": ["codec2.proto", "codec3.proto", "codec_plain.proto"],
    SYSTEM: ["google/protobuf/descriptor.proto", "google/protobuf/struct.proto",
             "google/protobuf/wrappers.proto"],
}
DECLARED = re.compile(r"extern\s+(?:\w+\s+)?const\s+ProtobufC(Message|Enum)Descriptor\s+(\w+)__descriptor;")
INIT = re.compile(r"PROTOBUF_C_MESSAGE_INIT ?\(&(\w+)__descriptor\)")
MACRO = re.compile(r"#define (\w+__INIT) ")
FUNCTION = re.compile(r"\b(\w+__(?:init|pack|unpack|pack_to_buffer|get_packed_size|free_unpacked))\s*\(")
CLOSURE = re.compile(r"\(\*(\w+_Closure)\)")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[:4000]}")
    return done.stdout


class Like(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def child(self):
        """protoc-gen-c does not announce proto3 optional, without which protoc does not run it."""
        path = self.scratch / "child"
        path.write_text(f"#!/bin/sh\n'{PROTOC_GEN_C}' && printf '\\020\\001'\n")
        path.chmod(0o755)
        return path

    def theirs(self, protos, folder):
        out = self.scratch / "theirs"
        out.mkdir()
        run(PROTOC.protoc, f"--plugin=protoc-gen-c={self.child()}", f"--c_out={out}", f"-I{folder}",
            f"-I{SYSTEM}", *protos)
        return out

    def ours(self, protos, folder):
        out = self.scratch / "ours"
        PROTOC.generate(out, protos, [folder, SYSTEM])
        return out

    def program(self, out, headers):
        """Describes all that `headers` declare."""
        text = ['#include "describe.h"'] + [f'#include "{header}"' for header in headers]
        text += ["int main(void)", "{"]
        for header in headers:
            content = (out / header).read_text()
            types = self.types(content)
            macros = dict(zip(INIT.findall(content), MACRO.findall(content)))
            for kind, lower in sorted(DECLARED.findall(content)):
                if kind == "Enum":
                    text.append(f"    describe_enum(&{lower}__descriptor);")
                    continue
                text.append(f"    static const {types[lower]} {lower}_initial = {macros[lower]};")
                text.append(f"    describe_message(&{lower}__descriptor, &{lower}_initial);")
        return "\n".join([*text, "    return 0;", "}", ""])

    @staticmethod
    def types(content):
        """Lower-case prefix -> struct, by the order in which initializers follow structs."""
        parts = re.findall(r"^struct +(\w+)\s*\{|PROTOBUF_C_MESSAGE_INIT ?\(&(\w+)__descriptor\)",
                           content, re.M)
        types, last = {}, None
        for struct, lower in parts:
            last = struct or last
            if lower:
                types[lower] = last
        return types

    def describe(self, out, flags=()):
        headers = sorted(str(path.relative_to(out)) for path in out.rglob("*.pb-c.h"))
        (out / "main.c").write_text(self.program(out, headers))
        sources = [path for path in out.rglob("*.c") if ".bow." not in path.name]
        run(*CC, "-std=c11", "-D_GNU_SOURCE", *flags, f"-I{out}", f"-I{HERE}", f"-I{ROOT / 'include'}", *sources, HERE / "describe.c",
            "-lprotobuf-c", "-o", out / "describe")
        return run(out / "describe").splitlines()

    def declared(self, out):
        text = "".join(path.read_text() for path in sorted(out.rglob("*.pb-c.h")))
        return (sorted(set(FUNCTION.findall(text))), sorted(set(CLOSURE.findall(text))))

    def check(self, folder, protos):
        if protos is None:
            protos = sorted(path.name for path in folder.glob("*.proto"))
        theirs, ours = self.theirs(protos, folder), self.ours(protos, folder)
        expected = self.describe(theirs, ["-w"])
        self.assertGreater(len(expected), 20)
        made = self.describe(ours, ["-Wall", "-Wextra", "-Werror"])
        self.assertEqual(list(difflib.unified_diff(expected, made, "protoc-gen-c", "ours", lineterm="")), [])
        self.assertEqual(self.declared(theirs), self.declared(ours))

    def test_proto_of_every_kind(self):
        self.check(HERE / "like", FOLDERS[HERE / "like"])

    def test_the_codecs_messages(self):
        folder = ROOT / "tests" / "rpc" / "protos"
        self.check(folder, FOLDERS[folder])

    def test_googles_messages(self):
        self.check(SYSTEM, FOLDERS[SYSTEM])


if __name__ == "__main__":
    PROTOC = Protoc(sys.argv.pop(1), sys.argv.pop(1))
    CC = shlex.split(sys.argv.pop(1))
    PROTOC_GEN_C = sys.argv.pop(1)
    if not PROTOC_GEN_C:
        print("protoc-gen-c is not installed: nothing to compare with")
        sys.exit(SKIP)
    unittest.main()
