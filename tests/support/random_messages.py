# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Messages made at random, of any types, and whether Bowline and google.protobuf for Python say the same of
them, in binary and in JSON."""
import math
import struct
import subprocess

from google.protobuf import descriptor_pool, json_format, message_factory

class Peer:
    """What message_peer.h serves."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, mode, message, data):
        """(whether it was taken, the result or the reason), of a message of this one's type"""
        self.process.stdin.write(f"{mode} {message.DESCRIPTOR.full_name} {len(data)}\n".encode() + data)
        self.process.stdin.flush()
        word, length = self.process.stdout.readline().split()
        return word == b"ok", self.process.stdout.read(int(length))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, "the peer failed"


def quiet(value):
    """The one NaN that JSON has, for what an Any holds is compared by its bytes."""
    return float("nan") if math.isnan(value) else value


def is_null(field):
    return field.enum_type is not None and field.enum_type.full_name == "google.protobuf.NullValue"


def is_closed(enum):
    """Whether it has no values but its own."""
    return enum.full_name == "google.protobuf.NullValue" or enum.file.syntax == "proto2"


class Maker:
    """Fills messages by their descriptors; `contents` are the types that an Any may hold."""

    def __init__(self, rand, contents):
        self.rand, self.contents = rand, contents

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
            known = [value.number for value in field.enum_type.values]
            return self.rand.choice(known if is_closed(field.enum_type) else [*known, 77, -1])
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
            content = self.rand.choice(self.contents)() if self.contents else None
            if content is not None:
                self.fill(content, depth - 1)
                message.Pack(content)
        else:
            return False
        return True

    def fill(self, message, depth):
        if self.known(message, max(depth, 0)):
            return
        for field in message.DESCRIPTOR.fields:
            if is_null(field) and field.label == field.LABEL_REPEATED:  # Python writes them, and does not read them
                continue
            if self.rand.random() < 0.4 or (field.containing_oneof and self.rand.random() < 0.6):
                if field.label != field.LABEL_REQUIRED:
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
                if depth > 0 or field.label == field.LABEL_REQUIRED and depth > -8:
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


def sort_contents(message, pool):
    """Encode anew what each Any holds, for its fields may be in any order."""
    if message.DESCRIPTOR.full_name == "google.protobuf.Any" and message.type_url:
        type = pool.FindMessageTypeByName(message.type_url.rpartition("/")[2])
        content = message_factory.MessageFactory(pool).GetPrototype(type).FromString(message.value)
        sort_contents(content, pool)
        message.value = wire(content)
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    sort_contents(value[key], pool)
        else:
            for inner in value if field.label == field.LABEL_REPEATED else [value]:
                sort_contents(inner, pool)


def same(a, b, pool=None):
    """By bytes, for NaN is not itself."""
    pool = pool or descriptor_pool.Default()
    if wire(a) == wire(b):
        return True
    sort_contents(a, pool)
    sort_contents(b, pool)
    return wire(a) == wire(b)


def check_binary(peer, message, pool=None):
    """What is wrong, or None."""
    taken, result = peer.ask("b", message, wire(message))
    if not taken:
        return f"refused {message}: {result.decode()}"
    if not same(type(message).FromString(result), message, pool):
        return f"decoded {wire(message)!r}, and encoded {result!r}"
    return None


def check_json(peer, message, pool=None):
    """What is wrong, or None; `pool` has the types that an Any may hold."""
    data = wire(message)
    text = json_format.MessageToJson(message, indent=None if len(data) % 2 else 2, descriptor_pool=pool).encode()
    taken, result = peer.ask("r", message, text)
    if not taken:
        return f"refused {text!r}: {result.decode()}"
    if not same(type(message).FromString(result), message, pool):
        return f"read {text!r} as {type(message).FromString(result)}"
    taken, result = peer.ask("w", message, data)
    if not taken:
        return f"no JSON for {message}: {result.decode()}"
    try:
        again = json_format.Parse(result, type(message)(), descriptor_pool=pool)
    except json_format.ParseError as error:
        return f"wrote {result!r}, which Python refuses: {error}"
    if not same(again, message, pool):
        return f"wrote {message} as {result!r}"
    return None
