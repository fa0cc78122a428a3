#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""gRPC's public interoperability cases between Bowline's programs, or one of them and a peer's.

Usage: cases.py INTEROP_SERVER INTEROP_CLIENT [LANGUAGE FOLDER | PROXY]

With a language, each case of the peer's client against our server, and of ours against the peer's, with TLS and
without; the peer is tests/peers/LANGUAGE/interop.*, built in FOLDER. With nginx or haproxy, ours against ours through
it. Without, ours against ours, over both protocols.
"""
import contextlib
import pathlib
import subprocess
import sys
import tempfile

import certificate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "peers"))
import peers_build
import proxies
from peers_run import Process

PATIENCE_S = 60
# What a peer's program cannot do, for its library does not say how a message came, or does not let a
# stream's messages differ. Go's answers a compressed request compressed, and no other.
SEEN_UP = ("client_compressed_unary", "client_compressed_streaming")
SEEN_DOWN = ("server_compressed_unary", "server_compressed_streaming")
NOT_OF_SERVER = {"go": SEEN_DOWN, "python": SEEN_UP, "node": SEEN_UP + SEEN_DOWN}


def names_of(client, environment):
    done = subprocess.run([*client, "--test_case=list"], env=environment, check=True, text=True,
                          stdout=subprocess.PIPE, timeout=PATIENCE_S)
    return done.stdout.split()


@contextlib.contextmanager
def direct(port):
    yield port


def through(kind, tls):
    """What stands between a client and the server on a port."""
    @contextlib.contextmanager
    def stand(port):
        with tempfile.TemporaryDirectory() as folder:
            proxy = proxies.Proxy(kind, folder, port, tls=tls)
            try:
                yield proxy.front
            finally:
                proxy.end()
    return stand


class Bout:
    """A client's cases against a server."""

    def __init__(self):
        self.passed = self.failed = 0

    def run_case(self, name, client, words):
        done = subprocess.run([*client, f"--test_case={name}", *words], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                              env=self.environment)
        if done.returncode == 0:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED: {self.name}: {name}: {done.stdout.strip()}", flush=True)

    def run(self, name, server, client, words, environment=None, without=(), between=direct):
        self.name, self.environment = name, environment
        running = Process(server, environment)
        with between(running.line()) as port:
            for case in names_of(client, environment):
                if case not in without:
                    self.run_case(case, client,
                                  [*words, "--server_host=127.0.0.1", f"--server_port={port}"])
        running.end()
        if running.child.returncode != 0:
            self.failed += 1
            print(f"FAILED: {name}: the server ended with {running.child.returncode}", flush=True)
        print(f"{name}: {self.passed} passed, {self.failed} failed so far", flush=True)


def main(our_server, our_client, language=None, folder=None):
    ours = [our_server, "--port=0", "--host=127.0.0.1"]
    bout = Bout()
    with tempfile.TemporaryDirectory() as keys:
        made = certificate.Certificate(keys)
        for kind, of_server, of_client in (("plain", [], []),
                                           ("TLS", made.of_server(), made.of_client())):
            if language is None:
                for protocol in ("grpc", "native"):
                    bout.run(f"ours, {protocol}, {kind}", ours + of_server, [our_client],
                             [*of_client, f"--protocol={protocol}"])
                continue
            if language in proxies.KINDS:
                if proxies.program(language) is None:
                    raise peers_build.Missing(f"there is no {language}")
                bout.run(f"through {language}, {kind}", ours + of_server, [our_client], of_client,
                         between=through(language, made if of_server else None))
                continue
            peer, more = peers_build.build(language, folder, "interop")
            environment = {**peers_build.os.environ, **more}
            bout.run(f"{language} client, {kind}", ours + of_server, [*peer, "client"], of_client,
                     environment)
            bout.run(f"{language} server, {kind}", [*peer, "server", "--port=0"] + of_server,
                     [our_client], of_client, environment, NOT_OF_SERVER.get(language, ()))
    print(f"{bout.passed} passed, {bout.failed} failed")
    return bout.failed > 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except peers_build.Missing as missing:
        print(f"SKIP: {missing}")
        sys.exit(77)
