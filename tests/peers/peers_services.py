#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HAProxy asks a Bowline server for its health, with the configuration that docs/guide/health.md
shows; buf curl lists, describes and calls by reflection alone.

Usage: peers_services.py haproxy|buf SERVICES_SERVER FOLDER
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from peers_build import HERE, Missing, npm
from peers_run import Process

GUIDE = HERE.parent.parent / "docs/guide/health.md"
SERVICES = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection", "interop.Interop"]
HAPROXY = """
global
  stats socket {folder}/admin
defaults
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend front
  bind unix@{folder}/front proto h2
  mode http
  default_backend greeters
{backend}
"""
WAIT_S = 30


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r} instead of {wanted!r}")


def end(serving):
    """It is a lame duck for an hour once it is told to end, and then again."""
    while serving.child.poll() is None:
        serving.child.send_signal(signal.SIGTERM)
        try:
            serving.child.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            pass
    expect("the server's end", serving.child.returncode, 0)


def guide_backend(port):
    """The backend of the guide, with the server's address in place of its own."""
    text = re.search(r"```text\n(backend greeters\n.*?)```", GUIDE.read_text(), re.DOTALL)[1]
    text = text.replace("10.0.0.1:50051", f"127.0.0.1:{port}").replace("port 50051", f"port {port}")
    return text.replace("inter 2s", "inter 100ms fall 1 rise 1")


def status_of(admin):
    """What HAProxy thinks of the server: UP, DOWN."""
    shown = subprocess.run(
        ["/usr/bin/python3", "-c",
         "import socket,sys\n"
         "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
         "s.sendall(b'show stat\\n')\n"
         "print(b''.join(iter(lambda: s.recv(65536), b'')).decode())", str(admin)],
        stdout=subprocess.PIPE, text=True, check=True, timeout=10).stdout.splitlines()
    column = shown[0].lstrip("# ").split(",").index("status")
    return next(line.split(",")[column] for line in shown if line.startswith("greeters,one,"))


def wait_status(admin, wanted):
    end = time.monotonic() + WAIT_S
    while not (found := status_of(admin)).startswith(wanted):
        if time.monotonic() > end:
            raise SystemExit(f"HAProxy says {found}, not {wanted}")
        time.sleep(0.05)


def haproxy(server, folder):
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        raise Missing("there is no haproxy")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        serving = Process([server, "127.0.0.1:0"])
        (folder / "config").write_text(
            HAPROXY.format(folder=folder, backend=guide_backend(serving.line())))
        proxy = subprocess.Popen([program, "-q", "-db", "-f", folder / "config"],
                                 stdin=subprocess.DEVNULL)
        try:
            while not (folder / "admin").is_socket():
                expect("HAProxy's end", proxy.poll(), None)
                time.sleep(0.01)
            # A server is up until a check has failed; so it goes down first, and up by a check.
            wait_status(folder / "admin", "UP")
            serving.child.send_signal(signal.SIGSTOP)
            wait_status(folder / "admin", "DOWN")
            serving.child.send_signal(signal.SIGCONT)
            wait_status(folder / "admin", "UP")
            serving.child.send_signal(signal.SIGTERM)
            wait_status(folder / "admin", "DOWN")
            expect("the lame duck's end", serving.child.poll(), None)
        finally:
            proxy.terminate()
            proxy.wait(timeout=60)
        end(serving)


def buf(server, folder):
    folder = pathlib.Path(folder) / "buf"
    program = npm(folder, "buf") / ".bin/buf"
    serving = Process([server, "127.0.0.1:0"])
    url = f"http://127.0.0.1:{serving.line()}"

    def curl(*words):
        done = subprocess.run(
            [program, "curl", "--protocol", "grpc", "--http2-prior-knowledge", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=60,
            env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)})
        return done.stdout

    for protocol in ("grpc-v1", "grpc-v1alpha"):
        reflecting = ("--reflect-protocol", protocol)
        expect("services", sorted(curl(*reflecting, "--list-services", url).split()), SERVICES)
        listed = curl(*reflecting, "--list-methods", url).split()
        expect("a method", "interop.Interop/Echo" in listed, True)
        body = base64.b64encode(b"by reflection").decode()
        answer = curl(*reflecting, "-d", json.dumps({"body": body}), url + "/interop.Interop/Echo")
        expect("an answer", json.loads(answer), {"body": body})
        answer = curl(*reflecting, "-d", '{"service": "interop.Interop"}',
                      url + "/grpc.health.v1.Health/Check")
        expect("health", json.loads(answer), {"status": "SERVING"})
    end(serving)


def main():
    kind, server, folder = sys.argv[1:]
    try:
        {"haproxy": haproxy, "buf": buf}[kind](server, folder)
    except Missing as missing:
        print(f"SKIP: {missing}")
        return 77
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
