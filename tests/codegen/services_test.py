#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Hold the C of the libraries' own services, and of what they and the tool read of a .proto, which is
kept so that they build without protoc, to what the generator makes of their .proto now.

    services_test.py PLUGIN PROTOC           compare, print what differs
    services_test.py PLUGIN PROTOC --write   keep what comes out
"""

import pathlib
import sys
import tempfile

from protoc import ROOT, Protoc

# The folders with protos/ and generated/. The libraries set fields themselves, so they have no use for
# the typed functions; nobody reflects on a schema's or a service config's messages.
FOLDERS = {
    "rpc/services": ["no_messages"],
    "otel": ["no_messages"],
    "etcd": ["no_messages"],
    "rpc/schema": ["no_messages", "lite", "no_json"],
    "rpc/client/retry": ["no_messages", "lite"],
    "tools/bowline": ["no_messages"],
}


def read(folder):
    return {str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*.[ch]"))}


def generate(protoc, folder, options, system):
    protos = ROOT / folder / "protos"
    names = sorted(str(path.relative_to(protos)) for path in protos.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as out:
        protoc.generate(out, names, [protos, system], options)
        made = read(pathlib.Path(out))
    return {name: text for name, text in made.items() if not is_empty(folder, name)}


def is_empty(folder, name):
    """Stubs of a .proto without services."""
    return folder in ("rpc/schema", "rpc/client/retry", "tools/bowline") and ".bow." in name


def write(folder, made):
    for name, text in made.items():
        path = ROOT / folder / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compare(folder, made, kept):
    n_different = 0
    for name in sorted({*made, *kept}):
        if made.get(name) != kept.get(name):
            n_different += 1
            print(f"{folder}/generated/{name} is not what comes out; run tools/update-services")
    return n_different


def main():
    protoc = Protoc(sys.argv[1], sys.argv[2])
    n_files = n_different = 0
    for folder, options in FOLDERS.items():
        made = generate(protoc, folder, options, "/usr/include")
        if sys.argv[3:] == ["--write"]:
            write(folder, made)
        else:
            n_files += len(made)
            n_different += compare(folder, made, read(ROOT / folder / "generated"))
    if sys.argv[3:] == ["--write"]:
        return 0
    print(f"{n_files} files, {n_different} different")
    return 1 if n_different or not n_files else 0


if __name__ == "__main__":
    sys.exit(main())
