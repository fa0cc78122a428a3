#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold the plugin's own C of plugin.proto and descriptor.proto, which is kept so that there is a
plugin to begin with, to what the plugin makes of them now.

    own_test.py PLUGIN PROTOC           compare, print what differs
    own_test.py PLUGIN PROTOC --write   keep what comes out

descriptor.proto is the installed protoc's; with another version than the kept C was made with, there
is nothing to compare, and the test exits with 77.
"""

import pathlib
import subprocess
import sys
import tempfile

from protoc import ROOT, Protoc

SKIP = 77
VERSION = "libprotoc 3.21.12"
CODEGEN = ROOT / "codegen"
KEPT = CODEGEN / "generated"
PROTOS = ["descriptor.proto", "plugin.proto"]
SYSTEM = "/usr/include/google/protobuf"
# Nobody reflects on them, and their services are none.
OPTIONS = ["lite", "no_json"]


def generate(protoc):
    with tempfile.TemporaryDirectory() as out:
        protoc.generate(out, PROTOS, [CODEGEN, SYSTEM], OPTIONS)
        return {path.name: path.read_text() for path in sorted(pathlib.Path(out).glob("*.pb-c.[ch]"))}


def main():
    protoc = Protoc(sys.argv[1], sys.argv[2])
    version = subprocess.run([protoc.protoc, "--version"], capture_output=True, text=True).stdout.strip()
    if version != VERSION:
        print(f"{version} is not {VERSION}, whose descriptor.proto codegen/generated was made from")
        return SKIP
    made = generate(protoc)
    if sys.argv[3:] == ["--write"]:
        for name, text in made.items():
            (KEPT / name).write_text(text)
        return 0
    kept = {path.name: path.read_text() for path in sorted(KEPT.glob("*"))}
    different = [name for name in sorted({*made, *kept}) if made.get(name) != kept.get(name)]
    for name in different:
        print(f"codegen/generated/{name} is not what comes out; run tools/update-codegen")
    print(f"{len(made)} files, {len(different)} different")
    return 1 if different or not made else 0


if __name__ == "__main__":
    sys.exit(main())
