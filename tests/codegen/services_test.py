#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold the C of the library's own services, which is kept so that it builds without protoc, to
what the generator makes of their .proto now.

    services_test.py PLUGIN PROTOC           compare, print what differs
    services_test.py PLUGIN PROTOC --write   keep what comes out
"""

import pathlib
import sys
import tempfile

from protoc import ROOT, Protoc

SERVICES = ROOT / "rpc" / "services"
PROTOS = SERVICES / "protos"
KEPT = SERVICES / "generated"


def read(folder):
    return {str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*.[ch]"))}


def generate(protoc, system):
    protos = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as out:
        # The library sets fields itself, so it has no use for the typed functions.
        protoc.generate(out, protos, [PROTOS, system], ["no_messages"])
        return read(pathlib.Path(out))


def write(made):
    for name, text in made.items():
        path = KEPT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compare(made, kept):
    n_different = 0
    for name in sorted({*made, *kept}):
        if made.get(name) != kept.get(name):
            n_different += 1
            print(f"rpc/services/generated/{name} is not what comes out; run tools/update-services")
    return n_different


def main():
    made = generate(Protoc(sys.argv[1], sys.argv[2]), "/usr/include")
    if sys.argv[3:] == ["--write"]:
        write(made)
        return 0
    n_different = compare(made, read(KEPT))
    print(f"{len(made)} files, {n_different} different")
    return 1 if n_different or not made else 0


if __name__ == "__main__":
    sys.exit(main())
