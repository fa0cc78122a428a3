# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Messages of protobuf by the numbers of their fields, without any .proto: so a test says what the
wire contract is, and does not take it from the file that it looks at.

A message is a list of pairs of a number and a value: an int (a varint), text, bytes, or a message.
"""


def varint(number):
    number &= 2**64 - 1  # what is negative has ten bytes
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def encode(*fields):
    """The bytes of a message, in the order of the pairs."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, str):
            value = value.encode()
        elif not isinstance(value, bytes):
            value = encode(*value)
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def take_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def decode(data):
    """The values of each field, by its number: ints and bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, at = take_varint(data, at)
        value, at = take_varint(data, at)
        assert key & 7 in (0, 2), f"wire type {key & 7} of field {key >> 3}"
        if key & 7 == 2:
            assert at + value <= len(data), f"field {key >> 3} is cut"
            value, at = data[at:at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def decode_map(entries):
    """A map from text to text."""
    return {fields[1][0].decode(): fields[2][0].decode() for fields in map(decode, entries)}
