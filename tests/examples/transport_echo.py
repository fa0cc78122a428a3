#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The echo server of the transport, over plain sockets.

usage: transport_echo.py PROGRAM
"""
import socket
import struct
import sys

import example


def frame(body):
    return struct.pack(">I", len(body)) + body


def echoes_frames(port):
    """Many at once, one cut into single bytes, one of no bytes, one that is large."""
    with example.connect(port) as peer:
        sent = b"".join(frame(b"%d" % i * (i % 7)) for i in range(500))
        peer.sendall(sent)
        assert example.receive(peer, len(sent)) == sent
        for byte in frame(b"in pieces"):
            peer.sendall(bytes([byte]))
        assert example.receive(peer, 13) == frame(b"in pieces")
        large = frame(bytes(900_000))
        peer.sendall(large)
        assert example.receive(peer, len(large)) == large


def answers_before_the_end(port):
    """A peer that ends its side still gets what it asked for."""
    with example.connect(port) as peer:
        peer.sendall(frame(b"last"))
        peer.shutdown(socket.SHUT_WR)
        assert example.receive(peer, 1000) == frame(b"last")


def pauses_a_peer_that_does_not_read(port):
    """Writing blocks after a bounded amount; reading gets all of it going again."""
    with example.connect(port) as peer:
        peer.setblocking(False)
        sent = left = 0
        body = frame(bytes(60_000))
        try:
            while sent < 1 << 30:
                sent += peer.send(body[left:] if left else body)
                left = sent % len(body)
        except BlockingIOError:
            pass
        assert sent < 1 << 30, "the server took a gibibyte from one who does not read"
        whole = sent - left
        peer.settimeout(example.PATIENCE_S)
        got = example.receive(peer, whole)
        assert got == body * (whole // len(body))


def refuses_what_is_too_large(server, port):
    with example.connect(port) as peer:
        peer.sendall(struct.pack(">I", 1 << 30))
        assert example.receive(peer, 1) == b""
    server.wait_line("Message too long")


def closes_the_idle(path):
    """One who says nothing is closed; what came before was answered."""
    with example.program(path, "127.0.0.1:0", "0.05") as server:
        with example.connect(server.port()) as peer:
            peer.sendall(frame(b"then nothing"))
            assert example.receive(peer, 1000) == frame(b"then nothing")
        server.wait_line("disconnected: Connection timed out$")


def main(path):
    with example.program(path, "127.0.0.1:0") as server:
        port = server.port()
        echoes_frames(port)
        answers_before_the_end(port)
        pauses_a_peer_that_does_not_read(port)
        refuses_what_is_too_large(server, port)
        for said in (r"^127\.0\.0\.1:\d+: connected$", r"^127\.0\.0\.1:\d+: disconnected: end of input$"):
            server.wait_line(said)
        open_one = example.connect(port)
        open_one.sendall(frame(b"x"))
        example.receive(open_one, 5)
    open_one.close()
    closes_the_idle(path)
    with example.program(path, "127.0.0.1:0") as first:
        address = f"127.0.0.1:{first.port()}"
        second = example.Program(path, address)
        second.wait_line("transport-echo: .*" + address)
        assert second.process.wait(example.PATIENCE_S) == 1
        second.process.stdout.close()
    print("frames come back, whoever sends them and however")


if __name__ == "__main__":
    main(*sys.argv[1:])
