#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold the C of the libraries' own services, which is kept so that they build without protoc, to
what the generator makes of their .proto now.

    services_test.py PLUGIN PROTOC           compare, print what differs
    services_test.py PLUGIN PROTOC --write   keep what comes out
"""

import pathlib
import sys
import tempfile

from protoc import ROOT, Protoc

FOLDERS = ("rpc/services", "otel")


def read(folder):
    return {str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*.[ch]"))}


def generate(protoc, protos, system):
    names = sorted(str(path.relative_to(protos)) for path in protos.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as out:
        # The library sets fields itself, so it has no use for the typed functions.
        protoc.generate(out, names, [protos, system], ["no_messages"])
        return read(pathlib.Path(out))


def write(made, folder):
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compare(made, kept, folder):
    n_different = 0
    for name in sorted({*made, *kept}):
        if made.get(name) != kept.get(name):
            n_different += 1
            print(f"{folder}/generated/{name} is not what comes out; run tools/update-services")
    return n_different


def main():
    protoc = Protoc(sys.argv[1], sys.argv[2])
    n_made = n_different = 0
    for folder in FOLDERS:
        made = generate(protoc, ROOT / folder / "protos", "/usr/include")
        kept = ROOT / folder / "generated"
        if sys.argv[3:] == ["--write"]:
            write(made, kept)
            continue
        n_made += len(made)
        n_different += compare(made, read(kept), folder)
        if not made:
            n_different += 1
            print(f"nothing comes out of {folder}/protos")
    print(f"{n_made} files, {n_different} different")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
