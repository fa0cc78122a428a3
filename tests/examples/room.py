#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The room: what one client says all hear, over either protocol.

usage: room.py SERVER CLIENT
"""
import subprocess
import sys
import threading

WAIT = 20  # seconds; only a broken example takes them


class Client:
    def __init__(self, program, target, name):
        self.process = subprocess.Popen([program, target, name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def expect(self, line):
        heard = self.process.stdout.readline().rstrip("\n")
        assert heard == line, f"heard {heard!r} instead of {line!r}"

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(WAIT) == 0, "the client failed"


def main():
    server = subprocess.Popen([sys.argv[1], "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(3 * WAIT, server.kill)
    watchdog.start()
    try:
        address = "127.0.0.1:" + server.stdout.readline().split()[-1]
        ann = Client(sys.argv[2], address, "ann")
        ann.say("is anybody there?")
        ann.expect("ann: is anybody there?")
        bob = Client(sys.argv[2], "grpc:" + address, "bob")
        bob.say("I am")
        bob.expect("bob: I am")
        ann.expect("bob: I am")
        ann.say("good")
        bob.expect("ann: good")
        ann.expect("ann: good")
        bob.leave()
        ann.say("alone again")
        ann.expect("ann: alone again")
        ann.leave()
        for _ in range(2):
            line = server.stdout.readline()
            assert line == "somebody left (OK), having missed 0 lines\n", line
        server.terminate()
        assert server.wait(WAIT) == 0, "the server failed"
    finally:
        watchdog.cancel()
        server.kill()


main()
