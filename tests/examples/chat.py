#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The chat server, over plain sockets.

usage: chat.py PROGRAM
"""
import sys

import example


class Member:
    def __init__(self, port, name):
        self.peer = example.connect(port)
        self.stream = self.peer.makefile("rb")
        self.say(name)
        self.expect(f"* {name} has come")

    def say(self, text):
        self.peer.sendall(text.encode() + b"\n")

    def expect(self, *lines):
        for line in lines:
            got = self.stream.readline().decode().rstrip("\n")
            assert got == line, f"got {got!r} instead of {line!r}"

    def leave(self):
        self.stream.close()
        self.peer.close()


def talk(port):
    ada = Member(port, "ada")
    grace = Member(port, "grace")
    ada.expect("* grace has come")
    ada.say("hello")
    grace.expect("ada: hello")
    grace.peer.sendall(b"two\r\nlines in one\npart")
    ada.expect("grace: two", "grace: lines in one")
    grace.say(" of a line")
    ada.expect("grace: part of a line")
    grace.leave()
    ada.expect("* grace has gone: left")
    return ada


def long_line(server, ada, port):
    rude = Member(port, "rude")
    ada.expect("* rude has come")
    rude.peer.sendall(b"x" * 600)
    assert rude.stream.read(1) == b""
    rude.leave()
    ada.expect("* rude has gone: Message too long")
    server.wait_line("^127.0.0.1:[0-9]+: Message too long$")


def slow_reader(server, ada, port):
    """One who does not read is let go; the one who talks is not held up, nor those who read."""
    slow = Member(port, "slow")
    ada.expect("* slow has come")
    talker = Member(port, "talker")
    ada.expect("* talker has come")
    line = "y" * 500
    gone = "* slow has gone: reads too slowly"
    while True:
        talker.say(line)
        got = ada.stream.readline().decode().rstrip("\n")
        if got == gone:
            break
        assert got == "talker: " + line
    server.wait_line("has gone: reads too slowly")
    talker.expect(gone)
    talker.leave()
    slow.leave()


def main(path):
    with example.program(path, "127.0.0.1:0") as server:
        port = server.port()
        ada = talk(port)
        long_line(server, ada, port)
        slow_reader(server, ada, port)
        ada.leave()
        server.wait_line("has gone: left")
    print("members hear each other; one who does not read is let go")


if __name__ == "__main__":
    main(*sys.argv[1:])
