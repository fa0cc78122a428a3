#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A proxy stands between a Bowline client and a Bowline server that takes few calls of a connection:
no call is lost.

Usage: peers_proxy.py haproxy|nginx ECHO_SERVER ECHO_CLIENT [--seconds S]
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from peers_run import Load, Process, Tally, counters, faults_of

MAX_CALLS = 8
IN_FLIGHT = 400
DELAYS_MS = (0, 5)
# How many calls it gives to a connection that has not said how many it takes, and which share one.
WAYS = {"haproxy": [(100, "safe"), (MAX_CALLS, "always")], "nginx": [(1, "one by one")]}

HAPROXY = """
global
  tune.h2.max-concurrent-streams {streams}
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind unix@{front} proto h2
  default_backend back
backend back
  http-reuse {reuse}
  server bowline 127.0.0.1:{port} proto h2
"""

NGINX = """
daemon off;
error_log stderr;
pid {folder}/pid;
worker_processes 1;
events {{ worker_connections 2000; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream back {{ server 127.0.0.1:{port}; keepalive 16; }}
  server {{
    listen unix:{front} http2;
    location / {{ grpc_pass grpc://back; }}
  }}
}}
"""


def program(kind):
    return shutil.which(kind, path="/usr/sbin:/usr/bin:/sbin:/bin")


class Proxy:
    """One that listens at `front` once it is made."""

    def __init__(self, kind, way, folder, port):
        streams, reuse = way
        self.front = folder / "front"
        config = folder / "config"
        text = HAPROXY if kind == "haproxy" else NGINX
        config.write_text(text.format(folder=folder, front=self.front, port=port,
                                       streams=streams, reuse=reuse))
        command = ([program(kind), "-q", "-db", "-f", config] if kind == "haproxy"
                   else [program(kind), "-p", folder, "-c", config])
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while not self.front.is_socket():
            if self.child.poll() is not None:
                raise SystemExit(f"{kind} ended")
            time.sleep(0.01)

    def end(self):
        self.child.terminate()
        self.child.wait(timeout=60)


def through(kind, way, delay_ms, arguments, tally):
    with tempfile.TemporaryDirectory() as name:
        server = Process([arguments.echo_server, "-c", str(MAX_CALLS), "-d", str(delay_ms),
                          "127.0.0.1:0"])
        proxy = Proxy(kind, way, pathlib.Path(name), server.line())
        load = Load.of([arguments.echo_client], {}, f"grpc:unix:{proxy.front}", IN_FLIGHT, 1000,
                       arguments.seconds)
        proxy.end()
        told = counters(server.end())
    faults = load.faults() + faults_of(told, "protocol_errors", "broken", "not_ok")
    tally.judge(f"{kind} {way[1]}, {IN_FLIGHT} in flight, {MAX_CALLS} taken of a connection, answers after "
                f"{delay_ms} ms, {told['opened']} connections, {told['refused']} calls refused",
                load, faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("haproxy", "nginx"))
    parser.add_argument("echo_server")
    parser.add_argument("echo_client")
    parser.add_argument("--seconds", type=float, default=3, help="of each load")
    arguments = parser.parse_args()
    if program(arguments.kind) is None:
        print(f"SKIP: there is no {arguments.kind}")
        return 77
    tally = Tally()
    for way in WAYS[arguments.kind]:
        for delay_ms in DELAYS_MS:
            through(arguments.kind, way, delay_ms, arguments, tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
