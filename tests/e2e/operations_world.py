# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A running operations_server, for tests of what it shows."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request

PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, program, grpc):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        env = {**os.environ, **({"GRPC": "1"} if grpc else {})}
        self.process = subprocess.Popen([program, "127.0.0.1:0", f"127.0.0.1:{self.port}"], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n", self.process.stderr.read()

    def get(self, path, **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    def until(self, what, look):
        """What `look` returns, once that is something."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {PATIENCE_S} s: {what}")


@contextlib.contextmanager
def server(program, grpc=False):
    made = Server(program, grpc)
    try:
        yield made
    finally:
        made.process.send_signal(signal.SIGTERM)
        try:
            made.process.wait(10)
        except subprocess.TimeoutExpired:
            made.process.kill()
            made.process.wait()
        made.process.stdout.close()
        made.process.stderr.close()
