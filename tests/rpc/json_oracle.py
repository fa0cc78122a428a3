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
import random
import struct
import subprocess
import sys
import tempfile

from google.protobuf import json_format

SEED = 20240229
TYPES = ["Scalars", "Optionals", "Lists", "Maps", "Choice", "Names", "Tree", "Known", "Everything"]
# What the two are to agree on, as {"fDouble": TEXT}, {"fInt32": TEXT} and {"fString": TEXT}.
NUMBERS = ["0", "-0.0", "1", "-1", "1.0", "1e2", "1E+2", "100e-2", "1.5", "01", "+1", ".5", "5.", "1e", "1e+",
           "--1", "0x10", "1_0", "1e400", "2147483647", "2147483648", "-2147483648", "-2147483649",
           "2147483647.0", "123456789012345678901234567890", "0.1", "-", "NaN", "Infinity"]
STRINGS = ['""', '"a"', '"\\n"', '"\\u00e9"', '"\\ud83e\\udea2"', '"\\x"', '"\\u12"', '"', '"\\"', "'a'",
           '"a" "b"', '"\\/"']


class Peer:
    def __init__(self, program, kind):
        self.process = subprocess.Popen([program, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, mode, name, data):
        """(whether it was taken, the result or the reason)"""
        self.process.stdin.write(f"{mode} {name} {len(data)}\n".encode() + data)
        self.process.stdin.flush()
        word, length = self.process.stdout.readline().split()
        return word == b"ok", self.process.stdout.read(int(length))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, "the peer failed"


def quiet(value):
    """The one NaN that JSON has, for what an Any holds is compared by its bytes."""
    return float("nan") if math.isnan(value) else value


class Maker:
    """Fills messages by their descriptors."""

    def __init__(self, rand, module):
        self.rand, self.module = rand, module

    def integer(self, low, high):
        if self.rand.random() < 0.2:
            return self.rand.choice([low, high, 0, 1 if high > 0 else 0])
        bits = self.rand.randrange(1, high.bit_length() + 1)
        value = self.rand.getrandbits(bits)
        return max(low, min(high, -value if low < 0 and self.rand.random() < 0.5 else value))

    def double(self):
        choice = self.rand.randrange(8)
        if choice == 0:
            return self.rand.choice([0.0, -0.0, 1.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, 1e22,
                                     float("inf"), float("-inf"), float("nan"), 2.2250738585072014e-308])
        if choice < 4:
            return round(self.rand.uniform(-1e6, 1e6), self.rand.randrange(6))
        return quiet(struct.unpack("<d", struct.pack("<Q", self.rand.getrandbits(64)))[0])

    def float(self):
        if self.rand.random() < 0.5:
            return struct.unpack("<f", struct.pack("<f", self.rand.uniform(-1e6, 1e6)))[0]
        return quiet(struct.unpack("<f", struct.pack("<I", self.rand.getrandbits(32)))[0])

    def text(self):
        alphabet = "abcXYZ 09_\"\\/\n\t\x01\x1f\x7f<>&é€\u2028🪢"
        return "".join(self.rand.choice(alphabet) for _ in range(self.rand.choice([0, 1, 7, 8, 9, 40, 200])))

    def name(self):
        return "".join(self.rand.choice("abcdefgh") for _ in range(self.rand.randrange(1, 12)))

    def scalar(self, field):
        kind = field.cpp_type
        if kind == field.CPPTYPE_INT32:
            return self.integer(-2**31, 2**31 - 1)
        if kind == field.CPPTYPE_INT64:
            return self.integer(-2**63, 2**63 - 1)
        if kind == field.CPPTYPE_UINT32:
            return self.integer(0, 2**32 - 1)
        if kind == field.CPPTYPE_UINT64:
            return self.integer(0, 2**64 - 1)
        if kind == field.CPPTYPE_DOUBLE:
            return self.double()
        if kind == field.CPPTYPE_FLOAT:
            return self.float()
        if kind == field.CPPTYPE_BOOL:
            return self.rand.random() < 0.5
        if kind == field.CPPTYPE_ENUM:
            known = field.enum_type.full_name == "google.protobuf.NullValue"
            return 0 if known else self.rand.choice([0, 1, -1, 77])
        if field.type == field.TYPE_BYTES:
            return self.rand.randbytes(self.rand.randrange(20))
        return self.text()

    def value(self, message, depth):
        kind = self.rand.randrange(6 if depth > 0 else 4)
        if kind == 0:
            message.null_value = 0
        elif kind == 1:
            message.number_value = round(self.rand.uniform(-1e9, 1e9), 3)
        elif kind == 2:
            message.string_value = self.text()
        elif kind == 3:
            message.bool_value = self.rand.random() < 0.5
        elif kind == 4:
            message.struct_value.SetInParent()
            for _ in range(self.rand.randrange(4)):
                self.value(message.struct_value.fields[self.text()], depth - 1)
        else:
            message.list_value.SetInParent()
            for _ in range(self.rand.randrange(4)):
                self.value(message.list_value.values.add(), depth - 1)

    def known(self, message, depth):
        """Fills protobuf's own types, whose values are not free; false for another one."""
        name = message.DESCRIPTOR.full_name.removeprefix("google.protobuf.")
        if name == "Timestamp":
            message.seconds = self.rand.randrange(-62135596800, 253402300800)
            message.nanos = self.rand.choice([0, 1, 999999999, 500000000, 1000, 123456000])
        elif name == "Duration":
            sign = self.rand.choice([-1, 1])
            message.seconds = sign * self.rand.choice([0, 1, 315576000000, self.rand.randrange(10**9)])
            message.nanos = sign * self.rand.choice([0, 1, 999999999, 500000000])
            if abs(message.seconds) == 315576000000:
                message.nanos = 0
        elif name == "FieldMask":
            for _ in range(self.rand.randrange(4)):
                message.paths.append(".".join("_".join(self.name() for _ in range(self.rand.randrange(1, 3)))
                                              for _ in range(self.rand.randrange(1, 3))))
        elif name == "Struct":
            for _ in range(self.rand.choice([0, 1, 3, 30])):
                self.value(message.fields[self.text()], depth)
        elif name == "ListValue":
            for _ in range(self.rand.randrange(4)):
                self.value(message.values.add(), depth)
        elif name == "Value":
            self.value(message, depth)
        elif name == "Any":
            content = getattr(self.module, self.rand.choice(["Scalars", "Choice", "Tree"]))()
            if self.rand.random() < 0.4:
                content = self.module.Known().timestamp.__class__()
            self.fill(content, depth - 1)
            message.Pack(content)
        else:
            return False
        return True

    def fill(self, message, depth):
        if self.known(message, max(depth, 0)):
            return
        for field in message.DESCRIPTOR.fields:
            if field.name == "nulls":  # Python writes them, and does not read them
                continue
            if self.rand.random() < 0.4 or (field.containing_oneof and self.rand.random() < 0.6):
                continue
            if field.message_type and field.message_type.GetOptions().map_entry:
                self.map(message, field, depth)
            elif field.label == field.LABEL_REPEATED:
                for _ in range(self.rand.choice([0, 1, 2, 5, 20 if not field.message_type else 2])):
                    if field.message_type and depth > 0:
                        self.fill(getattr(message, field.name).add(), depth - 1)
                    elif not field.message_type:
                        getattr(message, field.name).append(self.scalar(field))
            elif field.message_type:
                if depth > 0:
                    getattr(message, field.name).SetInParent()
                    self.fill(getattr(message, field.name), depth - 1)
            else:
                setattr(message, field.name, self.scalar(field))

    def map(self, message, field, depth):
        key, value = field.message_type.fields
        entries = getattr(message, field.name)
        for _ in range(self.rand.choice([0, 1, 3, 40 if not value.message_type else 3])):
            if not value.message_type:
                entries[self.scalar(key)] = self.scalar(value)
            elif depth > 0:
                self.fill(entries[self.scalar(key)], depth - 1)


def wire(message):
    return message.SerializeToString(deterministic=True)


def same(a, b):
    """By bytes, for NaN is not itself; what an Any holds may have its fields in another order."""
    return wire(a) == wire(b) or str(a) == str(b)


def check_message(peer, message, name):
    data = wire(message)
    text = json_format.MessageToJson(message, indent=None if len(data) % 2 else 2).encode()
    taken, result = peer.ask("r", name, text)
    if not taken:
        return f"refused {text!r}: {result.decode()}"
    if not same(type(message).FromString(result), message):
        return f"read {text!r} as {type(message).FromString(result)}"
    taken, result = peer.ask("w", name, data)
    if not taken:
        return f"no JSON for {message}: {result.decode()}"
    try:
        again = json_format.Parse(result, type(message)())
    except json_format.ParseError as error:
        return f"wrote {result!r}, which Python refuses: {error}"
    if not same(again, message):
        return f"wrote {message} as {result!r}"
    return None


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
    taken, result = peer.ask("r", "Scalars", text.encode())
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
    taken, result = peer.ask("w", "Scalars", wire(message))
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
    maker = Maker(rand, module)
    for kind in ["bowline", "plain"]:
        peer = Peer(program, kind)
        # Without the generator's table a json_name that is not derived is unknown.
        types = [name for name in TYPES if kind == "bowline" or name != "Names"]
        for i in range(n // 2):
            name = types[i % len(types)]
            message = getattr(module, name)()
            maker.fill(message, i // len(types) % 4)
            faults.append(check_message(peer, message, name))
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
