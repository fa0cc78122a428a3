# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running protoc with the plugin under test, and speaking with the plugin as protoc does."""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Protoc:
    def __init__(self, plugin, protoc="protoc"):
        self.plugin = plugin
        self.protoc = protoc

    def run(self, out, protos, paths=(), options=(), environment=None):
        """Returns (exit status, stderr)."""
        out = pathlib.Path(out)
        out.mkdir(parents=True, exist_ok=True)
        command = [self.protoc, f"--plugin=protoc-gen-bowline={self.plugin}", f"--bowline_out={out}"]
        command += [f"--bowline_opt={option}" for option in options]
        command += [f"-I{path}" for path in [*paths, ROOT / "codegen"]]
        command += [str(proto) for proto in protos]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                              env={**os.environ, **(environment or {})})
        return done.returncode, done.stderr

    def generate(self, out, protos, paths=(), options=()):
        status, stderr = self.run(out, protos, paths, options)
        if status != 0:
            raise RuntimeError(stderr)


def files(folder):
    """The generated files below `folder`: relative name -> bytes."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def encode(*fields):
    """Protobuf's wire format of (number, int, str or bytes) pairs."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        value = value.encode() if isinstance(value, str) else value
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def decode(message):
    """The last value of each field, by number; of varints and bytes only."""
    fields, at = {}, 0

    def read():
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        tag = read()
        value = read()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        fields[tag >> 3] = value
    return fields
