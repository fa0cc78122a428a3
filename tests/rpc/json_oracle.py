#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Messages made at random, through Bowline's JSON and that of google.protobuf for Python.

    json_oracle.py PEER PROTOC PROTO_DIR N

Each message is written as JSON by one and read by the other, both ways, and must be the same; and so
are the words of JSON's grammar below taken or refused by both.
"""
import decimal
import importlib
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from google.protobuf import json_format

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from random_messages import Maker, Peer, check_json, wire  # noqa: E402

SEED = 20240229
TYPES = ["Scalars", "Optionals", "Lists", "Maps", "Choice", "Names", "Tree", "Known", "Everything"]
# What the two are to agree on, as {"fDouble": TEXT}, {"fInt32": TEXT} and {"fString": TEXT}.
NUMBERS = ["0", "-0.0", "1", "-1", "1.0", "1e2", "1E+2", "100e-2", "1.5", "01", "+1", ".5", "5.", "1e", "1e+",
           "--1", "0x10", "1_0", "1e400", "2147483647", "2147483648", "-2147483648", "-2147483649",
           "2147483647.0", "123456789012345678901234567890", "0.1", "-", "NaN", "Infinity"]
STRINGS = ['""', '"a"', '"\\n"', '"\\u00e9"', '"\\ud83e\\udea2"', '"\\x"', '"\\u12"', '"', '"\\"', "'a'",
           '"a" "b"', '"\\/"']


def check_word(peer, module, field, word):
    text = f'{{"{field}": {word}}}'
    message = module.Scalars()
    try:
        json_format.Parse(text, message)
        expected = wire(message)
    except json_format.ParseError:
        expected = None
    if word in ("NaN", "Infinity"):
        expected = None  # Python's reader takes them without quotation marks, which JSON does not
    taken, result = peer.ask("r", message, text.encode())
    if taken != (expected is not None):
        return f"{text}: {'taken' if taken else result.decode()}, by Python: {expected}"
    if taken and wire(module.Scalars.FromString(result)) != expected:
        return f"{text}: read as {result!r}, by Python as {expected!r}"
    return None


def digits_of(text):
    return len(decimal.Decimal(text).normalize().as_tuple().digits)


def check_number(peer, module, rand):
    """Whether a double and a float are written with as few digits as can be."""
    bits = rand.getrandbits(64)
    message = module.Scalars(f_double=struct.unpack("<d", struct.pack("<Q", bits))[0],
                             f_float=struct.unpack("<f", struct.pack("<I", bits >> 32))[0])
    taken, result = peer.ask("w", message, wire(message))
    written = json.loads(result, parse_float=str, parse_int=str)
    double, real = written.get("fDouble", "0"), written.get("fFloat", "0")
    if math.isfinite(message.f_double):
        if not taken or float(double) != message.f_double or digits_of(double) != digits_of(repr(message.f_double)):
            return f"double {message.f_double!r}: written as {double}"
    if math.isfinite(message.f_float):
        least = next(n for n in range(1, 18) if struct.pack("<f", float(f"{message.f_float:.{n}g}")) ==
                     struct.pack("<f", message.f_float)) if message.f_float else 1
        if struct.pack("<f", float(real)) != struct.pack("<f", message.f_float) or digits_of(real) > least:
            return f"float {message.f_float!r}: written as {real}"
    return None


def main():
    program, protoc, protos, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    faults, n_done = [], 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([protoc, f"-I{protos}", "-I/usr/include", f"--python_out={folder}", "json.proto"], check=True)
        subprocess.run(["mv", folder + "/json_pb2.py", folder + "/bowline_json_pb2.py"], check=True)
        sys.path.insert(0, folder)
        module = importlib.import_module("bowline_json_pb2")
    rand = random.Random(SEED)
    contents = [module.Scalars, module.Choice, module.Tree, module.Known().timestamp.__class__]
    maker = Maker(rand, contents)
    for kind in ["bowline", "plain"]:
        peer = Peer(program, kind)
        # Without the generator's table a json_name that is not derived is unknown.
        types = [name for name in TYPES if kind == "bowline" or name != "Names"]
        for i in range(n // 2):
            name = types[i % len(types)]
            message = getattr(module, name)()
            maker.fill(message, i // len(types) % 4)
            faults.append(check_json(peer, message))
        for field, words in [("fDouble", NUMBERS), ("fInt32", NUMBERS), ("fString", STRINGS)]:
            faults += [check_word(peer, module, field, word) for word in words]
        faults += [check_number(peer, module, rand) for _ in range(n)]
        peer.close()
        n_done += n // 2
    faults = [fault for fault in faults if fault]
    for fault in faults[:5]:
        print(fault if len(fault) < 2000 else fault[:1000] + " ... " + fault[-1000:])
    print(f"{n_done - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
